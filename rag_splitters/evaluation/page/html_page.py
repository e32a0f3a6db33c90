"""The results of a comparison as one HTML page: charts in SVG, tables, and a map of the chunks."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.evaluation.intervals import Estimate
from rag_splitters.evaluation.page.charts import curves_svg, histogram_svg, ticks
from rag_splitters.evaluation.page.projection import project
from rag_splitters.evaluation.results import Results, Strategy
from rag_splitters.evaluation.suggestion import advice
from rag_splitters.evaluation.tables import caption, chunk_count, format_estimate

_MAX_POINTS = 300  # per strategy on the map, so that twenty strategies make a small file
_MAX_TEXT = 400  # characters of a chunk on the map
_BARS = 25


def html_page(results: Results) -> str:
    """The page, with its styles, script and data inside, so that it loads nothing else."""
    folder, verdict = files(__package__), advice(results)
    parts = {
        "style": (folder / "page.css").read_text(encoding="utf-8"),
        "script": (folder / "page.js").read_text(encoding="utf-8"),
        "caption": escape(caption(results)),
        "verdict": f'<p class="verdict">{escape(verdict)}</p>' if verdict else "",
        "unit": escape(results.settings.unit),
        "charts": _charts(results),
        "legend": _legend(results),
        "budgets": str(len(results.settings.curve_budgets) - 1),
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
    whole = (folder / "page.html").read_text(encoding="utf-8")
    whole = re.sub(r"{{ (\w+) }}", lambda match: parts[match[1]], whole)
    return whole.encode("utf-8", "replace").decode()  # lone surrogates become question marks


def _charts(results: Results) -> str:
    """The chart in two sizes; the style sheet shows the one that fits."""
    curves, unit = [results.curve(each.name) for each in results.strategies], results.settings.unit
    wide, narrow = curves_svg(curves, 760, 400, unit), curves_svg(curves, 340, 320, unit)
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


def _curve_table(results: Results) -> str:
    titles = "".join(f'<th scope="col">{escape(each.name)}</th>' for each in results.strategies)
    curves = [results.curve(strategy.name) for strategy in results.strategies]
    rows = [
        f'<tr><th scope="row">{at[0][0]:,}</th>{"".join(_cell(each) for _, each in at)}</tr>'
        for at in zip(*curves, strict=True)
    ]
    head = f'<thead><tr><th scope="col">{escape(results.settings.unit)}</th>{titles}</tr></thead>'
    return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"


def _cell(estimate: Estimate, metric: str = "recall", best: bool = False) -> str:
    mean, low, high = format_estimate(metric, estimate)
    mean = f"<strong>{mean}</strong>" if best else mean
    return f'<td>{mean}<span class="interval">{low} to {high}</span></td>'


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
        cells = (
            _cell(columns[name][row], name, best=columns[name][row].mean == best[name])
            for name in names
        )
        rows.append(
            f'<tr><th scope="row">{escape(strategy.name)}</th>'
            f"<td>{chunk_count(strategy)}</td>{''.join(cells)}</tr>"
        )
    titles = "".join(
        f'<th scope="col">{escape(title)}</th>'
        for title in ("chunks", *results.settings.titles.values())
    )
    head = f'<thead><tr><th scope="col">strategy</th>{titles}</tr></thead>'
    return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"


def _document_tables(results: Results) -> str:
    """The same table for each document, if there are several."""
    if len(results.documents_with_questions) < 2:
        return ""
    return "".join(
        f"<details><summary>Only questions about {escape(document)}</summary>"
        f'<div class="scroll" tabindex="0" role="region" '
        f'aria-label="Metrics for {escape(document)}">{_metric_table(results, document)}</div>'
        "</details>"
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
