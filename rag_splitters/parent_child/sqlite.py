"""A key-value store in one SQLite file: one JSON row per key."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from rag_splitters.parent_child.keyvalue import KeyValueStore
from rag_splitters.parent_child.stores import parts

__all__ = ["SQLiteKeyValueStore"]

_MOST_VARIABLES = 500  # well under the limit of the oldest SQLite, which is 999
_SCHEMA = "CREATE TABLE IF NOT EXISTS rows (key BLOB PRIMARY KEY, value BLOB NOT NULL)"
_UPSERT = "INSERT INTO rows VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_DELETE = "DELETE FROM rows WHERE key = ?"
_KEYS = "SELECT key FROM rows WHERE key >= ? AND key < ? ORDER BY key LIMIT 1000"


class SQLiteKeyValueStore(KeyValueStore):
    """Keeps JSON values under string keys in one SQLite file.

    For the parents of a folder, or wherever a small durable store is needed without a server. What
    is written is on disk when `mset` returns; several readers and one writer at a time, from any
    thread or process (write-ahead log).

    >>> import contextlib, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.sqlite"
    >>> with contextlib.closing(SQLiteKeyValueStore(path)) as store:
    ...     store.mset([("b", [1, None]), ("a", {"x": "y"})])
    ...     store.mget(["a", "missing"]), list(store.yield_keys())
    ([{'x': 'y'}, None], ['a', 'b'])
    """

    _failures = (sqlite3.Error,)

    def __init__(self, path: str | Path) -> None:
        """Open the file at `path`; it and its folder are made where they do not exist."""
        super().__init__()
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        with self._checked():
            self._connection = sqlite3.connect(
                self.path, timeout=60, check_same_thread=False, isolation_level=None
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            # FULL and not NORMAL: a parent must be on disk before its children are.
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute(_SCHEMA)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        super().close()
        with self._lock:
            self._connection.close()

    def _read(self, keys: list[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for part in parts(keys, _MOST_VARIABLES):
            query = "SELECT key, value FROM rows WHERE key IN (?" + ", ?" * (len(part) - 1) + ")"
            with self._lock:
                found.update(self._connection.execute(query, part).fetchall())
        return found

    def _write(self, rows: dict[bytes, bytes]) -> None:
        self._transact(_UPSERT, rows.items())

    def _remove(self, keys: list[bytes]) -> int:
        return self._transact(_DELETE, ((key,) for key in keys))

    def _page(self, start: bytes, end: bytes) -> list[bytes]:
        with self._lock:
            return [key for (key,) in self._connection.execute(_KEYS, (start, end)).fetchall()]

    def _transact(self, statement: str, rows: Iterable[Sequence[bytes]]) -> int:
        """Run the statement with each row; how many rows of the table it has touched."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                touched = self._connection.executemany(statement, rows).rowcount
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            return max(touched, 0)  # -1 where there was no row
