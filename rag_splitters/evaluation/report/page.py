"""The results of a comparison as one HTML page: charts by Vega-Lite, and tables."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined, Template

from rag_splitters.evaluation.measure.faults import FAULTS
from rag_splitters.evaluation.measure.results import Results
from rag_splitters.evaluation.report.tables import caption, fault_sheet, format_gap, metric_sheet
from rag_splitters.evaluation.report.verdict import verdict
from rag_splitters.text.coloured import number_of

# Legible on white and on black.
_COLOURS = (
    *("#3b7ddd", "#d9622b", "#1f9d72", "#b455c4", "#a58300"),
    *("#1792ab", "#d9486a", "#8169dc", "#6a9a1f", "#828995"),
)
_CURVES_AT_FIRST = 3


def html_page(results: Results) -> str:
    """Return the page, with its styles, scripts and data inside, so that it loads nothing else."""
    legend = _legend(results)
    page = _template().render(
        vega=files(__package__) / "vega",
        verdict=verdict(results),
        caption=caption(results),
        settings=results.settings,
        retrieved=number_of(results.settings.k, "chunk"),
        metrics=metric_sheet(results) if results.questions else None,
        faults=fault_sheet(results),
        meanings=FAULTS.values(),
        legend=legend,
        charts=_charts(results, legend),
    )
    return page.encode("utf-8", "replace").decode()  # lone surrogates become question marks


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string((files(__package__) / "page.html").read_text("utf-8"))


def _legend(results: Results) -> list[dict[str, Any]]:
    """Return the strategies for the list beside the curves, the best first; none without questions.

    The first curves are drawn at first.
    """
    metric = results.settings.deciding_metric
    means = {name: results.metric(name, metric) for name in results.names if results.questions}
    return [
        {
            "name": name,
            "number": results.names.index(name),
            "colour": _COLOURS[row % len(_COLOURS)],
            "mean": f"{100 * means[name]:.1f}",
            "gap": format_gap(results.gap(name, metric)),
            "is_drawn": row < _CURVES_AT_FIRST,
        }
        for row, name in enumerate(sorted(means, key=lambda name: -means[name]))
    ]


def _charts(results: Results, legend: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the charts that the page shows, with their data."""
    charts = json.loads((files(__package__) / "charts.json").read_text("utf-8"))
    unit = results.settings.unit
    charts["curves"]["encoding"]["x"]["title"] = f"retrieved {unit}"
    charts["sizes"]["layer"][0]["encoding"]["x"]["title"] = unit
    curves = [
        {"strategy": each["name"], "number": each["number"], "colour": each["colour"]}
        | {"budget": budget, "recall": round(recall, 4)}
        for each in legend
        for budget, recall in results.curve(each["name"])
    ]
    rows = {"gaps": _gap_rows(results, legend), "curves": curves, "sizes": _size_rows(results)}
    for name in ("gaps", "sizes"):
        charts[name]["height"] = 40 + 26 * len(rows[name])
    return {name: charts[name] | {"data": {"values": rows[name]}} for name in rows if rows[name]}


def _gap_rows(results: Results, legend: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how far each strategy is behind the best one, in points; none without a verdict."""
    if len(results.questions) < 2 or len(legend) < 2:
        return []
    rows = []
    for name in (each["name"] for each in legend):
        if gap := results.gap(name, results.settings.deciding_metric):
            points = {key: round(100 * value, 3) for key, value in gap._asdict().items()}
            rows.append({"strategy": name, **points})
    return rows


def _size_rows(results: Results) -> list[dict[str, Any]]:
    """Return the sizes of nine in ten chunks of each strategy, and their median."""
    rows = []
    for strategy in results.strategies:
        if strategy.chunks:
            sizes = np.quantile(strategy.sizes, (0.05, 0.5, 0.95, 1)).round(1).tolist()
            names = ("low", "median", "high", "largest")
            rows.append({"strategy": strategy.name, **dict(zip(names, sizes, strict=True))})
    return rows
