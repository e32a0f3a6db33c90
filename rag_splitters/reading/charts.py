"""Finds the scales of charts on a page of a PDF: numbers that rise in equal steps."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from rag_splitters.reading.fonts import Line, join_lines

_FEWEST = 3  # numbers of a scale
_NEAR = 1.0  # points by which equal distances may differ
_NUMBER = re.compile(r"\s*([-+−]?)[$€£]?\s?(\d[\d,]*(?:\.\d+)?)\s?(?:%|[€kKM]|°C)?\s*\Z")


class _Step(NamedTuple):
    """From one number to the next: how much more it is, and how much higher it stands."""

    value: float
    height: float


def with_scales(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a page, with each scale that stands upright in one line.

    That is a column of at least three numbers that rise in equal steps from below, at equal
    distances on the page, and with no words beside most of them. So the numbers of lines and lists,
    which rise downwards, are left alone, and so is a column of a table.

    >>> from rag_splitters.reading.fonts import Font
    >>> lines = [Line(str(20 * n), Font(8, False, 50 + 30 * n)) for n in range(4)]
    >>> [line.text for line in with_scales([Line("Visitors"), *lines, Line("North South")])]
    ['Visitors', '0 20 40 60', 'North South']
    """
    steps = [_step(line, after) for line, after in pairwise(lines)]
    labels = {round(line.font.baseline) for line in lines if line.font and _value(line) is None}
    result: list[Line] = []
    first = 0
    while first < len(lines):
        last = first + 1
        while last <= len(steps) and _are_equal(steps[first], steps[last - 1]):
            last += 1
        if last - first >= _FEWEST and not _have_labels(lines[first:last], labels):
            result.append(join_lines(lines[first:last]))
        else:  # the last one may begin a scale
            last = max(first + 1, last - 1)
            result += lines[first:last]
        first = last
    return result


def _step(line: Line, after: Line) -> _Step | None:
    """Return the step between two lines; None if it is none of a scale."""
    one, other = _value(line), _value(after)
    if one is None or other is None or not line.font or not after.font:
        return None
    step = _Step(other - one, after.font.baseline - line.font.baseline)
    return step if step.value * step.height > 0 and abs(step.height) > line.font.size else None


def _are_equal(step: _Step | None, other: _Step | None) -> bool:
    if step is None or other is None or abs(step.height - other.height) > _NEAR:
        return False
    return abs(step.value - other.value) <= abs(step.value) / 100


def _value(line: Line) -> float | None:
    """Return the number that a line is; None if it is something else."""
    match = _NUMBER.match(line.text) if line.font else None
    if match is None:
        return None
    value = float(match[2].replace(",", ""))
    return -value if match[1] in ("-", "−") else value


def _have_labels(numbers: Sequence[Line], labels: Set[int]) -> bool:
    """Whether at least half of the numbers have a text at their height."""
    heights = [round(line.font.baseline) for line in numbers if line.font]
    return 2 * sum(not labels.isdisjoint((h - 1, h, h + 1)) for h in heights) >= len(numbers)
