"""From the chunks of a strategy and their ranks to figures for each question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.evaluation.figures import (
    Interval,
    cover,
    hit_rate,
    ndcg,
    overlap,
    precision_omega,
    recall_at_budgets,
    total,
    union,
)
from rag_splitters.evaluation.locating import LocatedChunk
from rag_splitters.evaluation.questions import Question

__all__ = ["FIGURES", "ChunkIndex", "Measured", "measured"]

FIGURES = ("recall", "precision", "precision_omega", "iou", "ndcg", "hit_rate", "retrieved")
"""The names of the figures at a fixed number of chunks; `retrieved` is their size in units."""

_BLOCK = 64  # questions that are ranked at once


@dataclass(frozen=True, eq=False)
class Measured:
    """Figures for each question: `values` by name, and recall at each budget in `curve`."""

    values: dict[str, NDArray[np.float64]]
    curve: NDArray[np.float64]


class ChunkIndex:
    """The chunks of one strategy over all documents, to be searched by exact cosine similarity.

    Parameters:
        chunks: the chunks.
        sizes: the size of each in units.
        vectors: the embedding of each.
    """

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
        self._placed = {name: self._places(found) for name, found in numbers.items()}

    def touching(self, question: Question) -> dict[int, Interval]:
        """The chunks that hold some of the answer: their numbers and positions."""
        if question.document not in self._placed:
            return {}
        numbers, places = self._placed[question.document]
        touches = np.zeros(len(numbers), dtype=bool)
        for start, end in question.references:
            touches |= (places[:, 0] < end) & (places[:, 1] > start)
        found = zip(numbers[touches].tolist(), places[touches].tolist(), strict=True)
        return {number: (start, end) for number, (start, end) in found}

    def rankings(self, vectors: NDArray[np.float32]) -> Iterator[NDArray[np.int64]]:
        """For each question's vector the numbers of all chunks, the most similar first."""
        wanted = _normalised(vectors)
        for start in range(0, len(wanted), _BLOCK):
            yield from np.argsort(
                -(wanted[start : start + _BLOCK] @ self._vectors.T), axis=1, kind="stable"
            )

    def characters(self, number: int) -> int:
        """How much of its document a chunk holds; its own length where that is not known."""
        chunk = self.chunks[number]
        return len(chunk.text) if chunk.position is None else total([chunk.position])

    def _places(self, numbers: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.array(numbers), np.array([self.chunks[number].position for number in numbers])


def measured(
    index: ChunkIndex,
    questions: Sequence[Question],
    vectors: NDArray[np.float32],
    k: int,
    budgets: Sequence[int],
    track: Callable[[Any], Iterable[Any]] = iter,
) -> Measured:
    """Ask an index all questions.

    Parameters:
        index: the strategy's chunks.
        questions: the questions.
        vectors: the embedding of each question.
        k: how many chunks to retrieve for the figures at a fixed number of chunks.
        budgets: numbers of units for the curve, in ascending order.
        track: what to iterate over the questions with, for a progress bar.
    """
    values = {name: np.zeros(len(questions)) for name in FIGURES}
    curve = np.zeros((len(questions), len(budgets)))
    rankings = index.rankings(vectors)
    for row, question in enumerate(track(questions)):
        order = next(rankings)
        touching = index.touching(question)
        at_k = _figures_at_k(index, question, touching, order[:k].tolist())
        for name, value in zip(FIGURES, at_k, strict=True):
            values[name][row] = value
        ranked = ((touching.get(int(number)), int(index.sizes[number])) for number in order)
        curve[row] = recall_at_budgets(question.references, ranked, budgets)
    return Measured(values, curve)


def _figures_at_k(
    index: ChunkIndex, question: Question, touching: dict[int, Interval], top: list[int]
) -> tuple[float, ...]:
    """The values of `FIGURES`, in their order."""
    references = union(question.references)
    found = [touching[number] for number in top if number in touching]
    characters = sum(map(index.characters, top))
    recall, precision, iou = cover(references, found, characters)
    gains = {number: overlap([place], references) for number, place in touching.items()}
    return (
        recall,
        precision,
        precision_omega(references, touching.values()),
        iou,
        ndcg([gains.get(number, 0) for number in top], gains.values()),
        hit_rate(references, found),
        float(index.sizes[top].sum()),
    )


def _normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
