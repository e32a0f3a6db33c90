"""How well retrieved chunks cover the passages that answer a question: arithmetic on positions.

The figures are those of Smith and Troynikov (2024), Evaluating Chunking Strategies for Retrieval,
counted in characters; texts are never searched or compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

__all__ = [
    "Interval",
    "cover",
    "hit_rate",
    "ndcg",
    "overlap",
    "precision_omega",
    "recall_at_budgets",
    "total",
    "union",
]

Interval: TypeAlias = tuple[int, int]
"""Start and end of a piece of a text, in code points."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same ground in disjoint intervals, in order.

    >>> union([(5, 9), (0, 3), (2, 4), (7, 7)])
    [(0, 4), (5, 9)]
    """
    joined: list[Interval] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif start < end:
            joined.append((start, end))
    return joined


def total(intervals: Iterable[Interval]) -> int:
    """The sum of the lengths; ground in two intervals counts twice.

    >>> total([(0, 4), (2, 4)])
    6
    """
    return sum(end - start for start, end in intervals)


def overlap(intervals: Iterable[Interval], others: Iterable[Interval]) -> int:
    """How much ground both have.

    >>> overlap([(0, 4), (2, 6)], [(3, 9)])
    3
    """
    first, second = union(intervals), union(others)
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
    references: Sequence[Interval], found: Sequence[Interval], retrieved: int
) -> tuple[float, float, float]:
    """Recall, precision and intersection over union of what was retrieved.

    A character of a reference counts once, however many chunks hold it; a character that was
    retrieved counts as often as it was, so that overlaps and repetitions cost precision. What
    two references share counts once.

    Parameters:
        references: the passages that answer the question.
        found: the retrieved chunks that stand in the same document.
        retrieved: the length of all retrieved chunks, also of those from other documents.

    >>> cover([(0, 10)], [(5, 15), (5, 15)], retrieved=20)
    (0.5, 0.25, 0.2)
    """
    wanted, shared = total(union(references)), overlap(references, found)
    precision = shared / retrieved if retrieved else 0.0
    return shared / wanted, precision, shared / (retrieved + wanted - shared)


def precision_omega(references: Sequence[Interval], chunks: Iterable[Interval]) -> float:
    """The precision that a perfect retriever would have: that of all chunks with some answer.

    The ground of the references over the ground of the references and of all chunks that touch
    one, each counted once. What no chunk holds is below the line only.

    >>> precision_omega([(2, 4)], [(0, 4), (3, 8), (8, 20)])
    0.25
    """
    wanted = union(references)
    touching = [chunk for chunk in chunks if overlap([chunk], wanted)]
    return overlap(touching, wanted) / total(union([*touching, *wanted]))


def hit_rate(references: Sequence[Interval], found: Sequence[Interval]) -> float:
    """One where any of the chunks has some of the answer, else nought.

    >>> hit_rate([(2, 4)], [(0, 2), (3, 8)])
    1.0
    """
    return float(overlap(references, found) > 0)


def ndcg(gains: Sequence[float], ideal: Iterable[float]) -> float:
    """Normalised discounted cumulative gain, with linear gains and log2 of rank + 1.

    Here a chunk's gain is the share of the references' characters that it holds.

    Parameters:
        gains: those of the retrieved chunks, in the order of their ranks.
        ideal: those of all chunks; as many of the largest are taken as were retrieved.

    >>> ndcg([0.0, 1.0], [1.0, 0.0, 0.0]) == 1 / math.log2(3)
    True
    """
    best = sorted(ideal, reverse=True)[: len(gains)]
    most = _discounted(best)
    return _discounted(gains) / most if most else 0.0


def _discounted(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(rank) for rank, gain in enumerate(gains, 2))


def recall_at_budgets(
    references: Sequence[Interval],
    ranked: Iterable[tuple[Interval | None, int]],
    budgets: Sequence[int],
) -> list[float]:
    """Recall when chunks are taken in the order of their ranks until so many units are used up.

    The chunk that goes over the budget is cut where the budget ends: of a chunk of 200 tokens, 50
    that are left take the first quarter of its characters. So strategies with large and with small
    chunks are given the same number of tokens.

    Parameters:
        references: the passages that answer the question.
        ranked: chunks with their sizes in units; None for one that covers nothing here.
        budgets: numbers of units, in ascending order.

    >>> recall_at_budgets([(0, 10)], [((5, 15), 10), ((0, 10), 10)], [4, 10, 12, 40])
    [0.4, 0.5, 0.7, 1.0]
    """
    wanted = union(references)
    recalls: list[float] = []
    taken: list[Interval] = []
    spent = 0
    for chunk, size in ranked:
        while len(recalls) < len(budgets) and budgets[len(recalls)] < spent + size:
            part = _beginning(chunk, budgets[len(recalls)] - spent, size)
            recalls.append(overlap([*taken, *part], wanted) / total(wanted))
        if len(recalls) == len(budgets):
            return recalls
        if chunk is not None and overlap([chunk], wanted):
            taken = union([*taken, chunk])
        spent += size
    rest = overlap(taken, wanted) / total(wanted)
    return recalls + [rest] * (len(budgets) - len(recalls))


def _beginning(chunk: Interval | None, units: int, size: int) -> list[Interval]:
    """The part of a chunk of `size` units that its first units hold."""
    if chunk is None:
        return []
    start, end = chunk
    return [(start, start + (end - start) * units // size)]
