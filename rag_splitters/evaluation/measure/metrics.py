"""Metrics: how well retrieved chunks cover the passages that answer a question.

They are those of Smith and Troynikov (2024), Evaluating Chunking Strategies for Retrieval, counted
in characters. They compare positions only, never texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

Range: TypeAlias = tuple[int, int]
"""Start and end of a piece of a text, in code points."""


def union(ranges: Iterable[Range]) -> list[Range]:
    """Return the same characters as disjoint ranges, in order.

    >>> union([(5, 9), (0, 3), (2, 4), (7, 7)])
    [(0, 4), (5, 9)]
    """
    joined: list[Range] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif start < end:
            joined.append((start, end))
    return joined


def total(ranges: Iterable[Range]) -> int:
    """Return the sum of the lengths; characters in two ranges count twice.

    >>> total([(0, 4), (2, 4)])
    6
    """
    return sum(end - start for start, end in ranges)


def overlap(ranges: Iterable[Range], others: Iterable[Range]) -> int:
    """Return the number of characters in both.

    >>> overlap([(0, 4), (2, 6)], [(3, 9)])
    3
    """
    first, second = union(ranges), union(others)
    shared = left = right = 0
    while left < len(first) and right < len(second):
        start = max(first[left][0], second[right][0])
        end = min(first[left][1], second[right][1])
        shared += max(0, end - start)
        if first[left][1] < second[right][1]:
            left += 1
        else:
            right += 1
    return shared


def cover(
    references: Sequence[Range], chunks: Sequence[Range], retrieved: int
) -> tuple[float, float, float]:
    """Return recall, precision and intersection over union of what was retrieved.

    A character of a reference counts once, however many chunks hold it and however many references
    share it. A retrieved character counts as often as it was retrieved, so that overlap lowers the
    precision.

    Parameters:
        references: the passages that answer the question.
        chunks: the retrieved chunks of the same document.
        retrieved: the total length of the retrieved chunks, those of other documents included.

    >>> cover([(0, 10)], [(5, 15), (5, 15)], retrieved=20)
    (0.5, 0.25, 0.2)
    """
    answer, shared = total(union(references)), overlap(references, chunks)
    precision = shared / retrieved if retrieved else 0.0
    return shared / answer, precision, shared / (retrieved + answer - shared)


def precision_omega(references: Sequence[Range], chunks: Iterable[Range]) -> float:
    """Return the precision of a perfect retriever: all chunks with a part of the answer, no others.

    The characters of the references that these chunks hold, divided by the characters of the
    references and of these chunks together, each counted once.

    >>> precision_omega([(2, 4)], [(0, 4), (3, 8), (8, 20)])
    0.25
    """
    answer = union(references)
    touching = [chunk for chunk in chunks if overlap([chunk], answer)]
    return overlap(touching, answer) / total(union([*touching, *answer]))


def recall_at_budgets(
    references: Sequence[Range],
    ranked: Iterable[tuple[Range | None, int]],
    budgets: Sequence[int],
) -> list[float]:
    """Return recall when chunks are taken in the order of their ranks until a budget is spent.

    The chunk that exceeds the budget is cut where the budget ends: if 50 tokens are left for a
    chunk of 200 tokens, the first quarter of its characters counts. So strategies with large and
    with small chunks get the same number of tokens.

    Parameters:
        references: the passages that answer the question.
        ranked: chunks with their sizes in units; None for a chunk that holds no part of the answer.
        budgets: numbers of units, ascending.

    >>> recall_at_budgets([(0, 10)], [((5, 15), 10), ((0, 10), 10)], [4, 10, 12, 40])
    [0.4, 0.5, 0.7, 1.0]
    """
    answer = union(references)
    recalls: list[float] = []
    taken: list[Range] = []
    spent = 0
    for chunk, size in ranked:
        while len(recalls) < len(budgets) and budgets[len(recalls)] < spent + size:
            part = _beginning(chunk, budgets[len(recalls)] - spent, size)
            recalls.append(overlap([*taken, *part], answer) / total(answer))
        if len(recalls) == len(budgets):
            return recalls
        if chunk is not None and overlap([chunk], answer):
            taken = union([*taken, chunk])
        spent += size
    rest = overlap(taken, answer) / total(answer)
    return recalls + [rest] * (len(budgets) - len(recalls))


def _beginning(chunk: Range | None, units: int, size: int) -> list[Range]:
    """Return the first `units` of a chunk of `size` units, as if all units were equally long."""
    if chunk is None:
        return []
    start, end = chunk
    return [(start, start + (end - start) * units // size)]
