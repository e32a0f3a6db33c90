"""Retrieval with a strategy's chunks, and the metrics of each question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.evaluation.locating import LocatedChunk
from rag_splitters.evaluation.metrics import (
    Range,
    cover,
    hit_rate,
    ndcg,
    overlap,
    precision_omega,
    recall_at_budgets,
    total,
    union,
)
from rag_splitters.evaluation.questions import Question

METRICS = ("recall", "precision", "precision_omega", "iou", "ndcg", "hit_rate", "retrieved")
"""The metrics at a fixed number of chunks; `retrieved` is the size of these chunks in units."""

_BLOCK = 64  # questions ranked at once


@dataclass(frozen=True, eq=False)
class Measurements:
    """The metrics of each question: `values` by name, and recall at each budget in `curve`."""

    values: dict[str, NDArray[np.float64]]
    curve: NDArray[np.float64]


class ChunkIndex:
    """The chunks of one strategy in all documents, searched by exact cosine similarity."""

    def __init__(
        self,
        chunks: Sequence[LocatedChunk],
        sizes: NDArray[np.int64],
        vectors: NDArray[np.float32],
    ) -> None:
        self.chunks, self.sizes, self._vectors = chunks, sizes, _normalised(vectors)
        numbers: dict[str, list[int]] = {}
        for number, chunk in enumerate(chunks):
            if chunk.position is not None:
                numbers.setdefault(chunk.document, []).append(number)
        self._located = {
            name: (np.array(each), np.array([chunks[number].position for number in each]))
            for name, each in numbers.items()
        }

    def touching(self, question: Question) -> dict[int, Range]:
        """The chunks that hold a part of the answer: their positions by their numbers."""
        if question.document not in self._located:
            return {}
        numbers, positions = self._located[question.document]
        touches = np.zeros(len(numbers), dtype=bool)
        for start, end in question.references:
            touches |= (positions[:, 0] < end) & (positions[:, 1] > start)
        pairs = zip(numbers[touches].tolist(), positions[touches].tolist(), strict=True)
        return {number: (start, end) for number, (start, end) in pairs}

    def rankings(self, vectors: NDArray[np.float32]) -> Iterator[NDArray[np.int64]]:
        """For each question's vector, the numbers of all chunks, the most similar first."""
        questions = _normalised(vectors)
        for start in range(0, len(questions), _BLOCK):
            similarities = questions[start : start + _BLOCK] @ self._vectors.T
            yield from np.argsort(-similarities, axis=1, kind="stable")

    def characters(self, number: int) -> int:
        """The number of characters that a chunk covers; its length if its position is unknown."""
        chunk = self.chunks[number]
        return len(chunk.text) if chunk.position is None else total([chunk.position])


def measure_questions(
    index: ChunkIndex,
    questions: Sequence[Question],
    vectors: NDArray[np.float32],
    k: int,
    budgets: Sequence[int],
    track: Callable[[Any], Iterable[Any]] = iter,
) -> Measurements:
    """Search an index for every question, and measure the results.

    Parameters:
        k: number of chunks to retrieve for `METRICS`.
        budgets: numbers of units for the recall curve, ascending.
        track: wraps the questions while they are iterated, for a progress bar.
    """
    values = {name: np.zeros(len(questions)) for name in METRICS}
    curve = np.zeros((len(questions), len(budgets)))
    rankings = index.rankings(vectors)
    for row, question in enumerate(track(questions)):
        order = next(rankings)
        touching = index.touching(question)
        at_k = _metrics_at_k(index, question, touching, order[:k].tolist())
        for name, value in zip(METRICS, at_k, strict=True):
            values[name][row] = value
        ranked = ((touching.get(int(number)), int(index.sizes[number])) for number in order)
        curve[row] = recall_at_budgets(question.references, ranked, budgets)
    return Measurements(values, curve)


def _metrics_at_k(
    index: ChunkIndex, question: Question, touching: dict[int, Range], top: list[int]
) -> tuple[float, ...]:
    """The values of `METRICS`, in order."""
    references = union(question.references)
    positions = [touching[number] for number in top if number in touching]
    characters = sum(map(index.characters, top))
    recall, precision, iou = cover(references, positions, characters)
    gains = {number: overlap([each], references) for number, each in touching.items()}
    return (
        recall,
        precision,
        precision_omega(references, touching.values()),
        iou,
        ndcg([gains.get(number, 0) for number in top], gains.values()),
        hit_rate(references, positions),
        float(index.sizes[top].sum()),
    )


def _normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
