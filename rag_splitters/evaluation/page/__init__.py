"""A report as one page that asks the network for nothing: charts in SVG, tables, a map.

The charts are SVG written here, and a short script answers to the pointer and the keyboard. A
plotting library would put several megabytes into each page (plotly), or pictures that answer to
nothing and that nobody can read aloud (matplotlib).
"""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.evaluation.bootstrap import Figure
from rag_splitters.evaluation.formats import caption, headings, rounded
from rag_splitters.evaluation.page.charts import curves_svg, histogram_svg, ticks
from rag_splitters.evaluation.page.projection import Projection, projected
from rag_splitters.evaluation.report import Report, Strategy
from rag_splitters.evaluation.suggesting import advice

__all__ = ["page"]

_MOST_POINTS = 300  # of a strategy on the map, so that twenty strategies stay a small file
_MOST_TEXT = 400  # characters of a chunk on the map
_BARS = 25


def page(report: Report, projection: Projection = "pca") -> str:
    """The page, as HTML with its styles, script and data inside.

    Parameters:
        report: a comparison.
        projection: how the map of chunks is made; see `projected`.
    """
    folder, told = files(__package__), advice(report)
    parts = {
        "style": (folder / "page.css").read_text(encoding="utf-8"),
        "script": (folder / "page.js").read_text(encoding="utf-8"),
        "caption": escape(caption(report)),
        "verdict": f'<p class="verdict">{escape(told)}</p>' if told else "",
        "unit": escape(report.settings.unit),
        "charts": _charts(report),
        "legend": _legend(report),
        "slider": _slider(report),
        "curve_table": _curve_table(report),
        "figures": _figure_table(report, None),
        "documents": _document_tables(report),
        "histograms": _histograms(report),
        "choices": "".join(
            f'<option value="{number}">{escape(strategy.name)}</option>'
            for number, strategy in enumerate(report.strategies)
        ),
    }
    data, parts["map_note"] = _data(report, projection)
    parts["data"] = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    whole = (folder / "page.html").read_text(encoding="utf-8")
    whole = re.sub(r"{{ (\w+) }}", lambda match: parts[match[1]], whole)
    return whole.encode("utf-8", "replace").decode()  # what UTF-8 lacks becomes a question mark


def _charts(report: Report) -> str:
    """The chart at two sizes, of which one is shown."""
    curves, unit = [report.curve(each.name) for each in report.strategies], report.settings.unit
    wide, narrow = curves_svg(curves, 760, 400, unit), curves_svg(curves, 340, 320, unit)
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def _slider(report: Report) -> str:
    budgets = report.settings.curve_budgets
    return (
        f'<input type="range" id="budget" min="0" max="{len(budgets) - 1}" step="1" '
        f'value="{_middle(report)}" aria-describedby="budget-help">'
    )


def _middle(report: Report) -> int:
    """The place in the curve of the budget that is shown first."""
    budgets = report.settings.budgets
    return report.settings.curve_budgets.index(budgets[len(budgets) // 2])


def _legend(report: Report) -> str:
    """The strategies with their colours, and recall at one budget."""
    rows = []
    for number, strategy in enumerate(report.strategies):
        mean, low, high = rounded("recall", report.curve(strategy.name)[_middle(report)][1])
        rows.append(
            f'<tr data-series="{number}"><th scope="row"><label><input type="checkbox" checked>'
            f"{_swatch(number)}{escape(strategy.name)}</label></th>"
            f'<td class="mean">{mean}</td><td class="interval">{low} to {high}</td></tr>'
        )
    return "".join(rows)


def _swatch(number: int) -> str:
    dashed = " dashed" if number >= 10 else ""
    return (
        f'<svg class="swatch s{number % 10}{dashed}" viewBox="0 0 22 10" aria-hidden="true">'
        '<path class="line" d="M1 5H21"/></svg>'
    )


def _curve_table(report: Report) -> str:
    titles = "".join(f'<th scope="col">{escape(each.name)}</th>' for each in report.strategies)
    curves = [report.curve(strategy.name) for strategy in report.strategies]
    rows = [
        f'<tr><th scope="row">{budget:,}</th>{"".join(map(_cell, figures))}</tr>'
        for budget, *figures in (
            (at[0][0], *(figure for _, figure in at)) for at in zip(*curves, strict=True)
        )
    ]
    head = f'<thead><tr><th scope="col">{escape(report.settings.unit)}</th>{titles}</tr></thead>'
    return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"


def _cell(figure: Figure, name: str = "recall", best: bool = False) -> str:
    mean, low, high = rounded(name, figure)
    shown = f"<strong>{mean}</strong>" if best else mean
    return f'<td>{shown}<span class="interval">{low} to {high}</span></td>'


def _figure_table(report: Report, document: str | None) -> str:
    """Every figure of every strategy; the best mean of a column in bold."""
    names = report.settings.figures
    columns = {
        name: [report.figure(each.name, name, document) for each in report.strategies]
        for name in names
    }
    best = {name: max(figure.mean for figure in columns[name]) for name in names}
    best["retrieved"] = float("inf")  # more is not better
    rows = []
    for row, strategy in enumerate(report.strategies):
        cells = (
            _cell(columns[name][row], name, best=columns[name][row].mean == best[name])
            for name in names
        )
        lost = f" ({strategy.unlocated:.1%} not located)" if strategy.unlocated else ""
        rows.append(
            f'<tr><th scope="row">{escape(strategy.name)}</th>'
            f"<td>{len(strategy.chunks):,}{lost}</td>{''.join(cells)}</tr>"
        )
    titles = "".join(
        f'<th scope="col">{escape(title)}</th>' for title in ("chunks", *headings(report).values())
    )
    head = f'<thead><tr><th scope="col">strategy</th>{titles}</tr></thead>'
    return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"


def _document_tables(report: Report) -> str:
    """The same for each document, where there are several."""
    if len(report.asked) < 2:
        return ""
    return "".join(
        f"<details><summary>Only questions about {escape(document)}</summary>"
        f'<div class="scroll" tabindex="0" role="region" '
        f'aria-label="Figures for {escape(document)}">{_figure_table(report, document)}</div>'
        "</details>"
        for document in report.asked
    )


def _histograms(report: Report) -> str:
    edges = _edges(report)
    shares = [
        np.histogram(np.minimum(each.sizes, edges[-1]), edges)[0].max() / len(each.sizes)
        for each in report.strategies
    ]
    most, unit = float(max(shares)), report.settings.unit
    return "".join(
        f"<figure><figcaption><b>{escape(strategy.name)}</b>{_sizes_told(strategy, unit)}"
        f"</figcaption>{histogram_svg(strategy.sizes, edges, most, number, unit)}</figure>"
        for number, strategy in enumerate(report.strategies)
    )


def _edges(report: Report) -> NDArray[np.float64]:
    """Where bars begin and end: the same for all strategies, and not stretched by a few giants."""
    largest = sorted(int(strategy.sizes.max()) for strategy in report.strategies)
    limit = min(largest[-1], 3 * largest[(len(largest) - 1) // 2])
    width = max(1, ticks(limit, _BARS)[1] if limit > 1 else 1)
    return np.arange(0.0, limit + width + 1, width)


def _sizes_told(strategy: Strategy, unit: str) -> str:
    low, middle, high = np.quantile(strategy.sizes, (0, 0.5, 1))
    return (
        f"{len(strategy.chunks):,} chunks, median {middle:,.0f} {escape(unit)} "
        f"({low:,.0f} to {high:,.0f})"
    )


def _data(report: Report, projection: Projection) -> tuple[dict[str, Any], str]:
    """What the script draws from, and how the map was made."""
    chosen = [_evenly(len(strategy.chunks)) for strategy in report.strategies]
    vectors = [
        strategy.vectors[rows] for strategy, rows in zip(report.strategies, chosen, strict=True)
    ]
    places, share = projected(np.concatenate(vectors), projection, report.settings.seed)
    documents, start = list(report.documents), 0
    strategies = []
    for strategy, rows in zip(report.strategies, chosen, strict=True):
        points = []
        for row, (x, y) in zip(rows, places[start:].round(4).tolist(), strict=False):
            chunk = strategy.chunks[row]
            text = " ".join(chunk.text[:_MOST_TEXT].split())
            text += " …" if len(chunk.text) > _MOST_TEXT else ""
            points.append([x, y, documents.index(chunk.document), chunk.position, text])
        start += len(rows)
        curve = [(at.mean, at.low, at.high) for _, at in report.curve(strategy.name)]
        strategies.append({"name": strategy.name, "curve": curve, "points": points})
    made = "UMAP" if share is None else f"PCA; the two directions hold {share:.0%} of the variance"
    note = f"{made}."
    if any(len(strategy.chunks) > _MOST_POINTS for strategy in report.strategies):
        note += f" At most {_MOST_POINTS} chunks of a strategy are shown, evenly chosen."
    data = {
        "budgets": report.settings.curve_budgets,
        "documents": documents,
        "strategies": strategies,
    }
    return data, escape(note)


def _evenly(count: int) -> list[int]:
    """The numbers of the chunks that are shown."""
    shown = min(count, _MOST_POINTS)
    return [number * count // shown for number in range(shown)]
