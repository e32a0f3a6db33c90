"""What a search retrieves for each question, and the metrics of that."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from rag_splitters.evaluation.measure.chunks import LocatedChunk
from rag_splitters.evaluation.measure.metrics import (
    Range,
    cover,
    precision_omega,
    recall_at_budgets,
    union,
)
from rag_splitters.evaluation.measure.questions import Question

METRICS = ("recall", "precision", "precision_omega", "iou", "retrieved")
"""The metrics at a fixed number of chunks; `retrieved` is the size of these chunks in units."""

_BLOCK = 64  # questions ranked at once


def rank(
    vectors: NDArray[np.float32], questions: NDArray[np.float32]
) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers of all chunks by cosine similarity to each question, the best first.

    >>> [order.tolist() for order in rank(np.eye(2), np.array([[0.1, 0.9]]))]
    [[1, 0]]
    """
    chunks, questions = _normalised(vectors), _normalised(questions)
    for start in range(0, len(questions), _BLOCK):
        similarities = questions[start : start + _BLOCK] @ chunks.T
        yield from np.argsort(-similarities, axis=1, kind="stable")


def measure(
    question: Question,
    ranking: Iterable[tuple[LocatedChunk, int]],
    k: int,
    budgets: Sequence[int],
    positions: Iterable[Range] | None = None,
) -> list[float]:
    """Return the values of `METRICS`, in order, and then recall at each budget.

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
    omega = math.nan
    if positions is not None:
        near = (
            (low, high)
            for low, high in positions
            if any(low < end and start < high for start, end in references)
        )
        omega = precision_omega(references, near)
    hits = ((_part(chunk, question), size) for chunk, size in chain(top, ranked))
    curve = recall_at_budgets(references, hits, budgets)
    return [recall, precision, omega, iou, float(sum(size for _, size in top)), *curve]


def _part(chunk: LocatedChunk, question: Question) -> Range | None:
    """Return the position of a chunk, if it is one of the question's document."""
    return chunk.position if chunk.document == question.document else None


def _normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
