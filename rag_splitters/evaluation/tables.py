"""The results of a comparison as a table, as Markdown, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from rag_splitters.contract.chunker import Chunker
from rag_splitters.evaluation.intervals import Estimate
from rag_splitters.evaluation.results import Results, Strategy
from rag_splitters.evaluation.suggestion import verdict
from rag_splitters.models import describe_model


def caption(results: Results) -> str:
    """What was measured, in two sentences."""
    settings, questions = results.settings, len(results.questions)
    return (
        f"{questions:,} question{'' if questions == 1 else 's'} about "
        f"{len(results.documents_with_questions)} of {len(results.documents)} documents, "
        f"{settings.k} chunks retrieved, {settings.model}. All values in percent, with 95% "
        f"bootstrap intervals over the questions ({settings.resamples:,} resamples)."
    )


def format_estimate(metric: str, estimate: Estimate, places: int = 1) -> tuple[str, str, str]:
    """Mean, lower and upper bound as tables show them: units for `retrieved`, else percent."""
    if metric == "retrieved":
        mean, low, high = (f"{value:,.0f}" for value in estimate)
    else:
        mean, low, high = (f"{100 * value:.{places}f}" for value in estimate)
    return mean, low, high


def rich_verdict(headline: str, reasons: str) -> Text:
    """A verdict for the terminal: its headline in bold, and the reasons below."""
    return Text.assemble((headline, "bold"), "\n", reasons)


_MIN_WIDTH = {"precision": 100, "iou": 110, "precision_omega": 150, "ndcg": 150, "hit_rate": 150}
"""The narrowest terminal that shows each metric; the other metrics are always shown."""


def rich_table(results: Results, width: int) -> Table:
    """The metrics over all questions with their intervals; fewer on a narrow terminal."""
    table = Table(box=box.SIMPLE_HEAD, caption=caption(results), caption_justify="left")
    table.add_column("strategy", overflow="fold")
    unit = results.settings.unit
    titles = {**results.settings.titles, "retrieved": unit}
    shown = [name for name in titles if width >= _MIN_WIDTH.get(name, 0)]
    for title in ("chunks", *(titles[name].removesuffix(f" {unit}") for name in shown)):
        table.add_column(title.replace(" ", "\n", 1), justify="right", no_wrap=True)
    for strategy in results.strategies:
        row = [Text(strategy.name, style="bold"), Text(chunk_count(strategy).replace(" (", "\n("))]
        for name in shown:
            estimate = results.metric(strategy.name, name)
            mean = format_estimate(name, estimate)[0]
            _, low, high = format_estimate(name, estimate, places=0)
            bounds = "" if name == "retrieved" else f"{low}–{high}"
            row.append(Text.assemble(mean, "\n", (bounds, "dim")))
        table.add_row(*row)
    return table


def markdown(results: Results) -> str:
    """A table over all questions, and one for each document if there are several."""
    headline, reasons = map(_escaped, verdict(results))
    parts = [f"**{headline}** {reasons}", caption(results), _markdown_table(results, None)]
    documents = results.documents_with_questions
    if len(documents) > 1:
        for document in documents:
            parts += [f"### {_escaped(document)}", _markdown_table(results, document)]
    return "\n\n".join(parts) + "\n"


def json_text(results: Results) -> str:
    """The settings, the metrics with intervals, and the values of every question."""
    settings, documents = results.settings, results.documents_with_questions
    strategies = [
        {
            "name": strategy.name,
            "chunker": _chunker_json(strategy.chunker),
            "chunks": len(strategy.chunks),
            "unlocated": strategy.unlocated,
            "sizes": strategy.sizes.tolist(),
            "metrics": _metrics(results, strategy.name, None),
            "documents": {
                document: _metrics(results, strategy.name, document) for document in documents
            },
            "curve": [[budget, *at] for budget, at in results.curve(strategy.name)],
            "values": {
                name: results.values(strategy.name, name).tolist() for name in settings.metrics
            },
        }
        for strategy in results.strategies
    ]
    questions = [
        {"question": each.text, "document": each.document, "references": each.references}
        for each in results.questions
    ]
    names = ("k", "budgets", "unit", "model", "resamples", "seed")
    whole = {
        "settings": {name: getattr(settings, name) for name in names},
        "questions": questions,
        "strategies": strategies,
    }
    return json.dumps(whole, indent=1) + "\n"


def csv_text(results: Results) -> str:
    """One line for each strategy, document and metric; no document means all questions."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("strategy", "document", "metric", "mean", "low", "high"))
    for strategy in results.strategies:
        for document in (None, *results.documents_with_questions):
            for name, bounds in _metrics(results, strategy.name, document).items():
                writer.writerow((strategy.name, document or "", name, *bounds))
    return file.getvalue()


def _chunker_json(chunker: Any) -> Any:
    """One of our chunkers with its parameters; any other by its name."""
    if not isinstance(chunker, Chunker):
        return describe_model(chunker)
    return {"strategy": type(chunker).__name__, **chunker.model_dump(mode="json")}


def _metrics(results: Results, name: str, document: str | None) -> dict[str, Estimate]:
    return {metric: results.metric(name, metric, document) for metric in results.settings.metrics}


def _markdown_table(results: Results, document: str | None) -> str:
    settings = results.settings
    titles = ["strategy", "chunks", f"mean {settings.unit}", *settings.titles.values()]
    lines = [f"| {' | '.join(titles)} |", "|---|" + "---:|" * (len(titles) - 1)]
    for strategy in results.strategies:
        size = f"{strategy.sizes.mean():,.0f}"
        cells = [_escaped(strategy.name), chunk_count(strategy), size]
        for name in settings.metrics:
            estimate = results.metric(strategy.name, name, document)
            mean, low, high = format_estimate(name, estimate)
            cells.append(f"{mean} ({low} to {high})")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def chunk_count(strategy: Strategy) -> str:
    """The number of chunks, and the share of them whose position is unknown."""
    lost = f" ({strategy.unlocated:.1%} not located)" if strategy.unlocated else ""
    return f"{len(strategy.chunks):,}{lost}"


def _escaped(text: str) -> str:
    """The text for a cell or a heading of Markdown."""
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").split())
