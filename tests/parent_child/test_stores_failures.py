"""The key-value stores where something goes wrong: one clear error, and nothing half done."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from rag_splitters.calls import arun
from rag_splitters.parent_child.errors import StoreError
from rag_splitters.parent_child.stores.keyvalue import KeyValueStore, SQLiteStore
from rag_splitters.parent_child.stores.postgres import PostgresStore
from rag_splitters.parent_child.stores.redis import RedisStore
from tests.support.servers import PostgresServer, RedisServer
from tests.support.stores import OpenStore, on_server

ROWS = [(f"key-{number:04}", str(number) * 250) for number in range(1200)]


@pytest.fixture(scope="module", params=on_server("redis", "postgres"))
def own_server(request: pytest.FixtureRequest) -> Iterator[RedisServer | PostgresServer]:
    """A server that a test may kill, and starts again."""
    with {"redis": RedisServer, "postgres": PostgresServer}[request.param]() as server:
        yield server


def opened(url: str, timeout: float = 10) -> KeyValueStore:
    kind = RedisStore if url.startswith("redis") else PostgresStore
    return kind(url, timeout=timeout)


# Nothing half done


def refuse_a_key_in_sqlite(path: str) -> None:
    with closing(SQLiteStore(path)) as store:
        store._database._connection.execute(
            "CREATE TRIGGER refusal BEFORE INSERT ON rows WHEN NEW.key = x'6B65792D31303030' "
            "BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )


def refuse_a_key_in_postgres(url: str) -> None:
    with closing(opened(url)) as store:
        store.mget([])  # makes no table
        store.mget(["key"])
    with psycopg.connect(url) as connection:
        connection.execute("ALTER TABLE rag_splitters ADD CHECK (key <> 'key-1000'::bytea)")


def refuse_more_memory_in_redis(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 700_000)


def forgive_redis(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.config_set("maxmemory", 0)


REFUSALS: dict[str, Callable[[str], None]] = {
    "sqlite": refuse_a_key_in_sqlite,
    "redis": refuse_more_memory_in_redis,
    "postgres": refuse_a_key_in_postgres,
}


def test_mset_that_fails_on_the_way_writes_nothing(
    place: tuple[str, str], open_store: OpenStore
) -> None:
    back_end, where = place
    store = open_store()
    store.mset([("before", 0), ("key-0000", "old")])
    REFUSALS[back_end](where)
    try:
        with pytest.raises(StoreError, match=r"Store\("):
            store.mset(ROWS)
    finally:
        if back_end == "redis":
            forgive_redis(where)
    assert list(store.yield_keys()) == ["before", "key-0000"]
    assert store.mget(["before", "key-0000", "key-0001"]) == [0, "old", None]
    store.mset(ROWS[:500])
    assert len(list(store.yield_keys("key"))) == 500


def test_postgres_store_refuses_a_key_that_its_index_does_not_take(postgres_url: str) -> None:
    store = opened(postgres_url)
    store.mset([("é" * 1300, 1)])
    with pytest.raises(ValueError, match="must not have more than 2600 bytes, got 2601: 'x"):
        store.mset([("fine", 1), ("x" * 2601, 2)])
    assert store.mget(["fine", "é" * 1300]) == [None, 1]


# Errors that name the store, and no password


def chain(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def test_closed_store_says_so(open_store: OpenStore) -> None:
    store = open_store()
    store.mset([("key", 1)])
    store.close()
    store.close()
    for use in (lambda: store.mget(["key"]), lambda: list(store.yield_keys())):
        with pytest.raises(StoreError, match=r"Store.* is closed"):
            use()
    with pytest.raises(StoreError, match=r"Store.* is closed"):
        asyncio.run(arun(store.write([("key", 2)])))
    assert open_store().mget(["key"]) == [1]


def test_wrong_password_is_an_error_that_does_not_show_it(own_server: RedisServer) -> None:
    store = opened(own_server.url.replace(own_server.password, "wrong-secret"))
    with pytest.raises(StoreError, match="password") as caught:
        store.mget(["key"])
    assert f"127.0.0.1:{own_server.port}" in str(caught.value)
    assert "wrong-secret" not in chain(caught.value) + repr(store)


UNREADABLE: dict[str, tuple[Callable[[str], object], list[str]]] = {
    "Redis URL: use redis://": (
        RedisStore,
        [
            *("", "localhost", "http://user:secret@host/0", "redis://:secret@host:secret/0"),
            "redis://:secret@host:1/0?socket_timeout=secret",
        ],
    ),
    "PostgreSQL URL: use postgres": (
        PostgresStore,
        ["localhost", "postgresql://user:sec%ret@host", "secret = = "],
    ),
}


@pytest.mark.parametrize("message", UNREADABLE)
def test_url_that_cannot_be_read_is_not_shown(message: str) -> None:
    kind, urls = UNREADABLE[message]
    for url in urls:
        with pytest.raises(ValueError, match=f"invalid {message}") as caught:
            kind(url)
        assert "secret" not in chain(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://user:secret@host:1/2?password=secret", "'redis://host:1/2'"),
        ("unix://user:secret@/socket?db=1", "'unix:///socket'"),
        ("postgresql://user:secret@host:1/name?sslpassword=secret", "'postgresql://host:1/name'"),
        ("host=there user=me password=secret dbname=name", "'postgresql://there/name'"),
    ],
)
def test_store_shows_where_it_is_but_no_secret(url: str, shown: str) -> None:
    kind = RedisStore if url.startswith(("redis", "unix")) else PostgresStore
    assert shown in repr(kind(url))
    assert "secret" not in repr(kind(url))


@pytest.mark.parametrize("url", ["redis://localhost", "postgresql://localhost"])
def test_store_refuses_a_timeout_that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match="timeout must be more than 0 seconds, got 0"):
        opened(url, timeout=0)


def test_two_long_names_are_not_one_table() -> None:
    for table in ("t" * 64, "ä" * 32, f"schema.{'t' * 64}"):
        with pytest.raises(ValueError, match="table must have at most 63 bytes"):
            PostgresStore("postgresql://localhost", table=table)
    PostgresStore("postgresql://localhost", table=f"schema.{'t' * 63}")


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of PostgreSQL is in tests/support/uninstalled.py."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "redis"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install .*\[redis\]"):
        RedisStore("url")


def test_sqlite_store_names_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "text.sqlite"
    path.write_text("this is no database, however long it may be")
    with pytest.raises(StoreError, match=r"text\.sqlite'\): file is not a database"):
        SQLiteStore(path)


# Servers that go away, and silent ones


def test_store_survives_a_restart_of_its_server(own_server: RedisServer) -> None:
    with closing(opened(own_server.url)) as store:
        asyncio.run(read_at_once(store, 8))  # which leaves several connections open
        store.mset([("key", 1)])
        own_server.kill()
        with pytest.raises(StoreError, match=rf"Store\('.*127.0.0.1:{own_server.port}"):
            store.mget(["key"])
        with pytest.raises(StoreError, match=r"Store\("):
            asyncio.run(arun(store.write([("key", 2)])))
        own_server.start()
        asyncio.run(read_at_once(store, 8))
        assert store.mget(["key"]) == [1]


def test_store_notices_nothing_of_a_restart_between_two_calls(own_server: RedisServer) -> None:
    with closing(opened(own_server.url)) as store:
        asyncio.run(read_at_once(store, 8))
        own_server.kill()
        own_server.start()
        store.mset([("key", 1)])
        assert store.mget(["key"]) == [1]


async def read_at_once(store: KeyValueStore, times: int) -> None:
    await asyncio.gather(*(arun(store.read(["key"])) for _ in range(times)))


@contextmanager
def silence(server: RedisServer | PostgresServer) -> Iterator[None]:
    """The server keeps its connections and answers nothing about the rows."""
    if isinstance(server, RedisServer):
        server.signal(signal.SIGSTOP)
        yield
        server.signal(signal.SIGCONT)
    else:
        with psycopg.connect(server.url) as connection:
            connection.execute("LOCK TABLE rag_splitters IN ACCESS EXCLUSIVE MODE")
            yield


def test_silent_server_is_an_error_in_time(own_server: RedisServer) -> None:
    with closing(opened(own_server.url, timeout=0.5)) as store:
        store.mset([("key", 1)])
        with silence(own_server):
            started = time.monotonic()
            with pytest.raises(StoreError, match=r"(?i)time.*|no answer within 0\.5 seconds"):
                store.mget(["key"])
            assert 0.4 < time.monotonic() - started < 8
        assert store.mget(["key"]) == [1]


def test_cancelled_call_leaves_the_store_as_it_was(own_server: RedisServer) -> None:
    async def cancelled(store: KeyValueStore) -> None:
        with silence(own_server), pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(arun(store.read(["key"])), 0.3)
        assert await arun(store.read(["key"])) == [1]

    with closing(opened(own_server.url)) as store:
        store.mset([("key", 1)])
        asyncio.run(cancelled(store))


def test_store_that_nobody_has_any_more_gives_its_connections_back(postgres_url: str) -> None:
    def connections() -> int:
        with psycopg.connect(postgres_url) as connection:
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nobody'"
            return int(connection.execute(query).fetchall()[0][0])

    store = opened(f"{postgres_url}&application_name=nobody")
    asyncio.run(read_at_once(store, 20))
    assert 0 < connections() <= 4, "no more than four are opened"
    del store
    deadline = time.monotonic() + 10
    while connections() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert connections() == 0


def test_store_is_closed_while_others_use_it(open_store: OpenStore) -> None:
    store, outcomes = open_store(), list[str]()

    def work() -> None:
        try:
            while True:
                store.mset(ROWS[:50])
        except StoreError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    store.close()
    for thread in threads:
        thread.join(timeout=20)
    assert [outcome.endswith("is closed") for outcome in outcomes] == [True] * 4
