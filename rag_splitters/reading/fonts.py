"""Finds headings by their fonts: lines that are larger than the body of a text, or bold."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

LARGER = 1.15  # times the size of the body
_SAME = 0.03  # share by which the sizes of one font may differ
_LEADING = 1.8  # times the size of a font: the maximum distance of two lines of a heading
_APART = 1.15  # times the usual distance of lines: the minimum space above a bold heading
_MOST_LINES = 4
_LONGEST = 250  # characters
_LONGEST_LABEL = 100
_MOST_HEADINGS = 0.5  # of all lines: if there are more, they are not headings
_LEVELS = 6
_FIRST_TEXTS = 3  # of a slide: its title is one of them
_CONTENTS = re.compile(r"(?:[.…_·]\s?){4,}\s*(?:\d+|[ivxl]+)?\s*\Z")
_NUMBER = re.compile(r"((?:[A-Z]\.)?\d{1,3}(?:\.\d{1,3})*)\.?[ \t]+(?=\S)")
_STOPS = (".", ":", "!", "?", "。")


class Font(NamedTuple):
    """The font of a line, and its place on the page.

    Parameters:
        size: the height of its letters, in points.
        is_bold: whether it is bold from the first to the last letter.
        baseline: the height of its baseline on the page, in points.
    """

    size: float
    is_bold: bool
    baseline: float


class Part(NamedTuple):
    """A part of a line that stands somewhere on the page.

    Parameters:
        offset: its offset in the line.
        text: its text.
        place: where it stands in PDFium's text of the page. That of a form field is below 0: -1 for
            the first annotation of the page, -2 for the next.
    """

    offset: int
    text: str
    place: int


class Line(NamedTuple):
    """A line of a page.

    Parameters:
        text: the text.
        font: its font, if known.
        parts: the parts of the text whose places are known: all that is visible, or the cells of a
            row that was written in Markdown.
    """

    text: str
    font: Font | None = None
    parts: tuple[Part, ...] = ()


def join_lines(lines: Sequence[Line], space: str = " ") -> Line:
    """Return lines as one, with a space or nothing between them, in the font of the first.

    >>> join_lines([Line("Tea", None, (Part(0, "Tea", 9),)), Line("7", None, (Part(0, "7", 14),))])
    Line(text='Tea 7', font=None, parts=(Part(offset=0, ...), Part(offset=4, text='7', place=14)))
    """
    text, parts = "", list[Part]()
    for line in lines:
        text = f"{text.rstrip()}{space}" if text and space else text
        parts += [part._replace(offset=part.offset + len(text)) for part in line.parts]
        text += line.text
    font, is_bold = lines[0].font, all(line.font and line.font.is_bold for line in lines)
    return Line(text, font._replace(is_bold=is_bold) if font else None, tuple(parts))


class FontHeading(NamedTuple):
    """A heading: its level, and its lines from `first` to before `last`."""

    page: int
    first: int
    last: int
    level: int


class _Run(NamedTuple):
    """Consecutive lines of one font that may be a heading."""

    page: int
    first: int
    last: int
    text: str
    font: Font
    above: float  # the distance to the line above; infinite without one


def slide_titles(pages: Sequence[Sequence[Line]]) -> list[FontHeading]:
    """Find the titles of slides: on each page the largest of its first texts.

    >>> text = Line("Cool the water first.", Font(18, False, 80))
    >>> slide_titles([[Line("Tea", Font(24, False, 120)), text], [text, text]])
    [FontHeading(page=0, first=0, last=1, level=1)]
    """
    titles: list[FontHeading] = []
    for page, lines in enumerate(pages):
        runs = list(_runs(page, lines))
        first = max(runs[:_FIRST_TEXTS], key=lambda run: run.font.size, default=None)
        if first is None or not _may_be_heading(first):
            continue
        others = (run.font for run in runs if run is not first)
        if all(font.size < first.font.size * (1 - _SAME) for font in others):
            titles.append(FontHeading(page, first.first, first.last, 1))
    return titles


def find_headings(pages: Sequence[Sequence[Line]]) -> list[FontHeading]:
    """Find the headings of a text by their fonts, in order.

    A heading is at most four lines in a clearly larger font than most of the text, or a short bold
    line with space above it. The largest font is the first level; in one font, "2.1" is below "2".

    >>> body = Line("The water should not be too hot for tea.", Font(10, False, 100))
    >>> find_headings([[Line("Tea", Font(16, False, 120)), body, body]])
    [FontHeading(page=0, first=0, last=1, level=1)]
    """
    body = _body_of(pages)
    runs = [
        run
        for page, lines in enumerate(pages)
        for run in _runs(page, lines)
        if _may_be_heading(run) and (_is_large(run, body) or _is_bold_label(run, body))
    ]
    if sum(run.last - run.first for run in runs) > _MOST_HEADINGS * sum(map(len, pages)):
        return []
    levels = {rank: level for level, rank in enumerate(sorted(set(map(_rank, runs))), 1)}
    return [
        FontHeading(run.page, run.first, run.last, min(levels[_rank(run)], _LEVELS)) for run in runs
    ]


class _Body(NamedTuple):
    """The font of most of a text: the size of its letters, and the distance of its lines."""

    size: float
    is_bold: bool
    spacing: float


def _body_of(pages: Sequence[Sequence[Line]]) -> _Body:
    sizes, weights, spacings = Counter[float](), Counter[bool](), Counter[float]()
    for lines in pages:
        for line, after in pairwise([*lines, Line("")]):
            if line.font:
                sizes[_half_points(line.font.size)] += len(line.text)
                weights[line.font.is_bold] += len(line.text)
            if line.font and after.font and _is_same(line.font, after.font):
                spacings[_half_points(line.font.baseline - after.font.baseline)] += 1
    size = max(sizes, key=lambda each: sizes[each], default=0.0)
    spacing = max(spacings, key=lambda each: spacings[each], default=1.2 * size)
    return _Body(size, weights[True] > weights[False], spacing)


def _runs(page: int, lines: Sequence[Line]) -> Iterator[_Run]:
    """Group the lines of a page that have one font and may be one heading."""
    first, above = 0, math.inf
    for number, (line, after) in enumerate(pairwise([*lines, Line("")]), 1):
        if line.font and after.font and _goes_on(line, line.font, after, after.font):
            continue
        if font := lines[first].font:
            text = " ".join(each.text.strip() for each in lines[first:number])
            yield _Run(page, first, number, text, font, above - font.baseline)
        first = number
        above = line.font.baseline if line.font else math.inf


def _goes_on(line: Line, font: Font, after: Line, other: Font) -> bool:
    """Whether a heading may continue in the line after it."""
    gap = font.baseline - other.baseline
    is_close = 0 < gap <= _LEADING * font.size
    return is_close and _is_same(font, other) and not _NUMBER.match(after.text.strip())


def _may_be_heading(run: _Run) -> bool:
    is_short = run.last - run.first <= _MOST_LINES and len(run.text) <= _LONGEST
    return is_short and any(map(str.isalpha, run.text)) and not _CONTENTS.search(run.text)


def _is_large(run: _Run, body: _Body) -> bool:
    is_sentence = len(run.text) > _LONGEST_LABEL and run.text.endswith(_STOPS)
    return run.font.size >= LARGER * body.size and not is_sentence


def _is_bold_label(run: _Run, body: _Body) -> bool:
    """Whether it is a short bold text without a full stop and with more space above it."""
    is_marked = run.font.is_bold and not body.is_bold and run.font.size >= body.size * (1 - _SAME)
    is_label = len(run.text) <= _LONGEST_LABEL and not run.text.endswith((*_STOPS, ",", ";"))
    is_apart = not 0 < run.above < _APART * body.spacing
    return is_marked and is_label and is_apart and not run.text[0].islower()


def _rank(run: _Run) -> tuple[float, bool, int]:
    """Return the sort key of the level: the size, the weight, and the depth of the number."""
    number = _NUMBER.match(run.text)
    depth = number[1].count(".") if number else 0
    return -_half_points(run.font.size), not run.font.is_bold, depth


def _is_same(font: Font, other: Font) -> bool:
    is_same_size = abs(font.size - other.size) <= _SAME * font.size
    return is_same_size and font.is_bold == other.is_bold


def _half_points(size: float) -> float:
    return round(2 * size) / 2
