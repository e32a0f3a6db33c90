"""The charts of the page as SVG: recall curves with bands, and histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag_splitters.evaluation.intervals import Estimate

_LEFT, _TOP, _BOTTOM, _RIGHT = 40, 12, 44, 12


class Window(NamedTuple):
    """The part of the recall curves that is drawn: from one budget and recall to another."""

    first: float
    last: float
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True)
class _Frame:
    """Converts values to coordinates in a drawing of this size."""

    width: int
    height: int
    window: Window

    def x(self, value: float) -> float:
        first, last, *_ = self.window
        return _LEFT + (self.width - _LEFT - _RIGHT) * (value - first) / (last - first)

    def y(self, share: float) -> float:
        *_, low, high = self.window
        return _TOP + (self.height - _TOP - _BOTTOM) * (high - share) / (high - low)


def ticks(largest: float, most: int, first: float = 0) -> list[int]:
    """Round numbers from `first` to `largest`: at most one more than `most` of them.

    >>> ticks(3000, 6), ticks(7, 3), ticks(3000, 4, 1200)
    ([0, 500, 1000, 1500, 2000, 2500, 3000], [0, 5], [1500, 2000, 2500, 3000])
    """
    step = 1
    while (largest - first) / step > most:
        step = step * 5 // 2 if str(step).startswith("2") else step * 2
    return list(range(-(-int(first) // step) * step, int(largest) + 1, step))


def curves_svg(
    curves: Sequence[Sequence[tuple[int, Estimate]]],
    window: Window,
    width: int,
    height: int,
    unit: str,
) -> str:
    """Recall against retrieved units: a line with a band for each strategy, in order.

    Each strategy is a group of class `series` with its number in `data-series`. The script moves
    the line of class `cursor`.
    """
    frame = _Frame(width, height, window)
    parts = [_grid(frame, unit, 3 if width < 500 else 6)]
    clip = f"plot-{width}"
    top, bottom = frame.y(window.high), frame.y(window.low)
    parts.append(
        f'<clipPath id="{clip}"><rect x="{_LEFT}" y="{top - 2}" '
        f'width="{width - _LEFT - _RIGHT}" height="{bottom - top + 4}"/></clipPath>'
    )
    for number, curve in enumerate(curves):
        points = [(frame.x(0), frame.y(0))]
        points += [(frame.x(at), frame.y(estimate.mean)) for at, estimate in curve]
        upper = [(frame.x(at), frame.y(estimate.high)) for at, estimate in curve]
        lower = [(frame.x(at), frame.y(estimate.low)) for at, estimate in reversed(curve)]
        band = _path([points[0], *upper, *lower]) + "Z"
        parts.append(
            f'<g class="series s{number % 10}{" dashed" if number >= 10 else ""}" '
            f'clip-path="url(#{clip})" '
            f'data-series="{number}"><path class="band" d="{band}"/>'
            f'<path class="line" d="{_path(points)}"/></g>'
        )
    parts.append(f'<line class="cursor" x1="{_LEFT}" x2="{_LEFT}" y1="{top}" y2="{bottom}"/>')
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" aria-hidden="true" '
        f'data-left="{_LEFT}" data-right="{_RIGHT}" data-first="{window.first:g}" '
        f'data-last="{window.last:g}">{"".join(parts)}</svg>'
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
    frame = _Frame(300, 150, Window(0, float(edges[-1])))
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
    """Lines and labels for the shares in the window, and the axis below."""
    parts = []
    low, high = (round(100 * share) for share in frame.window[2:])
    for share in ticks(high, 5, low):
        y = frame.y(share / 100)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{frame.width - _RIGHT}" y1="{y:.1f}" '
            f'y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share}%</text>'
        )
    return "".join(parts) + _axis(frame, f"retrieved {unit}", most)


def _axis(frame: _Frame, title: str, most: int) -> str:
    y = frame.height - _BOTTOM
    parts = [f'<line class="axis" x1="{_LEFT}" x2="{frame.width - _RIGHT}" y1="{y}" y2="{y}"/>']
    for tick in ticks(frame.window.last, most, frame.window.first):
        x = frame.x(tick)
        parts.append(f'<text x="{x:.1f}" y="{y + 16}" text-anchor="middle">{tick:,}</text>')
    middle = (_LEFT + frame.width - _RIGHT) / 2
    parts.append(
        f'<text class="title" x="{middle}" y="{y + 36}" text-anchor="middle">{escape(title)}</text>'
    )
    return "".join(parts)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
