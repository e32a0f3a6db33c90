"""The results of a comparison: metrics with intervals, overall and for each document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.errors import InputError
from rag_splitters.evaluation.intervals import Estimate, estimate, resampled
from rag_splitters.evaluation.locating import LocatedChunk
from rag_splitters.evaluation.measuring import METRICS, Measurements
from rag_splitters.evaluation.questions import Question
from rag_splitters.parameters.checks import check_length_function, whole_number
from rag_splitters.text.sizing import LengthFunction


@dataclass(frozen=True)
class Settings:
    """The settings of a comparison.

    Parameters:
        budgets: numbers of retrieved units for recall at equal budgets, ascending.
        length_function: the unit of budgets and sizes.
        model: the embedding model, as `describe_model` names it.
    """

    k: int
    budgets: tuple[int, ...]
    length_function: LengthFunction
    model: str
    resamples: int
    seed: int

    def __post_init__(self) -> None:
        check_length_function(self.length_function)
        whole_number(self.k, "k", 1)
        whole_number(self.resamples, "resamples", 1)
        for budget in self.budgets:
            whole_number(budget, "every budget", 1)
        if not self.budgets:
            raise InputError("budgets must hold at least one number of units, got none")

    @property
    def unit(self) -> str:
        """The name of the unit."""
        name = self.length_function
        return name.partition(":")[0] if isinstance(name, str) else "units"

    @property
    def curve_budgets(self) -> list[int]:
        """The budgets of the recall curve: `budgets`, and 30 more up to twice the largest."""
        last = 2 * self.budgets[-1]
        return sorted({*self.budgets, *(max(1, last * step // 30) for step in range(1, 31))})

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of all metrics; `recall@500` is recall at a budget of 500 units."""
        return (*METRICS, *(f"recall@{budget}" for budget in self.budgets))

    @property
    def titles(self) -> dict[str, str]:
        """The titles of all metrics in tables."""
        titles = {name: name for name in self.metrics}
        titles |= {"precision_omega": "precision Ω", "iou": "IoU", "ndcg": "nDCG"}
        titles |= {"hit_rate": "hit rate", "retrieved": f"retrieved {self.unit}"}
        for budget in self.budgets:
            titles[f"recall@{budget}"] = f"recall at {budget:,} {self.unit}"
        return titles


@dataclass(frozen=True, eq=False)
class Strategy:
    """One strategy of a comparison: its chunks of all documents, their sizes in units and their
    embeddings, and its metrics for each question."""

    name: str
    chunker: Any
    chunks: tuple[LocatedChunk, ...]
    sizes: NDArray[np.int64]
    vectors: NDArray[np.float32]
    measurements: Measurements

    @property
    def unlocated(self) -> float:
        """The share of chunks without a known position; they count as holding no answer."""
        return sum(chunk.position is None for chunk in self.chunks) / len(self.chunks)


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """The results of a comparison; the strategies are in the order of the call."""

    settings: Settings
    documents: Mapping[str, str]
    questions: tuple[Question, ...]
    strategies: tuple[Strategy, ...]

    def strategy(self, name: str) -> Strategy:
        """The strategy of that name."""
        strategies = {strategy.name: strategy for strategy in self.strategies}
        if name not in strategies:
            names = ", ".join(map(repr, strategies))
            raise InputError(f"there is no strategy {name!r}: there are {names}")
        return strategies[name]

    def values(self, name: str, metric: str) -> NDArray[np.float64]:
        """A strategy's metric for each question."""
        measurements = self.strategy(name).measurements
        if metric in measurements.values:
            return measurements.values[metric]
        if metric not in self.settings.metrics:
            raise InputError(
                f"there is no metric {metric!r}: there are {', '.join(self.settings.metrics)}"
            )
        budget = int(metric.partition("@")[2])
        column = self.settings.curve_budgets.index(budget)
        values: NDArray[np.float64] = measurements.curve[:, column]
        return values

    def metric(self, name: str, metric: str, document: str | None = None) -> Estimate:
        """A strategy's mean over all questions, or over the questions about one document."""
        return self.estimate(self.values(name, metric), document)

    def difference(
        self, name: str, other: str, metric: str, document: str | None = None
    ) -> Estimate:
        """The mean lead of the first strategy over the other, paired by question."""
        return self.estimate(self.values(name, metric) - self.values(other, metric), document)

    def curve(self, name: str) -> list[tuple[int, Estimate]]:
        """Recall at each of the settings' `curve_budgets`."""
        if name not in self._curves:
            columns = map(self.estimate, self.strategy(name).measurements.curve.T)
            self._curves[name] = list(zip(self.settings.curve_budgets, columns, strict=True))
        return self._curves[name]

    def estimate(self, values: NDArray[np.float64], document: str | None = None) -> Estimate:
        """The mean of one value per question, over all questions or those about one document."""
        if document is None:
            return estimate(values, self.weights)
        mask = np.array([question.document == document for question in self.questions])
        if not mask.any():
            raise InputError(f"there are no questions about {document!r}")
        return estimate(values[mask], self._resampled(int(mask.sum())))

    @property
    def weights(self) -> NDArray[np.float64]:
        """The bootstrap resamples of the questions, one row for each."""
        return self._resampled(len(self.questions))

    @property
    def documents_with_questions(self) -> list[str]:
        """The names of the documents that have questions, in order."""
        names = {question.document for question in self.questions}
        return [name for name in self.documents if name in names]

    @cached_property
    def _curves(self) -> dict[str, list[tuple[int, Estimate]]]:
        return {}

    def _resampled(self, size: int) -> NDArray[np.float64]:
        return resampled(size, self.settings.resamples, self.settings.seed)
