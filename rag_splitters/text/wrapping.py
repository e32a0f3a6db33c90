"""Distinguishes real line ends from line breaks that only wrap a paragraph to a width."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, groupby, pairwise

from rag_splitters.text.boundaries import Finder, lines
from rag_splitters.text.lines import AFTER_CLAUSE, DASHES, DECIMAL, LETTERED, MARK

_REACH = 500  # characters around a line break that decide whether its paragraph is wrapped
_WIDTHS = range(45, 121)  # characters in the longest line of a wrapped paragraph
_LINE_END = re.compile(  # in a wrapped paragraph
    rf"\n(?:(?=[ \t]*\r?\n|[ \t]{{0,8}}(?:{MARK}|{DECIMAL}|[{DASHES}|>#][ \t]))"
    rf"|{AFTER_CLAUSE}(?=[ \t]{{0,8}}{LETTERED}))"
)
_SLACK = 30  # characters that a wrapped line may lack: a joined word, narrow letters in a PDF
_INNER_END = re.compile(
    r"[.!?](?<=[^\W\d_]{2}.)[\"'”»)]?[ \t]+[\"'“«(]?[^\W\d_a-z]"
)  # of a sentence
_AHEAD = 16  # characters: the longest bullet or number, with its indentation
_LONGEST_GAP = 40  # characters of a mark and the white space after it before an offset
_CLAUSE = re.compile(r"[;,，；、](?=\s)\s*|[，；、]|\s(?=\([a-z\d]{1,3}\)\s)")
_LINE_OR_CLAUSE = re.compile(rf"\n\s*|{_CLAUSE.pattern}")
_MARKED_CLAUSE = re.compile(r"[;,，；、\n](?:(?<=[，；、\n])|(?=\s))\s*")  # the same without (a)


def unwrapped_lines(text: str) -> Finder:
    """Return the finder of line ends, except those inside a paragraph wrapped to a width.

    In a wrapped paragraph, lines have several words, hardly any has room for the first word of the
    next line, and many continue in lower case. A line of sentences may also lack a word or two, as
    in the text of a PDF in which divided words were joined. So verse, addresses, lists and lines of
    data keep their lines. Wrapped lines between others, as in the text of a PDF, are recognised in
    the same way.

    >>> text = "To be, or not to be:\\nthat is\\n"
    >>> unwrapped_lines(text)(0, 25)
    21
    """
    last_line, blank_lines = lines(text), ("\n\n", "\n\r\n") if "\r" in text else ("\n\n",)
    paragraph, ends = (0, 0), list[int]()

    def last(low: int, high: int) -> int:
        nonlocal paragraph, ends
        cut = last_line(low, high)
        while cut > low:
            if not paragraph[0] < cut < paragraph[1]:
                paragraph = _paragraph(text, cut, blank_lines)
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


def _paragraph(text: str, cut: int, blank_lines: Sequence[str]) -> tuple[int, int]:
    """Return the whole lines around an offset, between blank lines, within reach."""
    low, high = max(0, cut - _REACH), min(len(text), cut + _REACH)
    start = max(text.rfind(blank, low, cut) for blank in blank_lines) + 1
    if not start:
        start = (text.find("\n", low, cut) + 1 or low) if low else 0
    ends = [end for blank in blank_lines if (end := text.find(blank, cut - 1, high)) >= 0]
    if not ends:
        ends = [text.rfind("\n", cut - 1, high) if high < len(text) else high]
    return start, max(min(ends), cut)


def _line_ends(text: str, start: int, end: int) -> list[int]:
    """Return the ends of the lines in a paragraph that are not wrapped, sorted."""
    while start < end and text[start] in "\r\n":
        start += 1
    rows = text[start:end].split("\n")
    cuts = list(accumulate((len(row) + 1 for row in rows), initial=start))[1:]
    if cuts[-1] > end:  # the last line goes on, or ends where the paragraph does
        cuts.pop()
    wrapped = _wrapped_breaks([row.strip() for row in rows])
    if not any(wrapped):
        return cuts
    items = {match.end() for match in _LINE_END.finditer(text, start, end + _AHEAD)}
    wrapped.append(False)
    return [
        cut
        for cut, is_wrapped in zip(cuts, wrapped, strict=False)
        if not is_wrapped or cut in items
    ]


def _wrapped_breaks(rows: Sequence[str]) -> list[bool]:
    """Return for each line but the last whether its line break only wraps a paragraph."""
    lengths = list(map(len, rows))
    longest = max(lengths)
    is_even = longest in _WIDTHS
    width = longest if is_even else max((each for each in lengths if each in _WIDTHS), default=0)
    if len(rows) < 2 or not width:
        return [False] * (len(rows) - 1)
    missing = [  # what a line lacks to be full, even with the next word
        width - length - len(following.partition(" ")[0])
        for length, following in zip(lengths, rows[1:], strict=False)
    ]
    full = [each <= 0 for each in missing]
    if is_even and 3 * sum(full) >= 2 * len(full) and _goes_on(rows):
        return [True] * len(full)
    if is_prose := any(map(_INNER_END.search, rows)):
        full = [each <= _SLACK for each in missing]
    elif not is_even:
        return [False] * len(full)
    result: list[bool] = []
    for is_full, group in groupby(full):
        run = rows[len(result) : len(result) + len(list(group)) + 1]
        wraps = is_full and len(run) > 2 and _goes_on(run)
        if wraps or not (is_full and is_prose):
            result += [wraps] * (len(run) - 1)
        else:
            result += [b[:1].islower() and a.count(" ") > 2 for a, b in pairwise(run)]
    return result


def _goes_on(rows: Sequence[str]) -> bool:
    """Whether enough lines have several words and continue in lower case."""
    firsts = [row[:1] for row in rows[1:]]
    lower = sum(first.isalpha() and not first.isupper() for first in firsts)
    short = sum(row.count(" ") < 3 for row in rows[:-1])
    return lower * 3 >= len(firsts) >= short * 3


def clauses(text: str) -> Finder:
    """Return the finder of ends of clauses, in the last third of the searched range.

    >>> clauses("It may be cut here, or there")(0, 25)
    20
    """
    return partial(_last_clause, text)


def _last_clause(text: str, low: int, high: int) -> int:
    cut = -1
    for match in _CLAUSE.finditer(text, low + 2 * (high - low) // 3, high):
        cut = match.end()
    return cut if cut > low else -1


def next_clause(text: str, low: int, high: int) -> int:
    """Return the first offset from `low` to before `high` where a clause or a line begins, or -1.

    Lines that begin with a letter do not count after lines as long as those of a wrapped paragraph.

    >>> next_clause("It may be cut here, or there", 6, 28)
    20
    """
    begin = low - _LONGEST_GAP if low > _LONGEST_GAP else 0
    pattern = _LINE_OR_CLAUSE if "(" in text[begin:high] else _MARKED_CLAUSE
    for match in pattern.finditer(text, begin, high):
        place = match.end()
        if not low <= place < high:
            continue
        begin = match.start()
        is_long = begin > _WIDTHS[0] and "\n" not in text[begin - _WIDTHS[0] : begin]
        if text[begin] != "\n" or not is_long or not text[place].isalpha():
            return place
    return -1
