"""What a search retrieves for each question, and how well it covers the passages that answer it.

The metrics are those of Smith and Troynikov (2024), Evaluating Chunking Strategies for Retrieval,
counted in characters. They compare positions only, never texts.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from rag_splitters.evaluation.measure.chunks import LocatedChunk
from rag_splitters.evaluation.measure.questions import Question
from rag_splitters.meaning.similarity import unit_vectors
from rag_splitters.text.structure import Range

METRICS = ("recall", "precision", "precision_omega", "iou", "retrieved")
"""The metrics at a fixed number of chunks; `retrieved` is the size of these chunks in units."""

_BLOCK = 64  # questions ranked at once


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
    touching = [
        (low, high)
        for low, high in chunks
        if any(low < end and start < high for start, end in answer)
    ]
    return overlap(touching, answer) / total(union([*touching, *answer]))


def recall_at_budgets(
    references: Sequence[Range], ranked: Iterable[tuple[Range | None, int]], budgets: Sequence[int]
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


def rank(
    vectors: NDArray[np.float32], questions: NDArray[np.float32]
) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers of all chunks by cosine similarity to each question, the best first.

    >>> [order.tolist() for order in rank(np.eye(2), np.array([[0.1, 0.9]]))]
    [[1, 0]]
    """
    chunks, questions = (unit_vectors(each, "float32") for each in (vectors, questions))
    for start in range(0, len(questions), _BLOCK):
        similarities = questions[start : start + _BLOCK] @ chunks.T
        yield from np.argsort(-similarities, axis=1, kind="stable")


def measure(
    question: Question,
    ranking: Iterable[tuple[LocatedChunk, int]],
    k: int,
    budgets: Sequence[int],
    positions: Iterable[Range] | None = None,
) -> dict[str, float]:
    """Return the values of `METRICS`, and recall at each budget, such as `recall@500`.

    Parameters:
        ranking: chunks with their sizes in units, the best first.
        k: number of chunks to retrieve for `METRICS`.
        budgets: numbers of units for the recall curve, ascending.
        positions: those of all chunks of the question's document, with which precision Ω compares;
            None for a retriever, which has no precision Ω.
    """
    references = union(question.references)
    ranked = iter(ranking)
    top = list(islice(ranked, min(k, sys.maxsize)))
    parts = [_part(chunk, question) for chunk, _ in top]
    retrieved = sum(chunk.characters for chunk, _ in top)
    recall, precision, iou = cover(references, [part for part in parts if part], retrieved)
    omega = math.nan if positions is None else precision_omega(references, positions)
    hits = ((_part(chunk, question), size) for chunk, size in chain(top, ranked))
    curve = recall_at_budgets(references, hits, budgets)
    values = (recall, precision, omega, iou, float(sum(size for _, size in top)), *curve)
    names = (*METRICS, *(f"recall@{budget}" for budget in budgets))
    return dict(zip(names, values, strict=True))


def _part(chunk: LocatedChunk, question: Question) -> Range | None:
    """Return the position of a chunk, if it is one of the question's document."""
    return chunk.position if chunk.document == question.document else None
