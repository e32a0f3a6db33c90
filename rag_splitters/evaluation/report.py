"""The report of a comparison, which prints and exports the results."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_splitters.evaluation.page.html_page import html_page
from rag_splitters.evaluation.results import Results
from rag_splitters.evaluation.tables import csv_text, json_text, markdown, rich_table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


@dataclass(frozen=True, eq=False, repr=False)
class Report(Results):
    """The results of a comparison, which print as a table and export to files.

    `print(report)` shows the table, and `rich.print(report)` shows it with colours.
    """

    def to_html(self, path: str | Path | None = None) -> str:
        """One page with charts, which loads nothing else; written to `path` if one is given."""
        return _write(html_page(self), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The metrics as Markdown tables; written to `path` if one is given."""
        return _write(markdown(self), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """The settings, the metrics and each question's values; written to `path` if given."""
        return _write(json_text(self), path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """One line for each strategy, document and metric; written to `path` if given."""
        return _write(csv_text(self), path)

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
        yield rich_table(self, options.max_width)


def _write(content: str, path: str | Path | None) -> str:
    if path is not None:
        with Path(path).open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(content)
    return content
