"""A key-value store in Redis: the rows of a namespace in one hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag_splitters.parent_child.remote import MOST_ROWS, RemoteKeyValueStore, batches
from rag_splitters.parent_child.stores import parts

if TYPE_CHECKING:
    from redis.asyncio import ConnectionPool

__all__ = ["RedisKeyValueStore"]

_PAGE = 1000

_Command = tuple[Any, ...]


class RedisKeyValueStore(RemoteKeyValueStore):
    """Keeps JSON values under string keys in Redis.

    Each `mset` and `mdelete` is one transaction. A connection that the server has dropped is opened
    again. How durable rows are is for the server to say: turn on its append-only file, and turn off
    the eviction of keys, for what is evicted is lost.

    The rows of a namespace are the hash `namespace:rows`; the sorted set `namespace:keys` has its
    keys in order.

    Parameters:
        url: `redis://[user:password@]host:port/database`, `rediss://` for TLS, or `unix://`.
        namespace: stores of one namespace have the same rows.
        timeout: seconds that the server has to answer one request.

    Raises: ImportError without the extra `redis`; ValueError for a URL that cannot be read. The
    server is first asked when the store is first used.
    """

    def __init__(
        self, url: str, *, namespace: str = "rag_splitters", timeout: float = 30.0
    ) -> None:
        self._pool = _pool(url, timeout)
        super().__init__(self._pool, timeout)
        self.namespace = namespace
        self._place = _without_secrets(url)
        self._hash, self._index = f"{namespace}:rows", f"{namespace}:keys"
        from redis import RedisError

        self._failures = (RedisError, OSError)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._place!r}, namespace={self.namespace!r})"

    async def _read(self, keys: list[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for part in parts(keys, MOST_ROWS):
            (values,) = await self._transact([("HMGET", self._hash, *part)])
            found.update((k, v) for k, v in zip(part, values, strict=True) if v is not None)
        return found

    async def _write(self, rows: dict[bytes, bytes]) -> None:
        commands: list[_Command] = []
        for batch in batches(rows.items()):
            commands.append(("HSET", self._hash, *(part for row in batch for part in row)))
            commands.append(("ZADD", self._index, *(part for key, _ in batch for part in (0, key))))
        await self._transact(commands)

    async def _remove(self, keys: list[bytes]) -> int:
        hash_parts = [("HDEL", self._hash, *part) for part in parts(keys, MOST_ROWS)]
        index_parts = [("ZREM", self._index, *part) for part in parts(keys, MOST_ROWS)]
        return sum((await self._transact(hash_parts + index_parts))[: len(hash_parts)])

    async def _page(self, start: bytes, end: bytes) -> list[bytes]:
        between = (b"[" + start, b"(" + end, "LIMIT", 0, _PAGE)
        (page,) = await self._transact([("ZRANGEBYLEX", self._index, *between)])
        return list(page)

    async def _transact(self, commands: Sequence[_Command]) -> list[Any]:
        """The answers to the commands, which happen together or not at all."""
        from redis import ConnectionError as ConnectionLostError

        try:
            return await self._execute(commands)
        except ConnectionLostError:
            # The server was restarted, say: once more, on a new connection. All that is done here
            # may be done twice.
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
        raise ImportError("Redis stores need redis: pip install 'rag-splitters[redis]'") from error
    waits = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    try:
        pool = ConnectionPool.from_url(url, **waits, retry=Retry(NoBackoff(), 0))
    except (ValueError, TypeError):
        raise ValueError(  # neither the URL nor the cause, for they may hold a password
            "the URL of Redis cannot be read: give redis://[user:password@]host:port/database"
        ) from None
    pool.connection_kwargs["decode_responses"] = False  # whatever the URL says: rows are bytes
    return pool


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
