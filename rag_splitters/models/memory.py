"""What a model has answered, kept for another attempt in case that other requests fail.

When one of several requests fails, the operation fails, and with it go the answers to the others.
The next attempt finds them here, so that only what failed is paid for again.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

_MAX_BYTES = 1 << 27
"""How much of earlier requests is kept; what one call asks for is kept whole."""

_MAX_FAILED = 100_000  # keys


class Memory:
    """The latest answers of a model by keys. They are read only while an answer is missing.

    >>> memory = Memory()
    >>> memory.keep({"a": "one"})
    >>> memory.recall(["a"])  # nothing has failed
    {}
    >>> memory.expect(["a", "b"])
    >>> memory.recall(["a", "b"])
    {'a': 'one'}
    """

    def __init__(self) -> None:
        self._answers: dict[Hashable, Any] = {}
        self._missing: dict[Hashable, None] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def recall(self, keys: Iterable[Hashable]) -> dict[Any, Any]:
        """Return the answers to these keys if an earlier request failed; drop what is too old."""
        with self._lock:
            while self._bytes > _MAX_BYTES:
                self._bytes -= _size(self._answers.pop(next(iter(self._answers))))
            while len(self._missing) > _MAX_FAILED:
                del self._missing[next(iter(self._missing))]
            if not self._missing:
                return {}
            return {key: self._answers[key] for key in keys if key in self._answers}

    def keep(self, answers: Mapping[Any, Any]) -> None:
        """Keep answers as they arrive."""
        with self._lock:
            for key, answer in answers.items():
                self._bytes += _size(answer) - _size(self._answers.get(key, ""))
                self._answers[key] = answer
                self._missing.pop(key, None)

    def expect(self, keys: Iterable[Hashable]) -> None:
        """Note at the end of a call what it asked for: what was not answered is missing."""
        with self._lock:
            self._missing.update((key, None) for key in keys if key not in self._answers)

    def forget(self) -> None:
        """Drop all answers at the end of an operation, unless one is still missing."""
        with self._lock:
            if not self._missing:
                self._answers.clear()
                self._bytes = 0


def _size(answer: Any) -> int:
    return getattr(answer, "nbytes", None) or len(str(answer))


_memories: dict[int, tuple[Any, Memory]] = {}
"""By the id of a model: a weak reference to the model, and its memory."""

_lock = threading.Lock()


def memory_of(model: Any) -> Memory:
    """Return the memory of a model, which lives as long as the model does."""
    key = id(model)
    with _lock:
        if key in _memories and _memories[key][0]() is model:
            return _memories[key][1]
        try:
            reference = weakref.ref(model, lambda _: _memories.pop(key, None))
        except TypeError:  # an object without weak references, which remembers nothing
            return Memory()
        _memories[key] = reference, Memory()
        return _memories[key][1]
