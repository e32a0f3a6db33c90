"""The results of a comparison as one HTML page: charts by Vega-Lite, and tables."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined, Template

from rag_splitters.evaluation.measure.faults import MEANINGS
from rag_splitters.evaluation.measure.results import Results
from rag_splitters.evaluation.report.tables import caption, fault_sheet, format_gap, metric_sheet
from rag_splitters.evaluation.report.verdict import verdict

# Legible on white and on black.
_COLOURS = (
    *("#3b7ddd", "#d9622b", "#1f9d72", "#b455c4", "#a58300"),
    *("#1792ab", "#d9486a", "#8169dc", "#6a9a1f", "#828995"),
)
_CURVES_AT_FIRST = 3


def html_page(results: Results) -> str:
    """The page, with its styles, scripts and data inside, so that it loads nothing else."""
    ranking, colours = _ranking(results), _colours(results)
    page = _template().render(
        vega=files(__package__) / "vega",
        verdict=verdict(results),
        caption=caption(results),
        settings=results.settings,
        metrics=metric_sheet(results) if results.questions else None,
        faults=fault_sheet(results),
        meanings=MEANINGS,
        legend=_legend(results, ranking, colours),
        charts=_charts(results, ranking, colours),
    )
    return page.encode("utf-8", "replace").decode()  # lone surrogates become question marks


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string((files(__package__) / "page.html").read_text("utf-8"))


def _ranking(results: Results) -> list[str]:
    """The names of the strategies, the best first; without questions, as they are."""
    if not results.questions:
        return results.names
    metric = results.settings.deciding_metric
    return sorted(results.names, key=lambda name: -results.metric(name, metric))


def _colours(results: Results) -> dict[str, str]:
    return {name: _COLOURS[row % len(_COLOURS)] for row, name in enumerate(_ranking(results))}


def _legend(results: Results, ranking: list[str], colours: dict[str, str]) -> list[dict[str, Any]]:
    """The strategies for the list beside the curves; the first curves are drawn at first."""
    metric = results.settings.deciding_metric
    return [
        {
            "name": name,
            "number": results.names.index(name),
            "colour": colours[name],
            "mean": f"{100 * results.metric(name, metric):.1f}",
            "gap": format_gap(results.gap(name, metric)),
            "is_drawn": row < _CURVES_AT_FIRST,
        }
        for row, name in enumerate(ranking if results.questions else ())
    ]


def _charts(results: Results, ranking: list[str], colours: dict[str, str]) -> dict[str, Any]:
    """The charts that the page shows, with their data."""
    charts = json.loads((files(__package__) / "charts.json").read_text("utf-8"))
    unit = results.settings.unit
    charts["curves"]["encoding"]["x"]["title"] = f"retrieved {unit}"
    charts["sizes"]["layer"][0]["encoding"]["x"]["title"] = unit
    rows = {
        "gaps": _gap_rows(results, ranking),
        "curves": _curve_rows(results, colours),
        "sizes": _size_rows(results),
    }
    for name in ("gaps", "sizes"):
        charts[name]["height"] = 40 + 26 * len(rows[name])
    return {name: charts[name] | {"data": {"values": rows[name]}} for name in rows if rows[name]}


def _gap_rows(results: Results, ranking: list[str]) -> list[dict[str, Any]]:
    """How far each strategy is behind the best one, in points; none if there is no verdict."""
    if len(results.questions) < 2 or len(ranking) < 2:
        return []
    rows = []
    for name in ranking:
        if gap := results.gap(name, results.settings.deciding_metric):
            points = {key: round(100 * value, 3) for key, value in gap._asdict().items()}
            rows.append({"strategy": name, **points})
    return rows


def _curve_rows(results: Results, colours: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "strategy": name,
            "number": number,
            "colour": colours[name],
            "budget": budget,
            "recall": round(recall, 4),
        }
        for number, name in enumerate(results.names)
        for budget, recall in results.curve(name)
    ]


def _size_rows(results: Results) -> list[dict[str, Any]]:
    """The sizes of nine in ten chunks of each strategy, and their median."""
    rows = []
    for strategy in results.strategies:
        if strategy.chunks:
            sizes = np.quantile(strategy.sizes, (0.05, 0.5, 0.95, 1)).round(1).tolist()
            names = ("low", "median", "high", "largest")
            rows.append({"strategy": strategy.name, **dict(zip(names, sizes, strict=True))})
    return rows
