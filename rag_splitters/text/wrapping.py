"""Distinguishes real line ends from line breaks that only wrap a paragraph to a width."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from functools import partial
from itertools import accumulate, groupby, pairwise, zip_longest

from rag_splitters.text.boundaries import Finder, count_characters, skip_characters
from rag_splitters.text.lines import AFTER_CLAUSE, DASHES, DECIMAL, LETTERED, MARK

_WINDOW = 1000  # characters of a paragraph whose lines are compared with each other
_AROUND = 400  # characters before and after them
_WIDTHS = range(45, 141)  # characters in the longest line of a wrapped paragraph
_LINE_END = re.compile(  # in a wrapped paragraph; most lines begin with a word, and fail at once
    r"\n(?=[ \t]*(?:[^A-Za-z \t]|[A-Za-z]{1,5}[.)]))"
    rf"(?:(?=[ \t]*\r?\n|[ \t]{{0,8}}(?:{MARK}|{DECIMAL}|[{DASHES}|>#][ \t]))"
    rf"|{AFTER_CLAUSE}(?=[ \t]{{0,8}}{LETTERED}))"
)
_JOINED = re.compile("[\r\n\U0001f1e6-\U0001f1ff]")  # may belong to what follows
_SLACK = 30  # characters that a wrapped line may lack: a joined word, narrow letters in a PDF
_INNER_END = re.compile(
    r"[.!?](?:(?<=[^\W\d_]{2}.)|(?<=\\&.))[\"'”»)]?[ \t]+[\"'“«(]?[^\W\d_a-z]"
)  # of a sentence
_AHEAD = 16  # characters: the longest bullet or number, with its indentation
_LONGEST_GAP = 40  # characters of a mark and the white space after it before an offset
_CLAUSE = re.compile(r"[;,，；、](?=\s)\s*|[，；、]|\s(?=\([a-z\d]{1,3}\)\s)")
_MARKED_CLAUSE = re.compile(r"[;,，；、](?:(?<=[，；、])|(?=\s))\s*")  # the same without (a)
_LINE = re.compile(r"\n\s*")
_CODE = re.compile(r"[;:{}()\[\]]\Z|\w\(|[=}] ")  # in a line that is not wrapped


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
    return _Window(text).last_line_end


def window_start(text: str, position: int) -> int:
    """Return the last offset up to `position` from which a window of a text may begin, or 0.

    A text that begins there has the same line ends, from the second `_WINDOW` characters on, and
    the same grapheme clusters.

    >>> window_start("It ends.\\n\\nOne. " + "word " * 500, 2200)
    2010
    """
    position = max(len(text[: max(position, 0)].rstrip("\r\n")) - 1, 0)
    blanks = ((text.rfind(each, 0, position), len(each)) for each in ("\n\n", "\n\r\n"))
    paragraph = max((at + length for at, length in blanks if at >= 0), default=0)
    starts = _window_starts(text, [paragraph], position)[:-1]
    while len(starts) > 1 and _JOINED.match(text, starts[-1] - 1):
        del starts[-1]
    return starts[-1]


def _window_starts(text: str, starts: list[int], position: int) -> list[int]:
    """Add the starts of windows after the last of these, up to the first one after `position`."""
    while starts[-1] <= position:
        starts.append(skip_characters(text, starts[-1], _WINDOW))
    return starts


class _Window:
    """Lines of a paragraph that are compared with each other, to find those that are not wrapped.

    It is a whole paragraph or, in a long one, a part that begins at a multiple of `_WINDOW`
    characters, where CRLF counts as one, so that an answer does not depend on what was asked
    before. Lines around such a part are compared, too.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.blank_lines = ("\n\n", "\n\r\n") if "\r" in text else ("\n\n",)
        self.paragraph = self.start = self.end = 0
        self.starts = [0]  # of the windows of the paragraph
        self.line_ends: list[int] = []

    def last_line_end(self, low: int, high: int) -> int:
        """Return the last line end above `low` and up to `high` that is not wrapped, or -1."""
        find = self.text.rfind
        cut = find("\n", low, high) + 1
        while cut > low:
            if not self.start < cut <= self.end:
                self.move_to(cut)
            begin = low if low > self.start else self.start
            index = bisect_right(self.line_ends, cut) - 1
            if index >= 0 and self.line_ends[index] > begin:
                return self.line_ends[index]
            cut = find("\n", low, begin) + 1
        return -1

    def move_to(self, cut: int) -> None:
        """Move to the window with the line that ends at `cut`."""
        text, line = self.text, self.text.rfind("\n", 0, cut - 1) + 1
        if text[line:cut].isspace():
            self.paragraph, self.start, self.end, self.line_ends = cut, line, cut, [cut]
            return
        is_near = self.paragraph <= line  # nothing before the last window's end has to be read
        low = max(min(self.end, line) - 3, 0) if is_near else 0
        blanks = [(text.rfind(blank, low, line), len(blank)) for blank in self.blank_lines]
        start, length = max(blanks)
        if start >= 0:
            self.paragraph = start + length
        elif not is_near:
            self.paragraph = 0
        if self.starts[0] != self.paragraph:
            self.starts = [self.paragraph]
        index = bisect_right(_window_starts(text, self.starts, line), line) - 1
        low, stop = self.starts[index : index + 2]
        last = _next_line(text, skip_characters(text, stop, _AROUND))
        ends = [text.find(blank, cut - 1, last + 1) + 1 for blank in self.blank_lines]
        last = min(filter(None, ends), default=last)
        self.end = min(_next_line(text, stop), last)
        self.start, first = low, self.paragraph
        if low > self.paragraph:
            self.start = _next_line(text, low)
            before = skip_characters(text, self.starts[index - 1], _WINDOW - _AROUND)
            first = max(first, _next_line(text, before))
        line_ends = _line_ends(text, first, last)
        self.line_ends = [end for end in line_ends if self.start < end <= self.end]


def _next_line(text: str, position: int) -> int:
    """Return the first beginning of a line at or after a position, or the end of the text."""
    return text.find("\n", position - 1) + 1 or len(text)


def _line_ends(text: str, start: int, end: int) -> list[int]:
    """Return the ends of the lines from `start` to `end` that are not wrapped, sorted."""
    paragraph = text[start:end]
    rows = paragraph.split("\n")
    if not rows[-1]:  # the line after the last one, unless the paragraph has ended
        rows[-1] = text[end : end + _WIDTHS[-1]].partition("\n")[0]
    contents = [row.strip() for row in rows]
    if not contents[-1]:
        del contents[-1]
    may_be_columns = "\t" in paragraph or "   " in paragraph
    wrapped = [] if may_be_columns and _has_columns(contents) else _wrapped_breaks(contents)
    items: Collection[int] = ()
    if any(wrapped):
        items = {match.end() for match in _LINE_END.finditer(text, start, end + _AHEAD)}
        if all(wrapped) and not items:
            return [end] if len(contents) < len(rows) else []
    cuts = [*accumulate((len(row) + 1 for row in rows[:-1]), initial=start)][1:]
    return [
        cut
        for cut, is_wrapped in zip_longest(cuts, wrapped, fillvalue=False)
        if not is_wrapped or cut in items
    ]


def _has_columns(rows: Sequence[str]) -> bool:
    """Whether most lines have columns, with tabs or wide gaps between them."""
    return 2 * sum("\t" in row or "   " in row for row in rows) > len(rows)


def _wrapped_breaks(rows: Sequence[str]) -> list[bool]:
    """Return for each line but the last whether its line break only wraps a paragraph.

    Returns nothing if none does.
    """
    lengths = list(map(len, rows))
    longest = max(lengths)
    is_even = longest in _WIDTHS
    width = longest if is_even else max((each for each in lengths if each in _WIDTHS), default=0)
    if len(rows) < 2 or not width:
        return []
    missing = [  # what a line lacks to be full, even with the next word
        width - length - len(following.partition(" ")[0]) if length <= width else width
        for length, following in zip(lengths, rows[1:], strict=False)
    ]
    full = [each <= 0 for each in missing]
    if is_even and 3 * sum(full) >= 2 * len(full) and _goes_on(rows, 4):
        return [True] * len(full)
    if is_prose := any(map(_INNER_END.search, rows)):
        full = [each <= _SLACK for each in missing]
    elif not is_even:
        return []
    result: list[bool] = []
    for is_full, group in groupby(full):
        last = len(result) + len(list(group))
        run = rows[len(result) : last + 1]
        wraps = is_full and len(run) > 2 and _goes_on(run)
        if wraps or not (is_full and is_prose):
            result += [wraps] * (len(run) - 1)
        else:
            result += [_continues(above, below) for above, below in pairwise(run)]
    return result


def _continues(above: str, below: str) -> bool:
    """Whether a full line of a sentence continues in the next line."""
    starts_inside = below[:1].islower() or (below[:1].isdigit() and above[-1:].islower())
    return starts_inside and above.count(" ") > 2


def _goes_on(rows: Sequence[str], share: int = 3) -> bool:
    """Whether most lines have several words, and at least one in `share` begins in lower case."""
    firsts = [row[:1] for row in rows[1:]]
    lower = [first for first in firsts if first.isalpha() and not first.isupper()]
    if len(lower) * share < len(firsts):
        return False
    short = [row for row in rows[:-1] if row.count(" ") < 3]
    return len(short) * 3 <= len(firsts)


def clauses(text: str) -> Finder:
    """Return the finder of ends of clauses, in the last third of the searched range.

    >>> clauses("It may be cut here, or there")(0, 25)
    20
    """
    return partial(_last_clause, text)


def _last_clause(text: str, low: int, high: int) -> int:
    cut, length = -1, count_characters(text, low, high)
    for match in _CLAUSE.finditer(text, skip_characters(text, low, 2 * length // 3), high):
        cut = match.end()
    return cut if cut > low else -1


def next_line(text: str, low: int, high: int) -> int:
    """Return the first offset from `low` to before `high` where the text of a line begins, or -1.

    Lines that begin with a letter do not count after lines as long as those of a wrapped paragraph,
    unless these are code.

    >>> next_line("x = 1\\n    y = 2", 2, 15)
    10
    """
    begin = _before(text, low)
    if text.find("\n", begin, high) < 0:
        return -1
    for match in _LINE.finditer(text, begin, high):
        end, place = match.span()
        if not low <= place < high:
            continue
        end -= text[end - 1 : end] == "\r"
        tail = text[end - _WIDTHS[0] : end] if end > _WIDTHS[0] else "\n"
        if "\n" in tail or not text[place].isalpha() or _CODE.search(tail):
            return place
    return -1


def next_clause(text: str, low: int, high: int) -> int:
    """Return the first offset from `low` to before `high` where a clause begins, or -1.

    >>> next_clause("It may be cut here, or there", 6, 28)
    20
    """
    begin = _before(text, low)
    pattern = _CLAUSE if "(" in text[begin:high] else _MARKED_CLAUSE
    for match in pattern.finditer(text, begin, high):
        if low <= match.end() < high:
            return match.end()
    return -1


def _before(text: str, low: int) -> int:
    """Return where the mark and the white space before an offset can begin."""
    return max(0, low - _LONGEST_GAP) if text[low - 1 : low].isspace() else max(0, low - 1)
