"""A report as a table, as Markdown, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from rag_splitters.chunker import Chunker
from rag_splitters.evaluation.bootstrap import Figure
from rag_splitters.evaluation.report import Report, Strategy
from rag_splitters.models import describe_model

__all__ = ["caption", "csv_text", "headings", "json_text", "markdown", "rich_table", "rounded"]


def headings(report: Report) -> dict[str, str]:
    """What tables call the figures, which come from `report.settings`."""
    unit = report.settings.unit
    called = {"precision_omega": "precision Ω", "iou": "IoU", "ndcg": "nDCG"}
    called |= {"hit_rate": "hit rate", "retrieved": f"retrieved {unit}"}
    for budget in report.settings.budgets:
        called[f"recall@{budget}"] = f"recall at {budget:,} {unit}"
    return {name: called.get(name, name) for name in report.settings.figures}


def caption(report: Report) -> str:
    """How the figures were made, in two sentences."""
    settings, asked = report.settings, len(report.questions)
    return (
        f"{asked:,} question{'' if asked == 1 else 's'} about {len(report.asked)} of "
        f"{len(report.documents)} documents, {settings.k} chunks retrieved, {settings.model}. "
        "Figures in hundredths, with 95% bootstrap intervals over the questions "
        f"({settings.resamples:,} resamples)."
    )


def rounded(name: str, figure: Figure, places: int = 1) -> tuple[str, str, str]:
    """A figure and the bounds of its interval as tables show them: in hundredths, or as it is."""
    known = (figure.mean, figure.low, figure.high)
    if name == "retrieved":
        mean, low, high = (f"{part:,.0f}" for part in known)
    else:
        mean, low, high = (f"{100 * part:.{places}f}" for part in known)
    return mean, low, high


_LEAST_WIDTH = {"precision": 100, "iou": 110, "precision_omega": 150, "ndcg": 150, "hit_rate": 150}
"""The width of a terminal from which on it shows a figure; the others are always shown."""


def rich_table(report: Report, width: int) -> Table:
    """The figures over all questions, with the intervals below them; fewer where it is narrow."""
    table = Table(box=box.SIMPLE_HEAD, caption=caption(report), caption_justify="left")
    table.add_column("strategy", overflow="fold")
    titles, unit = {**headings(report), "retrieved": report.settings.unit}, report.settings.unit
    shown = [name for name in titles if width >= _LEAST_WIDTH.get(name, 0)]
    for title in ("chunks", *(titles[name].removesuffix(f" {unit}") for name in shown)):
        table.add_column(title.replace(" ", "\n", 1), justify="right", no_wrap=True)
    for strategy in report.strategies:
        row = [Text(strategy.name, style="bold"), Text(_count(strategy).replace(" (", "\n("))]
        for name in shown:
            figure = report.figure(strategy.name, name)
            mean, (_, low, high) = rounded(name, figure)[0], rounded(name, figure, 0)
            bounds = "" if name == "retrieved" else f"{low}–{high}"
            row.append(Text.assemble(mean, "\n", (bounds, "dim")))
        table.add_row(*row)
    return table


def markdown(report: Report) -> str:
    """A table over all questions and, where there are several, one for each document."""
    parts = [caption(report), _markdown_table(report, None)]
    if len(report.asked) > 1:
        for document in report.asked:
            parts += [f"### {_escaped(document)}", _markdown_table(report, document)]
    return "\n\n".join(parts) + "\n"


def json_text(report: Report) -> str:
    """Settings, figures with intervals, and the values of every question."""
    settings = report.settings
    strategies = [
        {
            "name": strategy.name,
            "chunker": _described(strategy.chunker),
            "chunks": len(strategy.chunks),
            "unlocated": strategy.unlocated,
            "sizes": strategy.sizes.tolist(),
            "figures": _figures(report, strategy.name, None),
            "documents": {
                document: _figures(report, strategy.name, document) for document in report.asked
            },
            "curve": [[budget, *_bounds(at)] for budget, at in report.curve(strategy.name)],
            "values": {
                name: report.values(strategy.name, name).tolist() for name in settings.figures
            },
        }
        for strategy in report.strategies
    ]
    questions = [
        {"question": each.text, "document": each.document, "references": each.references}
        for each in report.questions
    ]
    made = {
        "k": settings.k,
        "budgets": settings.budgets,
        "unit": settings.unit,
        "model": settings.model,
        "resamples": settings.resamples,
        "seed": settings.seed,
    }
    whole = {"settings": made, "questions": questions, "strategies": strategies}
    return json.dumps(whole, indent=1) + "\n"


def csv_text(report: Report) -> str:
    """One line for each strategy, document and figure; no document means all questions."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("strategy", "document", "figure", "mean", "low", "high"))
    for strategy in report.strategies:
        for document in (None, *report.asked):
            for name, bounds in _figures(report, strategy.name, document).items():
                writer.writerow((strategy.name, document or "", name, *bounds))
    return file.getvalue()


def _described(chunker: Any) -> Any:
    """A chunker of ours with its parameters; another by its name."""
    if not isinstance(chunker, Chunker):
        return describe_model(chunker)
    return {"strategy": type(chunker).__name__, **chunker.model_dump(mode="json")}


def _figures(report: Report, name: str, document: str | None) -> dict[str, tuple[float, ...]]:
    return {
        figure: _bounds(report.figure(name, figure, document)) for figure in report.settings.figures
    }


def _bounds(figure: Figure) -> tuple[float, float, float]:
    return figure.mean, figure.low, figure.high


def _markdown_table(report: Report, document: str | None) -> str:
    titles = ["strategy", "chunks", f"mean {report.settings.unit}", *headings(report).values()]
    lines = [f"| {' | '.join(titles)} |", "|---|" + "---:|" * (len(titles) - 1)]
    for strategy in report.strategies:
        cells = [_escaped(strategy.name), _count(strategy), _size(strategy)]
        for name in report.settings.figures:
            mean, low, high = rounded(name, report.figure(strategy.name, name, document))
            cells.append(f"{mean} ({low} to {high})")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _count(strategy: Strategy) -> str:
    """How many chunks, and which share of them could not be located."""
    lost = f" ({strategy.unlocated:.1%} not located)" if strategy.unlocated else ""
    return f"{len(strategy.chunks):,}{lost}"


def _size(strategy: Strategy) -> str:
    return f"{strategy.sizes.mean():,.0f}"


def _escaped(text: str) -> str:
    """The text in a cell or a heading of Markdown."""
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").split())
