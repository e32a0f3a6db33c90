"""Line breaks that end a line, and those that only wrap a paragraph to a width."""

from __future__ import annotations

import re
from itertools import pairwise

from rag_splitters.text.boundaries import Finder, lines

_REACH = 500  # characters before and after a line break that tell whether its paragraph is wrapped
_WIDTHS = range(45, 121)  # characters in the longest line of a wrapped paragraph
_BLANK_LINES = ("\n\n", "\n\r\n")
_ITEM = r"[ \t]{0,8}(?:[-*+•◦▪–—|>#]|\d{1,3}[.)]|\(?[a-z\d]{1,3}\))[ \t]"
_LINE_END = re.compile(rf"\n(?=[ \t]*\r?\n|{_ITEM})")  # in a wrapped paragraph
_AHEAD = 16  # characters: the longest bullet or number, with its indentation
_CLAUSE = re.compile(r"[;,，；、](?=\s)\s*|[，；、]|\s(?=\([a-z\d]{1,3}\)\s)")


def unwrapped_lines(text: str) -> Finder:
    """The finder of line ends, except those inside a paragraph that was wrapped to a width.

    A wrapped paragraph has several words in each line, hardly a line that the first word of the
    next one would have fitted in, and next lines that go on in lower case. So verse, addresses,
    lists, and lines of data are lines.

    >>> text = "To be, or not to be:\\nthat is\\n"
    >>> unwrapped_lines(text)(0, 25)
    21
    """
    last_line = lines(text)
    paragraph, is_wrapped = (0, 0), False

    def last(low: int, high: int) -> int:
        nonlocal paragraph, is_wrapped
        cut = last_line(low, high)
        while cut > low:
            if not paragraph[0] < cut < paragraph[1]:
                paragraph = _paragraph(text, cut)
                is_wrapped = _is_wrapped(text[slice(*paragraph)])
            begin = max(low, paragraph[0])
            if not is_wrapped or cut <= begin:  # before the paragraph's first line
                return cut
            for match in reversed(list(_LINE_END.finditer(text, begin, cut + _AHEAD))):
                if begin < match.end() <= cut:
                    return match.end()
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


def _is_wrapped(paragraph: str) -> bool:
    rows = [line.strip() for line in paragraph.splitlines() if line.strip()]
    width = max(map(len, rows), default=0)
    if len(rows) < 2 or width not in _WIDTHS:
        return False
    breaks, full, lower, short = len(rows) - 1, 0, 0, 0
    for line, following in pairwise(rows):
        full += len(line) + 1 + len(following.split(None, 1)[0]) > width
        lower += following[0].isalpha() and not following[0].isupper()
        short += line.count(" ") < 3
    return full * 3 >= breaks * 2 and lower * 3 >= breaks and short * 3 <= breaks


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
