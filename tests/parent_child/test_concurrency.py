"""Parent-child retrieval from several threads, tasks and front ends at once."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.kvstore import SimpleKVStore

from rag_splitters import llama_index
from rag_splitters.calls import run
from rag_splitters.langchain import (
    ParentDocumentRetriever,
    RecursiveTextSplitter,
    parent_document_retriever,
)
from rag_splitters.langchain.adapters import ByteDocuments
from rag_splitters.langchain.adapters import make_docstore as langchain_docstore
from rag_splitters.llama_index import RecursiveNodeParser
from rag_splitters.llama_index.adapters import make_docstore as llama_index_docstore
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child import StoreError, indexing, opening, search
from rag_splitters.parent_child.keywords.index import KeywordIndex
from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.writing import Docstore
from tests.support.front_ends import FRONT_ENDS, FrontEnd, every_front_end

WRITERS = 4  # one for each of the front ends, with and without waiting
EACH = 3  # documents of a writer


def name_of(writer: int, number: int) -> str:
    return f"word{writer}x{number}"


def text_of(writer: int, number: int) -> str:
    name = name_of(writer, number)
    return "\n\n".join(f"Part {n} of {name} tells of place{writer}{number}{n}." for n in range(6))


def document(writer: int, number: int) -> Document:
    return Document(page_content=text_of(writer, number), id=name_of(writer, number))


def opened(folder: Path | None = None, **options: Any) -> ParentDocumentRetriever:
    return parent_document_retriever(
        path=folder,
        embeddings=HashingEmbeddings(dimensions=64),
        child_splitter=RecursiveTextSplitter(chunk_size=60),
        parent_splitter=RecursiveTextSplitter(chunk_size=150),
        **options,
    )


@pytest.fixture
def retriever(tmp_path: Path) -> Iterator[ParentDocumentRetriever]:
    """One in a folder, with hybrid search."""
    with closing(opened(tmp_path / "index")) as made:
        yield made


def work(front: FrontEnd, retriever: Any, writer: int) -> None:
    """Add documents one by one, twice changed, and find each at once; and delete one of them."""
    retriever = front.varied(retriever, k=2)
    for number in range(EACH):
        name, text = name_of(writer, number), text_of(writer, number)
        for version in (f"An old {name}.", text):
            front.do(retriever, "add_documents", front.documents([(name, version, {})]))
        assert name in front.find(retriever, f"part 3 of {name}")[0].text
        assert front.do(retriever, "get", [name]) == front.documents([(name, text, {})])
    assert front.delete(retriever, [name_of(writer, 0)]) == [name_of(writer, 0)]


def assert_complete(retriever: ParentDocumentRetriever) -> None:
    """All documents are there, and nothing else; their chunks are, and all can be found."""
    expected = {name_of(w, n) for w in range(WRITERS) for n in range(1, EACH)}
    with closing(opened(search_type="similarity")) as undisturbed:
        for writer in range(WRITERS):
            undisturbed.add_documents([document(writer, n) for n in range(1, EACH)])
        assert ids(retriever) == ids(undisturbed)
    for name in sorted(expected):
        assert name in retriever.invoke(f"part 3 of {name}", k=1)[0].page_content
    found = retriever.verify()
    assert found.is_sound
    assert found.documents == len(expected)


def ids(retriever: ParentDocumentRetriever) -> list[str]:
    return sorted(retriever.vectorstore._collection.get()["ids"])  # type: ignore[attr-defined]


def in_threads(jobs: list[Callable[[], object]]) -> None:
    with ThreadPoolExecutor(len(jobs)) as pool:
        for done in [pool.submit(job) for job in jobs]:
            done.result()


def test_both_front_ends_write_to_one_folder_at_once(
    retriever: ParentDocumentRetriever, tmp_path: Path
) -> None:
    """Two threads call each of them, one of which has an event loop."""
    other = llama_index.parent_document_retriever(
        path=tmp_path / "index",
        embed_model=HashingEmbeddings(dimensions=64),
        child_parser=RecursiveNodeParser(chunk_size=60, length_function="characters"),
        parent_parser=RecursiveNodeParser(chunk_size=150, length_function="characters"),
    )
    with closing(other):
        retrievers = (retriever, retriever, other, other)
        pairs = zip(FRONT_ENDS, retrievers, strict=True)
        in_threads([partial(work, *pair, writer) for writer, pair in enumerate(pairs)])
        assert_complete(retriever)
        assert other.verify().is_sound


@pytest.mark.parametrize("search_type", ["similarity", "hybrid"])
@pytest.mark.parametrize(("replacements", "is_next_begun"), [(1, False), (1, True), (3, False)])
def test_a_document_that_is_replaced_during_a_query_is_found(
    search_type: str, replacements: int, is_next_begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank, versions = search.rank_children, count()

    def replace(retriever: ParentDocumentRetriever) -> int:
        number = next(versions)
        text = "\n\n".join(f"Lamp {n} is lit in version {number}." for n in range(8))
        retriever.add_documents([Document(page_content=text, id="lamps")])
        return number

    async def rank_and_replace(*args: Any) -> Any:
        ranking = await rank(*args)
        if replace(retriever) == replacements:
            monkeypatch.setattr(search, "rank_children", rank)
            if is_next_begun:
                with monkeypatch.context() as dying, suppress(TypeError):
                    dying.setattr(indexing, "commit", None)
                    replace(retriever)
        return ranking

    with closing(opened(search_type=search_type)) as retriever:
        replace(retriever)
        monkeypatch.setattr(search, "rank_children", rank_and_replace)
        results = retriever.invoke("Which lamp is lit?", k=3)
    assert results
    assert all(f"version {replacements}." in result.page_content for result in results)


def test_a_retriever_can_be_closed_during_a_query(
    retriever: ParentDocumentRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever.add_documents([document(0, 0)])
    read_corpus, closing_thread = (
        KeywordIndex._read_corpus,
        threading.Thread(target=retriever.close),
    )

    def close_and_read(self: KeywordIndex, *args: Any) -> Any:
        closing_thread.start()
        closing_thread.join(0.2)  # it waits for this query
        return read_corpus(self, *args)

    monkeypatch.setattr(KeywordIndex, "_read_corpus", close_and_read)
    with pytest.raises(StoreError, match="this retriever is closed: open the index again"):
        retriever.invoke("part 3")
    closing_thread.join(10)
    assert not closing_thread.is_alive()


@every_front_end
@pytest.mark.parametrize("is_in_memory", [True, False])
@pytest.mark.parametrize("is_query", [True, False])
def test_an_operation_whose_retriever_is_closed_meanwhile_says_so(
    front: FrontEnd, is_in_memory: bool, is_query: bool, tmp_path: Path
) -> None:
    """Whatever Chroma raises then, such as an AttributeError."""
    model, is_closing = HashingEmbeddings(dimensions=64), False

    def embed_and_close(texts: list[str]) -> list[list[float]]:
        if is_closing:
            retriever.close()
        return model.embed_documents(texts)

    retriever = front.build(
        [("lamp", "The old lamp is lit.", {})],
        path=None if is_in_memory else tmp_path,
        embeddings=embed_and_close,
        model_name="closing",
    )
    new = front.documents([("horn", "The horn sounds.", {})])
    add, find = partial(front.do, retriever, "add_documents", new), partial(front.find, retriever)
    is_closing = True
    with pytest.raises(StoreError, match="this retriever is closed: open the index again"):
        find("Which lamp is lit?") if is_query else add()


@pytest.mark.slow
def test_threads_open_and_close_one_folder(tmp_path: Path) -> None:
    """Chroma shares what the clients of a folder have, and is not prepared for threads there."""

    def open_and_close(number: int) -> None:
        for _ in range(5):
            with opened(tmp_path, collection_name=f"collection{number % 4}") as retriever:
                retriever.add_documents([document(0, 0)])
                assert retriever.invoke("part 3")

    in_threads([partial(open_and_close, number) for number in range(16)])


def test_a_folder_is_reserved_and_released_by_one_thread_at_a_time(tmp_path: Path) -> None:
    release = opening.own_folder(tmp_path)
    thread = threading.Thread(target=release)
    with opening._folders_lock:
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
    thread.join(60)
    assert not thread.is_alive()


def test_an_update_of_the_keyword_index_that_comes_late_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two retrievers of a process share a file: what one has read may be old when it is written."""
    update = KeywordIndex.update
    arrived, released = defaultdict(threading.Event), defaultdict(threading.Event)

    def pausing_update(self: KeywordIndex, *args: Any) -> None:
        name = threading.current_thread().name
        if name in ("adds", "reads", "goes on"):
            arrived[name].set()
            released[name].wait(10)
        update(self, *args)

    def start(name: str, do: Callable[[], Any]) -> threading.Thread:
        thread = threading.Thread(target=do, name=name)
        thread.start()
        arrived[name].wait(0.5)  # it may have to wait for another one
        return thread

    with closing(opened(tmp_path / "index")) as one, closing(opened(tmp_path / "index")) as other:
        one.add_documents([document(0, 0)])
        other.invoke("part 3")
        monkeypatch.setattr(KeywordIndex, "update", pausing_update)
        adding = start("adds", lambda: one.add_documents([document(0, 1)]))
        reading = start("reads", lambda: other.invoke("part 3"))
        released["adds"].set()
        adding.join()
        one.delete([name_of(0, 1)])
        going_on = start("goes on", lambda: one.add_documents([document(0, 2)]))
        released["reads"].set()
        reading.join()
        released["goes on"].set()
        going_on.join()
        assert one.verify().is_sound
        assert other.verify().is_sound


@pytest.mark.parametrize(
    "docstore",
    [
        langchain_docstore(InMemoryStore()),
        langchain_docstore(ByteDocuments(InMemoryByteStore())),
        llama_index_docstore(SimpleKVStore()),
        llama_index_docstore(SimpleDocumentStore()),
    ],
)
def test_rows_in_memory_are_replaced_at_once(docstore: Docstore) -> None:
    """No task comes in between, which would see the parents of two versions."""
    work = docstore.write([("new", Entry("new", {}, "new"))], ["old"])
    with pytest.raises(StopIteration):
        work.send(None)
    assert run(docstore.read(["new", "old"])) == [Entry("new", {}, "new"), None]
