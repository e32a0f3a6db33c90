"""A key-value store in PostgreSQL: one table of keys and JSON."""

from __future__ import annotations

from typing import Any

from rag_splitters.parent_child.postgres_connections import PostgresConnections, Statement
from rag_splitters.parent_child.remote import MOST_ROWS, RemoteKeyValueStore, batches
from rag_splitters.parent_child.stores import parts

__all__ = ["PostgresKeyValueStore"]

_MOST_KEY_BYTES = 2600  # an index of PostgreSQL takes a little more
_LOCK = 0x72616753  # any number that others do not use

# bytea and not text, which holds neither NUL nor lone surrogates.
_CREATE = "CREATE TABLE IF NOT EXISTS {table} (key bytea PRIMARY KEY, value bytea NOT NULL)"
_READ = "SELECT key, value FROM {table} WHERE key = ANY(%b::bytea[])"
_WRITE = (
    "INSERT INTO {table} (key, value) SELECT * FROM unnest(%b::bytea[], %b::bytea[]) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_REMOVE = "DELETE FROM {table} WHERE key = ANY(%b::bytea[])"
_KEYS = "SELECT key FROM {table} WHERE key >= %b AND key < %b ORDER BY key LIMIT 1000"


class PostgresKeyValueStore(RemoteKeyValueStore):
    """Keeps JSON values under string keys in a table of PostgreSQL.

    Each `mset` and `mdelete` is one transaction. A connection that the server has dropped is opened
    again. The table is made where it does not exist; a key may have 2,600 bytes in UTF-8.

    Parameters:
        url: `postgresql://user:password@host:port/database`, or libpq's `host=... dbname=...`.
        table: the table, or `schema.table`; stores of one table have the same rows.
        timeout: seconds that the server has to answer one request.

    Raises: ImportError without the extra `postgres`; ValueError for a URL that cannot be read. The
    server is first asked when the store is first used.
    """

    def __init__(self, url: str, *, table: str = "rag_splitters", timeout: float = 30.0) -> None:
        self._connections = PostgresConnections(url, timeout)
        super().__init__(self._connections, timeout)
        self.table = table
        self._is_made = False
        from psycopg import Error

        self._failures = (Error, OSError)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connections.place!r}, table={self.table!r})"

    async def _read(self, keys: list[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for part in parts(keys, MOST_ROWS):
            (rows,) = await self._transact((_READ, [part]))
            found.update(rows)
        return found

    async def _write(self, rows: dict[bytes, bytes]) -> None:
        for key in rows:
            if len(key) > _MOST_KEY_BYTES:
                raise ValueError(
                    f"a key in PostgreSQL must not have more than {_MOST_KEY_BYTES} bytes, "
                    f"got {len(key)}: {key[:40].decode('utf-8', 'replace')!r}..."
                )
        columns = (list(zip(*part, strict=True)) for part in batches(rows.items()))
        await self._change(*((_WRITE, [list(keys), list(values)]) for keys, values in columns))

    async def _remove(self, keys: list[bytes]) -> int:
        return sum(await self._change(*((_REMOVE, [part]) for part in parts(keys, MOST_ROWS))))

    async def _page(self, start: bytes, end: bytes) -> list[bytes]:
        (rows,) = await self._transact((_KEYS, [start, end]))
        return [key for (key,) in rows]

    async def _change(self, *statements: Statement) -> list[Any]:
        """What each has touched. One store at a time: its rows are not mixed with another's."""
        alone = ("SELECT pg_advisory_xact_lock(%s, {literal}::regclass::oid::int)", [_LOCK])
        return (await self._transact(alone, *statements))[1:] if statements else []

    async def _transact(self, *statements: Statement) -> list[Any]:
        if not self._is_made:
            await self._make_table()
            self._is_made = True
        return await self._connections.transact(self.table, *statements)

    async def _make_table(self) -> None:
        """Make the table, if need be: a user who may not make one finds it made."""
        transact = self._connections.transact
        (found,) = await transact(self.table, ("SELECT to_regclass({literal})", []))
        if found == [(None,)]:
            locked = ("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            await transact(self.table, locked, (_CREATE, []))
