"""Locks on documents: who waits for whom, and what becomes of a writer that is taken for dead."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import chromadb
import pytest
from langchain_core.documents import Document

from rag_splitters.calls import run
from rag_splitters.langchain import (
    ParentDocumentRetriever,
    RecursiveTextSplitter,
    parent_document_retriever,
)
from rag_splitters.langchain.kvstores import DocumentStore
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child import locks
from rag_splitters.parent_child.keyvalue import KeyValueDocstore, KeyValueStore
from tests.support.stores import OpenStore

_MODEL = HashingEmbeddings(dimensions=32)
Open = Callable[..., ParentDocumentRetriever]


@pytest.fixture
def open_index(open_store: OpenStore) -> Iterator[Open]:
    """Opens one index as often as it is called, as processes of their own would."""
    client, name = chromadb.EphemeralClient(), f"test_{uuid.uuid4().hex}"

    def opening(embed: Callable[[list[str]], Any] = _MODEL.embed_documents) -> Any:
        return parent_document_retriever(
            client=client,
            collection_name=name,
            docstore=DocumentStore(open_store()),
            embeddings=embed,
            child_splitter=RecursiveTextSplitter(chunk_size=30),
            parent_splitter=None,
            search_type="similarity",
            headings=False,
        )

    yield opening
    client.delete_collection(name)


def document(version: str) -> Document:
    text = "\n\n".join(f"Lamp {n} says {version}." for n in range(8))
    return Document(page_content=text, metadata={"version": version}, id="lamps")


def versions(retriever: ParentDocumentRetriever) -> list[str]:
    rows = retriever.vectorstore._collection.get()  # type: ignore[attr-defined]
    return [metadata["version"] for metadata in rows["metadatas"]]


def states(retriever: ParentDocumentRetriever) -> list[str]:
    return list(retriever.docstore.yield_keys(prefix="state/"))


class Gate:
    """An embedding function that stops at its first call until it is let go."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        self.calls = 0

    def __call__(self, texts: list[str]) -> Any:
        self.calls += 1
        self.reached.set()
        assert self.open.wait(30)
        return _MODEL.embed_documents(texts)


def test_swap_writes_only_over_what_is_expected(open_store: OpenStore) -> None:
    store = open_store()
    assert store.mswap({"a": None}, [("a", 1), ("b", [2])])
    assert not store.mswap({"a": None}, [("a", 9)])
    assert not store.mswap({"a": 1, "b": [3]}, [("a", 9)], ["b"])
    assert not store.mswap({"a": 1, "c": "there"}, [("a", 9)], ["b"])
    assert store.mget(["a", "b"]) == [1, [2]]
    assert store.mswap({"a": 1, "b": [2], "c": None}, [("c", "\ud800\0")], ["a", "missing"])
    assert store.mget(["a", "b", "c"]) == [None, [2], "\ud800\0"]
    assert list(store.yield_keys()) == ["b", "c"]
    assert store.mswap({}, [], [])


def test_swap_of_many_rows_is_one_step(open_store: OpenStore) -> None:
    store = open_store()
    keys = [f"key{number:04}" for number in range(1200)]
    assert store.mswap(dict.fromkeys(keys), [(key, "x" * 3000) for key in keys])
    assert not store.mswap({keys[-1]: "y"}, [(key, "z") for key in keys])
    assert set(store.mget(keys)) == {"x" * 3000}
    assert store.mswap({keys[-1]: "x" * 3000}, [], keys)
    assert list(store.yield_keys()) == []


def test_swaps_of_several_stores_lose_no_update(open_store: OpenStore) -> None:
    def count(store: KeyValueStore) -> None:
        for _ in range(25):
            while True:
                (value,) = store.mget(["count"])
                if store.mswap({"count": value}, [("count", (value or 0) + 1)]):
                    break

    stores = [open_store() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for counting in [pool.submit(count, store) for store in stores]:
            counting.result()
    assert stores[0].mget(["count"]) == [100]


def test_second_writer_waits_for_a_slow_first(
    open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LEASE", 0.5)
    gate = Gate()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(open_index(gate).add_documents, [document("first")])
        assert gate.reached.wait(30)
        second = pool.submit(open_index().add_documents, [document("second")])
        with pytest.raises(TimeoutError):
            second.result(timeout=1.5)  # three leases, which the first renews
        gate.open.set()
        assert first.result() == second.result() == ["lamps"]
    assert gate.calls == 1
    retriever = open_index()
    assert versions(retriever) == ["second"] * 8
    assert retriever.verify().is_sound
    assert states(retriever) == []


def test_writer_that_was_taken_for_dead_begins_again(
    open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LEASE", 0.3)
    with monkeypatch.context() as frozen, ThreadPoolExecutor(1) as pool:
        frozen.setattr(locks._Heart, "start", lambda heart: None)
        gate = Gate()
        first = pool.submit(open_index(gate).add_documents, [document("first")])
        assert gate.reached.wait(30)
        open_index().add_documents([document("second")])
        assert versions(open_index()) == ["second"] * 8
        gate.open.set()
        first.result()
    assert gate.calls == 2, "its own write was refused, and done again after the second"
    retriever = open_index()
    assert versions(retriever) == ["first"] * 8
    assert retriever.verify().is_sound
    assert states(retriever) == []


def test_lock_of_a_dead_writer_is_taken_over(
    open_index: Open, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LEASE", 0.3)
    docstore = KeyValueDocstore(open_store())
    dead = locks._Writer(docstore, [locks._lock_key("lamps"), locks._lock_key("other")])
    run(dead.acquire())
    dead._heart.stop()
    retriever = open_index()
    retriever.add_documents([document("first")])
    assert versions(retriever) == ["first"] * 8
    assert states(retriever) == [locks._lock_key("other")]
    retriever.verify(repair=True)
    assert states(retriever) == []


def test_writers_of_the_same_documents_in_any_order_wait_for_each_other_in_turn(
    open_index: Open,
) -> None:
    names = [f"doc{number}" for number in range(6)]

    def write(version: str, order: list[str]) -> None:
        retriever = open_index()
        for _ in range(3):
            documents = [document(version).model_copy(update={"id": name}) for name in order]
            retriever.add_documents(documents)
            retriever.delete(order[:2])

    with ThreadPoolExecutor(3) as pool:
        orders = {"a": names, "b": names[::-1], "c": names[3:] + names[:3]}
        for writing in [pool.submit(write, *each) for each in orders.items()]:
            writing.result(timeout=120)
    retriever = open_index()
    report = retriever.verify()
    assert report.is_sound
    by_document: dict[str, set[str]] = {}
    for metadata in retriever.vectorstore._collection.get()["metadatas"]:  # type: ignore[attr-defined]
        by_document.setdefault(metadata["_source_id"], set()).add(metadata["version"])
    assert report.documents == len(by_document)
    assert all(len(each) == 1 for each in by_document.values())
