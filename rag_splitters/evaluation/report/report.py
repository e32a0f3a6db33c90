"""The report of a comparison, which prints and exports the results."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.jupyter import JupyterMixin
from rich.text import Text

from rag_splitters.evaluation.measure.results import Results
from rag_splitters.evaluation.report.page import html_page
from rag_splitters.evaluation.report.tables import caption, json_text, rich_table
from rag_splitters.evaluation.report.verdict import verdict

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderResult


@dataclass(frozen=True, eq=False, repr=False)
class Report(Results, JupyterMixin):
    """The results of a comparison, which print as a verdict and a table, and export to files.

    `print(report)` shows both. `rich.print(report)` and notebooks show them with colours.
    """

    def to_html(self, path: str | Path | None = None) -> str:
        """Return one page with charts, which loads nothing else; write it to `path` if given."""
        return _write(html_page(self), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return settings, metrics and each question's values; write them to `path` if given."""
        return _write(json_text(self), path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(strategies={self.names}, questions={len(self.questions)})"

    def __str__(self) -> str:
        # What rich would print in a terminal, without colours; the same in a notebook.
        console = Console(
            file=io.StringIO(),
            color_system=None,
            force_jupyter=False,
            highlight=False,
            markup=False,
            emoji=False,
        )
        with console.capture() as captured:
            console.print(self)
        return captured.get()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        choice = verdict(self)
        yield Text.assemble((choice.headline, "bold"), "\n", choice.reasons)
        yield rich_table(self)
        yield Text(caption(self), "italic")


def _write(content: str, path: str | Path | None) -> str:
    """Return the content, and write it to `path` if there is one, with escaped surrogates."""
    if path is not None:
        with Path(path).open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(content)
    return content
