"""The tables of a report, and its forms as text: for the terminal, and as JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

from pydantic_core import to_jsonable_python
from rich import box
from rich.table import Table
from rich.text import Text

from rag_splitters.contract.chunker import Chunker
from rag_splitters.evaluation.measure.faults import FAULTS
from rag_splitters.evaluation.measure.metrics import METRICS
from rag_splitters.evaluation.measure.results import Results, Strategy
from rag_splitters.evaluation.measure.uncertainty import DRAWS, Estimate
from rag_splitters.models.describing import describe_model
from rag_splitters.text.coloured import number_of


class Cell(NamedTuple):
    """A cell of a table: its value, and for a metric the gap to the best one.

    `may_be_best` marks the best value and those that are statistically tied with it.
    """

    text: str
    gap: str = ""
    may_be_best: bool = False


class Sheet(NamedTuple):
    """A table: the titles of the columns by name, and a row of cells for each strategy."""

    titles: dict[str, str]
    rows: list[tuple[str, list[Cell]]]


def caption(results: Results) -> str:
    """Return what was measured, in a few sentences."""
    settings, questions, count = results.settings, len(results.questions), len(results.documents)
    if not questions:
        return (
            f"{number_of(count, 'document')}. The numbers of chunks with each fault; "
            f"sizes in {settings.unit}."
        )
    document_count = len({each.document for each in results.questions})
    model = f", {settings.model}" if settings.model else ""
    measured = (
        f"{number_of(questions, 'question')} about {document_count} of "
        f"{number_of(count, 'document')}{model}. Metrics in percent"
    )
    if questions < 2 or len(results.strategies) < 2:  # nothing to be behind, or no interval
        return f"{measured}."
    return (
        f"{measured}; below each, how many points it is behind the best one, with a 95% bootstrap "
        f"interval ({DRAWS:,} draws of the questions) that is adjusted for the number of "
        "strategies. Bold: the best, and what is statistically tied with it."
    )


def metric_sheet(results: Results) -> Sheet:
    """Return the metrics of each strategy."""
    titles = {"chunks": "chunks", **results.settings.titles}
    rows = []
    for strategy in results.strategies:
        cells = [_metric_cell(results, strategy.name, name) for name in results.settings.titles]
        rows.append((strategy.name, [Cell(_chunk_count(strategy)), *cells]))
    return Sheet(titles, rows)


def fault_sheet(results: Results) -> Sheet:
    """Return the number of chunks, their mean size, and how many have each fault."""
    titles = {"chunks": "chunks", "size": f"mean {results.settings.unit}"}
    titles |= {name: title for name, (title, _) in FAULTS.items()}
    rows = []
    for strategy in results.strategies:
        if strategy.faults is not None:
            counts = [Cell(f"{strategy.faults[name]:,}") for name in FAULTS]
            size = Cell(f"{strategy.sizes.mean():,.0f}")
            rows.append((strategy.name, [Cell(_chunk_count(strategy)), size, *counts]))
    return Sheet(titles, rows)


def format_gap(gap: Estimate | None) -> str:
    """Return how many points a strategy is behind the best one, and how exact that is.

    >>> format_gap(Estimate(-0.011, -0.044, 0.022)), format_gap(Estimate(-0.0001, -0.004, 0.004))
    ('-1.1 ± 3.3', '0.0 ± 0.4')
    """
    if gap is None or gap == (0, 0, 0) or math.isinf(gap.low):
        return ""
    points = round(100 * gap.mean, 1) + 0.0  # without the sign of -0.0
    return f"{points} ± {100 * (gap.high - gap.mean):.1f}"


def _metric_cell(results: Results, name: str, metric: str) -> Cell:
    mean, gap = results.metric(name, metric), results.gap(name, metric)
    if math.isnan(mean):
        return Cell("–")
    if metric == "retrieved":
        return Cell(f"{mean:,.0f}")
    return Cell(f"{100 * mean:.1f}", format_gap(gap), gap is not None and gap.high >= 0)


def _chunk_count(strategy: Strategy) -> str:
    """Return the number of chunks, and the share of them whose position is unknown."""
    lost = f" ({strategy.unlocated:.1%} not located)" if strategy.unlocated else ""
    return f"{len(strategy.chunks):,}{lost}" if strategy.chunks else "–"


# The terminal


def rich_table(results: Results) -> Table:
    """Return recall at equal budgets, or the faults if there are no questions."""
    sheet = metric_sheet(results) if results.questions else fault_sheet(results)
    # Little padding, so that all faults fit into 80 columns.
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("strategy", overflow="fold", min_width=min(18, max(map(len, results.names))))
    shown = [number for number, name in enumerate(sheet.titles) if name not in METRICS]
    for title in (list(sheet.titles.values())[number] for number in shown):
        short = title.removesuffix(f" {results.settings.unit}") if "recall" in title else title
        table.add_column(re.sub(r"(?<=-)| ", "\n", short), justify="right", no_wrap=True)
    for name, cells in sheet.rows:
        table.add_row(Text(name, style="bold"), *(_cell_text(cells[number]) for number in shown))
    return table


def _cell_text(cell: Cell) -> Text:
    gap = f"\n{cell.gap}" if cell.gap else ""
    bold = "bold" if cell.may_be_best else ""
    return Text.assemble((cell.text.replace(" ", "\n"), bold), (gap, "dim"))


# JSON


def json_text(results: Results) -> str:
    """Return the settings, the metrics with gaps, the faults, and the values of every question."""
    names = ("k", "budgets", "unit", "model")
    whole = {
        "settings": {name: getattr(results.settings, name) for name in names},
        "questions": [
            {"question": each.text, "document": each.document, "references": each.references}
            for each in results.questions
        ],
        "strategies": [_strategy_json(results, strategy) for strategy in results.strategies],
    }
    finite = to_jsonable_python(whole, inf_nan_mode="null")
    return json.dumps(finite, indent=1, allow_nan=False) + "\n"


def _strategy_json(results: Results, strategy: Strategy) -> dict[str, Any]:
    row = {
        "name": strategy.name,
        "strategy": _configuration(strategy.chunker),
        "chunks": len(strategy.chunks),
        "unlocated": strategy.unlocated,
        "sizes": strategy.sizes.tolist(),
        "faults": strategy.faults,
    }
    if not results.questions:
        return row
    metrics = results.settings.metrics
    return row | {
        "metrics": {
            metric: {
                "mean": results.metric(strategy.name, metric),
                "gap": results.gap(strategy.name, metric),
            }
            for metric in metrics
        },
        "curve": results.curve(strategy.name),
        "values": {name: results.values(strategy.name, name).tolist() for name in metrics},
    }


def _configuration(value: Any) -> Any:
    """Return a parameter for JSON: chunkers with their parameters, functions and models by name."""
    if isinstance(value, Chunker):
        fields = {name: _configuration(getattr(value, name)) for name in type(value).model_fields}
        return {"chunker": type(value).__name__, "parameters": fields}
    if isinstance(value, dict):
        return {str(key): _configuration(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return list(map(_configuration, value))
    return value if isinstance(value, str | int | float | None) else describe_model(value)
