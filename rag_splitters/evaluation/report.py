"""What a comparison found: figures with intervals, overall and for each document."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.evaluation.bootstrap import Figure, estimate, resampled
from rag_splitters.evaluation.locating import LocatedChunk
from rag_splitters.evaluation.measuring import FIGURES, Measured
from rag_splitters.evaluation.questions import Question
from rag_splitters.fields import whole_number
from rag_splitters.text.sizing import LengthFunction, check_length_function

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from rag_splitters.evaluation.page.projection import Projection

__all__ = ["Report", "Settings", "Strategy"]


@dataclass(frozen=True)
class Settings:
    """How a comparison was made.

    Parameters:
        k: how many chunks were retrieved.
        budgets: how many units were retrieved for recall at equal budgets, in ascending order.
        length_function: the unit.
        model: the embedding model, as `describe_model` names it.
        resamples: how many resamples the intervals come from.
        seed: that of the resamples.
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
            whole_number(budget, "a budget", 1)
        if not self.budgets:
            raise ValueError("budgets must hold at least one number of units, got none")

    @property
    def unit(self) -> str:
        """What the unit is called."""
        name = self.length_function
        return name.partition(":")[0] if isinstance(name, str) else "units"

    @property
    def curve_budgets(self) -> list[int]:
        """The budgets, and 30 more up to twice the largest, at which recall is drawn."""
        last = 2 * self.budgets[-1]
        return sorted({*self.budgets, *(max(1, last * step // 30) for step in range(1, 31))})

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of all figures, `recall@500` for recall at a budget of 500 units."""
        return (*FIGURES, *(f"recall@{budget}" for budget in self.budgets))


@dataclass(frozen=True, eq=False)
class Strategy:
    """One strategy of a comparison: its chunks, and its figures for each question.

    Parameters:
        name: what the report calls it.
        chunker: the chunker.
        chunks: its chunks of all documents.
        sizes: their sizes in units.
        vectors: their embeddings.
        measured: figures for each question.
    """

    name: str
    chunker: Any
    chunks: tuple[LocatedChunk, ...]
    sizes: NDArray[np.int64]
    vectors: NDArray[np.float32]
    measured: Measured

    @property
    def unlocated(self) -> float:
        """The share of chunks that were not found in their documents; they can answer nothing."""
        return sum(chunk.position is None for chunk in self.chunks) / len(self.chunks)


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What a comparison found. Prints as a table, with colours through `rich.print(report)`.

    Parameters:
        settings: how it was made.
        documents: the texts by name.
        questions: the questions.
        strategies: the strategies, in the order they were given.
    """

    settings: Settings
    documents: Mapping[str, str]
    questions: tuple[Question, ...]
    strategies: tuple[Strategy, ...]

    def strategy(self, name: str) -> Strategy:
        """The strategy of that name."""
        found = [strategy for strategy in self.strategies if strategy.name == name]
        if not found:
            names = ", ".join(repr(strategy.name) for strategy in self.strategies)
            raise ValueError(f"there is no strategy {name!r}: there are {names}")
        return found[0]

    def values(self, name: str, figure: str) -> NDArray[np.float64]:
        """A strategy's figure for each question."""
        answers = self.strategy(name).measured
        if figure in answers.values:
            return answers.values[figure]
        if figure not in self.settings.figures:
            raise ValueError(
                f"there is no figure {figure!r}: there are {', '.join(self.settings.figures)}"
            )
        budget = int(figure.partition("@")[2])
        column: NDArray[np.float64] = answers.curve[:, self.settings.curve_budgets.index(budget)]
        return column

    def figure(self, name: str, figure: str, document: str | None = None) -> Figure:
        """A strategy's mean over all questions, or over those about one document."""
        return self.estimate(self.values(name, figure), document)

    def difference(self, name: str, other: str, figure: str, document: str | None = None) -> Figure:
        """How much more the first strategy has than the other, paired by question."""
        return self.estimate(self.values(name, figure) - self.values(other, figure), document)

    def curve(self, name: str) -> list[tuple[int, Figure]]:
        """Recall at each of the settings' `curve_budgets`."""
        if name not in self._curves:
            columns = map(self.estimate, self.strategy(name).measured.curve.T)
            self._curves[name] = list(zip(self.settings.curve_budgets, columns, strict=True))
        return self._curves[name]

    def to_html(self, path: str | Path | None = None, *, projection: Projection = "pca") -> str:
        """One page with charts that needs nothing else; written to `path` where one is given.

        `projection` is how the map of the chunks is made: "pca", or "umap" with umap-learn.
        """
        from rag_splitters.evaluation.page import page

        return _written(page(self, projection), path)

    def estimate(self, values: NDArray[np.float64], document: str | None = None) -> Figure:
        """The mean of one value for each question, over all of them or those about a document."""
        if document is None:
            return estimate(values, self.weights)
        mask = np.array([question.document == document for question in self.questions])
        if not mask.any():
            raise ValueError(f"there are no questions about {document!r}")
        return estimate(values[mask], self._resampled(int(mask.sum())))

    @property
    def weights(self) -> NDArray[np.float64]:
        """The bootstrap resamples of the questions, a row for each."""
        return self._resampled(len(self.questions))

    @property
    def asked(self) -> list[str]:
        """The documents that there are questions about, in their order."""
        names = {question.document for question in self.questions}
        return [name for name in self.documents if name in names]

    def __repr__(self) -> str:
        names = [strategy.name for strategy in self.strategies]
        return f"{type(self).__name__}(strategies={names}, questions={len(self.questions)})"

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=io.StringIO(), highlight=False)
        with console.capture() as captured:
            console.print(self)
        return captured.get()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rag_splitters.evaluation.formats import rich_table

        yield rich_table(self, options.max_width)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The figures as Markdown tables; written to `path` where one is given."""
        from rag_splitters.evaluation.formats import markdown

        return _written(markdown(self), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """Settings, figures and the values of each question; written to `path` if given."""
        from rag_splitters.evaluation.formats import json_text

        return _written(json_text(self), path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """One line for each strategy, document and figure; written to `path` if given."""
        from rag_splitters.evaluation.formats import csv_text

        return _written(csv_text(self), path)

    @cached_property
    def _curves(self) -> dict[str, list[tuple[int, Figure]]]:
        return {}

    def _resampled(self, size: int) -> NDArray[np.float64]:
        return resampled(size, self.settings.resamples, self.settings.seed)


def _written(content: str, path: str | Path | None) -> str:
    if path is not None:
        with Path(path).open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(content)
    return content
