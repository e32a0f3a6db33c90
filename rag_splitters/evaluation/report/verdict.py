"""The verdict of a comparison: the best strategy, and which others may be as good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_splitters.chunkers.by_name import required_models
from rag_splitters.contract.chunker import Chunker
from rag_splitters.errors import InputError
from rag_splitters.evaluation.measure.results import Results, Strategy
from rag_splitters.evaluation.measure.uncertainty import Estimate


@dataclass(frozen=True)
class Suggestion:
    """The strategy with the highest mean, and how sure that is; it prints as a few sentences.

    Parameters:
        name: the name of the strategy.
        chunker: the strategy.
        metric: the metric that decided.
        score: its mean of that metric over all questions.
        rivals: the other strategies that may be the best one, the highest mean first: they are
            statistically tied with it. Empty if there is a clear winner.
        runner_up: the strategy with the second highest mean; None if there is only one strategy.
        gap: how far the runner-up is behind, with an interval that is adjusted for the number of
            strategies; None without a runner-up.
        cheaper: the cheapest of the tied strategies, if it is cheaper than this one: first in the
            models that it calls, then in the number of its chunks.
        results: the comparison.
    """

    name: str
    chunker: Any
    metric: str
    score: float
    rivals: tuple[str, ...]
    runner_up: str | None
    gap: Estimate | None
    cheaper: str | None
    results: Results

    @property
    def is_certain(self) -> bool:
        """Whether there is a clear winner: all other strategies are significantly worse."""
        return not self.rivals

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        count = len(self.results.strategies)
        if self.runner_up is None:
            return f"Only {self.name} was measured, so there is nothing to choose from."
        if self.is_certain:
            return f"Clear winner: {self.name}."
        if len(self.rivals) == count - 1:
            tied = "both strategies" if count == 2 else f"all {count} strategies"
            return f"No clear winner: {tied} are statistically tied."
        tied = f"{len(self.rivals) + 1} of {count} strategies"
        return f"No clear winner: {tied} are statistically tied for the best."

    @property
    def reasons(self) -> str:
        """What to choose, and why, in a few sentences."""
        title = self.results.settings.titles[self.metric]
        if self.runner_up is None or self.gap is None:
            return f"Its {title} is {self.score:.1%}."
        if self.is_certain:
            return (
                f"Choose it: its {title} is {self.score:.1%}, {_points(self.gap)} more than that "
                f"of {self.runner_up}."
            )
        if self.gap == (0, 0, 0) and len(self.rivals) == 1:
            same = f"{self.name} and {self.runner_up} have the same result on every question."
            return f"{same}{self._alternative()}"
        shares = [f"{name} ({self._mean(name):.1%})" for name in (self.name, *self.rivals)]
        more = f" and {len(shares) - 3} more" if len(shares) > 3 else ""
        return (
            f"Their {title}: {', '.join(shares[:3])}{more}. No mean is higher than that of "
            f"{self.name}."
            f"{self._alternative()} More questions may separate them."
        )

    def __str__(self) -> str:
        return f"{self.headline} {self.reasons}"

    def _mean(self, name: str) -> float:
        return self.results.metric(name, self.metric)

    def _alternative(self) -> str:
        """The cheapest of the tied strategies, and what makes it cheaper."""
        if self.cheaper is None:
            return ""
        other, own = map(self.results.strategy, (self.cheaper, self.name))
        saving = "it needs no model to cut" if not _models(other) else "it needs no chat model"
        if _models(other) == _models(own):
            saving = f"it has {len(other.chunks):,} chunks, against {len(own.chunks):,}"
        return f" {self.cheaper} is cheaper: {saving}."


def verdict(results: Results) -> tuple[str, str]:
    """The headline and the reasons of the suggestion, or why there is none."""
    if not results.questions:
        return (
            "No verdict: without questions, nothing shows which strategy finds the answers.",
            "These are counts of faults. Write down questions to compare what a search finds.",
        )
    if len(results.questions) < 2:
        return (
            "No verdict: one question cannot show which strategy is better.",
            "Add more questions and compare again.",
        )
    choice = suggestion(results)
    return choice.headline, choice.reasons


def suggestion(results: Results, metric: str | None = None) -> Suggestion:
    """Find the winner of a comparison, and the strategies that are tied with it.

    A strategy is tied with the one that has the highest mean unless the gap between them is
    significant, by intervals that are adjusted for the number of strategies: see `Results.gap`.

    Parameters:
        results: a comparison.
        metric: the metric that decides: one of `results.settings.metrics` except `retrieved`;
            None: recall at the middle budget, so that no strategy wins by retrieving more text.

    Raises: ValueError if the metric cannot decide, or if there are fewer than 2 questions.
    """
    metric = metric or results.settings.deciding_metric
    if metric == "retrieved":
        raise InputError("metric must be one of which more is better, got 'retrieved'")
    if len(results.questions) < 2:
        raise InputError(f"a verdict needs at least 2 questions, got {len(results.questions)}")
    gaps = {name: results.gap(name, metric) for name in results.names}
    measured = [(name, gap) for name, gap in gaps.items() if gap is not None]
    (best, _), *others = sorted(measured, key=lambda pair: -pair[1].mean)
    tied = [name for name, gap in others if gap.high >= 0]
    # The costs of a retriever are not known.
    choices = [name for name in (best, *tied) if results.strategy(name).chunks]
    cheapest = min(choices, key=lambda name: _cost(results.strategy(name)), default=best)
    costs = [_cost(results.strategy(name)) for name in (cheapest, best)]
    is_cheaper = best in choices and costs[0] < costs[1]
    return Suggestion(
        name=best,
        chunker=results.strategy(best).chunker,
        metric=metric,
        score=results.metric(best, metric),
        rivals=tuple(tied),
        runner_up=others[0][0] if others else None,
        gap=others[0][1] if others else None,
        cheaper=cheapest if is_cheaper else None,
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
    """A gap in percentage points, with its interval."""
    mean, high, low = (-100 * value for value in gap)
    return f"{mean:.1f} points (95% interval {low:.1f} to {high:.1f})"
