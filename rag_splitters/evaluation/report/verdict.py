"""The verdict of a comparison: the best strategy, and which others may be as good."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rag_splitters.chunkers.by_name import models_in
from rag_splitters.contract.chunker import Chunker
from rag_splitters.evaluation.measure.results import Results, Strategy
from rag_splitters.evaluation.measure.uncertainty import Estimate
from rag_splitters.text.coloured import number_of


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which strategy to choose, and how sure that is; it prints as a few sentences.

    Parameters:
        headline: the verdict in one sentence.
        reasons: what to choose, and why, in a few sentences.
        best: the name of the strategy with the highest recall at the middle budget, so that none
            wins by retrieving more text; None if there are fewer than two questions.
        rivals: the other strategies that may be the best one, the highest mean first: they are
            statistically tied with it. Empty if there is a clear winner.
        cheaper: the cheapest of the tied strategies, if it is cheaper than the best one: first in
            the models that it calls, then in the number of its chunks.
    """

    headline: str
    reasons: str
    best: str | None = None
    rivals: tuple[str, ...] = ()
    cheaper: str | None = None

    def __str__(self) -> str:
        return f"{self.headline} {self.reasons}"


def verdict(results: Results) -> Verdict:
    """Find the winner of a comparison, and the strategies that are tied with it.

    A strategy is tied with the one that has the highest mean unless the gap between them is
    significant, by intervals that are adjusted for the number of strategies: see `Results.gap`.
    """
    choice = _choose(results)
    left_out = [each.name for each in results.strategies if each.faults is None]
    if results.questions or not left_out:
        return choice
    note = f"Left out, because retrievers need questions: {', '.join(left_out)}."
    return replace(choice, reasons=f"{choice.reasons} {note}")


def _choose(results: Results) -> Verdict:
    if not results.questions:
        return Verdict(
            "No verdict: without questions, nothing shows which strategy finds the answers.",
            "These are counts of faults. Write down questions to compare what a search finds.",
        )
    if len(results.questions) < 2:
        return Verdict(
            "No verdict: one question cannot show which strategy is better.",
            "Add more questions and compare again.",
        )
    metric = results.settings.deciding_metric
    title, share = results.settings.titles[metric], results.metric
    gaps = {name: results.gap(name, metric) or Estimate(0, 0, 0) for name in results.names}
    best, *others = sorted(gaps, key=lambda name: -gaps[name].mean)
    rivals = tuple(name for name in others if gaps[name].high >= 0)
    if not others:
        headline = f"Only {best} was measured, so there is nothing to choose from."
        return Verdict(headline, f"Its {title} is {share(best, metric):.1%}.", best)
    if not rivals:
        reasons = (
            f"Choose it: its {title} is {share(best, metric):.1%}, {_points(gaps[others[0]])} more "
            f"than that of {others[0]}."
        )
        return Verdict(f"Clear winner: {best}.", reasons, best)
    cheaper, saving = _find_cheaper(results, best, rivals)
    if all(gaps[name] == (0, 0, 0) for name in rivals):
        reasons = (
            f"They have the same result on every question; their {title} is "
            f"{share(best, metric):.1%}.{saving}"
        )
    else:
        shares = [f"{name} ({share(name, metric):.1%})" for name in (best, *rivals)]
        more = f" and {len(shares) - 3} more" if len(shares) > 3 else ""
        reasons = (
            f"Their {title}: {', '.join(shares[:3])}{more}. No mean is higher than that of {best}."
            f"{saving} More questions may separate them."
        )
    return Verdict(_tie(len(rivals) + 1, len(gaps)), reasons, best, rivals, cheaper)


def _tie(tied: int, count: int) -> str:
    if tied < count:
        strategies = f"{tied} of {count} strategies"
        return f"No clear winner: {strategies} are statistically tied for the best."
    strategies = "both strategies" if count == 2 else f"all {count} strategies"
    return f"No clear winner: {strategies} are statistically tied."


def _find_cheaper(results: Results, best: str, rivals: tuple[str, ...]) -> tuple[str | None, str]:
    """Return the cheapest strategy if it is cheaper than the best, and a sentence that says why.

    No retriever's cost is known.
    """
    strategies = {name: results.strategy(name) for name in (best, *rivals)}
    costs = {name: _cost(each) for name, each in strategies.items() if each.chunks}
    cheapest = min(costs, key=lambda name: costs[name], default=best)
    if best not in costs or costs[cheapest] >= costs[best]:
        return None, ""
    (models, chunks), (more_models, more_chunks) = costs[cheapest], costs[best]
    saving = "it needs no chat model" if models else "it needs no model to cut"
    if models == more_models:
        saving = f"it has {number_of(chunks, 'chunk')}, against {more_chunks:,}"
    return cheapest, f" {cheapest} is cheaper: {saving}."


def _cost(strategy: Strategy) -> tuple[int, int]:
    """Return what a strategy costs: first the models that it calls to cut, then its chunks.

    The models are 0 for none, 1 for an embedding model and 2 for a chat model.
    """
    models = models_in(strategy.chunker) if isinstance(strategy.chunker, Chunker) else set()
    return 2 if "llm" in models else int(bool(models)), len(strategy.chunks)


def _points(gap: Estimate) -> str:
    """Return a gap in percentage points, with its interval."""
    mean, high, low = (-100 * value for value in gap)
    return f"{mean:.1f} points (95% interval {low:.1f} to {high:.1f})"
