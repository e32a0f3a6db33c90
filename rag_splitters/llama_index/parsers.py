"""The strategies as LlamaIndex node parsers."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, cast

import llama_index.core
from llama_index.core.callbacks import CallbackManager
from llama_index.core.node_parser import MetadataAwareTextSplitter
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseNode, Document, ImageDocument, TextNode
from llama_index.core.utils import get_tqdm_iterable
from pydantic import BaseModel, BeforeValidator, WithJsonSchema, WrapSerializer
from tqdm.auto import tqdm
from typing_extensions import Self, override

from rag_splitters import __version__, chunkers
from rag_splitters.calls import with_value
from rag_splitters.chunkers.modality import Handling
from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.front_end import FrontEnd
from rag_splitters.contract.own_texts import base_texts, chunk_key, own_spans
from rag_splitters.contract.registry import Nested, NestedMany
from rag_splitters.contract.sized import chunkers_in, replace_inside, unit_of
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.llama_index.nodes import (
    check_node,
    chunk_nodes,
    holds_more_than_text,
    link_again,
    link_nodes,
    link_parts,
    metadata_text,
    text_of,
    user_id,
)
from rag_splitters.llama_index.options import VERSION_KEY, our_parameters
from rag_splitters.models.calling import showing
from rag_splitters.parameters.checks import check_list
from rag_splitters.parameters.conversions import length_in_tokens
from rag_splitters.parameters.fields import Function, Overlap, Size, Unit
from rag_splitters.parameters.functions import names_within_process
from rag_splitters.span import Source, Span
from rag_splitters.text.sizing import LengthFunction, text_length
from rag_splitters.text.sources import Identities

__all__ = [
    "AgenticNodeParser",
    "AutoNodeParser",
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
    "JsonNodeParser",
    "KeywordNodeParser",
    "ModalityNodeParser",
    "PageNodeParser",
    "ParagraphNodeParser",
    "PropositionNodeParser",
    "RecursiveNodeParser",
    "SemanticNodeParser",
    "SentenceNodeParser",
    "SentenceWindowNodeParser",
    "SeparatorNodeParser",
    "SlidingWindowNodeParser",
    "TableNodeParser",
    "TitledNodeParser",
    "TokenNodeParser",
    "TopicNodeParser",
]


# LlamaIndex's serializer of a field of the type NodeParser needs a function with a name.
_IdFunction = Annotated[
    Function,
    BeforeValidator(lambda value: default_id_func if value is None else value),
    WrapSerializer(lambda value, describe: None if value is default_id_func else describe(value)),
    WithJsonSchema({"type": "string"}),
]


_identities: ContextVar[Identities | None] = ContextVar("_identities", default=None)
"""The ids of one call, in which a subclass may cut equal parts of a document one by one."""


class ChunkerNodeParser(FrontEnd, MetadataAwareTextSplitter):
    """Mix-in that makes a chunker a LlamaIndex `NodeParser`.

    To make a parser of your own chunker, inherit from both:

    >>> from rag_splitters import Chunker, Span
    >>> class Halves(Chunker):
    ...     def spans(self, text):
    ...         return [Span(0, len(text) // 2), Span(len(text) // 2, len(text))]
    >>> class HalvesNodeParser(Halves, ChunkerNodeParser):
    ...     pass
    >>> [node.text for node in HalvesNodeParser()([Document(text="tick tock")])]
    ['tick', ' tock']
    """

    unused_methods: ClassVar[tuple[str, ...]] = (
        *("_split_text", "_split", "_merge", "_get_splits_by_fns", "_postprocess_chunks"),
        *("_token_size", "_chunk_node", "_recursively_get_nodes_from_nodes", "get_nodes_from_node"),
        *("_build_sentence_groups", "_build_node_chunks", "_build_node_from_split"),
        *("build_semantic_nodes_from_documents", "abuild_semantic_nodes_from_documents"),
        *("build_window_nodes_from_documents", "_calculate_distances_between_sentence_groups"),
    )

    id_func: _IdFunction = default_id_func
    """Function (chunk number, document) -> id; default: UUIDv5 of document, position and text."""

    count_metadata: bool = True
    """Whether the metadata that is embedded with a chunk counts towards its size."""

    @classmethod
    @override
    def translate_parameters(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        return our_parameters(cls, parameters)

    @override
    def model_post_init(self, context: Any, /) -> None:
        """Count tokens with `Settings.tokenizer`, unless the user chose another unit."""
        tokenizer = llama_index.core.global_tokenizer
        if tokenizer is not None and (unit := length_in_tokens(tokenizer)) != "tokens":
            unset = type(self).model_fields.keys() - self.model_fields_set
            changes = _in_unit(self, unit)
            self.__dict__.update({name: changes[name] for name in changes.keys() & unset})

    @classmethod
    def from_defaults(cls, *args: Any, **parameters: Any) -> Self:
        """Create a parser; the same as the constructor, as LlamaIndex's parsers have it."""
        return cls(*args, **parameters)

    @classmethod
    @override
    def from_dict(cls, data: dict[str, Any], **parameters: Any) -> Self:
        """Create a parser from what `to_dict` returned; these parameters replace its own."""
        return super().from_dict(data, **cls.translate_parameters(parameters))

    @property
    def has_own_ids(self) -> bool:
        """Whether an `id_func` of the user's makes the ids."""
        return self.id_func is not default_id_func

    @classmethod
    def class_name(cls) -> str:
        return cls.__name__

    @override
    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return the parameters: a configuration for `from_dict`, and the ingestion cache's key.

        It is the same in every process, and another one in another version of this package, which
        may cut elsewhere. A function without an importable or registered name, such
        as a lambda, is written as a unique token, so that the cache never confuses two functions;
        `from_dict` then raises an error that says to pass the function again.
        """
        with names_within_process():
            parameters = super().to_dict(**kwargs)
        return {**dict(sorted(parameters.items())), VERSION_KEY: __version__}

    def __eq__(self, other: object) -> bool:
        """Compare the parameters; each parser has a callback manager of its own."""
        if type(other) is not type(self):
            return NotImplemented
        names = type(self).model_fields.keys() - {"callback_manager"}
        return all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = Chunker.__hash__

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle. Raises TypeError if a field cannot be pickled.

        LlamaIndex's own method would delete such fields from the parser, and only log a warning.
        """
        state = BaseModel.__getstate__(self)
        fields = dict(state["__dict__"])
        for name, value in state["__dict__"].items():
            try:
                pickle.dumps(value)
            except Exception as error:
                if name != "callback_manager":  # a process has its own
                    raise InputTypeError(
                        f"{type(self).__name__} cannot be pickled because of {name}={value!r}: "
                        f"use a name, or a function at the top level of a module ({error})"
                    ) from error
                del fields[name]
        return {**state, "__dict__": fields}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state; with LlamaIndex's own method, every parameter would count as set."""
        fields = {"callback_manager": CallbackManager([]), **state["__dict__"]}
        BaseModel.__setstate__(self, {**state, "__dict__": fields})

    def _token_size(self, text: str) -> int:
        """Return the size of a text; other code asks LlamaIndex's splitters for it."""
        return text_length(text, unit_of(self))

    @override
    def split_text_metadata_aware(self, text: str, metadata_str: str) -> list[str]:
        """Return the texts of chunks that leave room for this metadata.

        Raises ValueError if the metadata leaves no room for text.
        """
        self.check_parameters()
        self._check_room(metadata_str, "the text")
        return base_texts(
            self, text, lambda source: next(self.split([replace(source, prefix=metadata_str)]))
        )

    @override
    def get_nodes_from_documents(
        self, documents: Iterable[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        """Cut documents, which are read once, into nodes."""
        nodes = _list_nodes(documents)
        with with_value(_identities, Identities()):
            return super().get_nodes_from_documents(nodes, show_progress, **kwargs)

    @override
    async def aget_nodes_from_documents(
        self, documents: Iterable[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        """Asynchronous `get_nodes_from_documents`; models are awaited."""
        nodes, identities = await asyncio.to_thread(lambda: (_list_nodes(documents), Identities()))
        with with_value(_identities, identities):
            return await super().aget_nodes_from_documents(nodes, show_progress, **kwargs)

    @override
    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        sources = self._sources(nodes)
        bar = get_tqdm_iterable(sources, show_progress, "Parsing nodes")
        is_own = self.overrides("split_text_metadata_aware")
        with _model_bar(show_progress):
            spans = map(self._metadata_aware_spans, bar) if is_own else self.split(bar)
            return self._assemble(nodes, sources, spans)

    @override
    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        if self.overrides("_parse_nodes", "split_text_metadata_aware"):
            return await asyncio.to_thread(
                self._parse_nodes, nodes, show_progress=show_progress, **kwargs
            )
        sources = await asyncio.to_thread(self._sources, nodes)
        bar = get_tqdm_iterable(sources, show_progress, "Parsing nodes")
        with _model_bar(show_progress):
            spans = [spans async for spans in self.asplit(bar)]
        return await asyncio.to_thread(self._assemble, nodes, sources, spans)

    def _metadata_aware_spans(self, source: Source) -> list[Span]:
        """Cut a text with the `split_text_metadata_aware` of a user's subclass."""
        cut = partial(self.split_text_metadata_aware, metadata_str=source.prefix)
        return self.with_places(own_spans(self, source, cut), source)

    @override
    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        """Complete the nodes that a subclass's `_parse_nodes` made; ours are complete.

        LlamaIndex adds the document's metadata and the neighbours. It would also replace exact
        positions by guesses. Ours are linked again if a subclass may have changed them.
        """
        is_own = self.overrides("_parse_nodes", "_aparse_nodes")
        if not is_own or all("chunk_index" in node.metadata for node in nodes):
            is_changed = is_own or self.overrides("_postprocess_parsed_nodes")
            if is_changed and self.include_prev_next_rel:
                link_again(nodes)
            return nodes
        chunks = [node for node in nodes if isinstance(node, TextNode)]
        positions = [(chunk.start_char_idx, chunk.end_char_idx) for chunk in chunks]
        nodes = super()._postprocess_parsed_nodes(nodes, parent_doc_map)
        for chunk, position in zip(chunks, positions, strict=True):
            chunk.start_char_idx, chunk.end_char_idx = position
        return nodes

    def _sources(self, nodes: Sequence[BaseNode]) -> list[Source]:
        """Return the texts of nodes, with room for their metadata if that is counted.

        Equal metadata of several nodes is measured only once. Raises ValueError if the metadata of
        a node leaves no room for text.
        """
        self.check_parameters()
        with_context = any(each.counts_context for each in chunkers_in(self))
        prefixes = [""] * len(nodes)
        if self.count_metadata and self.overrides("_get_metadata_str"):
            prefixes = list(map(self._get_metadata_str, nodes))
        elif self.count_metadata and (self.include_metadata or with_context):
            own = self.include_metadata
            prefixes = [
                metadata_text(node, with_own=own, with_context=with_context) for node in nodes
            ]
        for prefix, node in dict(zip(reversed(prefixes), reversed(nodes), strict=True)).items():
            self._check_room(prefix, f"document {node.node_id!r}")
        return [
            Source(text_of(node), node.metadata, user_id(node), number, prefix=prefix)
            for number, (node, prefix) in enumerate(zip(nodes, prefixes, strict=True))
        ]

    def _check_room(self, metadata: str, owner: str) -> None:
        """Raise ValueError if metadata leaves no room for text in a chunk."""
        if metadata and not self.has_room_after(metadata):
            size = getattr(self, "chunk_size", None)
            of_size = "" if size is None else f" (chunk_size={size})"
            raise InputError(
                f"the metadata of {owner} leaves no room for text in a chunk{of_size}: raise "
                "chunk_size, exclude keys (excluded_embed_metadata_keys and "
                "excluded_llm_metadata_keys), or pass count_metadata=False"
            )

    def _assemble(
        self, nodes: Sequence[BaseNode], sources: Sequence[Source], results: Iterable[list[Span]]
    ) -> list[BaseNode]:
        """Make a node of every span, linked to its source, neighbours, parent and children."""
        identities = _identities.get() or Identities()
        assembled: list[BaseNode] = []
        before: list[TextNode] = []
        for node, source, spans in zip(nodes, sources, results, strict=True):
            if not spans and isinstance(node, ImageDocument):
                spans = [Span(0, 0)]
            elif not spans and holds_more_than_text(node):
                assembled.append(node)
                continue
            if self.has_own_ids:
                ids = [self.id_func(index, node) for index in range(len(spans))]
                if other := [each for each in ids if not isinstance(each, str)]:
                    raise InputError(f"id_func must return a string, got {other[0]!r}")
            else:
                new_id = identities.ids_of(source.text, source.metadata, source.id).of
                ids = [new_id(*chunk_key(span, index)) for index, span in enumerate(spans)]
            chunks = chunk_nodes(node, source.text, spans, ids, self.include_metadata)
            link_nodes(chunks, spans, self.include_prev_next_rel)
            if self.include_prev_next_rel and node.source_node is not None:
                link_parts(before, chunks)
            assembled += chunks
            before = chunks or before
        return assembled


def _list_nodes(documents: Iterable[BaseNode]) -> Sequence[Document]:
    """Return documents as a list. Raises TypeError for anything that is not a document or node."""
    check_list(documents, "documents")
    nodes = list(documents)
    for node in nodes:
        check_node(node)
    return cast("list[Document]", nodes)  # LlamaIndex's own classes take any node


def _in_unit(chunker: Chunker, unit: LengthFunction) -> dict[str, Any]:
    """Return the parameters that change if `unit` replaces "tokens" in a chunker and inside it."""
    changes = replace_inside(chunker, lambda each: each.model_copy(update=_in_unit(each, unit)))
    is_counted = getattr(chunker, "length_function", None) == "tokens"
    return {**changes, "length_function": unit} if is_counted else changes


def _model_bar(show_progress: bool) -> AbstractContextManager[None]:
    """Show a progress bar for requests to a model, if there are any, below that for texts."""
    if not show_progress:
        return nullcontext()
    return showing(lambda total: tqdm(total=total, desc="Asking the model"))


class _Tokens(BaseModel):
    """Defaults of most parsers: sizes in tokens, as everywhere in LlamaIndex."""

    chunk_size: Size = 256
    length_function: Unit = "tokens"


_LAST = ("include_metadata", "include_prev_next_rel", "id_func")
"""The last parameters of LlamaIndex's parsers, by their positions."""

_RECURSIVE = chunkers.RecursiveChunker(chunk_size=256, length_function="tokens")


class AgenticNodeParser(_Tokens, chunkers.AgenticChunker, ChunkerNodeParser):
    """LlamaIndex parser for `AgenticChunker`."""


class AutoNodeParser(_Tokens, chunkers.AutoChunker, ChunkerNodeParser):
    """LlamaIndex parser for `AutoChunker`."""


class ClusterNodeParser(_Tokens, chunkers.ClusterChunker, ChunkerNodeParser):
    """LlamaIndex parser for `ClusterChunker`."""


class CodeNodeParser(chunkers.CodeChunker, ChunkerNodeParser):
    """LlamaIndex parser for `CodeChunker`."""

    positional: ClassVar[tuple[str, ...]] = (
        *("language", "chunk_lines", "chunk_lines_overlap", "max_chars", "count_mode"),
        *("max_tokens", "tokenizer", "parser", "callback_manager", *_LAST),
    )

    chunk_size: Size = 512
    length_function: Unit = "tokens"


class ContentAwareNodeParser(_Tokens, chunkers.ContentAwareChunker, ChunkerNodeParser):
    """LlamaIndex parser for `ContentAwareChunker`."""


class ContextualNodeParser(chunkers.ContextualChunker, ChunkerNodeParser):
    """LlamaIndex parser for `ContextualChunker`."""

    chunker: Nested = _RECURSIVE


class EmbeddingNodeParser(_Tokens, chunkers.EmbeddingChunker, ChunkerNodeParser):
    """LlamaIndex parser for `EmbeddingChunker`."""


class EntityNodeParser(_Tokens, chunkers.EntityChunker, ChunkerNodeParser):
    """LlamaIndex parser for `EntityChunker`."""


class FixedSizeNodeParser(_Tokens, chunkers.FixedSizeChunker, ChunkerNodeParser):
    """LlamaIndex parser for `FixedSizeChunker`."""


class HierarchicalNodeParser(chunkers.HierarchicalChunker, ChunkerNodeParser):
    """LlamaIndex parser for `HierarchicalChunker`."""

    positional: ClassVar[tuple[str, ...]] = ("chunk_sizes", "chunk_overlap")

    chunk_sizes: tuple[int, ...] | None = (2048, 512, 128)
    chunk_size: Size = 128
    chunk_overlap: Overlap = 20
    length_function: Unit = "tokens"
    emit: Literal["leaves", "all"] = "all"


class HybridNodeParser(chunkers.HybridChunker, ChunkerNodeParser):
    """LlamaIndex parser for `HybridChunker`."""

    stages: NestedMany = (
        chunkers.ParagraphChunker(chunk_size=256, length_function="tokens"),
        chunkers.SentenceChunker(chunk_size=256, length_function="tokens"),
    )


class JsonNodeParser(_Tokens, chunkers.JsonChunker, ChunkerNodeParser):
    """LlamaIndex parser for `JsonChunker`."""


class KeywordNodeParser(_Tokens, chunkers.KeywordChunker, ChunkerNodeParser):
    """LlamaIndex parser for `KeywordChunker`."""


class ModalityNodeParser(chunkers.ModalityChunker, ChunkerNodeParser):
    """LlamaIndex parser for `ModalityChunker`."""

    text: Handling = _RECURSIVE
    table: Handling = chunkers.TableChunker(text=None, chunk_size=256, length_function="tokens")
    code: Handling = chunkers.RecursiveChunker(
        separators=("\n\n", "\n"), chunk_size=256, length_function="tokens"
    )


class PageNodeParser(_Tokens, chunkers.PageChunker, ChunkerNodeParser):  # type: ignore[misc]
    """LlamaIndex parser for `PageChunker`."""


class ParagraphNodeParser(_Tokens, chunkers.ParagraphChunker, ChunkerNodeParser):
    """LlamaIndex parser for `ParagraphChunker`."""


class PropositionNodeParser(_Tokens, chunkers.PropositionChunker, ChunkerNodeParser):
    """LlamaIndex parser for `PropositionChunker`."""


class RecursiveNodeParser(_Tokens, chunkers.RecursiveChunker, ChunkerNodeParser):
    """LlamaIndex parser for `RecursiveChunker`."""


class SemanticNodeParser(_Tokens, chunkers.SemanticChunker, ChunkerNodeParser):
    """LlamaIndex parser for `SemanticChunker`."""

    positional: ClassVar[tuple[str, ...]] = (
        "embed_model",
        "breakpoint_percentile_threshold",
        "buffer_size",
        "sentence_splitter",
    )


class SentenceNodeParser(chunkers.SentenceChunker, ChunkerNodeParser):
    """LlamaIndex parser for `SentenceChunker`."""

    positional: ClassVar[tuple[str, ...]] = (
        *("separator", "chunk_size", "chunk_overlap", "tokenizer", "paragraph_separator"),
        *("chunking_tokenizer_fn", "secondary_chunking_regex", "callback_manager", *_LAST),
    )

    chunk_size: Size = 1024
    chunk_overlap: Overlap = 200
    length_function: Unit = "tokens"


class SentenceWindowNodeParser(_Tokens, chunkers.SentenceWindowChunker, ChunkerNodeParser):
    """LlamaIndex parser for `SentenceWindowChunker`."""

    positional: ClassVar[tuple[str, ...]] = (
        "sentence_splitter",
        "window_size",
        "window_metadata_key",
        "original_text_metadata_key",
        "include_metadata",
        "include_prev_next_rel",
        "callback_manager",
        "id_func",
    )

    window_metadata_key: str = "window"
    """Key in the metadata for the window."""

    original_text_metadata_key: str = "original_text"
    """Key in the metadata for the sentence itself."""

    @override
    def _assemble(
        self, nodes: Sequence[BaseNode], sources: Sequence[Source], results: Iterable[list[Span]]
    ) -> list[BaseNode]:
        """Make the nodes, with sentence and window under the keys that the user chose."""
        pairs = zip(sources, results, strict=True)
        return super()._assemble(
            nodes, sources, (self._with_keys(s.text, spans) for s, spans in pairs)
        )

    def _with_keys(self, text: str, spans: list[Span]) -> list[Span]:
        for span in spans:  # a subclass's own `split_text` gives no windows
            metadata = {self.original_text_metadata_key: span.text_of(text)}
            if "window" in span.metadata:
                metadata = {self.window_metadata_key: span.metadata["window"], **metadata}
            span.metadata = metadata
        return spans


class SeparatorNodeParser(chunkers.SeparatorChunker, ChunkerNodeParser):
    """LlamaIndex parser for `SeparatorChunker`."""

    length_function: Unit = "tokens"


class SlidingWindowNodeParser(_Tokens, chunkers.SlidingWindowChunker, ChunkerNodeParser):
    """LlamaIndex parser for `SlidingWindowChunker`."""


class TableNodeParser(_Tokens, chunkers.TableChunker, ChunkerNodeParser):
    """LlamaIndex parser for `TableChunker`."""


class TitledNodeParser(chunkers.TitledChunker, ChunkerNodeParser):
    """LlamaIndex parser for `TitledChunker`."""

    chunker: Nested = chunkers.ContentAwareChunker(chunk_size=256, length_function="tokens")


class TokenNodeParser(chunkers.TokenChunker, ChunkerNodeParser):
    """LlamaIndex parser for `TokenChunker`."""

    positional: ClassVar[tuple[str, ...]] = (
        *("chunk_size", "chunk_overlap", "tokenizer", "callback_manager"),
        *("separator", "backup_separators", "keep_whitespaces", *_LAST),
    )

    chunk_size: Size = 1024
    chunk_overlap: Overlap = 20
    length_function: Unit = "tokens"
    strip_whitespace: bool = True


class TopicNodeParser(_Tokens, chunkers.TopicChunker, ChunkerNodeParser):
    """LlamaIndex parser for `TopicChunker`."""
