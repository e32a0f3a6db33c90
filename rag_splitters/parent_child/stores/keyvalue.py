"""Key-value stores of JSON: what they have in common, and the one in a SQLite file."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rag_splitters.calls import Call, run
from rag_splitters.errors import InputError
from rag_splitters.parent_child.errors import LockLostError, StoreError, damaged_values
from rag_splitters.parent_child.metadata import check_values
from rag_splitters.parent_child.records import STATE_PREFIX, Entry
from rag_splitters.parent_child.writing import (
    LOST_TURN,
    Docstore,
    Expected,
    Keys,
    Process,
    Rows,
    Turn,
    lock_file,
)
from rag_splitters.sqlite import Database, decode, encode

_SCHEMA = "CREATE TABLE IF NOT EXISTS rows (key BLOB PRIMARY KEY, value BLOB NOT NULL)"
_SELECT = "SELECT key, value FROM rows WHERE key IN ({})"
_UPSERT = "INSERT INTO rows VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_DELETE = "DELETE FROM rows WHERE key = ?"
_KEYS = "SELECT key FROM rows WHERE key >= ? AND key < ? ORDER BY key LIMIT 1000"
_TURN, _HOLDER = f"{STATE_PREFIX}turn", f"{STATE_PREFIX}holder"
TURN_KEY, HOLDER_KEY = encode(_TURN), encode(_HOLDER)
"""The keys of the number of the last turn, which a write may expect, and of who took it."""
_NEXT = b"\0"  # makes a key the next possible one
_MISSING = b""  # no JSON is empty
_MAX_OPERATIONS = 4  # of one store at once
_MAX_DEPTH = 500  # Python writes and reads a little more
StoreTurn = tuple["KeyValueStore", int, Callable[[], object]]
"""A writer's turn at a store: the store to write with, the turn's number, and what ends it."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class KeyValueStore(ABC):
    """Keeps JSON values under string keys.

    Everything that one `write` writes and removes takes effect, or nothing does. Strings are kept
    exactly, lone surrogates and NUL included. Nothing is pickled. A store may be used from any
    thread. `read`, `write` and `list_keys` are for coroutines that `calls.run` or `calls.arun`
    drives; the other methods are for synchronous callers. After a fork, open the store again.

    All methods raise a `StoreError` if the back end fails or the store is closed.

    A back end implements `_read`, `_change`, `_page` and `_take_turn`. They may block: in
    asynchronous use they run in threads.
    """

    is_fenced = False
    """Whether every write of a turn must expect its number, because the store accepts any write."""
    _failures: tuple[type[Exception], ...] = ()
    """The back end's own errors."""

    def __init__(self) -> None:
        self._is_closed = False
        self._process = os.getpid()
        self._slots = threading.Semaphore(_MAX_OPERATIONS)

    def mget(self, keys: Sequence[str]) -> list[Any]:
        """Return the values of the keys, in their order; None where there is none."""
        return run(self.read(keys))

    def mset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """Write all the pairs, or none if one of them cannot be written."""
        run(self.write(map(checked, key_value_pairs)))

    def mdelete(self, keys: Sequence[str]) -> int:
        """Remove all the keys at once, and return how many of them existed."""
        return run(self.write([], keys)) or 0

    def yield_keys(self, prefix: str = "") -> Iterator[str]:
        """Yield the keys that begin with `prefix`, in the order of their code points."""
        yield from run(self.list_keys(prefix))

    async def read(
        self, keys: Sequence[str], is_sound: Callable[[Any], bool] = lambda value: True
    ) -> list[Any]:
        """Return the values of the keys, in their order; None where there is none.

        Raises DamagedRowsError for values that are no JSON, or not sound.
        """
        encoded = [encode(key) for key in keys]
        rows = await self.run_operation(self._read, encoded)
        values: list[Any] = []
        damaged: list[str] = []
        # Each is parsed separately: a key that is asked for twice gives values that share nothing.
        for key, row in zip(keys, map(rows.get, encoded), strict=True):
            try:
                value = None if row is None else json.loads(decode(row))
                if row is not None and not is_sound(value):
                    raise ValueError
                values.append(value)
            except (ValueError, RecursionError):
                damaged.append(key)
        if damaged:
            raise damaged_values(repr(self), damaged)
        return values

    async def write(
        self,
        key_value_pairs: Iterable[tuple[str, Any]],
        removed_keys: Iterable[str] = (),
        expected: Mapping[str, Any] | None = None,
    ) -> int | None:
        """Write pairs and remove other keys in one step, if still others have expected values.

        Returns how many of the removed keys existed; None, and does nothing, if a value was not as
        expected. Expect None of a key that must not be there.
        """
        values = {
            encode(key): _MISSING if value is None else encode(_to_json(key, value))
            for key, value in (expected or {}).items()
        }
        rows = {encode(key): encode(_to_json(key, value)) for key, value in key_value_pairs}
        removed = [encode(key) for key in removed_keys]
        count: int | None = await self.run_operation(
            self._change, values, rows, removed, is_write=True
        )
        return count

    async def list_keys(self, prefix: str) -> list[str]:
        """Return the keys that begin with `prefix`, in the order of their code points."""
        keys: list[str] = []
        start = encode(prefix)
        end = start + b"\xff"  # no byte of a key is 0xFF: this is behind all with the prefix
        while page := await self.run_operation(self._page, start, end):
            keys += map(decode, page)
            start = page[-1] + _NEXT
        return keys

    def close(self) -> None:
        """Close the store; it cannot be used afterwards."""
        self._is_closed = True
        self._disconnect()

    def _close_with(self, disconnect: Callable[[], object]) -> None:
        """Close connections together with the store, or when nobody uses it any more."""
        self._disconnect = weakref.finalize(self, _call_in, os.getpid(), disconnect)

    @abstractmethod
    def _read(self, keys: list[bytes]) -> Any:
        """Return a dictionary of those of the keys that exist, with their values."""

    @abstractmethod
    def _change(
        self, expected: dict[bytes, bytes], rows: dict[bytes, bytes], removed: list[bytes]
    ) -> Any:
        """Compare, write and remove in one step, and return how many were removed.

        Empty bytes are expected of a key that must not be there. If anything is not as expected,
        nothing is changed, and None is returned.
        """

    @abstractmethod
    def _take_turn(self) -> StoreTurn | None:
        """Become the only writer of an index; return None if there is another one."""

    @abstractmethod
    def _page(self, start: bytes, end: bytes) -> Any:
        """Return the first keys, in order, from `start` on and before `end`."""

    async def run_operation(
        self, operation: Callable[..., Any], *args: Any, is_write: bool = False
    ) -> Any:
        """Run an operation of the back end, in a thread if the caller is asynchronous."""

        def work() -> Any:
            with self._slots, self._checked():
                return operation(*args)

        return await Call(work, partial(asyncio.to_thread, work), is_write=is_write)

    @contextmanager
    def _checked(self) -> Iterator[None]:
        if self._is_closed:
            raise StoreError(f"{self!r} is closed")
        if self._process != os.getpid():
            raise StoreError(f"{self!r} was opened in another process: open it again in this one")
        try:
            yield
        except (StoreError, LockLostError):
            raise
        except self._failures as error:
            reason = " is closed" if self._is_closed else f": {error}"
            raise StoreError(f"{self!r}{reason}") from error


def _call_in(process: int, function: Callable[[], object]) -> None:
    """Call a function, but not in a forked process, whose connections belong to its parent."""
    if process == os.getpid():
        function()


class SQLiteStore(KeyValueStore):
    """Keeps JSON values under string keys in one SQLite file.

    For the parents of a folder, or wherever a small durable store is needed without a server. What
    is written is on disk when `mset` returns. There may be several readers and one writer at a
    time, from any thread or process (write-ahead log).

    >>> import contextlib, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.sqlite"
    >>> with contextlib.closing(SQLiteStore(path)) as store:
    ...     store.mset([("b", [1, None]), ("a", {"x": "y"})])
    ...     store.mget(["a", "missing"]), list(store.yield_keys())
    ([{'x': 'y'}, None], ['a', 'b'])
    """

    _failures = (sqlite3.Error,)

    def __init__(self, path: str | Path) -> None:
        """Open the file at `path`, which is created with its folder if it does not exist."""
        super().__init__()
        self.path = Path(path).resolve()  # the lock is beside it, whatever is the current directory
        with self._checked():
            # Durable: what is noted must be on disk before the children are.
            self._database = Database(self.path, _SCHEMA)
        self._close_with(self._database.close)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def _read(self, keys: list[bytes]) -> dict[bytes, bytes]:
        return dict(self._database.read_in(_SELECT, keys))

    def _change(
        self, expected: dict[bytes, bytes], rows: dict[bytes, bytes], removed: list[bytes]
    ) -> int | None:
        with self._database.transaction() as connection:
            if expected and not is_as_expected(self._read(list(expected)), expected):
                return None
            connection.executemany(_UPSERT, rows.items())
            return max(0, connection.executemany(_DELETE, ((key,) for key in removed)).rowcount)

    def _take_turn(self) -> StoreTurn | None:
        lock = lock_file(self.path.with_name(f"{self.path.name}.lock"))
        if lock is None:
            return None
        try:
            with self._database.transaction() as connection:
                number = 1 + int(self._read([TURN_KEY]).get(TURN_KEY, b"0"))
                rows = [(TURN_KEY, b"%d" % number), (HOLDER_KEY, holder_value())]
                connection.executemany(_UPSERT, rows)
        except BaseException:
            lock.release()
            raise
        return self, number, lock.release

    def _page(self, start: bytes, end: bytes) -> list[bytes]:
        return [key for (key,) in self._database.read(_KEYS, (start, end))]


class KeyValueDocstore(Docstore):
    """The docstore in a key-value store of ours. Both frameworks read and write the same rows.

    Parameters:
        turn: the number of the turn to write in; None: whatever the store itself allows.
    """

    def __init__(self, store: KeyValueStore, turn: int | None = None) -> None:
        self._store = store
        self._fence = {} if turn is None else {_TURN: turn}

    def in_turn(self, turn: int) -> KeyValueDocstore:
        """Return the same docstore for a process that writes in another process's turn."""
        return KeyValueDocstore(self._store, turn)

    async def read(self, keys: Sequence[str]) -> list[Entry | None]:
        values = await self._store.read(keys, _is_entry)
        return [None if value is None else entry_from_value(value) for value in values]

    async def write(self, rows: Rows, removed: Keys = (), expected: Expected = None) -> bool:
        pairs = [(key, entry_to_value(entry)) for key, entry in rows]
        values: dict[str, Any] = dict(self._fence)
        if expected and self._fence:  # otherwise nobody else writes in this turn
            values |= {key: row and entry_to_value(row) for key, row in expected.items()}
        is_written = await self._store.write(pairs, removed, values) is not None
        if not is_written and not expected:
            raise LockLostError(LOST_TURN)
        return is_written

    async def read_turn(self) -> int:
        (number,) = await self._store.read([_TURN])
        return number or 0

    async def list_keys(self, prefix: str) -> list[str]:
        return await self._store.list_keys(prefix)

    async def take_turn(self) -> Turn | None:
        turn = await self._store.run_operation(self._store._take_turn, is_write=True)
        if turn is None:
            return None
        store, number, end = turn
        docstore = KeyValueDocstore(store, number if store.is_fenced else None)
        return Turn(docstore, number, partial(store.run_operation, end, is_write=True))

    async def describe_holder(self) -> str:
        (holder,) = await self._store.read([_HOLDER])
        return "another process" if holder is None else str(holder["process"])


def holder_value(**details: Any) -> bytes:
    """Return what a store keeps of the process that takes a turn, and details of its own."""
    return encode(json.dumps({"process": str(Process.current()), **details}))


def check_timeout(timeout: float) -> None:
    """Raise an InputError if a store could not wait so long for its server."""
    if not timeout > 0:
        raise InputError(f"timeout must be more than 0 seconds, got {timeout}")


def is_as_expected(values: Mapping[bytes, bytes], expected: Mapping[bytes, bytes]) -> bool:
    """Whether the keys have the expected values; empty bytes stand for a key that is missing."""
    return all(values.get(key, _MISSING) == value for key, value in expected.items())


def entry_to_value(entry: Entry) -> dict[str, Any]:
    """Return an entry as a store of JSON keeps it."""
    return {"text": entry.text, "metadata": entry.metadata, "id": entry.id}


def entry_from_value(value: Mapping[str, Any]) -> Entry:
    """Return the entry that `entry_to_value` converted."""
    return Entry(value["text"], dict(value["metadata"]), value["id"])


def _is_entry(value: Any) -> bool:
    """Whether a row has the shape of an entry."""
    return (
        isinstance(value, dict)
        and value.keys() >= {"text", "metadata", "id"}
        and isinstance(value["text"], str)
        and isinstance(value["metadata"], dict)
        and isinstance(value["id"], str | None)
    )


def checked(pair: tuple[str, Any]) -> tuple[str, Any]:
    """Return a pair whose value a store can keep. Raises a TypeError that says what it cannot."""
    check_values(pair[1], f"the value of key {pair[0]!r}", max_depth=_MAX_DEPTH)
    return pair


def _to_json(key: str, value: object) -> str:
    try:
        return _encode(value)
    except (TypeError, ValueError):
        checked((key, value))  # which says more
        raise
