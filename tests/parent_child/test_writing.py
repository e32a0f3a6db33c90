"""One writer at a time: who waits for whom, and what becomes of a writer that lost its turn."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import chromadb
import psycopg
import pytest
import redis

from rag_splitters.calls import run
from rag_splitters.langchain import DocumentStore
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child import DocstoreInUseError, LockLostError, StoreError, writing
from rag_splitters.parent_child.identity import check_identity
from rag_splitters.parent_child.index import stores_of_workers, turn_for_workers
from rag_splitters.parent_child.indexing import add
from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.stores.chroma import ChromaChildren
from rag_splitters.parent_child.stores.keyvalue import KeyValueDocstore, KeyValueStore
from rag_splitters.parent_child.stores.postgres import PostgresStore
from tests.support.counting import record_calls
from tests.support.front_ends import FrontEnd, Page, every_front_end
from tests.support.processes import running
from tests.support.stores import OpenStore

_MODEL = HashingEmbeddings(dimensions=32)
on_servers = pytest.mark.parametrize("place", ["postgres", "redis"], indirect=True)
Open = Callable[..., Any]


def page(version: str, name: str = "lamps") -> Page:
    """A document whose every paragraph says its version."""
    return name, "\n\n".join(f"Lamp {n} says {version}." for n in range(8)), {"version": version}


class Gate:
    """An embedding model that stops at its first call until it is let go."""

    description = "gate"

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        self.open.set()
        self.calls = 0

    def __call__(self, texts: list[str]) -> Any:
        self.calls += 1
        self.reached.set()
        assert self.open.wait(60)
        return _MODEL.embed_documents(texts)


@pytest.fixture
def open_index(open_store: OpenStore) -> Iterator[Open]:
    """Opens one index as often as it is called, as processes of their own would."""
    client, name = chromadb.EphemeralClient(), f"test_{uuid.uuid4().hex}"

    def opening(front: FrontEnd, model: Gate | None = None, **options: Any) -> Any:
        store = open_store()
        return front.build(
            client=client,
            collection_name=name,
            docstore=DocumentStore(store) if front.framework == "langchain" else store,
            embeddings=model or Gate(),
            parent_size=None,
            child_size=30,
            **options,
        )

    yield opening
    client.delete_collection(name)


def versions(front: FrontEnd, retriever: Any) -> dict[str, list[str]]:
    """The versions of each document's children."""
    found: dict[str, list[str]] = {}
    for metadata in front.collection(retriever).get()["metadatas"]:
        found.setdefault(metadata["_source_id"], []).append(metadata["version"])
    return found


def assert_sound(front: FrontEnd, retriever: Any) -> None:
    report = front.do(retriever, "verify")
    assert report.is_sound, report


def write(front: FrontEnd, retriever: Any, *pages: Page) -> Any:
    return front.do(retriever, "add_documents", front.documents(pages))


@every_front_end
def test_embedding_holds_nobody_up(front: FrontEnd, open_index: Open) -> None:
    slow, quick = Gate(), Gate()
    first, second = open_index(front, slow), open_index(front, quick)
    write(front, first, page("before"))
    slow.open.clear()
    slow.reached.clear()
    with ThreadPoolExecutor(1) as pool:
        adding = pool.submit(write, front, first, page("first"))
        assert slow.reached.wait(30)
        write(front, second, page("second"), page("other", "others"))
        slow.open.set()
        adding.result(timeout=60)
    assert slow.calls == 2, "what another writer changed meanwhile is not embedded again"
    assert versions(front, first) == {"lamps": ["first"] * 8, "others": ["other"] * 8}
    assert_sound(front, first)


@pytest.mark.slow
@every_front_end
def test_retrievers_of_one_process_write_the_same_document(
    front: FrontEnd, open_index: Open
) -> None:
    def add_often(version: str) -> None:
        for number in range(4):
            retriever = open_index(front)  # a web application that opens one for each request
            write(front, retriever, page(f"{version}{number}"))

    with ThreadPoolExecutor(3) as pool:
        for adding in [pool.submit(add_often, version) for version in "abc"]:
            adding.result(timeout=120)
    retriever = open_index(front)
    assert len(set(versions(front, retriever)["lamps"])) == 1
    assert len(versions(front, retriever)["lamps"]) == 8
    assert_sound(front, retriever)


def test_turns_exclude_each_other_and_count(open_store: OpenStore) -> None:
    store = open_store()
    one, other = KeyValueDocstore(open_store()), KeyValueDocstore(store)
    turn = run(one.take_turn())
    assert turn is not None
    assert run(other.take_turn()) is None
    assert str(os.getpid()) in run(other.describe_holder())
    run(turn.docstore.write([("key", Entry("text", {}))]))
    run(turn.release())
    following = run(other.take_turn())
    assert following is not None
    assert following.number == turn.number + 1
    run(following.release())
    assert store.mget(["key"]) == [{"text": "text", "metadata": {}, "id": None}]


def test_conditional_writes_happen_whole_or_not_at_all(open_store: OpenStore) -> None:
    def change(*args: Any) -> int | None:
        return run(store.write(*args))

    store = open_store()
    assert change([("a", 1), ("b", [2])], (), {"a": None}) == 0
    assert change([("a", 9)], (), {"a": None}) is None
    assert change([("a", 9)], ["b"], {"a": 1, "b": [3]}) is None
    assert change([("a", 9)], ["b"], {"a": 1, "c": "there"}) is None
    assert store.mget(["a", "b"]) == [1, [2]]
    assert change([("c", "\ud800\0")], ["a", "missing"], {"a": 1, "b": [2], "c": None}) == 1
    assert store.mget(["a", "b", "c"]) == [None, [2], "\ud800\0"]
    assert change([], (), {}) == 0
    keys = [f"key{number:04}" for number in range(1200)]
    assert change([(key, "x" * 3000) for key in keys], (), dict.fromkeys(keys)) == 0
    assert change([(key, "z") for key in keys], (), {keys[-1]: "y"}) is None
    assert set(store.mget(keys)) == {"x" * 3000}
    assert change([], keys, {keys[-1]: "x" * 3000}) == 1200


def test_conditional_writes_of_several_stores_lose_no_update(open_store: OpenStore) -> None:
    def count(store: KeyValueStore) -> None:
        for _ in range(25):
            while True:
                (value,) = store.mget(["count"])
                pairs = [("count", (value or 0) + 1)]
                if run(store.write(pairs, (), {"count": value})) is not None:
                    break

    stores = [open_store() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for counting in [pool.submit(count, store) for store in stores]:
            counting.result()
    assert stores[0].mget(["count"]) == [100]


@every_front_end
def test_a_second_writer_waits_says_so_and_gives_up_in_time(
    front: FrontEnd, open_index: Open, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    retriever = open_index(front)
    write(front, retriever, page("first"))
    turn = run(KeyValueDocstore(open_store()).take_turn())
    assert turn is not None
    hurried = open_index(front, write_timeout=1.3)
    message = f"{os.getpid()}.* more than 1.3 seconds"
    caplog.set_level(logging.WARNING, "rag_splitters")
    with pytest.raises(DocstoreInUseError, match=message):
        write(front, hurried, page("second"))
    assert "waiting until" in caplog.text
    assert front.find(hurried, "lamp"), "a reader never waits"
    with ThreadPoolExecutor(1) as pool:
        adding = pool.submit(write, front, retriever, page("third"))
        time.sleep(0.3)
        assert not adding.done()
        run(turn.release())
        adding.result(timeout=60)
    assert versions(front, retriever) == {"lamps": ["third"] * 8}
    assert_sound(front, retriever)


HOLDER = """
import sys, time
from rag_splitters.calls import run
from rag_splitters.parent_child.stores.keyvalue import KeyValueDocstore
from tests.support.openers import opener
turn = run(KeyValueDocstore(opener(*sys.argv[1:])()).take_turn())
print("holds" if turn else "nothing", flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(place: tuple[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process that has a turn at the docstore."""
    with running(HOLDER, *place, says="holds") as process:
        yield process


@pytest.mark.slow
def test_a_stopped_writer_keeps_its_turn_and_a_dead_one_loses_it_at_once(
    place: tuple[str, str],
    open_index: Open,
    holder: subprocess.Popen[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front = FrontEnd("llama_index", True) if place[0] == "redis" else FrontEnd("langchain")
    holder.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(time, "time", lambda: 4e9)  # the clock jumps by decades
    retriever = open_index(front, write_timeout=1.5)
    with pytest.raises(DocstoreInUseError, match=f"{holder.pid}"):
        write(front, retriever, page("second"))
    holder.kill()
    holder.wait()
    began = time.monotonic()
    write(front, retriever, page("third"))
    assert time.monotonic() - began < 10
    assert versions(front, retriever) == {"lamps": ["third"] * 8}
    assert_sound(front, retriever)


class Interruption:
    """Interrupts Chroma's collection before a call, as a slow network would."""

    def __init__(self, collection: Any, name: str, act: Callable[[], None]) -> None:
        method = getattr(collection, name)

        def interrupted(**arguments: Any) -> Any:
            setattr(collection, name, method)
            act()
            return method(**arguments)

        setattr(collection, name, interrupted)


def break_connections(kind: str, url: str) -> None:
    """Have the server end all connections but this one."""
    if kind == "redis":
        with redis.Redis.from_url(url) as client:
            client.client_kill_filter(_type="normal", skipme=True)
        return
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND application_name LIKE 'process %'"
        )


def write_as_another_process(front: FrontEnd, retriever: Any, page: Page) -> None:
    """Write past this process's own lock, which would not be in another process's way."""

    async def work() -> None:
        stores = retriever._stores()
        await check_identity(stores)
        turn = await stores.docstore.take_turn()
        assert turn is not None, "the first has lost its turn"
        held = replace(stores, docstore=turn.docstore, turn=turn)
        await add(held, [Entry(page[1], page[2], page[0])])
        await turn.release()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run, work()).result(timeout=60)


@every_front_end
@pytest.mark.server
@pytest.mark.parametrize("method", ["upsert", "delete"])
@on_servers
def test_a_writer_that_lost_its_turn_removes_nothing(
    front: FrontEnd,
    open_index: Open,
    place: tuple[str, str],
    method: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its connection dies while it writes, and another writer finishes; then it goes on."""
    first, second = open_index(front), open_index(front)
    write(front, first, page("before"))

    def overtake() -> None:
        break_connections(*place)
        write_as_another_process(front, second, page("before"))  # what the first is to remove

    Interruption(front.collection(first), method, overtake)
    monkeypatch.setattr(writing, "_ATTEMPTS", 1)
    with pytest.raises((LockLostError, StoreError)):
        write(front, first, page("first"))
    assert versions(front, second)["lamps"].count("before") == 8
    assert front.find(second, "lamp 3 says")[0].metadata["version"] == "before"
    report = front.do(second, "verify", repair=True)
    assert (report.without_children, report.without_parents, report.failed) == ([], [], {})
    assert versions(front, second) == {"lamps": ["before"] * 8}
    assert_sound(front, second)
    monkeypatch.undo()
    write(front, first, page("first"))
    assert versions(front, second) == {"lamps": ["first"] * 8}
    assert_sound(front, second)


@pytest.mark.server
@on_servers
def test_a_writer_whose_connection_breaks_begins_again(
    open_index: Open, place: tuple[str, str]
) -> None:
    front = FrontEnd("langchain")
    retriever = open_index(front)
    write(front, retriever, page("before"))
    Interruption(front.collection(retriever), "upsert", lambda: break_connections(*place))
    assert write(front, retriever, page("after")) == ["lamps"]
    assert versions(front, retriever) == {"lamps": ["after"] * 8}
    assert_sound(front, retriever)


@pytest.mark.server
@on_servers
def test_workers_write_in_the_turn_of_their_driver(
    open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = FrontEnd("langchain")
    driver, workers = open_index(front), [open_index(front) for _ in range(3)]
    monkeypatch.setattr(ChromaChildren, "is_local", False)

    def work(number: int) -> None:
        stores = stores_of_workers(workers[number], turn)
        for name in range(4):
            _, text, metadata = page(str(number))
            run(add(stores, [Entry(text, metadata, f"{number}.{name}")]))

    with turn_for_workers(driver) as turn:
        with ThreadPoolExecutor(3) as pool:
            for working in [pool.submit(work, number) for number in range(3)]:
                working.result(timeout=60)
        late = stores_of_workers(workers[0], turn)
    assert len(versions(front, driver)) == 12
    assert_sound(front, driver)
    write(front, driver, page("next"))
    with pytest.raises(LockLostError):
        run(add(late, [Entry("Too late.", {}, "late")]))
    assert front.do(driver, "get", ["late"]) == []


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
@pytest.mark.parametrize("operation", ["aadd_documents", "adelete"])
def test_a_cancellation_waits_for_the_write_in_flight(
    framework: str, operation: str, open_index: Open, open_store: OpenStore
) -> None:
    front = FrontEnd(framework)
    retriever = open_index(front)
    write(front, retriever, page("before"))
    reached, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def hang() -> None:
        reached.set()
        go_on.wait(30)
        ended.set()

    method = "upsert" if operation == "aadd_documents" else "delete"
    Interruption(front.collection(retriever), method, hang)
    arguments = {"aadd_documents": front.documents([page("after")]), "adelete": ["lamps"]}

    async def hang_up() -> None:
        task = asyncio.create_task(getattr(retriever, operation)(arguments[operation]))
        await asyncio.to_thread(reached.wait, 30)
        task.cancel()
        await asyncio.sleep(0.2)
        assert not task.done()
        assert run(KeyValueDocstore(open_store()).take_turn()) is None, (
            "the turn is kept while a thread writes"
        )
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    asyncio.run(hang_up())
    front.do(retriever, "verify", repair=True)
    assert_sound(front, retriever)
    write(front, retriever, page("last"))
    assert versions(front, retriever) == {"lamps": ["last"] * 8}
    assert_sound(front, retriever)


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_a_turn_that_arrives_after_the_cancellation_is_released(
    framework: str, open_index: Open, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = FrontEnd(framework)
    retriever, other = open_index(front), open_store()
    reached, go_on, kept = threading.Event(), threading.Event(), list[Any]()
    take_turn = type(other)._take_turn

    def hang(self: KeyValueStore) -> Any:
        kept.append(take_turn(self))  # so that no garbage collection releases it
        reached.set()
        go_on.wait(30)
        return kept[0]

    async def hang_up() -> None:
        task = asyncio.create_task(retriever.aadd_documents(front.documents([page("lost")])))
        await asyncio.to_thread(reached.wait, 30)
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    with monkeypatch.context() as patched:
        patched.setattr(type(other), "_take_turn", hang)
        asyncio.run(hang_up())
    assert kept[0] is not None
    turn = run(KeyValueDocstore(other).take_turn())
    assert turn is not None, "the turn was released"
    run(turn.release())


@pytest.mark.server
def test_one_document_takes_few_statements_of_postgresql(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = record_calls(monkeypatch, PostgresStore, "_run_statement")
    front = FrontEnd("langchain")
    with closing(PostgresStore(postgres_url)) as docstore:
        retriever = front.build(docstore=docstore)
        write(front, retriever, page("first", "first"))
        statements.clear()
        write(front, retriever, page("before"))
        assert len(statements) <= 8
        statements.clear()
        write(front, retriever, page("after"))
        assert len(statements) <= 10, "the old children are removed, too"
