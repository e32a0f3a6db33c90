"""A key-value store in one SQLite file: one JSON row per key."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["SQLiteKeyValueStore", "check_json"]

_MOST_VARIABLES = 500  # well under the limit of the oldest SQLite, which is 999
_SCHEMA = "CREATE TABLE IF NOT EXISTS rows (key BLOB PRIMARY KEY, value BLOB NOT NULL)"
_UPSERT = "INSERT INTO rows VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_FIRST_KEYS = "SELECT key FROM rows WHERE key >= ? AND key < ? ORDER BY key LIMIT 1000"
_NEXT_KEYS = "SELECT key FROM rows WHERE key > ? AND key < ? ORDER BY key LIMIT 1000"


class SQLiteKeyValueStore:
    """Keeps JSON values under string keys in one SQLite file.

    For the parents of a folder, or wherever a small durable store is needed without a server. Every
    `mset` and `mdelete` is one transaction, on disk when it returns; several readers and one writer
    at a time, from any thread or process (write-ahead log). Strings are kept exactly, lone
    surrogates included. Nothing is pickled.

    >>> import contextlib, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.sqlite"
    >>> with contextlib.closing(SQLiteKeyValueStore(path)) as store:
    ...     store.mset([("b", [1, None]), ("a", {"x": "y"})])
    ...     store.mget(["a", "missing"]), list(store.yield_keys())
    ([{'x': 'y'}, None], ['a', 'b'])
    """

    def __init__(self, path: str | Path) -> None:
        """Open the file at `path`; it and its folder are made where they do not exist."""
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(
            self.path, timeout=60, check_same_thread=False, isolation_level=None
        )
        self._connection.execute("PRAGMA journal_mode = WAL")
        # FULL and not NORMAL: a parent must be on disk before its children are.
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(_SCHEMA)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def mget(self, keys: Sequence[str]) -> list[Any]:
        """The values of the keys, in their order; None where there is none."""
        found: dict[bytes, Any] = {}
        encoded = [_encode(key) for key in keys]
        for start in range(0, len(encoded), _MOST_VARIABLES):
            part = encoded[start : start + _MOST_VARIABLES]
            query = "SELECT key, value FROM rows WHERE key IN (?" + ", ?" * (len(part) - 1) + ")"
            with self._lock:
                rows = self._connection.execute(query, part).fetchall()
            found.update(rows)
        values = (found.get(key) for key in encoded)
        return [None if value is None else json.loads(_decode(value)) for value in values]

    def mset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """Write all the pairs or, where one of them cannot be written, none."""
        rows = [(_encode(key), _encode(_to_json(key, value))) for key, value in key_value_pairs]
        self._transact(_UPSERT, rows)

    def mdelete(self, keys: Sequence[str]) -> None:
        """Remove all the keys at once; those that are not there are passed over."""
        self._transact("DELETE FROM rows WHERE key = ?", [(_encode(key),) for key in keys])

    def yield_keys(self, prefix: str | None = None) -> Iterator[str]:
        """The keys that begin with `prefix` in the order of their code points."""
        encoded = _encode(prefix or "")
        # No byte of a key is 0xFF, so this is behind everything that begins with the prefix.
        end, query = encoded + b"\xff", _FIRST_KEYS
        while True:
            with self._lock:
                rows = self._connection.execute(query, (encoded, end)).fetchall()
            yield from (_decode(key) for (key,) in rows)
            if len(rows) < 1000:
                return
            encoded, query = rows[-1][0], _NEXT_KEYS

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        with self._lock:
            self._connection.close()

    def _transact(self, statement: str, rows: Sequence[tuple[bytes, ...]]) -> None:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(statement, rows)
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise


def check_json(value: object, where: str) -> None:
    """Raise a TypeError that names the place where `value` holds something that JSON lacks.

    Tuples pass, and come back as lists.

    >>> check_json({"when": {1, 2}}, "metadata")
    Traceback (most recent call last):
    TypeError: metadata['when'] is a set, which JSON cannot hold: use str, int, float, bool, \
None, lists and dicts with string keys
    """
    pending: list[tuple[object, str]] = [(value, where)]
    while pending:
        item, place = pending.pop()
        if type(item) is dict and all(type(key) is str for key in item):
            pending.extend((inner, f"{place}[{key!r}]") for key, inner in item.items())
        elif isinstance(item, list | tuple):
            pending.extend((inner, f"{place}[{index}]") for index, inner in enumerate(item))
        elif not isinstance(item, str | int | float | None):
            raise TypeError(
                f"{place} is a {_kind(item)}, which JSON cannot hold: use str, int, float, bool, "
                "None, lists and dicts with string keys"
            )


def _kind(item: object) -> str:
    name = type(item).__qualname__
    return "dict with keys that are not strings" if isinstance(item, dict) else name


def _to_json(key: str, value: object) -> str:
    check_json(value, f"the value of key {key!r}")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")
