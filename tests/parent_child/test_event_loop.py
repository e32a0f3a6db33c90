"""In asynchronous use, parent-child retrieval runs nothing heavy on the event loop's thread."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.storage.kvstore import SimpleKVStore

import rag_splitters
from rag_splitters import Chunker, Span, langchain, llama_index
from rag_splitters.models import HashingEmbeddings
from tests.support.embedding_doubles import LangChainEmbedder, LlamaIndexEmbedder
from tests.support.front_ends import FRONT_ENDS, FrontEnd, sentence

PACKAGE = Path(rag_splitters.__file__).parent
HASHING = HashingEmbeddings(dimensions=64)
DOCUMENTS = [(f"d{d}", " ".join(sentence(9 * d + n) for n in range(9)), {"d": d}) for d in range(4)]
asynchronous = pytest.mark.parametrize(
    "front", [f for f in FRONT_ENDS if f.asynchronous], ids=lambda front: front.framework
)

threads: list[int] = []
"""The threads that ran the user's own functions."""


def note_thread() -> None:
    threads.append(threading.get_ident())


def embed(texts: list[str]) -> list[list[float]]:
    note_thread()
    return HASHING.embed_documents(texts)


class Halves(Chunker):
    """A user's own strategy."""

    def spans(self, text: str) -> list[Span]:
        note_thread()
        middle = text.find(" ", len(text) // 2)
        return [Span(0, middle), Span(middle + 1, len(text))]


class HalvesTextSplitter(Halves, langchain.ChunkerTextSplitter):
    """For LangChain."""


class HalvesNodeParser(Halves, llama_index.ChunkerNodeParser):
    """For LlamaIndex."""


class StockTextSplitter(CharacterTextSplitter):
    """A splitter of LangChain's own."""

    def split_text(self, text: str) -> list[str]:
        note_thread()
        return super().split_text(text)


class StockNodeParser(SentenceSplitter):
    """A parser of LlamaIndex's own, which has no asynchronous method."""

    def split_text_metadata_aware(self, text: str, metadata_str: str) -> list[str]:
        note_thread()
        return super().split_text_metadata_aware(text, metadata_str)


def rerank(question: str, texts: list[str]) -> list[float]:
    note_thread()
    return [float(len(text)) for text in texts]


def documents_of(front: FrontEnd) -> Iterator[Any]:
    for document in front.documents(DOCUMENTS):
        note_thread()
        yield document


HEAVY = ("parent_child/", "chunkers/", "text/", "structure/", "meaning/")
ASSEMBLING = ("adapters.py", "kvstores.py", "documents.py", "nodes.py")


@contextmanager
def functions_on_this_thread() -> Iterator[set[str]]:
    """The functions that cut texts, or assemble documents and nodes, on this thread meanwhile.

    Coroutines are left out: what they do between two calls is done elsewhere.
    """
    functions: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code, path = frame.f_code, Path(frame.f_code.co_filename)
        if event != "call" or code.co_flags & inspect.CO_COROUTINE or PACKAGE not in path.parents:
            return
        file = path.relative_to(PACKAGE).as_posix()
        if file.startswith(HEAVY) or file.endswith(ASSEMBLING):
            functions.add(f"{file}: {code.co_name}")

    sys.setprofile(note)
    try:
        yield functions
    finally:
        sys.setprofile(None)


def work_on_loop(operation: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[Any, set[str]]:
    """The result, and what the loop's thread ran; the user's own functions must not be among it."""

    async def work() -> tuple[Any, set[str], int]:
        with functions_on_this_thread() as functions:
            result = await operation()
        return result, functions, threading.get_ident()

    threads.clear()
    result, functions, loop_thread = asyncio.run(work())
    assert loop_thread not in threads
    return result, functions


def options_of(front: FrontEnd, kind: str) -> dict[str, Any]:
    """Splitters and stores of ours or of the framework."""
    if front.framework == "langchain":
        if kind == "ours":
            return {"child_splitter": HalvesTextSplitter(), "parent_splitter": HalvesTextSplitter()}
        stock = StockTextSplitter(separator=". ", chunk_size=60, chunk_overlap=0)
        return {"child_splitter": stock, "parent_splitter": stock, "docstore": InMemoryStore()}
    if kind == "ours":
        return {"child_parser": HalvesNodeParser(), "parent_parser": HalvesNodeParser()}
    return {
        "child_parser": StockNodeParser(chunk_size=40, chunk_overlap=0),
        "parent_parser": StockNodeParser(chunk_size=80, chunk_overlap=0),
        "docstore": SimpleKVStore(),
    }


MODELS: dict[str, Callable[[], Any]] = {
    "function": lambda: embed,
    "hashing": lambda: HASHING,
    "langchain": lambda: LangChainEmbedder(embed),
    "llama_index": lambda: LlamaIndexEmbedder(function=embed, embed_batch_size=100),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("front", "kind", "model"),
    [
        (FRONT_ENDS[1], "ours", "function"),
        (FRONT_ENDS[1], "ours", "langchain"),
        (FRONT_ENDS[3], "ours", "llama_index"),
        (FRONT_ENDS[1], "stock", "hashing"),
        (FRONT_ENDS[3], "stock", "hashing"),
    ],
)
def test_the_event_loop_only_waits(front: FrontEnd, kind: str, model: str, tmp_path: Path) -> None:
    module = langchain if front.framework == "langchain" else llama_index
    name = "embeddings" if front.framework == "langchain" else "embed_model"
    options = {name: MODELS[model](), **options_of(front, kind), "reranker": rerank}
    with closing(module.parent_document_retriever(path=tmp_path, **options)) as retriever:
        added, on_loop = work_on_loop(lambda: retriever.aadd_documents(documents_of(front)))
        assert added == [name for name, *_ in DOCUMENTS]
        assert threads
        for retrieve in ("parents", "children", "passages"):
            asked = front.varied(retriever, retrieve=retrieve)
            method = asked.ainvoke if front.framework == "langchain" else asked.aretrieve
            results, functions = work_on_loop(lambda method=method: method("amber birch"))
            assert results
            assert threads
            on_loop |= functions
        operations: list[Callable[[], Any]] = [
            lambda: retriever.aget(["d1"]),
            lambda: retriever.async_sync(documents_of(front)),
            lambda: retriever.adelete(["d1"]),
            lambda: retriever.averify(repair=True),
        ]
        for operation in operations:
            on_loop |= work_on_loop(operation)[1]
        assert on_loop == set()


@pytest.mark.slow
def test_what_runs_on_the_thread_is_noticed() -> None:
    with functions_on_this_thread() as functions:
        FRONT_ENDS[0].build(DOCUMENTS)
    assert "parent_child/drafts.py: _make_record" in functions
    assert "langchain/documents.py: to_document" in functions


def test_another_vector_store_is_searched_off_the_loop_too() -> None:
    retriever = langchain.ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(LangChainEmbedder(embed)),
        docstore=InMemoryStore(),
        child_splitter=HalvesTextSplitter(),
    )
    front = FrontEnd("langchain", asynchronous=True)
    for operation in (
        lambda: retriever.aadd_documents(documents_of(front)),
        lambda: retriever.ainvoke("amber birch"),
    ):
        result, on_loop = work_on_loop(operation)
        assert result
        assert threads
        assert on_loop == set()
