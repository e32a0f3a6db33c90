"""Cutting rows, children and texts into batches that a store or a model takes in one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

DOCUMENTS_AT_ONCE, CHILDREN_AT_ONCE = 256, 1000
"""How many are read, compared or removed in one step, so that memory use is bounded."""
MAX_ROWS = 500
"""Maximum number of rows in one request to a store."""
_MAX_BYTES = 4_000_000

T = TypeVar("T")


def batched(items: Sequence[T], size: int) -> list[list[T]]:
    """Cut items into lists of at most `size`.

    >>> batched("abcde", 2)
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


def bounded_requests(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    """Cut rows into requests of a bounded size; a row that is larger goes alone.

    >>> [len(batch) for batch in bounded_requests([(b"key", bytes(1_500_000))] * 5)]
    [2, 2, 1]
    """
    batch: list[tuple[bytes, bytes]] = []
    size = 0
    for key, value in rows:
        size += len(key) + len(value)
        if batch and (size > _MAX_BYTES or len(batch) == MAX_ROWS):
            yield batch
            batch, size = [], len(key) + len(value)
        batch.append((key, value))
    if batch:
        yield batch
