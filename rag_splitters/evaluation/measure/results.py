"""The results of a comparison: metrics and gaps, overall and for each document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.errors import InputError
from rag_splitters.evaluation.measure.chunks import LocatedChunk
from rag_splitters.evaluation.measure.metrics import METRICS
from rag_splitters.evaluation.measure.questions import Question
from rag_splitters.evaluation.measure.uncertainty import Estimate, estimates
from rag_splitters.parameters.checks import check_length_function, whole_number
from rag_splitters.text.sizing import LengthFunction, unit_name


@dataclass(frozen=True)
class Settings:
    """The settings of a comparison.

    Parameters:
        budgets: numbers of retrieved units for recall at equal budgets, ascending.
        length_function: the unit of budgets and sizes.
        model: the embedding model, as `describe_model` names it; "" without questions.
    """

    k: int
    budgets: tuple[int, ...]
    length_function: LengthFunction
    model: str

    def __post_init__(self) -> None:
        check_length_function(self.length_function)
        whole_number(self.k, "k", 1)
        for budget in self.budgets:
            whole_number(budget, "every budget", 1)
        if not self.budgets:
            raise InputError("budgets must hold at least one number of units, got none")

    @property
    def unit(self) -> str:
        """The name of the unit."""
        return unit_name(self.length_function)

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
    def deciding_metric(self) -> str:
        """The metric of the verdict: recall at the middle budget."""
        return f"recall@{self.budgets[len(self.budgets) // 2]}"

    @property
    def titles(self) -> dict[str, str]:
        """The titles of all metrics in tables."""
        others = {
            "precision_omega": "precision Ω",
            "iou": "IoU",
            "retrieved": f"retrieved {self.unit}",
        }
        recalls = {f"recall@{each}": f"recall at {each:,} {self.unit}" for each in self.budgets}
        return {name: name for name in METRICS} | others | recalls


@dataclass(frozen=True, eq=False)
class Strategy:
    """One strategy of a comparison.

    Parameters:
        chunker: the chunker, or the retriever.
        chunks: its chunks of all documents; none for a retriever, which keeps its own.
        faults: how many chunks have each of the faults in `FAULTS`; None for a retriever.
        measurements: a value for each question by the names of the metrics, and of recall along the
            curve at the budgets for which it was measured; none without questions.
    """

    name: str
    chunker: Any
    chunks: tuple[LocatedChunk, ...] = ()
    sizes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    faults: Mapping[str, int] | None = None
    measurements: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @property
    def unlocated(self) -> float:
        """The share of chunks without a known position; they count as holding no answer."""
        return sum(chunk.position is None for chunk in self.chunks) / max(1, len(self.chunks))


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """The results of a comparison; the strategies are in the order of the call."""

    settings: Settings
    documents: Mapping[str, str]
    questions: tuple[Question, ...]
    strategies: tuple[Strategy, ...]

    @property
    def names(self) -> list[str]:
        """The names of the strategies."""
        return [strategy.name for strategy in self.strategies]

    def strategy(self, name: str) -> Strategy:
        """Return the strategy of that name."""
        if name not in self.names:
            names = ", ".join(map(repr, self.names))
            raise InputError(f"unknown strategy {name!r}: choose one of {names}")
        return self.strategies[self.names.index(name)]

    def values(self, name: str, metric: str) -> NDArray[np.float64]:
        """Return a strategy's metric for each question; not a number where it is not defined."""
        measurements = self.strategy(name).measurements
        if not measurements:
            raise InputError("there are no metrics: the comparison had no questions")
        if metric not in self.settings.metrics:
            raise InputError(
                f"unknown metric {metric!r}: choose one of {', '.join(self.settings.metrics)}"
            )
        return measurements[metric]

    def metric(self, name: str, metric: str) -> float:
        """Return a strategy's mean over all questions."""
        return float(self.values(name, metric).mean())

    def gap(self, name: str, metric: str) -> Estimate | None:
        """Return how far a strategy is from the best one: 0 for the best, and less for the others.

        The interval is paired by question and adjusted for the number of strategies. If its upper
        bound is at least 0, the strategy may be the best one. So the truly best strategy is taken
        for worse in about 2.5% of comparisons: these are multiple comparisons with the best.

        Returns: None if the metric has no best value, as "retrieved", or is not defined.

        Source: Hsu (1984), Constrained Simultaneous Confidence Intervals for Multiple Comparisons
        with the Best.
        """
        if metric not in self._gaps:
            self._gaps[metric] = self._compare(metric)
        return self._gaps[metric].get(name)

    def curve(self, name: str) -> list[tuple[int, float]]:
        """Mean recall at each of the settings' `curve_budgets` that was measured."""
        measurements = self.strategy(name).measurements
        curve = ((each, measurements.get(f"recall@{each}")) for each in self.settings.curve_budgets)
        return [(budget, float(recall.mean())) for budget, recall in curve if recall is not None]

    @cached_property
    def _gaps(self) -> dict[str, dict[str, Estimate]]:
        return {}

    def _compare(self, metric: str) -> dict[str, Estimate]:
        values = {name: self.values(name, metric) for name in self.names}
        names = [name for name in values if not np.isnan(values[name]).any()]
        if metric == "retrieved" or not names:
            return {}
        table = np.stack([values[name] for name in names])
        best = int(table.mean(axis=1).argmax())
        leads = [estimates(table - row)[best] for row in table]
        gaps = [Estimate(0 - lead.mean, 0 - lead.high, 0 - lead.low) for lead in leads]
        return dict(zip(names, gaps, strict=True))
