"""A dictionary that keeps what was used last."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """The values that were stored or read last, for several threads.

    >>> recent = Recent(size=2)
    >>> for letter in "abc":
    ...     recent.put(letter, letter.upper())
    >>> recent.get("a"), recent.get("c")
    (None, 'C')
    """

    def __init__(self, size: int) -> None:
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._size, self._lock = size, Lock()

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, or None."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Store a value, and drop the one that was not used for the longest time."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._size:
                self._values.popitem(last=False)
