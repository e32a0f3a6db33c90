"""The strategies as LangChain text splitters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, Literal

from langchain_core.documents import Document
from langchain_text_splitters import Language, RecursiveCharacterTextSplitter, TextSplitter
from typing_extensions import Self, override

from rag_splitters import chunkers
from rag_splitters.contract.front_end import FrontEnd
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.langchain.documents import check_document, chunk_documents
from rag_splitters.langchain.options import (
    chunk_overlap,
    is_separator_regex,
    keep_separator,
    langchain_attribute,
    length_function,
    our_parameters,
    separators,
    strip_whitespace,
)
from rag_splitters.parameters.checks import check_list
from rag_splitters.parameters.fields import Least, Overlap, Size, SomeTexts
from rag_splitters.parameters.messages import describe_value
from rag_splitters.span import Source, Span
from rag_splitters.text.sources import Identities

__all__ = [
    "AgenticTextSplitter",
    "AutoTextSplitter",
    "ChunkerTextSplitter",
    "ClusterTextSplitter",
    "CodeTextSplitter",
    "ContentAwareTextSplitter",
    "ContextualTextSplitter",
    "EmbeddingTextSplitter",
    "EntityTextSplitter",
    "FixedSizeTextSplitter",
    "HierarchicalTextSplitter",
    "HybridTextSplitter",
    "JsonTextSplitter",
    "KeywordTextSplitter",
    "ModalityTextSplitter",
    "PageTextSplitter",
    "ParagraphTextSplitter",
    "PropositionTextSplitter",
    "RecursiveTextSplitter",
    "SemanticTextSplitter",
    "SentenceTextSplitter",
    "SentenceWindowTextSplitter",
    "SeparatorTextSplitter",
    "SlidingWindowTextSplitter",
    "TableTextSplitter",
    "TitledTextSplitter",
    "TokenTextSplitter",
    "TopicTextSplitter",
]


class ChunkerTextSplitter(FrontEnd, TextSplitter):
    """Mix-in that makes a chunker a LangChain `TextSplitter`.

    To make a splitter of your own chunker, inherit from both:

    >>> from rag_splitters import Chunker, Span
    >>> class Halves(Chunker):
    ...     def spans(self, text):
    ...         return [Span(0, len(text) // 2), Span(len(text) // 2, len(text))]
    >>> class HalvesTextSplitter(Halves, ChunkerTextSplitter):
    ...     pass
    >>> HalvesTextSplitter().split_text("tick tock")
    ['tick', ' tock']
    """

    unused_methods: ClassVar[tuple[str, ...]] = (
        *("_split_text", "_merge_splits", "_join_docs", "_get_single_sentences_list"),
        *("_calculate_sentence_distances", "_calculate_breakpoint_threshold"),
    )

    add_start_index: bool = True
    """Whether to add `start_index` and `end_index` (code points in the source) and `chunk_index` to
    the metadata."""

    @classmethod
    def translate_parameters(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        return our_parameters(cls, parameters)

    _add_start_index = langchain_attribute("add_start_index")
    _chunk_overlap = langchain_attribute("chunk_overlap", chunk_overlap)
    _chunk_size = langchain_attribute("chunk_size")
    _keep_separator = langchain_attribute("keep_separator", keep_separator)
    _length_function = langchain_attribute("length_function", length_function)
    _is_separator_regex = langchain_attribute("is_regex", is_separator_regex)
    _strip_whitespace = langchain_attribute("strip_whitespace", strip_whitespace)

    @override
    def create_documents(
        self, texts: list[str], metadatas: list[dict[Any, Any]] | None = None
    ) -> list[Document]:
        """Split texts, and return their chunks as documents with exact positions.

        Raises ValueError if there is not one metadata dictionary for each text, and TypeError for
        metadata that are not a dictionary.
        """
        check_list(texts, "texts")
        texts = list(texts)
        metadatas = list(metadatas or [{} for _ in texts])
        if len(metadatas) != len(texts):
            raise InputError(
                f"metadatas must hold one dictionary for each text: got {len(metadatas)} for "
                f"{len(texts)} texts"
            )
        for number, metadata in enumerate(metadatas):
            if not isinstance(metadata, Mapping):
                got = describe_value(metadata)
                raise InputTypeError(f"metadatas[{number}] must be a dictionary, got {got}")
        pairs = zip(texts, metadatas, strict=True)
        return self._documents(
            [Source(text, metadata, None, number) for number, (text, metadata) in enumerate(pairs)]
        )

    @override
    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        """Split documents; if they are chunks themselves, positions refer to their source."""
        if self.overrides("create_documents"):
            return TextSplitter.split_documents(self, documents)
        return self._documents(_sources(documents))

    @override
    async def atransform_documents(
        self, documents: Sequence[Document], **kwargs: Any
    ) -> Sequence[Document]:
        """Asynchronous `split_documents`; models are awaited."""
        if self.overrides("create_documents", "split_documents", "transform_documents"):
            return await asyncio.to_thread(self.transform_documents, documents, **kwargs)
        sources = await asyncio.to_thread(_sources, documents)
        spans = [spans async for spans in self.asplit(sources)]
        return await asyncio.to_thread(self._assemble, sources, spans)

    def _documents(self, sources: Sequence[Source]) -> list[Document]:
        return self._assemble(sources, self.split(sources))

    def _assemble(self, sources: Sequence[Source], results: Iterable[list[Span]]) -> list[Document]:
        """Make a document of every span, with an id and its own copy of the metadata."""
        identities = Identities()
        documents: list[Document] = []
        for source, spans in zip(sources, results, strict=True):
            ids = identities.ids_of(source.text, source.metadata, source.id)
            documents += chunk_documents(source, spans, ids, self.add_start_index)
        return documents

    @classmethod
    @override
    def from_tiktoken_encoder(
        cls,
        encoding_name: str = "cl100k_base",
        model_name: str | None = None,
        allowed_special: Literal["all"] | AbstractSet[str] | None = None,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        **kwargs: Any,
    ) -> Self:
        """Create a splitter that measures in tokens of a tiktoken encoding or an OpenAI model.

        Parameters:
            encoding_name: the encoding.
            model_name: a model, whose encoding is used instead.
            allowed_special: must be empty, because special tokens in a text are ordinary text.
            disallowed_special: has no effect, for the same reason.
            kwargs: the splitter's own parameters.

        Raises: ValueError if `allowed_special` is not empty.
        """
        tokenizer: dict[str, Any] = {
            "encoding_name": encoding_name,
            "model_name": model_name,
            "allowed_special": allowed_special,
        }
        if "encoding_name" not in cls.positional:
            # As LangChain does: a subclass may have a constructor without the other names.
            if "length_function" in kwargs:
                tokenizer["length_function"] = kwargs.pop("length_function")
            tokenizer = cls.translate_parameters(tokenizer)
        return cls(**kwargs, **tokenizer)

    @classmethod
    @override
    def from_huggingface_tokenizer(cls, tokenizer: Any, **kwargs: Any) -> Self:
        """Create a splitter that measures in tokens of a Hugging Face tokenizer."""
        return cls(length_function=tokenizer, **kwargs)  # type: ignore[call-arg]


def _sources(documents: Iterable[Document]) -> list[Source]:
    """Return the texts of documents. Raises TypeError for anything that is not a document."""
    check_list(documents, "documents")
    sources: list[Source] = []
    for number, document in enumerate(documents):
        check_document(document)
        sources.append(Source(document.page_content, document.metadata, document.id, number))
    return sources


class AgenticTextSplitter(chunkers.AgenticChunker, ChunkerTextSplitter):
    """LangChain splitter for `AgenticChunker`."""


class AutoTextSplitter(chunkers.AutoChunker, ChunkerTextSplitter):
    """LangChain splitter for `AutoChunker`."""


class ClusterTextSplitter(chunkers.ClusterChunker, ChunkerTextSplitter):
    """LangChain splitter for `ClusterChunker`."""

    positional: ClassVar[tuple[str, ...]] = ("embeddings",)


class CodeTextSplitter(chunkers.CodeChunker, ChunkerTextSplitter):
    """LangChain splitter for `CodeChunker`."""

    chunk_size: Size = 4000
    chunk_overlap: Overlap = 200


class ContentAwareTextSplitter(chunkers.ContentAwareChunker, ChunkerTextSplitter):
    """LangChain splitter for `ContentAwareChunker`."""


class ContextualTextSplitter(chunkers.ContextualChunker, ChunkerTextSplitter):
    """LangChain splitter for `ContextualChunker`."""


class EmbeddingTextSplitter(chunkers.EmbeddingChunker, ChunkerTextSplitter):
    """LangChain splitter for `EmbeddingChunker`."""

    positional: ClassVar[tuple[str, ...]] = ("embeddings",)


class EntityTextSplitter(chunkers.EntityChunker, ChunkerTextSplitter):
    """LangChain splitter for `EntityChunker`."""


class FixedSizeTextSplitter(chunkers.FixedSizeChunker, ChunkerTextSplitter):
    """LangChain splitter for `FixedSizeChunker`."""


class HierarchicalTextSplitter(chunkers.HierarchicalChunker, ChunkerTextSplitter):
    """LangChain splitter for `HierarchicalChunker`."""


class HybridTextSplitter(chunkers.HybridChunker, ChunkerTextSplitter):
    """LangChain splitter for `HybridChunker`."""


class JsonTextSplitter(chunkers.JsonChunker, ChunkerTextSplitter):
    """LangChain splitter for `JsonChunker`.

    Like the class of LangChain that it replaces, `split_text` and `create_documents` also take
    dictionaries and lists. They are cut as `json.dumps(data, ensure_ascii=False)`, which positions
    refer to.

    >>> JsonTextSplitter(chunk_size=12).split_text({"tea": 4, "milk": 3})
    ['{"tea": 4,', '"milk": 3}']
    """

    @override
    def split_text(self, text: str | dict[str, Any] | list[Any]) -> list[str]:
        """Return the texts of the chunks of a JSON text, or of data that JSON can hold."""
        return super().split_text(_to_json(text))

    @override
    def create_documents(
        self, texts: list[Any], metadatas: list[dict[Any, Any]] | None = None
    ) -> list[Document]:
        """Split JSON texts, or data that JSON can hold, as `ChunkerTextSplitter` does."""
        check_list(texts, "texts")
        return super().create_documents(list(map(_to_json, texts)), metadatas)


def _to_json(data: Any) -> Any:
    """Write data as JSON; a text, and anything else, stays as it is."""
    return json.dumps(data, ensure_ascii=False) if isinstance(data, (dict, list)) else data


class KeywordTextSplitter(chunkers.KeywordChunker, ChunkerTextSplitter):
    """LangChain splitter for `KeywordChunker`."""


class ModalityTextSplitter(chunkers.ModalityChunker, ChunkerTextSplitter):
    """LangChain splitter for `ModalityChunker`."""


class PageTextSplitter(chunkers.PageChunker, ChunkerTextSplitter):  # type: ignore[misc]
    """LangChain splitter for `PageChunker`."""


class ParagraphTextSplitter(chunkers.ParagraphChunker, ChunkerTextSplitter):
    """LangChain splitter for `ParagraphChunker`."""


class PropositionTextSplitter(chunkers.PropositionChunker, ChunkerTextSplitter):
    """LangChain splitter for `PropositionChunker`."""


class RecursiveTextSplitter(chunkers.RecursiveChunker, ChunkerTextSplitter):
    """LangChain splitter for `RecursiveChunker`."""

    positional: ClassVar[tuple[str, ...]] = ("separators", "keep_separator", "is_separator_regex")

    chunk_size: Size = 4000
    chunk_overlap: Overlap = 200

    @classmethod
    def from_language(cls, language: Language | str, **kwargs: Any) -> Self:
        """Create a splitter with the separators of a programming or markup language.

        They are our own patterns, which also match methods, decorators and indented definitions;
        see `get_separators_for_language` for LangChain's.

        Parameters:
            language: a member of LangChain's `Language`, or its value.
            kwargs: the splitter's own parameters.

        Raises: ValueError for an unknown language.

        >>> splitter = RecursiveTextSplitter.from_language("python", chunk_size=30)
        >>> splitter.split_text("def one():\\n    return 1\\n\\ndef two():\\n    return 2")
        ['def one():\\n    return 1', 'def two():\\n    return 2']
        """
        if cls.overrides("get_separators_for_language"):
            separators = cls.get_separators_for_language(language)
            return cls(separators=separators, is_separator_regex=True, **kwargs)  # type: ignore[call-arg]
        return cls(language=language, **kwargs)

    @staticmethod
    def get_separators_for_language(language: Language | str) -> list[str]:
        """Return LangChain's separators for a language, as regular expressions to build on.

        Raises: ValueError for an unknown language.
        """
        name = getattr(language, "value", language)
        try:
            return RecursiveCharacterTextSplitter.get_separators_for_language(Language(name))
        except ValueError:  # LangChain lists languages that it has no separators for
            return separators(RecursiveTextSplitter(language=name))

    _separators = langchain_attribute("separators", separators)


class SemanticTextSplitter(chunkers.SemanticChunker, ChunkerTextSplitter):
    """LangChain splitter for `SemanticChunker`.

    Like the class of LangChain that it replaces, it merges segments only if you pass
    `min_chunk_size`, and cuts them only if you pass `chunk_size`.
    """

    positional: ClassVar[tuple[str, ...]] = (
        "embeddings",
        "buffer_size",
        "add_start_index",
        "breakpoint_threshold_type",
        "breakpoint_threshold_amount",
        "number_of_chunks",
        "sentence_split_regex",
        "min_chunk_size",
    )

    chunk_size: Size = 1_000_000
    min_chunk_size: Least = 0
    like_langchain: bool = True


class SentenceTextSplitter(chunkers.SentenceChunker, ChunkerTextSplitter):
    """LangChain splitter for `SentenceChunker`."""

    chunk_size: Size = 4000
    chunk_overlap: Overlap = 200


class SentenceWindowTextSplitter(chunkers.SentenceWindowChunker, ChunkerTextSplitter):
    """LangChain splitter for `SentenceWindowChunker`."""


class SeparatorTextSplitter(chunkers.SeparatorChunker, ChunkerTextSplitter):
    """LangChain splitter for `SeparatorChunker`.

    With `separator=`, LangChain's name, `chunk_size=1` makes each piece a chunk of its own, because
    `CharacterTextSplitter` never cuts a piece and is used with this size for that.
    """

    positional: ClassVar[tuple[str, ...]] = ("separator", "is_separator_regex")

    chunk_size: Size | None = 4000  # type: ignore[assignment]
    chunk_overlap: Overlap = 200
    separators: SomeTexts = ("\n\n",)
    strip_whitespace: bool = True

    _separator = langchain_attribute("separator", lambda splitter: splitter.separators[0])


class SlidingWindowTextSplitter(chunkers.SlidingWindowChunker, ChunkerTextSplitter):
    """LangChain splitter for `SlidingWindowChunker`."""


class TableTextSplitter(chunkers.TableChunker, ChunkerTextSplitter):
    """LangChain splitter for `TableChunker`."""


class TitledTextSplitter(chunkers.TitledChunker, ChunkerTextSplitter):
    """LangChain splitter for `TitledChunker`."""


class TokenTextSplitter(chunkers.TokenChunker, ChunkerTextSplitter):
    """LangChain splitter for `TokenChunker`."""

    positional: ClassVar[tuple[str, ...]] = (
        "encoding_name",
        "model_name",
        "allowed_special",
        "disallowed_special",
    )


class TopicTextSplitter(chunkers.TopicChunker, ChunkerTextSplitter):
    """LangChain splitter for `TopicChunker`."""
