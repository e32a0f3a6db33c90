"""The strategies as LlamaIndex node parsers."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import (
    BaseNode,
    Document,
)
from llama_index.core.utils import get_tqdm_iterable
from pydantic import AfterValidator, BaseModel
from tqdm.auto import tqdm
from typing_extensions import Self, override

from rag_splitters import chunkers
from rag_splitters.chunker import Chunker
from rag_splitters.fields import Function
from rag_splitters.llama_index.nodes import (
    chunk_nodes,
    holds_more_than_text,
    text_of,
    tie,
)
from rag_splitters.models.calling import showing
from rag_splitters.span import Source, Span
from rag_splitters.text.pages import first_page, optional_page_break, page_breaks, with_pages
from rag_splitters.text.sources import Identities

__all__ = [
    "AgenticNodeParser",
    "ChunkerNodeParser",
    "ClusterNodeParser",
    "CodeNodeParser",
    "ContentAwareNodeParser",
    "ContextualNodeParser",
    "EmbeddingNodeParser",
    "EntityNodeParser",
    "FixedSizeNodeParser",
    "HierarchicalNodeParser",
    "HybridNodeParser",
    "KeywordNodeParser",
    "ModalityNodeParser",
    "PageNodeParser",
    "ParagraphNodeParser",
    "PropositionNodeParser",
    "RecursiveNodeParser",
    "SemanticNodeParser",
    "SentenceNodeParser",
    "SeparatorNodeParser",
    "SlidingWindowNodeParser",
    "TableNodeParser",
    "TitledNodeParser",
    "TokenNodeParser",
    "TopicNodeParser",
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

    page_break: Annotated[str | None, AfterValidator(optional_page_break)] = None
    """A regular expression for what stands between pages: adds `page_start` and `page_end`."""

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
        parameters = {name: value for name, value in data.items() if name != "algorithm"}
        return super().from_dict(parameters, **kwargs)

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
        sources = _sources(nodes)
        shown = get_tqdm_iterable(sources, show_progress, "Parsing nodes")
        with _shown(show_progress):
            return self._assembled(nodes, sources, self.split(shown))

    @override
    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        sources = await asyncio.to_thread(_sources, nodes)
        shown = get_tqdm_iterable(sources, show_progress, "Parsing nodes")
        with _shown(show_progress):
            spans = [spans async for spans in self.asplit(shown)]
        return await asyncio.to_thread(self._assembled, nodes, sources, spans)

    @override
    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        """Nothing is left to do; LlamaIndex would replace the exact positions by a search."""
        return nodes

    def _assembled(
        self, nodes: Sequence[BaseNode], sources: Sequence[Source], results: Iterable[list[Span]]
    ) -> list[BaseNode]:
        """A node for every span, tied to its source, its neighbours and its place in a tree."""
        identities = Identities()
        assembled: list[BaseNode] = []
        for node, source, spans in zip(nodes, sources, results, strict=True):
            if not spans and holds_more_than_text(node):
                assembled.append(node)
                continue
            if self.page_break is not None:
                breaks = page_breaks(source.text, self.page_break)
                spans = with_pages(spans, breaks, first_page(source.metadata))
            if self.id_func:
                ids = [self.id_func(index, node) for index in range(len(spans))]
            else:
                new_id = identities.ids_of(source.text, source.metadata, source.id).of
                ids = [new_id(span.start, span.end, span.content) for span in spans]
            chunks = chunk_nodes(node, source.text, spans, ids, self.include_metadata)
            tie(chunks, spans, self.include_prev_next_rel)
            assembled += chunks
        return assembled


def _sources(nodes: Sequence[BaseNode]) -> list[Source]:
    return [
        Source(
            text_of(node),
            node.metadata,
            node.id_ if "id_" in node.model_fields_set else None,
            number,
        )
        for number, node in enumerate(nodes)
    ]


def _shown(show_progress: bool) -> AbstractContextManager[None]:
    """A bar for the requests to a model, where there are any, behind that for the texts."""
    if not show_progress:
        return nullcontext()
    return showing(lambda total: tqdm(total=total, desc="Asking the model"))


class AgenticNodeParser(chunkers.AgenticChunker, ChunkerNodeParser):
    """LlamaIndex parser for `AgenticChunker`."""


class ClusterNodeParser(chunkers.ClusterChunker, ChunkerNodeParser):
    """LlamaIndex parser for `ClusterChunker`."""


class CodeNodeParser(chunkers.CodeChunker, ChunkerNodeParser):
    """LlamaIndex parser for `CodeChunker`."""


class ContentAwareNodeParser(chunkers.ContentAwareChunker, ChunkerNodeParser):
    """LlamaIndex parser for `ContentAwareChunker`."""


class ContextualNodeParser(chunkers.ContextualChunker, ChunkerNodeParser):
    """LlamaIndex parser for `ContextualChunker`."""


class EmbeddingNodeParser(chunkers.EmbeddingChunker, ChunkerNodeParser):
    """LlamaIndex parser for `EmbeddingChunker`."""


class EntityNodeParser(chunkers.EntityChunker, ChunkerNodeParser):
    """LlamaIndex parser for `EntityChunker`."""


class FixedSizeNodeParser(chunkers.FixedSizeChunker, ChunkerNodeParser):
    """LlamaIndex parser for `FixedSizeChunker`."""


class HierarchicalNodeParser(chunkers.HierarchicalChunker, ChunkerNodeParser):
    """LlamaIndex parser for `HierarchicalChunker`."""


class HybridNodeParser(chunkers.HybridChunker, ChunkerNodeParser):
    """LlamaIndex parser for `HybridChunker`."""


class KeywordNodeParser(chunkers.KeywordChunker, ChunkerNodeParser):
    """LlamaIndex parser for `KeywordChunker`."""


class ModalityNodeParser(chunkers.ModalityChunker, ChunkerNodeParser):
    """LlamaIndex parser for `ModalityChunker`."""


class PageNodeParser(chunkers.PageChunker, ChunkerNodeParser):  # type: ignore[misc]
    """LlamaIndex parser for `PageChunker`."""


class ParagraphNodeParser(chunkers.ParagraphChunker, ChunkerNodeParser):
    """LlamaIndex parser for `ParagraphChunker`."""


class PropositionNodeParser(chunkers.PropositionChunker, ChunkerNodeParser):
    """LlamaIndex parser for `PropositionChunker`."""


class RecursiveNodeParser(chunkers.RecursiveChunker, ChunkerNodeParser):
    """LlamaIndex parser for `RecursiveChunker`."""


class SemanticNodeParser(chunkers.SemanticChunker, ChunkerNodeParser):
    """LlamaIndex parser for `SemanticChunker`."""


class SentenceNodeParser(chunkers.SentenceChunker, ChunkerNodeParser):
    """LlamaIndex parser for `SentenceChunker`."""


class SeparatorNodeParser(chunkers.SeparatorChunker, ChunkerNodeParser):
    """LlamaIndex parser for `SeparatorChunker`."""


class SlidingWindowNodeParser(chunkers.SlidingWindowChunker, ChunkerNodeParser):
    """LlamaIndex parser for `SlidingWindowChunker`."""


class TableNodeParser(chunkers.TableChunker, ChunkerNodeParser):
    """LlamaIndex parser for `TableChunker`."""


class TitledNodeParser(chunkers.TitledChunker, ChunkerNodeParser):
    """LlamaIndex parser for `TitledChunker`."""


class TokenNodeParser(chunkers.TokenChunker, ChunkerNodeParser):
    """LlamaIndex parser for `TokenChunker`."""


class TopicNodeParser(chunkers.TopicChunker, ChunkerNodeParser):
    """LlamaIndex parser for `TopicChunker`."""
