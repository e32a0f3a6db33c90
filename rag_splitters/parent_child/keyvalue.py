"""Key-value stores of JSON: what they have in common, and the one in a SQLite file."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rag_splitters.calls import Call, arun, run
from rag_splitters.errors import InputTypeError
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.errors import DamagedRowsError, StoreError
from rag_splitters.parent_child.records import Entry
from rag_splitters.sqlite import Database, decode, encode

_SCHEMA = "CREATE TABLE IF NOT EXISTS rows (key BLOB PRIMARY KEY, value BLOB NOT NULL)"
_SELECT = "SELECT key, value FROM rows WHERE key IN ({})"
_UPSERT = "INSERT INTO rows VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_DELETE = "DELETE FROM rows WHERE key = ?"
_KEYS = "SELECT key FROM rows WHERE key >= ? AND key < ? ORDER BY key LIMIT 1000"
_WRITE_BATCH = 1000
_NEXT = b"\0"  # makes a key the next possible one
_MISSING = b""  # no JSON is empty
_SCALARS = {str, int, float, bool, type(None)}


class KeyValueStore(ABC):
    """Keeps JSON values under string keys.

    Every `mset` and every `mdelete` is applied completely or not at all. Strings are kept exactly,
    lone surrogates and NUL included. Nothing is pickled. A store may be used from any thread, and
    each method has an asynchronous twin whose name begins with "a". After a fork, open it again.

    All methods raise a `StoreError` if the back end fails or the store is closed.

    A back end implements `_read`, `_write`, `_remove`, `_swap` and `_page`, which are given bytes.
    They are plain functions or, if it overrides `_call` and `_acall`, coroutine functions.
    """

    _failures: tuple[type[Exception], ...] = ()
    """The back end's own errors."""

    def __init__(self) -> None:
        self._is_closed = False
        self._process = os.getpid()

    def mget(self, keys: Sequence[str]) -> list[Any]:
        """Return the values of the keys, in their order; None where there is none."""
        return run(self.read(keys))

    async def amget(self, keys: Sequence[str]) -> list[Any]:
        """Asynchronous `mget`."""
        return await arun(self.read(keys))

    def mset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """Write all the pairs, or none if one of them cannot be written."""
        run(self.write(key_value_pairs))

    async def amset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """Asynchronous `mset`."""
        await arun(self.write(key_value_pairs))

    def mdelete(self, keys: Sequence[str]) -> int:
        """Remove all the keys at once, and return how many of them existed."""
        return run(self.remove(keys))

    async def amdelete(self, keys: Sequence[str]) -> int:
        """Asynchronous `mdelete`."""
        return await arun(self.remove(keys))

    def mswap(
        self,
        expected: Mapping[str, Any],
        key_value_pairs: Sequence[tuple[str, Any]],
        removed_keys: Sequence[str] = (),
    ) -> bool:
        """Write and remove keys if others have the values that are expected of them.

        Everything happens in one step, whoever else writes. Expect None of a key that must not be
        there. Returns whether the values were as expected; nothing is written if not.
        """
        return run(self.swap(expected, key_value_pairs, removed_keys))

    async def amswap(
        self,
        expected: Mapping[str, Any],
        key_value_pairs: Sequence[tuple[str, Any]],
        removed_keys: Sequence[str] = (),
    ) -> bool:
        """Asynchronous `mswap`."""
        return await arun(self.swap(expected, key_value_pairs, removed_keys))

    def yield_keys(self, prefix: str | None = None) -> Iterator[str]:
        """Return the keys that begin with `prefix`, in the order of their code points."""
        start, end = _bounds(prefix)
        while page := run(self._run_operation(self._page, start, end)):
            yield from map(decode, page)
            start = page[-1] + _NEXT

    async def ayield_keys(self, prefix: str | None = None) -> AsyncIterator[str]:
        """Asynchronous `yield_keys`."""
        start, end = _bounds(prefix)
        while page := await arun(self._run_operation(self._page, start, end)):
            for key in page:
                yield decode(key)
            start = page[-1] + _NEXT

    async def read(self, keys: Sequence[str]) -> list[Any]:
        """`mget` for coroutines that `calls.run` or `calls.arun` drives."""
        encoded = [encode(key) for key in keys]
        rows = await self._run_operation(self._read, encoded)
        values: list[Any] = []
        damaged: list[str] = []
        # Each is parsed separately: a key that is asked for twice gives values that share nothing.
        for key, value in zip(keys, map(rows.get, encoded), strict=True):
            try:
                values.append(None if value is None else json.loads(decode(value)))
            except ValueError:
                damaged.append(key)
        if damaged:
            raise DamagedRowsError(_damage_message(self, damaged), damaged)
        return values

    async def write(self, key_value_pairs: Iterable[tuple[str, Any]]) -> None:
        """`mset` for coroutines that `calls.run` or `calls.arun` drives."""
        rows = {encode(key): encode(_to_json(key, value)) for key, value in key_value_pairs}
        await self._run_operation(self._write, rows)

    async def remove(self, keys: Sequence[str]) -> int:
        """`mdelete` for coroutines that `calls.run` or `calls.arun` drives."""
        return int(await self._run_operation(self._remove, [encode(key) for key in keys]))

    async def swap(
        self,
        expected: Mapping[str, Any],
        key_value_pairs: Iterable[tuple[str, Any]],
        removed_keys: Iterable[str],
    ) -> bool:
        """`mswap` for coroutines that `calls.run` or `calls.arun` drives."""
        values = {
            encode(key): _MISSING if value is None else encode(_to_json(key, value))
            for key, value in expected.items()
        }
        rows = {encode(key): encode(_to_json(key, value)) for key, value in key_value_pairs}
        removed = [encode(key) for key in removed_keys]
        return bool(await self._run_operation(self._swap, values, rows, removed))

    async def list_keys(self, prefix: str) -> list[str]:
        """`yield_keys` for coroutines that `calls.run` or `calls.arun` drives."""
        keys: list[str] = []
        start, end = _bounds(prefix)
        while page := await self._run_operation(self._page, start, end):
            keys += map(decode, page)
            start = page[-1] + _NEXT
        return keys

    def close(self) -> None:
        """Close the store; it cannot be used afterwards."""
        self._is_closed = True

    @abstractmethod
    def _read(self, keys: list[bytes]) -> Any:
        """Return a dictionary of those of the keys that exist, with their values."""

    @abstractmethod
    def _write(self, rows: dict[bytes, bytes]) -> Any:
        """Write all the rows, or none."""

    @abstractmethod
    def _remove(self, keys: list[bytes]) -> Any:
        """Remove all the keys, and return how many existed."""

    @abstractmethod
    def _swap(
        self, expected: dict[bytes, bytes], rows: dict[bytes, bytes], removed: list[bytes]
    ) -> Any:
        """Compare, write and remove in one step, and return whether all was as expected.

        Empty bytes are expected of a key that must not be there.
        """

    @abstractmethod
    def _page(self, start: bytes, end: bytes) -> Any:
        """Return the first keys, in order, from `start` on and before `end`."""

    def _call(self, operation: Callable[..., Any], *args: Any) -> Any:
        return operation(*args)

    async def _acall(self, operation: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.to_thread(operation, *args)

    async def _run_operation(self, operation: Callable[..., Any], *args: Any) -> Any:
        with self._checked():
            return await Call(
                partial(self._call, operation, *args), partial(self._acall, operation, *args)
            )

    @contextmanager
    def _checked(self) -> Iterator[None]:
        if self._is_closed:
            raise StoreError(f"{self!r} is closed")
        if self._process != os.getpid():
            raise StoreError(f"{self!r} was opened in another process: open it again in this one")
        try:
            yield
        except StoreError:
            raise
        except self._failures as error:
            reason = " is closed" if self._is_closed else f": {error}"
            raise StoreError(f"{self!r}{reason}") from error


class SQLiteKeyValueStore(KeyValueStore):
    """Keeps JSON values under string keys in one SQLite file.

    For the parents of a folder, or wherever a small durable store is needed without a server. What
    is written is on disk when `mset` returns. There may be several readers and one writer at a
    time, from any thread or process (write-ahead log).

    >>> import contextlib, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.sqlite"
    >>> with contextlib.closing(SQLiteKeyValueStore(path)) as store:
    ...     store.mset([("b", [1, None]), ("a", {"x": "y"})])
    ...     store.mget(["a", "missing"]), list(store.yield_keys())
    ([{'x': 'y'}, None], ['a', 'b'])
    """

    _failures = (sqlite3.Error,)

    def __init__(self, path: str | Path) -> None:
        """Open the file at `path`, which is created with its folder if it does not exist."""
        super().__init__()
        self.path = Path(path)
        with self._checked():
            # Durable: a parent must be on disk before its children are.
            self._database = Database(self.path, _SCHEMA)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        super().close()
        self._database.close()

    def _read(self, keys: list[bytes]) -> dict[bytes, bytes]:
        return dict(self._database.read_in(_SELECT, keys))

    def _write(self, rows: dict[bytes, bytes]) -> None:
        self._database.write_many(_UPSERT, rows.items())

    def _remove(self, keys: list[bytes]) -> int:
        return self._database.write_many(_DELETE, ((key,) for key in keys))

    def _swap(
        self, expected: dict[bytes, bytes], rows: dict[bytes, bytes], removed: list[bytes]
    ) -> bool:
        with self._database.transaction() as connection:
            if not is_as_expected(self._read(list(expected)), expected):
                return False
            connection.executemany(_UPSERT, rows.items())
            connection.executemany(_DELETE, ((key,) for key in removed))
        return True

    def _page(self, start: bytes, end: bytes) -> list[bytes]:
        return [key for (key,) in self._database.read(_KEYS, (start, end))]


class KeyValueDocstore:
    """The docstore in a key-value store of ours; see `rag_splitters.parent_child.stores.Docstore`.

    Both frameworks read and write the same rows.
    """

    def __init__(self, store: KeyValueStore) -> None:
        self._store = store

    def check(self, metadata: Mapping[str, Any]) -> None:
        check_json(metadata, "metadata")

    async def read(self, keys: Sequence[str]) -> list[Entry | None]:
        values = await self._store.read(keys)
        return [None if value is None else entry_from_value(value) for value in values]

    async def write(self, rows: Sequence[tuple[str, Entry]]) -> None:
        for batch in batched(rows, _WRITE_BATCH):
            await self._store.write([(key, entry_to_value(entry)) for key, entry in batch])

    async def remove(self, keys: Sequence[str]) -> None:
        for batch in batched(keys, _WRITE_BATCH):
            await self._store.remove(batch)

    async def swap(
        self,
        expected: Mapping[str, Entry | None],
        rows: Sequence[tuple[str, Entry]],
        removed: Sequence[str],
    ) -> bool:
        values = {key: row and entry_to_value(row) for key, row in expected.items()}
        pairs = [(key, entry_to_value(entry)) for key, entry in rows]
        return await self._store.swap(values, pairs, removed)

    async def list_keys(self, prefix: str) -> list[str]:
        return await self._store.list_keys(prefix)


def is_as_expected(values: Mapping[bytes, bytes], expected: Mapping[bytes, bytes]) -> bool:
    """Do the keys have the expected values? Empty bytes are expected of one that must not exist."""
    return all(values.get(key, _MISSING) == value for key, value in expected.items())


def entry_to_value(entry: Entry) -> dict[str, Any]:
    """Return an entry as a store of JSON keeps it."""
    return {"text": entry.text, "metadata": entry.metadata, "id": entry.id}


def entry_from_value(value: Mapping[str, Any]) -> Entry:
    """Return the entry that `entry_to_value` converted."""
    return Entry(value["text"], dict(value["metadata"]), value["id"])


def check_json(value: object, where: str) -> None:
    """Raise a TypeError that names the place of anything in `value` that JSON lacks.

    Tuples pass, and come back as lists.

    >>> check_json({"when": {1, 2}}, "metadata")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rag_splitters.errors.InputTypeError: metadata['when'] is a set, which JSON cannot hold: ...
    """
    pending: list[tuple[object, str]] = [(value, where)]
    while pending:
        item, place = pending.pop()
        if type(item) is dict and set(map(type, item)) <= {str}:
            inside = [each for each in item.items() if type(each[1]) not in _SCALARS]
            pending += [(inner, f"{place}[{key!r}]") for key, inner in inside]
        elif isinstance(item, list | tuple):
            if not _SCALARS.issuperset(map(type, item)):
                pending += [(inner, f"{place}[{index}]") for index, inner in enumerate(item)]
        elif not isinstance(item, str | int | float | None):
            kind = type(item).__qualname__
            kind = "dict with keys that are not strings" if kind == "dict" else kind
            raise InputTypeError(
                f"{place} is a {kind}, which JSON cannot hold: use str, int, float, bool, "
                "None, lists and dicts with string keys"
            )


def _damage_message(store: KeyValueStore, keys: Sequence[str]) -> str:
    names = ", ".join(map(repr, keys[:3])) + (", ..." if len(keys) > 3 else "")
    return (
        f"{store!r}: {len(keys)} values are damaged, those of {names}: restore them from a backup; "
        "or, in an index, call verify(repair=True), and add the documents again that it reports"
    )


def _to_json(key: str, value: object) -> str:
    check_json(value, f"the value of key {key!r}")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _bounds(prefix: str | None) -> tuple[bytes, bytes]:
    start = encode(prefix or "")
    # No byte of a key is 0xFF, so this is behind everything that begins with the prefix.
    return start, start + b"\xff"
