"""One face for the parent-child retrievers of both frameworks, called with and without waiting."""

from __future__ import annotations

import asyncio
import copy
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters

from rag_splitters import langchain, llama_index
from rag_splitters.parent_child.results import own_key, read_matches

__all__ = ["FRONT_ENDS", "FrontEnd", "Result", "every_front_end", "in_turn", "sentence"]

Test = TypeVar("Test", bound=Callable[..., Any])
Page = tuple[str, str, dict[str, Any]]
"""Id, text and metadata of a document."""
_LLAMA_INDEX_NAMES = {
    "k": "similarity_top_k",
    "embeddings": "embed_model",
    "score_threshold": "similarity_cutoff",
    "lambda_mult": "mmr_threshold",
    "fetch_k": "mmr_prefetch_k",
}


@dataclass(frozen=True)
class Result:
    """A result of a query, whichever the front end."""

    id: str
    text: str
    start: int | None
    end: int | None
    score: float | None
    metadata: dict[str, Any]

    @property
    def matches(self) -> list[dict[str, Any]]:
        return read_matches(self.metadata)


@dataclass(frozen=True)
class FrontEnd:
    """A front end; documents are passed as (id, text, metadata)."""

    framework: str
    asynchronous: bool = False

    def build(self, documents: Sequence[Page] = (), **options: Any) -> Any:
        """A retriever of parents; children are sentences of up to 60 characters, vectors plain.

        Options have the names that LangChain's front end gives them; `where` filters.
        """
        sizes = {"parent_size": 200, "child_size": 60}
        parent, child = (options.pop(name, size) for name, size in sizes.items())
        plain = {"search_type": "similarity", "smoothing": 0.0, "headings": False}
        options = plain | {"retrieve": "parents"} | options
        if self.framework == "langchain":
            splitter: Any = langchain.SentenceTextSplitter
            names = ("child_splitter", "parent_splitter")
            factory: Any = langchain.parent_document_retriever
        else:
            splitter = llama_index.SentenceNodeParser
            names = ("child_parser", "parent_parser")
            factory = llama_index.parent_document_retriever
        unit = {"length_function": "characters"}
        splitters = (
            splitter(chunk_size=child, **unit),
            parent and splitter(chunk_size=parent, **unit),
        )
        retriever = factory(**dict(zip(names, splitters, strict=True)) | self._translate(options))
        if documents:
            self.do(retriever, "add_documents", self.documents(documents))
        return retriever

    def varied(self, retriever: Any, **options: Any) -> Any:
        """Return the retriever with other options, over the same stores."""
        if self.framework == "langchain":
            return retriever.model_copy(update=self._translate(options))
        other = copy.copy(retriever)
        for name, value in self._translate(options).items():
            setattr(other, "retrieve_kind" if name == "retrieve" else name, value)
        return other

    def _translate(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options under the names of the front end."""
        options = dict(options)
        where = options.pop("where", None)
        if self.framework == "langchain":
            if where:
                options["search_kwargs"] = {**options.get("search_kwargs", {}), "filter": where}
            return options
        options |= options.pop("search_kwargs", {})
        if where:
            pairs = [ExactMatchFilter(key=key, value=value) for key, value in where.items()]
            options["filters"] = MetadataFilters(filters=pairs)
        return {_LLAMA_INDEX_NAMES.get(name, name): value for name, value in options.items()}

    def documents(self, documents: Sequence[Page]) -> list[Any]:
        """Return the framework's documents."""
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
        """Delete documents, and return the ids of those that existed."""
        response = self.do(retriever, "delete", *args, **kwargs)
        ids: list[str] = response["succeeded"] if self.framework == "langchain" else response
        return ids

    def find(self, retriever: Any, question: str) -> list[Result]:
        """Return the results of a query."""
        if self.framework == "langchain":
            return [_from_document(each) for each in self.do(retriever, "invoke", question)]
        return [_from_node(each) for each in self.do(retriever, "retrieve", question)]

    def collection(self, retriever: Any) -> Any:
        """Return the Chroma collection."""
        if self.framework == "langchain":
            return retriever.vectorstore._collection
        return retriever.vector_store.client


def _from_document(document: Any) -> Result:
    metadata = dict(document.metadata)
    keys = ("start_index", "end_index", own_key(metadata, "score"))
    details = [metadata.pop(key, None) for key in keys]
    return Result(document.id, document.page_content, *details, metadata)


def _from_node(result: Any) -> Result:
    node = result.node
    start, end = node.start_char_idx, node.end_char_idx
    return Result(node.node_id, node.text, start, end, result.score, dict(node.metadata))


FRONT_ENDS = [
    FrontEnd(framework, asynchronous)
    for framework in ("langchain", "llama_index")
    for asynchronous in (False, True)
]


def every_front_end(test: Test) -> Test:
    """Run a test with both frameworks, each in one of the two forms: for what a front end decides.

    One coroutine is behind both forms. The name of the test decides which pair it is, so that each
    framework meets both forms often.
    """
    first = zlib.crc32(test.__name__.encode()) % 2
    fronts = [FRONT_ENDS[first], FRONT_ENDS[3 - first]]
    ids = [f"{each.framework}-{'async' if each.asynchronous else 'sync'}" for each in fronts]
    return pytest.mark.parametrize("front", fronts, ids=ids)(test)


def in_turn(names: str, values: Iterable[Any]) -> pytest.MarkDecorator:
    """Each of the values with both frameworks, in one of the two forms: for what the core decides.

    The forms change as in the Thue-Morse sequence, so that they follow no pattern of the values.
    """
    rows = []
    for number, value in enumerate(values):
        for framework in (0, 1):
            front = FRONT_ENDS[2 * framework + (number.bit_count() + framework) % 2]
            rows.append((front, *(value if isinstance(value, tuple) else (value,))))
    return pytest.mark.parametrize(f"front, {names}", rows)


def sentence(number: int) -> str:
    """Return a sentence that is unlike all others."""
    words = ["Amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet"]
    return "The " + " ".join(words[(number * s + s) % 9] for s in (1, 2, 4, 5)) + f" n{number}."
