"""Which strategy of a comparison to take, and how certain that choice is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.evaluation.intervals import Estimate
from rag_splitters.evaluation.results import Results
from rag_splitters.fields import whole_number


@dataclass(frozen=True)
class Suggestion:
    """The strategy to take, and how certain that choice is.

    Parameters:
        name: the strategy's name in the results.
        chunker: the strategy.
        metric: the metric that decided.
        score: its mean of that metric over all questions.
        held_out: the mean over questions that were not used for the choice. Expect this one:
            `score` is too optimistic, because it is the best of many.
        folds: the share of folds in which it was chosen.
        wins: the share of bootstrap resamples in which it is the best.
        runner_up: the second best strategy; None if there is only one strategy.
        gap: its lead over the runner-up; None if there is none.
        rivals: the strategies that are statistically tied with it, the best first.
        results: the comparison.
    """

    name: str
    chunker: Any
    metric: str
    score: Estimate
    held_out: Estimate
    folds: float
    wins: float
    runner_up: str | None
    gap: Estimate | None
    rivals: tuple[str, ...]
    results: Results

    @property
    def is_certain(self) -> bool:
        """Whether its lead over every other strategy is significant (95% intervals)."""
        return not self.rivals

    def __str__(self) -> str:
        title = self.results.settings.titles[self.metric]
        text = (
            f"Take {self.name}: {title} {self.score.percent()}, {self.held_out.percent()} on "
            f"held-out questions. It is chosen in {self.folds:.0%} of the folds and best in "
            f"{self.wins:.0%} of the resamples."
        )
        if self.gap is not None:
            text += f" Its lead over {self.runner_up} is {self.gap.percent()}."
        if self.gap is not None and self.gap == (0, 0, 0):
            text += (
                f" It is a tie: {self.name} and {self.runner_up} have the same result on every "
                "question, so take the cheaper one."
            )
        elif self.rivals:
            others = ", ".join(self.rivals[:3])
            more = f" and {len(self.rivals) - 3} more" if len(self.rivals) > 3 else ""
            text += (
                f" No clear winner: it is statistically tied with {others}{more}. More questions "
                "may decide."
            )
        return text


def suggestion(results: Results, metric: str | None = None, *, folds: int = 5) -> Suggestion:
    """Choose the best strategy of a comparison by cross-validation over its questions.

    The questions are divided into folds, and the questions about each document are spread over
    them. For each fold, the strategy that is best on the other folds is tested on this one.

    Parameters:
        results: a comparison.
        metric: the metric that decides: one of `results.settings.metrics` except `retrieved`;
            None: recall at the middle budget.
        folds: number of folds, at most one for each question.

    Raises: ValueError if the metric cannot decide, or if there are fewer than 2 folds or questions.
    """
    budgets = results.settings.budgets
    metric = metric or f"recall@{budgets[len(budgets) // 2]}"
    if metric == "retrieved":
        raise ValueError("metric must be one of which more is better, got 'retrieved'")
    names = [strategy.name for strategy in results.strategies]
    values = np.stack([results.values(name, metric) for name in names])
    best, *others = np.argsort(-values.mean(axis=1), kind="stable").tolist()
    fold_of = _folds(results, whole_number(folds, "folds", 2))
    picks = [
        int(values[:, fold_of != fold].mean(axis=1).argmax())
        for fold in range(int(fold_of.max()) + 1)
    ]
    held_out = values[np.array(picks)[fold_of], np.arange(values.shape[1])]
    gaps = [results.difference(names[best], names[other], metric) for other in others]
    return Suggestion(
        name=names[best],
        chunker=results.strategies[best].chunker,
        metric=metric,
        score=results.metric(names[best], metric),
        held_out=results.estimate(held_out),
        folds=picks.count(best) / len(picks),
        wins=_wins(results.weights @ values.T, best),
        runner_up=names[others[0]] if others else None,
        gap=gaps[0] if gaps else None,
        rivals=tuple(names[other] for other, gap in zip(others, gaps, strict=True) if gap.low <= 0),
        results=results,
    )


def advice(results: Results) -> str:
    """The suggestion in words; empty with fewer than two strategies or questions."""
    if len(results.strategies) < 2 or len(results.questions) < 2:
        return ""
    return str(suggestion(results))


def _folds(results: Results, folds: int) -> NDArray[np.int64]:
    """The number of each question's fold; each document's questions are shuffled and dealt out."""
    count, documents = len(results.questions), results.documents_with_questions
    if count < 2:
        raise ValueError("cross-validation needs at least 2 questions, got 1")
    order = np.random.default_rng(results.settings.seed).permutation(count).tolist()
    order.sort(key=lambda row: documents.index(results.questions[row].document))
    fold_of = np.zeros(count, dtype=np.int64)
    fold_of[order] = np.arange(count) % min(folds, count)
    return fold_of


def _wins(means: NDArray[np.float64], best: int) -> float:
    """The share of the resamples in which this strategy is best; ties are shared."""
    is_best = np.isclose(means, means.max(axis=1, keepdims=True), rtol=0, atol=1e-12)
    return float((is_best[:, best] / is_best.sum(axis=1)).mean())
