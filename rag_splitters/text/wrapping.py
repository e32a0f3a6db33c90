"""Line breaks that end a line, and those that only wrap a paragraph to a width."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import itemgetter

from rag_splitters.text.boundaries import Finder, lines

_REACH = 500  # characters before and after a line break that tell whether its paragraph is wrapped
_WIDTHS = range(45, 121)  # characters in the longest line of a wrapped paragraph
_LINE = re.compile(r"\n")
_BLANK_LINES = ("\n\n", "\n\r\n")
_ITEM = r"[ \t]{0,8}(?:[-*+•◦▪–—|>#]|\d{1,3}[.)]|\(?[a-z\d]{1,3}\))[ \t]"
_LINE_END = re.compile(rf"\n(?=[ \t]*\r?\n|{_ITEM})")  # in a wrapped paragraph
_AHEAD = 16  # characters: the longest bullet or number, with its indentation
_CLAUSE = re.compile(r"[;,，；、](?=\s)\s*|[，；、]|\s(?=\([a-z\d]{1,3}\)\s)")


def unwrapped_lines(text: str) -> Finder:
    """The finder of line ends, except those inside a paragraph that was wrapped to a width.

    A wrapped paragraph has several words in each line, hardly a line that the first word of the
    next one would have fitted in, and next lines that go on in lower case. So verse, addresses,
    lists, and lines of data are lines. Wrapped lines between others, as in the text of a PDF, are
    found by the same signs.

    >>> text = "To be, or not to be:\\nthat is\\n"
    >>> unwrapped_lines(text)(0, 25)
    21
    """
    last_line = lines(text)
    paragraph, ends = (0, 0), list[int]()

    def last(low: int, high: int) -> int:
        nonlocal paragraph, ends
        cut = last_line(low, high)
        while cut > low:
            if not paragraph[0] < cut < paragraph[1]:
                paragraph = _paragraph(text, cut)
                ends = _line_ends(text, *paragraph)
            begin = max(low, paragraph[0])
            if cut <= begin:  # before the paragraph's first line
                return cut
            index = bisect_right(ends, cut) - 1
            if index >= 0 and ends[index] > begin:
                return ends[index]
            cut = last_line(low, begin)
        return -1

    return last


def _paragraph(text: str, cut: int) -> tuple[int, int]:
    """The whole lines around an offset between two blank lines, within reach."""
    low, high = max(0, cut - _REACH), min(len(text), cut + _REACH)
    start = max(text.rfind(blank, low, cut) for blank in _BLANK_LINES) + 1
    ends = [end for blank in _BLANK_LINES if (end := text.find(blank, cut - 1, high)) >= 0]
    first = (text.find("\n", low, cut) + 1 or low) if low else 0
    last = text.rfind("\n", cut - 1, high) if high < len(text) else high
    return start or first, max(min(ends, default=last), cut)


def _line_ends(text: str, start: int, end: int) -> list[int]:
    """The ends of the lines in a paragraph that are no part of wrapped text, ascending."""
    while start < end and text[start] in "\r\n":
        start += 1
    cuts = [match.end() for match in _LINE.finditer(text, start, end)]
    edges = [start, *cuts, end] if not cuts or cuts[-1] < end else [start, *cuts]
    rows = [text[first:behind].strip() for first, behind in pairwise(edges)]
    wrapped = _wrapped_breaks(rows)
    items = {match.end() for match in _LINE_END.finditer(text, start, end + _AHEAD)}
    return [
        cut
        for cut, is_wrapped in zip(cuts, [*wrapped, False], strict=False)
        if not is_wrapped or cut in items
    ]


def _wrapped_breaks(rows: Sequence[str]) -> list[bool]:
    """For each line but the last: is it followed by a line break that only wraps a paragraph?"""
    width = max(map(len, rows), default=0)
    if len(rows) < 2 or width not in _WIDTHS:
        return [False] * (len(rows) - 1)
    pairs = list(pairwise(rows))
    full = [
        len(line) + len((following.split(None, 1) or [""])[0]) >= width for line, following in pairs
    ]
    if 3 * sum(full) >= 2 * len(full) and _goes_on(pairs):
        return [True] * len(full)
    result: list[bool] = []
    for is_full, group in groupby(zip(full, pairs, strict=True), key=itemgetter(0)):
        run = [pair for _, pair in group]
        result += [is_full and len(run) > 1 and _goes_on(run)] * len(run)
    return result


def _goes_on(pairs: Sequence[tuple[str, str]]) -> bool:
    """Do enough of the lines go on in lower case in the next one, and have several words?"""
    lower = sum(following[:1].isalpha() and not following[0].isupper() for _, following in pairs)
    short = sum(line.count(" ") < 3 for line, _ in pairs)
    return lower * 3 >= len(pairs) >= short * 3


def clauses(text: str) -> Finder:
    """The finder of ends of clauses in the last third of what is searched.

    >>> clauses("It may be cut here, or there")(0, 25)
    20
    """

    def last(low: int, high: int) -> int:
        cut = -1
        for match in _CLAUSE.finditer(text, low + 2 * (high - low) // 3, high):
            cut = match.end()
        return cut if cut > low else -1

    return last
