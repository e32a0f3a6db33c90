"""The strategies as LangChain text splitters, and parent-child retrieval."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, Literal

from langchain_core.documents import Document
from langchain_text_splitters import TextSplitter
from pydantic import AfterValidator, model_validator
from typing_extensions import Self, override

from rag_splitters import chunkers
from rag_splitters.chunker import Chunker
from rag_splitters.langchain.documents import chunk_documents
from rag_splitters.span import Source, Span
from rag_splitters.text.pages import first_page, optional_page_break, page_breaks, with_pages
from rag_splitters.text.sources import Identities

__all__ = [
    "AgenticTextSplitter",
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
    "KeywordTextSplitter",
    "ModalityTextSplitter",
    "PageTextSplitter",
    "ParagraphTextSplitter",
    "PropositionTextSplitter",
    "RecursiveTextSplitter",
    "SemanticTextSplitter",
    "SentenceTextSplitter",
    "SeparatorTextSplitter",
    "SlidingWindowTextSplitter",
    "TableTextSplitter",
    "TitledTextSplitter",
    "TokenTextSplitter",
    "TopicTextSplitter",
]

_LANGCHAIN_ONLY = {
    "keep_separator": "separators always stay where they stand in the text",
    "strip_whitespace": "chunks never begin or end with white space",
}


class ChunkerTextSplitter(Chunker, TextSplitter):
    """What makes a chunker a LangChain `TextSplitter`.

    Mix it into a chunker of your own to get one:

    >>> from rag_splitters import Span
    >>> class Halves(Chunker):
    ...     def spans(self, text):
    ...         return [Span(0, len(text) // 2), Span(len(text) // 2, len(text))]
    >>> class HalvesTextSplitter(Halves, ChunkerTextSplitter):
    ...     pass
    >>> HalvesTextSplitter().split_text("tick tock")
    ['tick', ' tock']
    """

    add_start_index: bool = True
    """Add `start_index`, `end_index` (code points in the source) and `chunk_index`?"""

    page_break: Annotated[str | None, AfterValidator(optional_page_break)] = None
    """A regular expression for what stands between pages: adds `page_start` and `page_end`."""

    @model_validator(mode="before")
    @classmethod
    def _accept_langchain_names(cls, data: Any) -> Any:
        """Take LangChain's own options where they mean what we do; say so where they do not."""
        if not isinstance(data, dict):
            return data
        options = {name: value for name, value in data.items() if name in cls.model_fields}
        for name, value in data.items():
            if name in options:
                continue
            if name == "is_separator_regex" and "is_regex" in cls.model_fields:
                options["is_regex"] = value
            elif name in _LANGCHAIN_ONLY and value is not True:
                raise ValueError(f"leave {name} out: {_LANGCHAIN_ONLY[name]}; got {value!r}")
            elif name not in _LANGCHAIN_ONLY:
                options[name] = value
        return options

    @override
    def split_text(self, text: str) -> list[str]:
        """The texts of the chunks."""
        return [span.text_of(text) for span in self.spans(text)]

    @override
    def create_documents(
        self, texts: list[str], metadatas: list[dict[Any, Any]] | None = None
    ) -> list[Document]:
        """The chunks of some texts as documents, with exact positions."""
        pairs = zip(texts, metadatas or [{} for _ in texts], strict=True)
        return self._documents(
            [Source(text, metadata, None, number) for number, (text, metadata) in enumerate(pairs)]
        )

    @override
    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        """The chunks of some documents; positions of a chunk's chunks are those in the source."""
        return self._documents(_sources(documents))

    @override
    async def atransform_documents(
        self, documents: Sequence[Document], **kwargs: Any
    ) -> Sequence[Document]:
        """`split_documents` without blocking the event loop; models are awaited."""
        sources = _sources(documents)
        spans = [spans async for spans in self.asplit(sources)]
        return await asyncio.to_thread(self._assembled, sources, spans)

    def _documents(self, sources: Sequence[Source]) -> list[Document]:
        return self._assembled(sources, self.split(sources))

    def _assembled(
        self, sources: Sequence[Source], results: Iterable[list[Span]]
    ) -> list[Document]:
        """A document for every span, with its id and its own copy of the metadata."""
        identities = Identities()
        documents: list[Document] = []
        for source, spans in zip(sources, results, strict=True):
            if self.page_break is not None:
                breaks = page_breaks(source.text, self.page_break)
                spans = with_pages(spans, breaks, first_page(source.metadata))
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
        """A splitter that measures in tokens of a tiktoken encoding or an OpenAI model.

        Parameters:
            encoding_name: the encoding.
            model_name: a model, whose encoding is taken instead.
            allowed_special: must be None: special tokens in a text are text.
            disallowed_special: has no effect, for the same reason.
            kwargs: the splitter's own parameters.

        Raises: ValueError for `allowed_special`.
        """
        if allowed_special:
            raise ValueError(
                f"leave allowed_special out: special tokens in a text are text, got "
                f"{allowed_special!r}"
            )
        kwargs["length_function"] = f"tokens:{model_name or encoding_name}"
        return cls(**kwargs)

    @classmethod
    @override
    def from_huggingface_tokenizer(cls, tokenizer: Any, **kwargs: Any) -> Self:
        """A splitter that measures in tokens of a Hugging Face tokenizer."""
        return cls(**{**kwargs, "length_function": tokenizer})


def _sources(documents: Iterable[Document]) -> list[Source]:
    return [
        Source(document.page_content, document.metadata, document.id, number)
        for number, document in enumerate(documents)
    ]


class AgenticTextSplitter(chunkers.AgenticChunker, ChunkerTextSplitter):
    """LangChain splitter for `AgenticChunker`."""


class ClusterTextSplitter(chunkers.ClusterChunker, ChunkerTextSplitter):
    """LangChain splitter for `ClusterChunker`."""


class CodeTextSplitter(chunkers.CodeChunker, ChunkerTextSplitter):
    """LangChain splitter for `CodeChunker`."""


class ContentAwareTextSplitter(chunkers.ContentAwareChunker, ChunkerTextSplitter):
    """LangChain splitter for `ContentAwareChunker`."""


class ContextualTextSplitter(chunkers.ContextualChunker, ChunkerTextSplitter):
    """LangChain splitter for `ContextualChunker`."""


class EmbeddingTextSplitter(chunkers.EmbeddingChunker, ChunkerTextSplitter):
    """LangChain splitter for `EmbeddingChunker`."""


class EntityTextSplitter(chunkers.EntityChunker, ChunkerTextSplitter):
    """LangChain splitter for `EntityChunker`."""


class FixedSizeTextSplitter(chunkers.FixedSizeChunker, ChunkerTextSplitter):
    """LangChain splitter for `FixedSizeChunker`."""


class HierarchicalTextSplitter(chunkers.HierarchicalChunker, ChunkerTextSplitter):
    """LangChain splitter for `HierarchicalChunker`."""


class HybridTextSplitter(chunkers.HybridChunker, ChunkerTextSplitter):
    """LangChain splitter for `HybridChunker`."""


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


class SemanticTextSplitter(chunkers.SemanticChunker, ChunkerTextSplitter):
    """LangChain splitter for `SemanticChunker`."""


class SentenceTextSplitter(chunkers.SentenceChunker, ChunkerTextSplitter):
    """LangChain splitter for `SentenceChunker`."""


class SeparatorTextSplitter(chunkers.SeparatorChunker, ChunkerTextSplitter):
    """LangChain splitter for `SeparatorChunker`."""


class SlidingWindowTextSplitter(chunkers.SlidingWindowChunker, ChunkerTextSplitter):
    """LangChain splitter for `SlidingWindowChunker`."""


class TableTextSplitter(chunkers.TableChunker, ChunkerTextSplitter):
    """LangChain splitter for `TableChunker`."""


class TitledTextSplitter(chunkers.TitledChunker, ChunkerTextSplitter):
    """LangChain splitter for `TitledChunker`."""


class TokenTextSplitter(chunkers.TokenChunker, ChunkerTextSplitter):
    """LangChain splitter for `TokenChunker`."""


class TopicTextSplitter(chunkers.TopicChunker, ChunkerTextSplitter):
    """LangChain splitter for `TopicChunker`."""
