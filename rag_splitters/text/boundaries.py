"""Where may text be cut? Grapheme clusters, words, sentences, lines, paragraphs, separators.

A *finder* is bound to one text and answers `finder(low, high)`: the last cut `c` with
`low < c <= high`, or -1. A cut is an offset: what ends there stays before it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import regex

from rag_splitters.text.sentences import last_sentence_cut

__all__ = [
    "UNSPACED",
    "Finder",
    "at_cluster",
    "cluster_end",
    "cluster_floor",
    "last_word",
    "lines",
    "next_word",
    "paragraph_cuts",
    "paragraphs",
    "positions",
    "sentences",
    "separator_pattern",
    "separators",
    "skip_space",
    "trim_space",
    "words",
]

Finder: TypeAlias = Callable[[int, int], int]

_CLUSTER = regex.compile(r"\X", regex.DOTALL)
# After these, whether a cluster goes on depends on more than the character before.
_CONTEXTUAL = regex.compile(r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=Regional_Indicator}]")
_NEWLINE = r"(?:\r\n|\n|\r)"
_BLANK_LINE = re.compile(rf"{_NEWLINE}[^\S\r\n]*{_NEWLINE}\s*")
_LINE = re.compile(_NEWLINE)
_NOT_SPACE = re.compile(r"\S")
# Scripts that write no spaces: every character may begin a word.
UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
    r"\U00020000-\U0003ffff"
)
_WORD_START = re.compile(rf"(?<=\s)\S|(?<=[{UNSPACED}])\S|[{UNSPACED}](?<=\S)")
_LAST_WORD_START = re.compile(
    rf".*(?:(?<=\s)(?=\S)|(?<=[{UNSPACED}])(?=\S)|(?=[{UNSPACED}])(?=\S))", re.DOTALL
)


def at_cluster(text: str, low: int, position: int) -> bool:
    """Is `position` between two grapheme clusters? `low` is known to be."""
    if position >= len(text) or position <= low:
        return True
    after, before = text[position], text[position - 1]
    if after < "\u0300" and before < "\u0300":
        return after != "\n" or before != "\r"
    if _CONTEXTUAL.match(before):
        return cluster_floor(text, low, position) == position
    return cluster_end(text, position - 1, position + 1) == position


def cluster_floor(text: str, low: int, position: int) -> int:
    """The last offset from `low` to `position` between two grapheme clusters."""
    if position >= len(text):
        return len(text)
    known = position
    while known > low and (
        _CONTEXTUAL.match(text[known - 1]) or cluster_end(text, known - 1, known + 1) != known
    ):
        known -= 1
    while (end := cluster_end(text, known)) <= position:
        if end == known:
            break
        known = end
    return known


def cluster_end(text: str, start: int, stop: int | None = None) -> int:
    """Where the grapheme cluster that begins at `start` ends, if the text ended at `stop`."""
    match = _CLUSTER.match(text, start, len(text) if stop is None else stop)
    return match.end() if match else start


def next_word(text: str, position: int, end: int) -> int:
    """The first offset from `position` on, before `end`, at which a word begins, or -1.

    A word begins after white space; in scripts without spaces (Chinese, Japanese, Thai ...) at
    every grapheme cluster.
    """
    if position == 0:
        if text and not text[0].isspace():
            return 0
    elif (space := text.find(" ", position - 1, end - 1)) >= 0:
        passed = text[position - 1 : space]  # a quick yes: the rest of a word, then a space
        if "!" <= text[space + 1] <= "~" and passed.isascii() and passed.isprintable():
            return space + 1
    while match := _WORD_START.search(text, position, end):
        if at_cluster(text, max(0, match.start() - 64), match.start()):
            return match.start()
        position = match.start() + 1
    return -1


def last_word(text: str, low: int, position: int) -> int:
    """The last offset from `low` on, before `position`, at which a word begins, or -1.

    It looks back no further than 100 characters.
    """
    low = max(low, position - 100)
    while match := _LAST_WORD_START.match(text, low, position):
        if at_cluster(text, max(0, low - 64), match.end()):
            return match.end()
        position = match.end()
    return -1


def skip_space(text: str, position: int) -> int:
    """The first cluster from `position` on that is not white space."""
    match = _NOT_SPACE.search(text, position)
    if not match:
        return len(text)
    found = match.start()
    if text[found] < "\u0300" or found == position:
        return found
    return cluster_floor(text, position, found)  # a mark on top of a space belongs to it


def trim_space(text: str, low: int, end: int) -> int:
    """`end` less the white space before it, but not below `low`."""
    kept = end
    while kept > low and text[kept - 1].isspace():
        kept -= 1
    if kept < end and kept > low and text[kept - 1] > "\u05ff" and not at_cluster(text, low, kept):
        return cluster_end(text, kept - 1)  # a prefix mark holds the space behind it
    return kept


def positions(cuts: Sequence[int]) -> Finder:
    """The finder of known cuts, in ascending order."""

    def last(low: int, high: int) -> int:
        index = bisect_right(cuts, high) - 1
        return cuts[index] if index >= 0 and cuts[index] > low else -1

    return last


def _lazily(cuts: Callable[[], Sequence[int]]) -> Finder:
    """The finder of cuts that are looked for when first asked."""
    known: list[Finder] = []

    def last(low: int, high: int) -> int:
        if not known:
            known.append(positions(cuts()))
        return known[0](low, high)

    return last


def paragraph_cuts(text: str) -> list[int]:
    """The offsets at which a paragraph begins after a blank line.

    >>> paragraph_cuts("one\\n\\ntwo\\r\\n \\r\\nthree")
    [5, 13]
    """
    return [match.end() for match in _BLANK_LINE.finditer(text) if match.end() < len(text)]


def paragraphs(text: str) -> Finder:
    """Finds the ends of paragraphs: blank lines, with any line break."""
    if _has_lone_return(text):
        return _lazily(partial(paragraph_cuts, text))
    find = text.rfind

    def last(low: int, high: int) -> int:
        end = find("\n", low, high)
        while end > low:
            if text[end - 1] == "\n":
                return end + 1
            start = find("\n", low, end)
            if start >= 0 and text[start + 1 : end].isspace():
                return end + 1
            end = start
        return -1

    return last


def lines(text: str) -> Finder:
    """Finds the ends of lines, with any line break."""
    if _has_lone_return(text):
        return _lazily(lambda: [match.end() for match in _LINE.finditer(text)])
    return _after(text, "\n")


def _has_lone_return(text: str) -> bool:
    return "\r" in text and text.count("\r") != text.count("\r\n")


def sentences(text: str) -> Finder:
    """Finds the ends of sentences by our own rules."""
    return partial(last_sentence_cut, text)


def words(text: str) -> Finder:
    """Finds the ends of words: white space of any kind."""

    def last(low: int, high: int) -> int:
        part = text[low:high]
        kept = part.rstrip()
        if len(kept) < len(part):
            return high if kept else -1
        pieces = part.rsplit(None, 1)
        return high - len(pieces[1]) if len(pieces) == 2 else -1

    return last


def separators(text: str, separator: str, is_regex: bool = False) -> Finder:
    """Finds one separator: text, or a regular expression.

    One that begins with white space and goes on with other characters ("\\ndef ") opens what
    follows, and is cut before; every other one closes what precedes it.
    """
    if not is_regex and not _opens(separator) and not ("\n" in separator and "\r" in text):
        return _after(text, separator)
    pattern = separator_pattern((separator,), is_regex)
    return _lazily(lambda: [_cut_at(match) for match in pattern.finditer(text)])


def _opens(separator: str) -> bool:
    return separator[:1].isspace() and not separator.isspace()


def _cut_at(match: re.Match[str]) -> int:
    return match.start() if _opens(match.group()) else match.end()


def _after(text: str, separator: str) -> Finder:
    """Finds the ends of a literal separator."""
    find, width = text.rfind, len(separator)

    def last(low: int, high: int) -> int:
        found = find(separator, low, high)
        return found + width if found >= 0 else -1

    return last


def separator_pattern(wanted: Sequence[str], is_regex: bool = False) -> re.Pattern[str]:
    """One pattern that matches any of the separators; "\\n" in a plain one is any line break.

    Raises: ValueError for an empty separator or a regular expression that does not compile.
    """
    for separator in wanted:
        if not separator:
            raise ValueError("separators must not be empty strings")
        try:
            re.compile(separator if is_regex else "")
        except re.error as error:
            raise ValueError(f"separator {separator!r} is no regular expression: {error}") from None
    if is_regex:
        return re.compile("|".join(f"(?:{separator})" for separator in wanted), re.MULTILINE)
    escaped = [re.escape(separator).replace("\\\n", _NEWLINE) for separator in wanted]
    return re.compile("|".join(escaped))
