"""Tables of contents and indexes in plain text, such as that of a PDF or an RFC."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from rag_splitters.text.lines import LINE, is_contents_line

_FEWEST = 3  # lines of a table of contents
_FEWEST_SORTED = 8  # lines of an index without a title
_LONGEST = 100  # characters of a line whose title goes on in the next one
_PAGE = re.compile(r"(\d{1,4})\)?\s*\Z")
_TITLE = re.compile(  # with the first line of an entry, which goes on in the next line
    r"(?:\A|\n)[ \t]*((?:table of )?contents|index)[ \t.:]*\r?\n\s*(?:\S.*\n\s*)?\Z", re.IGNORECASE
)
_REACH = 200  # characters before the first line with a leader in which the title may stand


def find_contents(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of the tables of contents and indexes of a plain text.

    Each is at least three lines with dot leaders and page numbers, together with its title, and
    with a line between two of them. Page numbers go up, except in an index that has a title or is
    in alphabetical order, because sums of money have dot leaders, too.

    >>> text = "CONTENTS\\n1 Tea ...... 1\\n2 Milk ..... 4\\n3 Cups ..... 9\\n\\n1 Tea\\n"
    >>> find_contents(text), find_contents("Tea ...... 4\\nMilk ..... 2\\nCups ..... 6\\n")
    ([(0, 53)], [])
    """
    if "..." not in text and ". . ." not in text:
        return []
    return [table for lines in _runs(text) if (table := _table(text, lines))]


def _runs(text: str) -> Iterator[list[tuple[int, int]]]:
    """Yield runs of lines with dot leaders, with at most one other line between two of them."""
    lines: list[tuple[int, int]] = []
    others = 0
    for line in LINE.finditer(text):
        if is_contents_line(line[0]):
            lines.append(line.span())
            others = 0
        elif lines and not line[0].isspace():
            others += 1
            if others > 1 or len(line[0]) > _LONGEST:
                yield lines
                lines, others = [], 0
    yield lines


def _table(text: str, lines: list[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the start and end of a table of contents with these lines, if it is one."""
    if len(lines) < _FEWEST:
        return None
    start, end = lines[0][0], lines[-1][1]
    title = _TITLE.search(text[max(0, start - _REACH) : start])
    numbers = (_PAGE.search(text[max(low, high - 20) : high]) for low, high in lines)
    pages = [int(number[1]) for number in numbers if number]
    rises = sum(page <= following for page, following in pairwise(pages))
    if not title and 5 * rises < 4 * (len(pages) - 1) and not _is_sorted(text, lines):
        return None
    return (max(0, start - _REACH) + title.start(1) if title else start), end


def _is_sorted(text: str, lines: list[tuple[int, int]]) -> bool:
    """Whether these are many lines in alphabetical order."""
    entries = [text[low:high].strip().casefold() for low, high in lines]
    rises = sum(entry <= following for entry, following in pairwise(entries))
    return len(lines) >= _FEWEST_SORTED and 10 * rises >= 9 * (len(lines) - 1)
