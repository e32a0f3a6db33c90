"""A key-value store in Redis: the rows of a namespace in one hash."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from rag_splitters.errors import InputError
from rag_splitters.extras import needs
from rag_splitters.parent_child.batching import MAX_ROWS, batched
from rag_splitters.parent_child.stores.keyvalue import (
    HOLDER_KEY,
    TURN_KEY,
    KeyValueStore,
    StoreTurn,
    check_timeout,
    holder_value,
)

if TYPE_CHECKING:
    from redis import ConnectionPool


T = TypeVar("T")
_PAGE = 1000
# Keys: the hash, and the sorted set of its keys. Arguments: how many keys are compared, each with
# its value; the same of rows; keys to remove.
_CHANGE = """
local place = 2
for _ = 1, tonumber(ARGV[1]) do
  if (redis.call('HGET', KEYS[1], ARGV[place]) or '') ~= ARGV[place + 1] then return -1 end
  place = place + 2
end
local rows = tonumber(ARGV[place])
place = place + 1
for _ = 1, rows do
  redis.call('HSET', KEYS[1], ARGV[place], ARGV[place + 1])
  redis.call('ZADD', KEYS[2], 0, ARGV[place])
  place = place + 2
end
local removed = 0
for index = place, #ARGV do
  removed = removed + redis.call('HDEL', KEYS[1], ARGV[index])
  redis.call('ZREM', KEYS[2], ARGV[index])
end
return removed
"""


class RedisStore(KeyValueStore):
    """Keeps JSON values under string keys in Redis.

    Each `mset` and `mdelete` is one transaction. A connection that the server dropped is opened
    again. How durable the rows are depends on the server: turn on its append-only file, and turn
    off the eviction of keys, because an evicted row is lost.

    The rows of a namespace are in the hash `namespace:rows`; the sorted set `namespace:keys` holds
    its keys in order. One of the rows names the connection that is writing to an index, so the
    server must allow CLIENT LIST, and no proxy may stand in between.

    Parameters:
        url: `redis://[user:password@]host:port/database`, `rediss://` for TLS, or `unix://`.
        namespace: stores with the same namespace share their rows.
        timeout: seconds to wait for the server to answer one request.

    Raises ImportError without the extra `redis`, and ValueError for an invalid URL. The first
    connection is made when the store is first used.
    """

    is_fenced = True

    def __init__(
        self, url: str, *, namespace: str = "rag_splitters", timeout: float = 30.0
    ) -> None:
        self._pool = _pool(url, timeout)
        super().__init__()
        self._close_with(partial(self._pool.disconnect, inuse_connections=False))
        self.namespace = namespace
        parts = urlsplit(url)
        self._place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._hash, self._index = f"{namespace}:rows", f"{namespace}:keys"
        from redis import RedisError

        self._failures = (RedisError, OSError)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._place!r}, namespace={self.namespace!r})"

    def _read(self, keys: list[bytes]) -> dict[bytes, bytes]:
        rows: dict[bytes, bytes] = {}
        for batch in batched(keys, MAX_ROWS):
            values = self._run("HMGET", self._hash, *batch)
            rows.update((k, v) for k, v in zip(batch, values, strict=True) if v is not None)
        return rows

    def _change(
        self, expected: dict[bytes, bytes], rows: dict[bytes, bytes], removed: list[bytes]
    ) -> int | None:
        count = self._run(*self._change_command(expected, rows, removed))
        return None if count < 0 else count

    def _change_command(
        self, expected: dict[bytes, bytes], rows: dict[bytes, bytes], removed: list[bytes]
    ) -> list[Any]:
        compared = [len(expected), *(part for pair in expected.items() for part in pair)]
        written = [len(rows), *(part for row in rows.items() for part in row)]
        return ["EVAL", _CHANGE, 2, self._hash, self._index, *compared, *written, *removed]

    def _take_turn(self) -> StoreTurn | None:
        return self._twice(self._try_turn)

    def _try_turn(self) -> StoreTurn | None:
        """Name the connection that has the turn: its holder lives as long as it is connected."""
        from redis import Redis

        client: Any = Redis(connection_pool=self._pool, single_connection_client=True)
        connection = client.connection
        try:
            server = (client.info("server"))["run_id"]
            holder = holder_value(client=client.client_id(), server=server)
            keys = [TURN_KEY, HOLDER_KEY]
            last, former = (row or b"" for row in client.hmget(self._hash, keys))
            number = int(last or 0) + 1
            new = {TURN_KEY: b"%d" % number, HOLDER_KEY: holder}
            command = self._change_command({TURN_KEY: last, HOLDER_KEY: former}, new, [])
            is_free = not former or not _is_connected(client, json.loads(former), server)
            # On this connection, and once: it must not be lost without the turn.
            is_taken = is_free and client.execute_command(*command) >= 0
        except BaseException:
            connection.disconnect()
            raise
        if not is_taken:
            client.close()  # which gives the connection back to the pool
            return None

        def end() -> None:
            try:
                command = self._change_command({HOLDER_KEY: holder}, {}, [HOLDER_KEY])
                client.execute_command(*command)
            except self._failures:
                connection.disconnect()  # which also ends the turn
            finally:
                client.close()

        return self, number, end

    def _page(self, start: bytes, end: bytes) -> list[bytes]:
        between = (b"[" + start, b"(" + end, "LIMIT", 0, _PAGE)
        return list(self._run("ZRANGEBYLEX", self._index, *between))

    def _run(self, *command: Any) -> Any:
        """Run a command, which may be run twice, and return its result."""
        from redis import Redis

        client: Any = Redis(connection_pool=self._pool)
        return self._twice(partial(client.execute_command, *command))

    def _twice(self, work: Callable[[], T]) -> T:
        """Do something, and do it once more, on a new connection, if the first one was lost."""
        from redis import ConnectionError as ConnectionLostError

        try:
            return work()
        except ConnectionLostError:  # perhaps the server was restarted
            self._pool.disconnect(inuse_connections=False)
            return work()


def _is_connected(client: Any, holder: dict[str, Any], server: str) -> bool:
    """Whether the holder of a turn still has its connection, and so may still write."""
    if holder["server"] != server:  # the server was restarted, and all connections were lost
        return False
    return bool(client.client_list(client_id=[holder["client"]]))


def _pool(url: str, timeout: float) -> ConnectionPool:
    check_timeout(timeout)
    with needs("Redis stores need redis", "redis"):
        from redis import ConnectionPool
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    waits = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    try:
        pool = ConnectionPool.from_url(url, **waits, retry=Retry(NoBackoff(), 0))
    except (ValueError, TypeError):
        raise InputError(  # without the URL and the cause, which may contain a password
            "invalid Redis URL: use redis://[user:password@]host:port/database"
        ) from None
    pool.connection_kwargs["decode_responses"] = False  # whatever the URL says: rows are bytes
    return pool
