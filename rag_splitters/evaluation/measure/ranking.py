"""What a search retrieves for each question, and the metrics of that."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_splitters.evaluation.measure.chunks import LocatedChunk
from rag_splitters.evaluation.measure.metrics import (
    Range,
    cover,
    overlap,
    precision_omega,
    recall_at_budgets,
    union,
)
from rag_splitters.evaluation.measure.questions import Question

METRICS = ("recall", "precision", "precision_omega", "iou", "retrieved")
"""The metrics at a fixed number of chunks; `retrieved` is the size of these chunks in units."""

_BLOCK = 64  # questions ranked at once


@dataclass(frozen=True, eq=False)
class Measurements:
    """The metrics of each question: `values` by name, and recall at each budget in `curve`."""

    values: dict[str, NDArray[np.float64]]
    curve: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Sequence[tuple[tuple[float, ...], list[float]]]) -> Measurements:
        """Measurements from the values of `METRICS` and the curve of each question."""
        columns = np.array([values for values, _ in rows]).T
        curves = np.array([curve for _, curve in rows])
        return cls(dict(zip(METRICS, columns, strict=True)), curves)


class Hit(NamedTuple):
    """A retrieved chunk: its position if it holds a part of the answer, and its size in units."""

    position: Range | None
    size: int
    characters: int


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
        """The number of characters that a chunk covers."""
        return self.chunks[number].characters


def measure_chunks(
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
    rows = []
    for question, order in zip(track(questions), index.rankings(vectors), strict=True):
        touching = index.touching(question)
        hits = (
            Hit(touching.get(number), int(index.sizes[number]), index.characters(number))
            for number in map(int, order)
        )
        rows.append(_measure(question, hits, list(touching.values()), k, budgets))
    return Measurements.of(rows)


def measure_results(
    results: Iterable[Sequence[tuple[LocatedChunk, int]]],
    questions: Sequence[Question],
    k: int,
    budgets: Sequence[int],
) -> Measurements:
    """Measure what a retriever returned for each question, with the sizes in units.

    Precision Ω compares with all that could be retrieved, so a retriever has none.
    """
    rows = []
    for question, ranking in zip(questions, results, strict=True):
        hits = (Hit(_part(chunk, question), size, chunk.characters) for chunk, size in ranking)
        rows.append(_measure(question, hits, None, k, budgets))
    return Measurements.of(rows)


def _part(chunk: LocatedChunk, question: Question) -> Range | None:
    """The position of a chunk that holds a part of the answer; None for any other chunk."""
    if chunk.position is None or chunk.document != question.document:
        return None
    return chunk.position if overlap([chunk.position], question.references) else None


def _measure(
    question: Question,
    hits: Iterator[Hit],
    touching: Sequence[Range] | None,
    k: int,
    budgets: Sequence[int],
) -> tuple[tuple[float, ...], list[float]]:
    """The values of `METRICS`, in order, and recall at each budget."""
    references = union(question.references)
    top = list(islice(hits, k))
    positions = [hit.position for hit in top if hit.position is not None]
    recall, precision, iou = cover(references, positions, sum(hit.characters for hit in top))
    omega = math.nan if touching is None else precision_omega(references, touching)
    size = sum(hit.size for hit in top)
    ranked = ((hit.position, hit.size) for hit in chain(top, hits))
    curve = recall_at_budgets(question.references, ranked, budgets)
    return (recall, precision, omega, iou, float(size)), curve


def _normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
