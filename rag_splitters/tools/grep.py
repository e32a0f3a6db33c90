"""Finding lines by words or by a regular expression that cannot run for ever."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator

import regex

from rag_splitters.errors import InputError
from rag_splitters.parent_child.records import Entry
from rag_splitters.text.boundaries import whole_words
from rag_splitters.text.origin import line_breaks
from rag_splitters.tools.answers import first_line

_MAX_PATTERN = 500  # characters
_SECONDS = 2.0  # of matching, in all documents together
_BEFORE, _LONGEST_LINE = 100, 300  # characters of a line that are shown
_MAX_SHOWN = 5  # lines of one match

_BOUNDARY = r"(?:\\b|[ ,:;/@\"'=-])"
# A word that every match has as a whole, because what bounds it is not optional. In a pattern with
# groups, sets, alternatives or escaped backslashes, nothing is certain.
_CERTAIN_WORD = regex.compile(rf"(?<={_BOUNDARY})\w+(?={_BOUNDARY}(?![?*{{]))")
_UNCERTAIN = regex.compile(r"[\[(|#]|\\\\")


class Pattern:
    """What to look for, with a limit on the time that it may take.

    The time counts while text is matched, because a pattern such as `(a|a)+b` may need more than
    the age of the universe; `re` of the standard library cannot be stopped.

    Parameters:
        text: the words, or the regular expression.

    Raises InputError for a pattern that is blank, too long or invalid.

    >>> list(Pattern("hot water").lines(Entry("Tea.\\nHot\\nwater!", {})))
    [(2, 'Hot'), (3, 'water!')]
    """

    def __init__(self, text: str, is_regex: bool = False) -> None:
        if not text.strip() or len(text) > _MAX_PATTERN:
            raise InputError(
                f"pattern must have 1 to {_MAX_PATTERN} characters, got {len(text.strip())}"
            )
        self._seconds = _SECONDS
        try:
            flags = regex.MULTILINE if is_regex else regex.MULTILINE | regex.IGNORECASE
            self._regex = regex.compile(text if is_regex else _words_pattern(text), flags)
        except (regex.error, RecursionError, OverflowError) as error:
            raise InputError(
                f"pattern {text[:80]!r} is not a valid regular expression: {error}. Leave is_regex "
                "out to find it as it is written"
            ) from error
        self.words = _certain_words(text) if is_regex else text
        """Words that stand in every match, so that a keyword index can tell where to look."""

    def lines(self, document: Entry) -> Iterator[tuple[int, str]]:
        """Yield the lines with a match: their numbers in the file, and as much as can be shown.

        Raises TimeoutError if all the time of the pattern is spent.
        """
        text, first, place, last_shown = document.text, first_line(document), 0, -1
        starts = [0, *line_breaks(text)]
        while (match := self._search(text, place)) is not None:
            line = bisect_right(starts, match.start()) - 1
            last = bisect_right(starts, max(match.start(), match.end() - 1)) - 1
            for number in range(max(line, last_shown + 1), min(last + 1, line + _MAX_SHOWN)):
                last_shown = number
                yield first + number, _excerpt(text, starts, number, match.start())
            if last + 1 == len(starts):
                return
            place = starts[last + 1]

    def _search(self, text: str, place: int) -> regex.Match[str] | None:
        if self._seconds <= 0:
            raise TimeoutError
        began = time.monotonic()
        try:
            return self._regex.search(text, place, timeout=self._seconds)
        finally:
            self._seconds -= time.monotonic() - began


def _words_pattern(text: str) -> str:
    """Return a pattern for whole words, with any white space between them."""
    return whole_words(r"\s+".join(map(regex.escape, text.split())), text.strip())


def _certain_words(pattern: str) -> str:
    return "" if _UNCERTAIN.search(pattern) else " ".join(_CERTAIN_WORD.findall(pattern))


def _excerpt(text: str, starts: list[int], number: int, match_start: int) -> str:
    """Return a line, or the part of it around a match if it is long."""
    start = starts[number]
    end = starts[number + 1] if number + 1 < len(starts) else len(text)
    line = text[start:end].rstrip("\r\n")
    if len(line) <= _LONGEST_LINE:
        return line
    left = max(0, match_start - start - _BEFORE)
    part = line[left : left + _LONGEST_LINE]
    return "…" * (left > 0) + part + "…" * (left + _LONGEST_LINE < len(line))
