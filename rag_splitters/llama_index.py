"""The strategies as LlamaIndex node parsers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.utils import get_tqdm_iterable
from pydantic import BaseModel
from typing_extensions import Self, override

from rag_splitters.chunker import Chunker, Function
from rag_splitters.chunkers import (
    FixedSizeChunker,
    HybridChunker,
    KeywordChunker,
    PageChunker,
    ParagraphChunker,
    RecursiveChunker,
    SentenceChunker,
    SeparatorChunker,
    SlidingWindowChunker,
    TitledChunker,
    TokenChunker,
)
from rag_splitters.frontend import Identities, copier, offset_in_source
from rag_splitters.ids import stable_uuid
from rag_splitters.span import Span

__all__ = [
    "ChunkerNodeParser",
    "FixedSizeNodeParser",
    "HybridNodeParser",
    "KeywordNodeParser",
    "PageNodeParser",
    "ParagraphNodeParser",
    "RecursiveNodeParser",
    "SentenceNodeParser",
    "SeparatorNodeParser",
    "SlidingWindowNodeParser",
    "TitledNodeParser",
    "TokenNodeParser",
]

_ALGORITHM = 1
"""Part of the ingestion cache's key: raised when the same parameters give other chunks."""


class ChunkerNodeParser(Chunker, NodeParser):
    """What makes a chunker a LlamaIndex `NodeParser`.

    Mix it into a chunker of your own to get one:

    >>> from rag_splitters import Span
    >>> class Halves(Chunker):
    ...     def spans(self, text):
    ...         return [Span(0, len(text) // 2), Span(len(text) // 2, len(text))]
    >>> class HalvesNodeParser(Halves, ChunkerNodeParser):
    ...     pass
    >>> [node.text for node in HalvesNodeParser()([Document(text="tick tock")])]
    ['tick', ' tock']
    """

    id_func: Function | None = None  # type: ignore[assignment]
    """(chunk number, document) -> node id; None: UUIDv5 of the document, position and text."""

    @classmethod
    def class_name(cls) -> str:
        return cls.__name__

    @override
    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """The parameters; the same in every process, as the ingestion cache wants it."""
        return {**dict(sorted(super().to_dict(**kwargs).items())), "algorithm": _ALGORITHM}

    @classmethod
    @override
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """The parser that `to_dict` described."""
        known = {name: value for name, value in data.items() if name != "algorithm"}
        return super().from_dict(known, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle. Raises: TypeError rather than leave out what cannot be pickled.

        LlamaIndex's own deletes such fields, from the parser itself, with a line in the log.
        """
        state = BaseModel.__getstate__(self)
        fields = dict(state["__dict__"])
        for name, value in state["__dict__"].items():
            try:
                pickle.dumps(value)
            except Exception as error:
                if name != "callback_manager":  # a process has its own
                    raise TypeError(
                        f"{type(self).__name__} cannot be pickled because of {name}={value!r}: "
                        "use a name, or a function at the top level of a module"
                    ) from error
                del fields[name]
        return {**state, "__dict__": fields}

    @override
    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        texts = [_text(node) for node in nodes]
        shown = get_tqdm_iterable(texts, show_progress, "Parsing nodes")
        return self._assembled(
            nodes, texts, self.spans_of_documents(shown, [node.metadata for node in nodes])
        )

    @override
    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        texts = [_text(node) for node in nodes]
        shown = get_tqdm_iterable(texts, show_progress, "Parsing nodes")
        return self._assembled(
            nodes, texts, await self.aspans_of_documents(shown, [node.metadata for node in nodes])
        )

    @override
    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        """Nothing is left to do; LlamaIndex would replace the exact positions by a search."""
        return nodes

    def _assembled(
        self, nodes: Sequence[BaseNode], texts: Sequence[str], results: list[list[Span]]
    ) -> list[BaseNode]:
        """A node for every span, tied to its source and its neighbours."""
        identities = Identities()
        made: list[BaseNode] = []
        for node, text, spans in zip(nodes, texts, results, strict=True):
            if not spans and _holds_more_than_text(node):
                made.append(node)
                continue
            given = node.id_ if "id_" in node.model_fields_set else None
            new_id = identities.ids_of(text, node.metadata, given)
            chunks = self._chunks(node, text, spans, new_id)
            if self.include_prev_next_rel:
                _tie_neighbours(chunks)
            made += chunks
        return made

    def _chunks(
        self,
        node: BaseNode,
        text: str,
        spans: Sequence[Span],
        new_id: Callable[[int, int, str], str],
    ) -> list[TextNode]:
        kind, shared = _kind(node)
        copied = copier(node.metadata if self.include_metadata else {})
        source = _copies(node.source_node or _related(node))
        own = (getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None))
        offset, bound = offset_in_source(own[0], own[1], text)
        excluded = (node.excluded_embed_metadata_keys, node.excluded_llm_metadata_keys)
        chunks: list[TextNode] = []
        for index, span in enumerate(spans):
            content = span.text_of(text)
            known = {**copied(), **span.metadata, "chunk_index": index}
            added = ["chunk_index", *span.metadata]
            chunks.append(
                kind(
                    id_=self.id_func(index, node)
                    if self.id_func
                    else new_id(span.start, span.end, content),
                    text=content,
                    metadata=known,
                    start_char_idx=offset + span.start if bound is None else offset,
                    end_char_idx=offset + span.end if bound is None else bound,
                    excluded_embed_metadata_keys=list(dict.fromkeys([*excluded[0], *added])),
                    excluded_llm_metadata_keys=list(dict.fromkeys([*excluded[1], *added])),
                    relationships={NodeRelationship.SOURCE: source()},
                    **shared,
                )
            )
        return chunks


def _text(node: BaseNode) -> str:
    return node.get_content(metadata_mode=MetadataMode.NONE)


def _holds_more_than_text(node: BaseNode) -> bool:
    """Would dropping this node lose more than blank text? An image, a reference, a recording."""
    if isinstance(node, (ImageNode, IndexNode)):
        return True
    resources = ("image_resource", "audio_resource", "video_resource")
    return any(getattr(node, name, None) is not None for name in resources)


def _kind(node: BaseNode) -> tuple[Callable[..., TextNode], dict[str, Any]]:
    """The class of a node's chunks, and the fields that they take from it."""
    shared = {
        name: getattr(node, name)
        for name in ("metadata_separator", "metadata_template", "text_template")
        if hasattr(node, name)
    }
    if isinstance(node, (ImageNode, ImageDocument)):
        for name in ("image", "image_path", "image_url", "image_mimetype"):
            shared[name] = getattr(node, name, None)
        return ImageNode, shared
    if isinstance(node, IndexNode):
        return IndexNode, {**shared, "index_id": node.index_id, "obj": node.obj}
    return TextNode, shared


def _copies(related: RelatedNodeInfo) -> Callable[[], RelatedNodeInfo]:
    """Makes copies that share nothing that could be changed."""
    copied, facts = copier(related.metadata), dict(related)
    return lambda: RelatedNodeInfo(**{**facts, "metadata": copied()})


def _related(node: BaseNode) -> RelatedNodeInfo:
    """What other nodes know of this one; its metadata are a copy, its hash is taken once."""
    try:
        digest = node.hash
    except UnicodeEncodeError:  # lone surrogates
        digest = stable_uuid(_text(node), str(node.metadata))
    return RelatedNodeInfo(
        node_id=node.node_id,
        node_type=node.get_type(),
        metadata=copier(node.metadata)(),
        hash=digest,
    )


def _tie_neighbours(chunks: Sequence[TextNode]) -> None:
    """Give each chunk its previous and next one."""
    related = [_related(chunk) for chunk in chunks]
    for index, chunk in enumerate(chunks):
        if index > 0:
            chunk.relationships[NodeRelationship.PREVIOUS] = related[index - 1]
        if index + 1 < len(chunks):
            chunk.relationships[NodeRelationship.NEXT] = related[index + 1]


class FixedSizeNodeParser(FixedSizeChunker, ChunkerNodeParser):
    """LlamaIndex parser for `FixedSizeChunker`."""


class HybridNodeParser(HybridChunker, ChunkerNodeParser):
    """LlamaIndex parser for `HybridChunker`."""


class KeywordNodeParser(KeywordChunker, ChunkerNodeParser):
    """LlamaIndex parser for `KeywordChunker`."""


class PageNodeParser(PageChunker, ChunkerNodeParser):
    """LlamaIndex parser for `PageChunker`."""


class ParagraphNodeParser(ParagraphChunker, ChunkerNodeParser):
    """LlamaIndex parser for `ParagraphChunker`."""


class RecursiveNodeParser(RecursiveChunker, ChunkerNodeParser):
    """LlamaIndex parser for `RecursiveChunker`."""


class SentenceNodeParser(SentenceChunker, ChunkerNodeParser):
    """LlamaIndex parser for `SentenceChunker`."""


class SeparatorNodeParser(SeparatorChunker, ChunkerNodeParser):
    """LlamaIndex parser for `SeparatorChunker`."""


class SlidingWindowNodeParser(SlidingWindowChunker, ChunkerNodeParser):
    """LlamaIndex parser for `SlidingWindowChunker`."""


class TitledNodeParser(TitledChunker, ChunkerNodeParser):
    """LlamaIndex parser for `TitledChunker`."""


class TokenNodeParser(TokenChunker, ChunkerNodeParser):
    """LlamaIndex parser for `TokenChunker`."""
