"""Which strategy and size to take, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.chunker import Chunker
from rag_splitters.chunkers import ParagraphChunker, RecursiveChunker, SentenceChunker
from rag_splitters.evaluation.bootstrap import Figure
from rag_splitters.evaluation.comparing import compare
from rag_splitters.evaluation.formats import headings
from rag_splitters.evaluation.report import Report
from rag_splitters.fields import whole_number

__all__ = ["Suggestion", "advice", "candidates", "suggest", "suggestion"]


@dataclass(frozen=True)
class Suggestion:
    """The strategy to take, and how sure that is.

    Parameters:
        name: the strategy's name in the report.
        chunker: the strategy.
        figure: what it was chosen by.
        score: its mean over all questions.
        held_out: the mean over questions that had no part in the choice. This is what to expect
            of the choice; `score` flatters it, because it is the best of many.
        folds: in what share of the folds it was chosen.
        wins: in what share of the bootstrap resamples it is the best.
        runner_up: the second best; None where there is but one strategy.
        gap: how much better it is than the runner-up; None where there is none.
        rivals: the strategies whose difference from it may be chance, the best first.
        report: the comparison.
    """

    name: str
    chunker: Any
    figure: str
    score: Figure
    held_out: Figure
    folds: float
    wins: float
    runner_up: str | None
    gap: Figure | None
    rivals: tuple[str, ...]
    report: Report

    @property
    def is_sure(self) -> bool:
        """Is it better than every other strategy by more than chance (95% intervals)?"""
        return not self.rivals

    def __str__(self) -> str:
        told = (
            f"Take {self.name}: {headings(self.report)[self.figure]} {self.score.percent()}, "
            f"{self.held_out.percent()} on questions that were held out. It is chosen in "
            f"{self.folds:.0%} of the folds and best in {self.wins:.0%} of the resamples."
        )
        if self.gap is not None:
            told += f" It is ahead of {self.runner_up} by {self.gap.percent()}."
        if self.rivals:
            others = ", ".join(self.rivals[:3])
            more = f" and {len(self.rivals) - 3} more" if len(self.rivals) > 3 else ""
            told += f" Its lead over {others}{more} may be chance: more questions would tell."
        return told


def suggest(
    documents: Mapping[str, str],
    questions: Sequence[Any],
    embeddings: Any,
    *,
    chunkers: Mapping[str, Any] | Sequence[Any] | None = None,
    figure: str | None = None,
    folds: int = 5,
    **options: Any,
) -> Suggestion:
    """Compare strategies on your documents and questions, and pick one by cross-validation.

    Parameters:
        documents: texts by name.
        questions: `Question`s about them.
        embeddings: the embedding model that will be used for retrieval.
        chunkers: what to choose from; None: `candidates()`.
        figure: what to choose by; None: recall at the middle one of the budgets, so that no
            strategy wins by retrieving more.
        folds: into how many parts the questions are divided.
        options: those of `compare`.

    Raises: what `compare` and `suggestion` raise.
    """
    chosen = candidates() if chunkers is None else chunkers
    report = compare(chosen, documents, questions, embeddings, **options)
    return suggestion(report, figure, folds=folds)


def candidates(sizes: Sequence[int] = (100, 200, 400)) -> dict[str, Chunker]:
    """Strategies that need no model, at these sizes in tokens.

    >>> list(candidates([100]))
    ['recursive 100', 'sentence 100', 'paragraph 100']
    """
    kinds = {"recursive": RecursiveChunker, "sentence": SentenceChunker}
    every = {**kinds, "paragraph": ParagraphChunker}
    return {
        f"{name} {size}": kind(chunk_size=size, length_function="tokens")
        for size in sizes
        for name, kind in every.items()
    }


def suggestion(report: Report, figure: str | None = None, *, folds: int = 5) -> Suggestion:
    """Pick the best strategy of a report by cross-validation over its questions.

    The questions are divided into folds, each with its share of every document. For each fold the
    strategy that is best on the others is chosen, and asked the questions of this one.

    Parameters:
        report: a comparison.
        figure: what to choose by: one of `report.settings.figures` but `retrieved`; None: recall
            at the middle one of the budgets.
        folds: how many parts, at most one for each question.

    Raises: ValueError for a figure that cannot be chosen by, or for a number of folds below 2.
    """
    budgets = report.settings.budgets
    chosen_by = figure or f"recall@{budgets[len(budgets) // 2]}"
    if chosen_by == "retrieved":
        raise ValueError("figure must be one where more is better, got 'retrieved'")
    names = [strategy.name for strategy in report.strategies]
    values = np.stack([report.values(name, chosen_by) for name in names])
    best, *others = np.argsort(-values.mean(axis=1), kind="stable").tolist()
    fold_of = _folds(report, whole_number(folds, "folds", 2))
    picks = [_best(values[:, fold_of != fold]) for fold in range(int(fold_of.max()) + 1)]
    held_out = values[np.array(picks)[fold_of], np.arange(values.shape[1])]
    gaps = [report.difference(names[best], names[other], chosen_by) for other in others]
    return Suggestion(
        name=names[best],
        chunker=report.strategies[best].chunker,
        figure=chosen_by,
        score=report.figure(names[best], chosen_by),
        held_out=report.estimate(held_out),
        folds=picks.count(best) / len(picks),
        wins=_wins(report.weights @ values.T, best),
        runner_up=names[others[0]] if others else None,
        gap=gaps[0] if gaps else None,
        rivals=tuple(names[other] for other, gap in zip(others, gaps, strict=True) if gap.low <= 0),
        report=report,
    )


def advice(report: Report) -> str:
    """The suggestion in words; nothing where there is no choice, or too little to choose by."""
    if len(report.strategies) < 2 or len(report.questions) < 2:
        return ""
    return str(suggestion(report))


def _folds(report: Report, folds: int) -> NDArray[np.int64]:
    """The number of each question's fold: those about a document dealt out in turn, shuffled."""
    count, asked = len(report.questions), report.asked
    if count < 2:
        raise ValueError("cross-validation needs at least 2 questions, got 1")
    order = np.random.default_rng(report.settings.seed).permutation(count).tolist()
    order.sort(key=lambda row: asked.index(report.questions[row].document))
    fold_of = np.zeros(count, dtype=np.int64)
    fold_of[order] = np.arange(count) % min(folds, count)
    return fold_of


def _best(values: NDArray[np.float64]) -> int:
    return int(values.mean(axis=1).argmax())


def _wins(means: NDArray[np.float64], best: int) -> float:
    """In what share of the resamples this strategy is best; a tie is shared."""
    is_best = np.isclose(means, means.max(axis=1, keepdims=True), rtol=0, atol=1e-12)
    return float((is_best[:, best] / is_best.sum(axis=1)).mean())
