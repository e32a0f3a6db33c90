"""The charts of the page as SVG: recall curves with bands, and histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag_splitters.evaluation.intervals import Estimate

_LEFT, _TOP, _BOTTOM, _RIGHT = 40, 12, 44, 12


@dataclass(frozen=True)
class _Frame:
    """Converts values to coordinates in a drawing of this size."""

    width: int
    height: int
    largest: float

    def x(self, value: float) -> float:
        return _LEFT + (self.width - _LEFT - _RIGHT) * value / self.largest

    def y(self, share: float) -> float:
        return _TOP + (self.height - _TOP - _BOTTOM) * (1 - share)


def ticks(largest: float, most: int) -> list[int]:
    """Round numbers from 0 up to `largest`, at most `most` of them above 0.

    >>> ticks(3000, 6), ticks(7, 3)
    ([0, 500, 1000, 1500, 2000, 2500, 3000], [0, 5])
    """
    step = 1
    while largest / step > most:
        step = step * 5 // 2 if str(step).startswith("2") else step * 2
    return list(range(0, int(largest) + 1, step))


def curves_svg(
    curves: Sequence[Sequence[tuple[int, Estimate]]], width: int, height: int, unit: str
) -> str:
    """Recall against retrieved units: a line with a band for each strategy, in order.

    Each strategy is a group of class `series` with its number in `data-series`. The script moves
    the line of class `cursor`.
    """
    frame = _Frame(width, height, curves[0][-1][0])
    parts = [_grid(frame, unit, 4 if width < 500 else 6)]
    for number, curve in enumerate(curves):
        points = [(frame.x(0), frame.y(0))]
        points += [(frame.x(at), frame.y(estimate.mean)) for at, estimate in curve]
        upper = [(frame.x(at), frame.y(estimate.high)) for at, estimate in curve]
        lower = [(frame.x(at), frame.y(estimate.low)) for at, estimate in reversed(curve)]
        band = _path([points[0], *upper, *lower]) + "Z"
        parts.append(
            f'<g class="series s{number % 10}{" dashed" if number >= 10 else ""}" '
            f'data-series="{number}"><path class="band" d="{band}"/>'
            f'<path class="line" d="{_path(points)}"/></g>'
        )
    top, bottom = frame.y(1), frame.y(0)
    parts.append(f'<line class="cursor" x1="{_LEFT}" x2="{_LEFT}" y1="{top}" y2="{bottom}"/>')
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" aria-hidden="true" '
        f'data-left="{_LEFT}" data-right="{_RIGHT}" data-largest="{frame.largest:g}">'
        f"{''.join(parts)}</svg>"
    )


def histogram_svg(
    sizes: ArrayLike, edges: NDArray[np.float64], most: float, number: int, unit: str
) -> str:
    """The distribution of a strategy's chunk sizes.

    Parameters:
        edges: where the bars begin and end; larger sizes count in the last bar.
        most: the share of chunks in the highest bar of all strategies.
        number: the strategy's number, for its colour.
    """
    sizes = np.asarray(sizes, dtype=np.float64)
    counts = np.histogram(np.minimum(sizes, edges[-1]), edges)[0]
    frame = _Frame(300, 150, float(edges[-1]))
    bars = []
    for low, high, count in zip(edges[:-1], edges[1:], counts.tolist(), strict=True):
        if count:
            left, top = frame.x(low), frame.y(count / len(sizes) / most)
            more = " or more" if high == edges[-1] and sizes.max() > high else f" to {high:,.0f}"
            bars.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{frame.x(high) - left - 1:.1f}" '
                f'height="{frame.y(0) - top:.1f}"><title>{low:,.0f}{more} {escape(unit)}: '
                f"{count:,} chunks</title></rect>"
            )
    median = frame.x(float(np.minimum(np.median(sizes), edges[-1])))
    return (
        '<svg viewBox="0 0 300 150" width="300" height="150" aria-hidden="true">'
        f"{_axis(frame, unit, 4)}"
        f'<g class="bars s{number % 10}">{"".join(bars)}</g><line class="median" x1="{median:.1f}" '
        f'x2="{median:.1f}" y1="{_TOP}" y2="{frame.y(0)}"/></svg>'
    )


def _grid(frame: _Frame, unit: str, most: int) -> str:
    """Lines and labels for shares from 0 to 1, and the axis below."""
    parts = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = frame.y(share)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{frame.width - _RIGHT}" y1="{y}" y2="{y}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{share:.0%}</text>'
        )
    return "".join(parts) + _axis(frame, f"retrieved {unit}", most)


def _axis(frame: _Frame, title: str, most: int) -> str:
    y = frame.y(0)
    parts = [f'<line class="axis" x1="{_LEFT}" x2="{frame.width - _RIGHT}" y1="{y}" y2="{y}"/>']
    for tick in ticks(frame.largest, most):
        x = frame.x(tick)
        parts.append(f'<text x="{x:.1f}" y="{y + 16}" text-anchor="middle">{tick:,}</text>')
    middle = (_LEFT + frame.width - _RIGHT) / 2
    parts.append(
        f'<text class="title" x="{middle}" y="{y + 36}" text-anchor="middle">{escape(title)}</text>'
    )
    return "".join(parts)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
