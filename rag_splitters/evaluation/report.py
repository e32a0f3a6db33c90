"""The report of a comparison, which prints and exports the results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_splitters.evaluation.page.html_page import html_page
from rag_splitters.evaluation.printing import plain_text, write
from rag_splitters.evaluation.results import Results
from rag_splitters.evaluation.suggestion import verdict
from rag_splitters.evaluation.tables import (
    csv_text,
    json_text,
    markdown,
    rich_table,
    rich_verdict,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


@dataclass(frozen=True, eq=False, repr=False)
class Report(Results):
    """The results of a comparison, which print as a verdict and a table, and export to files.

    `print(report)` shows both, and `rich.print(report)` shows them with colours.
    """

    def to_html(self, path: str | Path | None = None) -> str:
        """One page with charts, which loads nothing else; written to `path` if one is given."""
        return write(html_page(self), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The verdict, and the metrics as tables of Markdown; written to `path` if one is given."""
        return write(markdown(self), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """The settings, the metrics and each question's values; written to `path` if given."""
        return write(json_text(self), path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """One line for each strategy, document and metric; written to `path` if given."""
        return write(csv_text(self), path)

    def __repr__(self) -> str:
        names = [strategy.name for strategy in self.strategies]
        return f"{type(self).__name__}(strategies={names}, questions={len(self.questions)})"

    __str__ = plain_text

    def _repr_markdown_(self) -> str:
        """What a notebook displays."""
        return self.to_markdown()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield rich_verdict(*verdict(self))
        yield rich_table(self, options.max_width)
