"""One face for the parent-child retrievers of both frameworks, called with and without waiting."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters

from rag_splitters import langchain, llama_index

__all__ = ["FRONT_ENDS", "FrontEnd", "Result", "every_front_end", "sentence"]

Given = tuple[str, str, dict[str, Any]]
_LLAMA_INDEX_NAMES = {
    "k": "similarity_top_k",
    "embeddings": "embed_model",
    "score_threshold": "similarity_cutoff",
    "lambda_mult": "mmr_threshold",
    "fetch_k": "mmr_prefetch_k",
}


@dataclass(frozen=True)
class Result:
    """What a query returned, whichever front end."""

    id: str
    text: str
    start: int | None
    end: int | None
    score: float | None
    metadata: dict[str, Any]

    @property
    def matches(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.metadata["matches"]
        return found


@dataclass(frozen=True)
class FrontEnd:
    """A front end; documents are given as (id, text, metadata)."""

    framework: str
    asynchronous: bool = False

    def build(self, documents: Sequence[Given] = (), **options: Any) -> Any:
        """A retriever whose children are sentences of up to 60 characters, with plain vectors.

        Options have the names that LangChain's front end gives them; `where` filters.
        """
        sizes = {"parent_size": 200, "child_size": 60}
        parent, child = (options.pop(name, size) for name, size in sizes.items())
        told = {"search_type": "similarity", "smoothing": 0.0, "headings": False, **options}
        if self.framework == "langchain":
            cut: Any = langchain.SentenceTextSplitter
            splitters = ("child_splitter", "parent_splitter")
            made: Any = langchain.parent_document_retriever
        else:
            cut = llama_index.SentenceNodeParser
            splitters = ("child_parser", "parent_parser")
            made = llama_index.parent_document_retriever
        pieces = (cut(chunk_size=child), parent and cut(chunk_size=parent))
        told = dict(zip(splitters, pieces, strict=True)) | self._named(told)
        retriever = made(**told)
        if documents:
            self.do(retriever, "add_documents", self.documents(documents))
        return retriever

    def varied(self, retriever: Any, **options: Any) -> Any:
        """The retriever with other options, over the same stores."""
        if self.framework == "langchain":
            return retriever.model_copy(update=self._named(options))
        other = copy.copy(retriever)
        for name, value in self._named(options).items():
            setattr(other, "retrieve_kind" if name == "retrieve" else name, value)
        return other

    def _named(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options under the names of the front end."""
        told = dict(options)
        where = told.pop("where", None)
        if self.framework == "langchain":
            if where:
                told["search_kwargs"] = {**told.get("search_kwargs", {}), "filter": where}
            return told
        told |= told.pop("search_kwargs", {})
        if where:
            pairs = [ExactMatchFilter(key=key, value=value) for key, value in where.items()]
            told["filters"] = MetadataFilters(filters=pairs)
        return {_LLAMA_INDEX_NAMES.get(name, name): value for name, value in told.items()}

    def documents(self, documents: Sequence[Given]) -> list[Any]:
        """The framework's documents."""
        if self.framework == "langchain":
            return [LangChainDocument(t, metadata=m, id=name) for name, t, m in documents]
        return [LlamaIndexDocument(text=t, metadata=m, id_=name) for name, t, m in documents]

    def do(self, retriever: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method, or its asynchronous twin."""
        if not self.asynchronous:
            return getattr(retriever, name)(*args, **kwargs)
        twin = "async_sync" if name == "sync" else f"a{name}"
        return asyncio.run(getattr(retriever, twin)(*args, **kwargs))

    def delete(self, retriever: Any, *args: Any, **kwargs: Any) -> list[str]:
        """The ids of what was deleted."""
        told = self.do(retriever, "delete", *args, **kwargs)
        deleted: list[str] = told["succeeded"] if self.framework == "langchain" else told
        return deleted

    def find(self, retriever: Any, question: str) -> list[Result]:
        """What a query returns."""
        if self.framework == "langchain":
            return [_of_document(found) for found in self.do(retriever, "invoke", question)]
        return [_of_node(found) for found in self.do(retriever, "retrieve", question)]

    def collection(self, retriever: Any) -> Any:
        """The Chroma collection."""
        if self.framework == "langchain":
            return retriever.vectorstore._collection
        return retriever.vector_store.client


def _of_document(document: Any) -> Result:
    metadata = dict(document.metadata)
    places = [metadata.pop(key, None) for key in ("start_index", "end_index", "score")]
    return Result(document.id, document.page_content, *places, metadata)


def _of_node(found: Any) -> Result:
    node = found.node
    start, end = node.start_char_idx, node.end_char_idx
    return Result(node.node_id, node.text, start, end, found.score, dict(node.metadata))


FRONT_ENDS = [
    FrontEnd(framework, asynchronous)
    for framework in ("langchain", "llama_index")
    for asynchronous in (False, True)
]

every_front_end = pytest.mark.parametrize(
    "front",
    FRONT_ENDS,
    ids=[f"{f.framework}-{'async' if f.asynchronous else 'sync'}" for f in FRONT_ENDS],
)


def sentence(number: int) -> str:
    """A sentence that no other is."""
    words = ["Amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet"]
    return "The " + " ".join(words[(number * s + s) % 9] for s in (1, 2, 4, 5)) + f" n{number}."
