"""A key-value store in Redis: the rows of a namespace in one hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag_splitters.errors import InputError, MissingExtraError
from rag_splitters.extras import install_command
from rag_splitters.parent_child.batching import MAX_ROWS, batched, bounded_requests
from rag_splitters.parent_child.remote import RemoteKeyValueStore

if TYPE_CHECKING:
    from redis.asyncio import ConnectionPool


_PAGE = 1000
# Arguments: how many keys are compared, each with its value; the same of rows; keys to remove.
_SWAP = """
local place = 2
for _ = 1, tonumber(ARGV[1]) do
  if (redis.call('HGET', KEYS[1], ARGV[place]) or '') ~= ARGV[place + 1] then return 0 end
  place = place + 2
end
local rows = tonumber(ARGV[place])
place = place + 1
for _ = 1, rows do
  redis.call('HSET', KEYS[1], ARGV[place], ARGV[place + 1])
  redis.call('ZADD', KEYS[2], 0, ARGV[place])
  place = place + 2
end
for removed = place, #ARGV do
  redis.call('HDEL', KEYS[1], ARGV[removed])
  redis.call('ZREM', KEYS[2], ARGV[removed])
end
return 1
"""

_Command = tuple[Any, ...]


class RedisKeyValueStore(RemoteKeyValueStore):
    """Keeps JSON values under string keys in Redis.

    Each `mset` and `mdelete` is one transaction. A connection that the server dropped is opened
    again. How durable the rows are depends on the server: turn on its append-only file, and turn
    off the eviction of keys, because an evicted row is lost.

    The rows of a namespace are in the hash `namespace:rows`; the sorted set `namespace:keys` holds
    its keys in order.

    Parameters:
        url: `redis://[user:password@]host:port/database`, `rediss://` for TLS, or `unix://`.
        namespace: stores with the same namespace share their rows.
        timeout: seconds to wait for the server to answer one request.

    Raises ImportError without the extra `redis`, and ValueError for an invalid URL. The first
    connection is made when the store is first used.
    """

    def __init__(
        self, url: str, *, namespace: str = "rag_splitters", timeout: float = 30.0
    ) -> None:
        self._pool = _pool(url, timeout)
        super().__init__(self._pool, timeout)
        self.namespace = namespace
        parts = urlsplit(url)
        self._place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._hash, self._index = f"{namespace}:rows", f"{namespace}:keys"
        from redis import RedisError

        self._failures = (RedisError, OSError)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._place!r}, namespace={self.namespace!r})"

    async def _read(self, keys: list[bytes]) -> dict[bytes, bytes]:
        rows: dict[bytes, bytes] = {}
        for batch in batched(keys, MAX_ROWS):
            (values,) = await self._transact([("HMGET", self._hash, *batch)])
            rows.update((k, v) for k, v in zip(batch, values, strict=True) if v is not None)
        return rows

    async def _write(self, rows: dict[bytes, bytes]) -> None:
        commands: list[_Command] = []
        for batch in bounded_requests(rows.items()):
            commands.append(("HSET", self._hash, *(part for row in batch for part in row)))
            commands.append(("ZADD", self._index, *(part for key, _ in batch for part in (0, key))))
        await self._transact(commands)

    async def _remove(self, keys: list[bytes]) -> int:
        batches = batched(keys, MAX_ROWS)
        from_hash = [("HDEL", self._hash, *batch) for batch in batches]
        from_index = [("ZREM", self._index, *batch) for batch in batches]
        return sum((await self._transact(from_hash + from_index))[: len(from_hash)])

    async def _swap(
        self, expected: dict[bytes, bytes], rows: dict[bytes, bytes], removed: list[bytes]
    ) -> bool:
        compared = [len(expected), *(part for pair in expected.items() for part in pair)]
        written = [len(rows), *(part for row in rows.items() for part in row)]
        place = (2, self._hash, self._index)
        command = ("EVAL", _SWAP, *place, *compared, *written, *removed)
        (is_done,) = await self._transact([command])
        return bool(is_done)

    async def _page(self, start: bytes, end: bytes) -> list[bytes]:
        between = (b"[" + start, b"(" + end, "LIMIT", 0, _PAGE)
        (page,) = await self._transact([("ZRANGEBYLEX", self._index, *between)])
        return list(page)

    async def _transact(self, commands: Sequence[_Command]) -> list[Any]:
        """Run commands that take effect together or not at all, and return their results."""
        from redis import ConnectionError as ConnectionLostError

        try:
            return await self._execute(commands)
        except ConnectionLostError:
            # Perhaps the server was restarted: try once more, on a new connection. Every command
            # that is used here may be run twice.
            await self._pool.disconnect(inuse_connections=False)
            return await self._execute(commands)

    async def _execute(self, commands: Sequence[_Command]) -> list[Any]:
        from redis.asyncio import Redis

        async with Redis(connection_pool=self._pool).pipeline(transaction=True) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return list(await pipeline.execute())


def _pool(url: str, timeout: float) -> ConnectionPool:
    try:
        from redis.asyncio import ConnectionPool
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ImportError as error:
        raise MissingExtraError(f"Redis stores need redis: {install_command('redis')}") from error
    waits = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    try:
        pool = ConnectionPool.from_url(url, **waits, retry=Retry(NoBackoff(), 0))
    except (ValueError, TypeError):
        raise InputError(  # without the URL and the cause, which may contain a password
            "invalid Redis URL: use redis://[user:password@]host:port/database"
        ) from None
    pool.connection_kwargs["decode_responses"] = False  # whatever the URL says: rows are bytes
    return pool
