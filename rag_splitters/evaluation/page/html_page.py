"""The results of a comparison as one HTML page: charts in SVG, tables, and a map of the chunks."""

from __future__ import annotations

import json
import math
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.evaluation.intervals import Estimate
from rag_splitters.evaluation.page.charts import Window, curves_svg, histogram_svg, ticks
from rag_splitters.evaluation.page.projection import project
from rag_splitters.evaluation.page.template import fill_template, table_html, verdict_html
from rag_splitters.evaluation.results import Results, Strategy
from rag_splitters.evaluation.suggestion import verdict
from rag_splitters.evaluation.tables import caption, chunk_count, format_estimate

_MAX_POINTS = 300  # per strategy on the map, so that twenty strategies make a small file
_MAX_TEXT = 400  # characters of a chunk on the map
_BARS = 25


def html_page(results: Results) -> str:
    """The page, with its styles, script and data inside, so that it loads nothing else."""
    window = zoom(results)
    parts = {
        "title": "Chunking strategies compared",
        "script": (files(__package__) / "page.js").read_text(encoding="utf-8"),
        "caption": escape(caption(results)),
        "verdict": verdict_html(*verdict(results)),
        "unit": escape(results.settings.unit),
        "charts": _charts(results, window),
        "legend": _legend(results),
        "first_budget": str(results.settings.curve_budgets.index(int(window.first))),
        "last_budget": str(results.settings.curve_budgets.index(int(window.last))),
        "budget": str(_middle(results)),
        "curve_table": _curve_table(results),
        "metrics": _metric_table(results, None),
        "documents": _document_tables(results),
        "histograms": _histograms(results),
        "choices": "".join(
            f'<option value="{number}">{escape(strategy.name)}</option>'
            for number, strategy in enumerate(results.strategies)
        ),
    }
    data, parts["map_note"] = _data(results)
    parts["data"] = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return fill_template("page.html", parts)


def zoom(results: Results) -> Window:
    """The part of the recall curves in which the strategies differ.

    That is where the best and the worst strategy are at least a quarter as far apart as they ever
    are. The budgets that were asked for are always in it.
    """
    budgets = results.settings.curve_budgets
    curves = [results.curve(strategy.name) for strategy in results.strategies]
    means = np.array([[estimate.mean for _, estimate in curve] for curve in curves])
    spread = means.max(axis=0) - means.min(axis=0)
    first, last = 0, len(budgets) - 1
    if spread.max():
        is_setting = np.isin(budgets, results.settings.budgets)
        columns = np.flatnonzero(is_setting | (spread >= spread.max() / 4))
        first, last = int(columns[0]), int(columns[-1])
    first = min(first, max(0, last - 1))  # at least two points make a line
    low = math.floor(20 * means[:, first : last + 1].min() - 0.5) / 20
    high = math.ceil(20 * means[:, first : last + 1].max() + 0.5) / 20
    return Window(budgets[first], budgets[last], max(0.0, low), min(1.0, high))


def _charts(results: Results, window: Window) -> str:
    """The chart in two sizes; the style sheet shows the one that fits."""
    curves, unit = [results.curve(each.name) for each in results.strategies], results.settings.unit
    wide = curves_svg(curves, window, 760, 400, unit)
    narrow = curves_svg(curves, window, 340, 320, unit)
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def _middle(results: Results) -> int:
    """The position of the middle budget in the curve, which is shown first."""
    budgets = results.settings.budgets
    return results.settings.curve_budgets.index(budgets[len(budgets) // 2])


def _legend(results: Results) -> str:
    """The strategies with their colours, and recall at one budget."""
    rows = []
    for number, strategy in enumerate(results.strategies):
        mean, low, high = format_estimate(
            "recall", results.curve(strategy.name)[_middle(results)][1]
        )
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


_CURVE_COLUMNS = 6  # of the table below the chart; the JSON has all budgets


def _curve_table(results: Results) -> str:
    """Recall at some budgets: those that were asked for, and others between them."""
    budgets, unit = results.settings.curve_budgets, escape(results.settings.unit)
    chosen = set(results.settings.budgets[:_CURVE_COLUMNS])
    for step in range(1, _CURVE_COLUMNS + 1):
        budget = budgets[step * len(budgets) // _CURVE_COLUMNS - 1]
        is_far = all(abs(budget - each) > budget / 6 for each in chosen)
        if is_far and len(chosen) < _CURVE_COLUMNS:
            chosen.add(budget)
    titles = [f"{budget:,} {unit}" for budget in sorted(chosen)]
    rows = []
    for strategy in results.strategies:
        curve = dict(results.curve(strategy.name))
        rows.append((strategy.name, [_estimate(curve[budget]) for budget in sorted(chosen)]))
    return table_html(titles, rows)


def _estimate(estimate: Estimate, metric: str = "recall", best: bool = False) -> str:
    mean, low, high = format_estimate(metric, estimate)
    mean = f"<strong>{mean}</strong>" if best else mean
    return f'{mean} <span class="interval">{low} to {high}</span>'


def _metric_table(results: Results, document: str | None) -> str:
    """All metrics of all strategies; the best mean of each column is bold."""
    names = results.settings.metrics
    columns = {
        name: [results.metric(each.name, name, document) for each in results.strategies]
        for name in names
    }
    best = {name: max(estimate.mean for estimate in columns[name]) for name in names}
    best["retrieved"] = float("inf")  # more is not better
    rows = []
    for row, strategy in enumerate(results.strategies):
        cells = [
            _estimate(columns[name][row], name, best=columns[name][row].mean == best[name])
            for name in names
        ]
        rows.append((strategy.name, [chunk_count(strategy), *cells]))
    return table_html(["chunks", *map(escape, results.settings.titles.values())], rows)


def _document_tables(results: Results) -> str:
    """The same table for each document, if there are several."""
    if len(results.documents_with_questions) < 2:
        return ""
    return "".join(
        f"<details><summary>Only questions about {escape(document)}</summary>"
        f"{_metric_table(results, document)}</details>"
        for document in results.documents_with_questions
    )


def _histograms(results: Results) -> str:
    edges = _edges(results)
    shares = [
        np.histogram(np.minimum(each.sizes, edges[-1]), edges)[0].max() / len(each.sizes)
        for each in results.strategies
    ]
    most, unit = float(max(shares)), results.settings.unit
    return "".join(
        f"<figure><figcaption><b>{escape(strategy.name)}</b>{_size_summary(strategy, unit)}"
        f"</figcaption>{histogram_svg(strategy.sizes, edges, most, number, unit)}</figure>"
        for number, strategy in enumerate(results.strategies)
    )


def _edges(results: Results) -> NDArray[np.float64]:
    """The edges of the bars: the same for all strategies; a few huge chunks do not stretch them."""
    largest = sorted(int(strategy.sizes.max()) for strategy in results.strategies)
    limit = min(largest[-1], 3 * largest[(len(largest) - 1) // 2])
    width = max(1, ticks(limit, _BARS)[1] if limit > 1 else 1)
    return np.arange(0.0, limit + width + 1, width)


def _size_summary(strategy: Strategy, unit: str) -> str:
    low, middle, high = np.quantile(strategy.sizes, (0, 0.5, 1))
    return (
        f"{len(strategy.chunks):,} chunks, median {middle:,.0f} {escape(unit)} "
        f"({low:,.0f} to {high:,.0f})"
    )


def _data(results: Results) -> tuple[dict[str, Any], str]:
    """The data that the script draws, and a note on the map."""
    samples = [_evenly_spaced(len(strategy.chunks)) for strategy in results.strategies]
    vectors = [
        strategy.vectors[rows] for strategy, rows in zip(results.strategies, samples, strict=True)
    ]
    places, variance = project(np.concatenate(vectors))
    documents, start = list(results.documents), 0
    strategies = []
    for strategy, rows in zip(results.strategies, samples, strict=True):
        points = []
        for row, (x, y) in zip(rows, places[start:].round(4).tolist(), strict=False):
            chunk = strategy.chunks[row]
            text = " ".join(chunk.text[:_MAX_TEXT].split())
            text += " …" if len(chunk.text) > _MAX_TEXT else ""
            points.append([x, y, documents.index(chunk.document), chunk.position, text])
        start += len(rows)
        curve = [at for _, at in results.curve(strategy.name)]
        strategies.append({"name": strategy.name, "curve": curve, "points": points})
    note = f"PCA; it shows {variance:.0%} of the variance."
    if any(len(strategy.chunks) > _MAX_POINTS for strategy in results.strategies):
        note += f" The map shows at most {_MAX_POINTS} chunks per strategy, evenly spaced."
    data = {
        "budgets": results.settings.curve_budgets,
        "documents": documents,
        "strategies": strategies,
    }
    return data, escape(note)


def _evenly_spaced(count: int) -> list[int]:
    """The numbers of the chunks on the map."""
    points = min(count, _MAX_POINTS)
    return [number * count // points for number in range(points)]
