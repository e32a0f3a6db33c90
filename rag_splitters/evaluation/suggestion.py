"""The verdict of a comparison: the winner, or what to take if there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.chunkers.by_name import required_models
from rag_splitters.contract.chunker import Chunker
from rag_splitters.errors import InputError
from rag_splitters.evaluation.intervals import Estimate, leads_over
from rag_splitters.evaluation.results import Results, Strategy
from rag_splitters.parameters.checks import whole_number


@dataclass(frozen=True)
class Suggestion:
    """The strategy to take, and how certain that choice is; it prints as a few sentences.

    If there is a clear winner, take it. Otherwise take the cheapest of the tied strategies whose
    mean is within one standard error of the highest mean (the one-standard-error rule of Breiman et
    al., 1984).

    Parameters:
        name: the name of the strategy to take.
        chunker: the strategy to take.
        metric: the metric that decided.
        score: its mean of that metric over all questions.
        best: the strategy with the highest mean.
        rivals: the other strategies that may be the best one, the highest mean first: they are
            statistically tied with `best`. Empty if there is a clear winner.
        close: `best` and the tied strategies whose mean is within one standard error of it.
        runner_up: the strategy with the second highest mean; None if there is only one strategy.
        gap: the lead of `best` over the runner-up, with an interval that is adjusted for the number
            of strategies; None without a runner-up.
        held_out: the mean of the strategy that looks best, over questions that were not used to
            choose it. It is more realistic than the highest mean, which is the best of many.
        folds: the share of folds in which `best` was chosen.
        wins: the share of bootstrap resamples in which `best` is the best.
        results: the comparison.
    """

    name: str
    chunker: Any
    metric: str
    score: Estimate
    best: str
    rivals: tuple[str, ...]
    close: tuple[str, ...]
    runner_up: str | None
    gap: Estimate | None
    held_out: Estimate
    folds: float
    wins: float
    results: Results

    @property
    def is_certain(self) -> bool:
        """Whether there is a clear winner: all other strategies are significantly worse."""
        return not self.rivals

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        count = len(self.results.strategies)
        if self.runner_up is None or self.gap is None:
            return f"Only {self.best} was measured, so there is nothing to choose from."
        if self.is_certain:
            return f"Clear winner: {self.best}."
        if len(self.rivals) == count - 1:
            return f"No clear winner: {_all(count)} are statistically tied."
        tied = len(self.rivals) + 1
        return f"No clear winner: {tied} of {count} strategies are statistically tied for the best."

    @property
    def reasons(self) -> str:
        """What to take, and why, in a few sentences."""
        title = self.results.settings.titles[self.metric]
        high = f"{self._mean(self.best):.1%}"
        if self.runner_up is None or self.gap is None:
            return f"Its {title} is {high}."
        if self.is_certain:
            text = (
                f"Take it: its {title} is {high}, {_points(self.gap)} more than that of "
                f"{self.runner_up}."
            )
        elif self.gap == (0, 0, 0) and len(self.rivals) == 1:
            text = (
                f"{self.best} and {self.runner_up} have the same result on every question. "
                f"{self._choice()}"
            )
        else:
            tied = [self.best, *self.rivals]
            shares = [f"{name} ({self._mean(name):.1%})" for name in tied[:3]]
            more = f" and {len(tied) - 3} more" if len(tied) > 3 else ""
            text = f"Their {title}: {', '.join(shares)}{more}. {self._choice()}"
            text += " More questions may decide."
        return (
            f"{text} On questions that were not used to choose the best one, expect about "
            f"{self.held_out.mean:.1%}."
        )

    def __str__(self) -> str:
        return f"{self.headline} {self.reasons}"

    def _mean(self, name: str) -> float:
        return self.results.metric(name, self.metric).mean

    def _choice(self) -> str:
        """What to take of the tied strategies, and why."""
        take = f"Take {self.name} anyway:"
        if len(self.close) == 1:
            return f"{take} no other mean comes within one standard error of its own."
        if self.name == self.best:
            return f"{take} it has the highest mean, and {self._economy()}."
        return f"{take} its mean is as high within one standard error, and {self._economy()}."

    def _economy(self) -> str:
        """Why the strategy to take is the cheapest of those that come close to the best one."""
        own, *others = sorted(map(self.results.strategy, self.close), key=_cost)
        if _models(own) < min(map(_models, others)):
            return "it needs no model to cut" if not _models(own) else "it needs no chat model"
        fewest = min(others, key=lambda each: len(each.chunks))
        if len(own.chunks) == len(fewest.chunks):
            return f"no index is smaller ({len(own.chunks):,} chunks)"
        return (
            f"its index is the smallest: {len(own.chunks):,} chunks, against "
            f"{len(fewest.chunks):,} for {fewest.name}"
        )


def verdict(results: Results) -> tuple[str, str]:
    """The headline and the reasons of the suggestion; there is none with a single question."""
    if len(results.questions) < 2:
        return (
            "No verdict: one question cannot show which strategy is better.",
            "Add more questions and compare again.",
        )
    choice = suggestion(results)
    return choice.headline, choice.reasons


def suggestion(results: Results, metric: str | None = None, *, folds: int = 5) -> Suggestion:
    """Find the winner of a comparison, or what to take if the best strategies are tied.

    A strategy is tied with the one that has the highest mean unless the lead over it is
    significant, by intervals that are adjusted for the number of strategies: see
    `intervals.leads_over`. What to expect of the choice comes from cross-validation: the questions
    are divided into folds, those about each document are spread over them, and for each fold the
    strategy that is best on the other folds is tested on this one.

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
        raise InputError("metric must be one of which more is better, got 'retrieved'")
    names = [strategy.name for strategy in results.strategies]
    values = np.stack([results.values(name, metric) for name in names])
    best, *others = np.argsort(-values.mean(axis=1), kind="stable").tolist()
    fold_of = _folds(results, whole_number(folds, "folds", 2))
    picks = [
        int(values[:, fold_of != fold].mean(axis=1).argmax())
        for fold in range(int(fold_of.max()) + 1)
    ]
    held_out = values[np.array(picks)[fold_of], np.arange(values.shape[1])]
    leads = [leads_over(row, values, results.weights) for row in range(len(names))]
    tied = [row for row in others if leads[row].estimates[best].low <= 0]
    close = [
        row
        for row in (best, *tied)
        if leads[row].estimates[best].mean <= leads[row].errors[best] + 1e-12
    ]
    choice = min(close, key=lambda row: _cost(results.strategies[row]))
    return Suggestion(
        name=names[choice],
        chunker=results.strategies[choice].chunker,
        metric=metric,
        score=results.metric(names[choice], metric),
        best=names[best],
        rivals=tuple(names[row] for row in tied),
        close=tuple(names[row] for row in close),
        runner_up=names[others[0]] if others else None,
        gap=leads[others[0]].estimates[best] if others else None,
        held_out=results.estimate(held_out),
        folds=picks.count(best) / len(picks),
        wins=_wins(results.weights @ values.T, best),
        results=results,
    )


def _cost(strategy: Strategy) -> tuple[int, int]:
    """What a strategy costs: first the models that it calls, then the chunks that it makes."""
    return _models(strategy), len(strategy.chunks)


def _models(strategy: Strategy) -> int:
    """0 if a strategy calls no model to cut, 1 for an embedding model, 2 for a chat model."""
    if not isinstance(strategy.chunker, Chunker):
        return 0
    models = required_models(type(strategy.chunker))
    return 2 if "llm" in models or getattr(strategy.chunker, "llm", None) else int(bool(models))


def _points(gap: Estimate) -> str:
    """A lead in percentage points, with its interval."""
    mean, low, high = (100 * value for value in gap)
    return f"{mean:.1f} points (95% interval {low:.1f} to {high:.1f})"


def _all(count: int) -> str:
    return "both strategies" if count == 2 else f"all {count} strategies"


def _folds(results: Results, folds: int) -> NDArray[np.int64]:
    """The number of each question's fold; each document's questions are shuffled and dealt out."""
    count, documents = len(results.questions), results.documents_with_questions
    if count < 2:
        raise InputError("cross-validation needs at least 2 questions, got 1")
    order = np.random.default_rng(results.settings.seed).permutation(count).tolist()
    order.sort(key=lambda row: documents.index(results.questions[row].document))
    fold_of = np.zeros(count, dtype=np.int64)
    fold_of[order] = np.arange(count) % min(folds, count)
    return fold_of


def _wins(means: NDArray[np.float64], best: int) -> float:
    """The share of the resamples in which this strategy is best; ties are shared."""
    is_best = np.isclose(means, means.max(axis=1, keepdims=True), rtol=0, atol=1e-12)
    return float((is_best[:, best] / is_best.sum(axis=1)).mean())
