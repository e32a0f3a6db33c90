"""Key-value stores of JSON: what those in SQLite, Redis and PostgreSQL have in common."""

from __future__ import annotations

import asyncio
import json
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["KeyValueStore", "StoreError", "check_json"]


_PLAIN = {str, int, float, bool, type(None)}


class StoreError(OSError):
    """A store could not do what it was asked; the message names it, and holds no password."""


class KeyValueStore(ABC):
    """Keeps JSON values under string keys.

    Every `mset` and every `mdelete` happens as a whole or not at all. Strings are kept exactly,
    lone surrogates and NUL included. Nothing is pickled. A store may be used from any thread, and
    each method has an asynchronous form, named by an "a" before it; after a fork, open it again.

    All methods raise a `StoreError` where the back end fails or the store is closed.

    A back end writes `_read`, `_write`, `_remove` and `_page`, which are given bytes, and may be
    plain functions or, where it overrides `_call` and `_acall`, coroutine functions.
    """

    _failures: tuple[type[Exception], ...] = ()
    """The back end's own errors."""

    def __init__(self) -> None:
        self._is_closed = False
        self._process = os.getpid()

    def mget(self, keys: Sequence[str]) -> list[Any]:
        """The values of the keys, in their order; None where there is none."""
        encoded = _encoded(keys)
        return _values(encoded, self._now(self._read, encoded))

    async def amget(self, keys: Sequence[str]) -> list[Any]:
        """Asynchronous `mget`."""
        encoded = _encoded(keys)
        return _values(encoded, await self._later(self._read, encoded))

    def mset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """Write all the pairs or, where one of them cannot be written, none."""
        self._now(self._write, _rows(key_value_pairs))

    async def amset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """Asynchronous `mset`."""
        await self._later(self._write, _rows(key_value_pairs))

    def mdelete(self, keys: Sequence[str]) -> int:
        """Remove all the keys at once; how many of them were there."""
        return int(self._now(self._remove, _encoded(keys)))

    async def amdelete(self, keys: Sequence[str]) -> int:
        """Asynchronous `mdelete`."""
        return int(await self._later(self._remove, _encoded(keys)))

    def yield_keys(self, prefix: str | None = None) -> Iterator[str]:
        """The keys that begin with `prefix`, in the order of their code points."""
        start, end = _bounds(prefix)
        while page := self._now(self._page, start, end):
            yield from map(_decode, page)
            start = _next_after(page[-1])

    async def ayield_keys(self, prefix: str | None = None) -> AsyncIterator[str]:
        """Asynchronous `yield_keys`."""
        start, end = _bounds(prefix)
        while page := await self._later(self._page, start, end):
            for key in page:
                yield _decode(key)
            start = _next_after(page[-1])

    def close(self) -> None:
        """Close the store; it cannot be used afterwards."""
        self._is_closed = True

    @abstractmethod
    def _read(self, keys: list[bytes]) -> Any:
        """Those of the keys that are there, with their values, as a dictionary."""

    @abstractmethod
    def _write(self, rows: dict[bytes, bytes]) -> Any:
        """Write all the rows or none."""

    @abstractmethod
    def _remove(self, keys: list[bytes]) -> Any:
        """Remove all the keys; how many were there."""

    @abstractmethod
    def _page(self, start: bytes, end: bytes) -> Any:
        """The first keys, in order, that are not before `start` and are before `end`."""

    def _call(self, operation: Callable[..., Any], *args: Any) -> Any:
        return operation(*args)

    async def _acall(self, operation: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.to_thread(operation, *args)

    def _now(self, operation: Callable[..., Any], *args: Any) -> Any:
        with self._checked():
            return self._call(operation, *args)

    async def _later(self, operation: Callable[..., Any], *args: Any) -> Any:
        with self._checked():
            return await self._acall(operation, *args)

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
        if type(item) is dict and set(map(type, item)) <= {str}:
            inside = [each for each in item.items() if type(each[1]) not in _PLAIN]
            pending += [(inner, f"{place}[{key!r}]") for key, inner in inside]
        elif isinstance(item, list | tuple):
            if not _PLAIN.issuperset(map(type, item)):
                pending += [(inner, f"{place}[{index}]") for index, inner in enumerate(item)]
        elif not isinstance(item, str | int | float | None):
            raise TypeError(
                f"{place} is a {_kind(item)}, which JSON cannot hold: use str, int, float, bool, "
                "None, lists and dicts with string keys"
            )


def _kind(item: object) -> str:
    name = type(item).__qualname__
    return "dict with keys that are not strings" if isinstance(item, dict) else name


def _rows(key_value_pairs: Iterable[tuple[str, Any]]) -> dict[bytes, bytes]:
    """What to write; of several values for one key, the last."""
    return {_encode(key): _encode(_to_json(key, value)) for key, value in key_value_pairs}


def _values(keys: Sequence[bytes], found: dict[bytes, bytes]) -> list[Any]:
    # Each is parsed for itself: a key that is asked for twice gives values that share nothing.
    values = (found.get(key) for key in keys)
    return [None if value is None else json.loads(_decode(value)) for value in values]


def _to_json(key: str, value: object) -> str:
    check_json(value, f"the value of key {key!r}")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _bounds(prefix: str | None) -> tuple[bytes, bytes]:
    start = _encode(prefix or "")
    # No byte of a key is 0xFF, so this is behind everything that begins with the prefix.
    return start, start + b"\xff"


def _next_after(key: bytes) -> bytes:
    return key + b"\0"


def _encoded(keys: Iterable[str]) -> list[bytes]:
    return [_encode(key) for key in keys]


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")
