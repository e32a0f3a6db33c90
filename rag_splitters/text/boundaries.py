"""The places to cut a text: between grapheme clusters, words, sentences, lines or paragraphs.

A *cut* is an offset: the character before it ends a piece, and the one at it begins the next. A
*finder* belongs to one text; `finder(low, high)` is the last cut `c` with `low < c <= high`, or -1.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TypeAlias

import regex

from rag_splitters.text.lines import BLANK_LINE, VISIBLE, is_behind_mark
from rag_splitters.text.sentences import last_sentence_cut, space_start

Finder: TypeAlias = Callable[[int, int], int]

_CLUSTER = regex.compile(r"\X", regex.DOTALL)
# After these characters, the last one alone does not decide whether a cluster continues.
_CONTEXTUAL = regex.compile(r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=Regional_Indicator}]")
_FLAG_LETTERS = frozenset(map(chr, range(0x1F1E6, 0x1F200)))
_EXTENDING = regex.compile(r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*")
_FLAGS = re.compile("[\U0001f1e6-\U0001f1ff]+")
_SPACED_BLANK_LINE = re.compile(r"\n(?=[^\S\n]+(\n))")
_PRONOUNS = ("It ", "They ", "This ", "These ", "He ", "She ")
# Scripts without spaces between words: every character may begin a word.
UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
    r"\U00020000-\U0003ffff"
)
# Words of Korean have spaces between them, but their endings are glued on.
_SPACED = re.compile(rf"(?![{UNSPACED}\uac00-\ud7a3])\w")
_WORD_START = re.compile(rf"(?<=\s)\S|(?<=[{UNSPACED}])\S|[{UNSPACED}](?<=\S)")


def whole_words(pattern: str, phrase: str) -> str:
    """Make a pattern for a phrase match whole words only.

    A phrase that begins or ends with a mark, or in a script without spaces or with endings, may
    stand anywhere there.

    >>> [bool(re.search(whole_words(each, each), "teapot 茶壶")) for each in ("tea", "pot", "茶")]
    [False, False, True]
    """
    before = r"(?<!\w)" if _SPACED.match(phrase[0]) else ""
    after = r"(?!\w)" if _SPACED.match(phrase[-1]) else ""
    return before + pattern + after


def at_cluster(text: str, low: int, position: int) -> bool:
    """Whether `position` is a boundary between grapheme clusters; `low` must be one."""
    if position >= len(text) or position <= low:
        return True
    after, before = text[position], text[position - 1]
    if after < "\u0300" and before < "\u0300":
        return after != "\n" or before != "\r"
    if _CONTEXTUAL.match(before):
        return cluster_floor(text, low, position) == position
    return cluster_end(text, position - 1, position + 1) == position


def cluster_floor(text: str, low: int, position: int) -> int:
    """Return the last cluster boundary from `low`, which must be one, to `position`."""
    if position >= len(text):
        return len(text)
    boundary = position  # go back to a certain boundary, then forward again cluster by cluster
    while boundary > low and (
        _CONTEXTUAL.match(text[boundary - 1])
        or cluster_end(text, boundary - 1, boundary + 1) != boundary
    ):
        if text[boundary - 1] not in _FLAG_LETTERS:
            boundary -= 1
            continue
        boundary = max(_flag_start(text, boundary - 1), low)
        if text[boundary - 1 : boundary] in _FLAG_LETTERS:
            break  # the end of another flag; a prefix mark (U+0600) would include the first one
    while boundary < (end := cluster_end(text, boundary)) <= position:
        boundary = end
    return boundary


def _flag_start(text: str, position: int) -> int:
    """Return the start of the flag that a letter belongs to: each pair of them is a flag."""
    runs = _flag_runs(text)
    return position - (position - runs[bisect_right(runs, position) - 1]) % 2


@lru_cache(maxsize=2)
def _flag_runs(text: str) -> list[int]:
    """Return where runs of flags begin. A run may be so long that no cut can look back to it."""
    return [match.start() for match in _FLAGS.finditer(text)]


def cluster_end(text: str, start: int, stop: int | None = None) -> int:
    """Return the end of the grapheme cluster that begins at `start`, in the text up to `stop`."""
    stop = len(text) if stop is None else stop
    if start < stop and text[start] in _FLAG_LETTERS:  # the pattern would look back at all before
        end = start + 2 if text[start + 1 : min(start + 2, stop)] in _FLAG_LETTERS else start + 1
        match = _EXTENDING.match(text, end, stop)
        return match.end() if match else end
    match = _CLUSTER.match(text, start, stop)
    return match.end() if match else start


def boundary_before(text: str, position: int) -> int:
    """Return the last boundary between grapheme clusters up to `position`."""
    low = max(0, position - 64)
    return position if at_cluster(text, low, position) else cluster_floor(text, low, position)


def boundary_after(text: str, position: int) -> int:
    """Return the first boundary between grapheme clusters at or after `position`."""
    floor = boundary_before(text, position)
    return position if floor == position else cluster_end(text, floor)


def next_word(text: str, position: int, end: int) -> int:
    """Return the first offset from `position` to before `end` at which a word begins, or -1.

    A word begins after white space. In scripts without spaces (Chinese, Japanese, Thai), each
    grapheme cluster begins one.
    """
    if position == 0:
        if text and not text[0].isspace():
            return 0
    elif (space := text.find(" ", position - 1, end - 1)) >= 0:
        rest = text[position - 1 : space]  # the usual case: the rest of a word, then a space
        if "!" <= text[space + 1] <= "~" and rest.isascii() and rest.isprintable():
            return space + 1
    while match := _WORD_START.search(text, position, end):
        if at_cluster(text, max(0, match.start() - 64), match.start()):
            return match.start()
        position = match.start() + 1
    return -1


def count_characters(text: str, start: int, end: int) -> int:
    """Return the number of characters from `start` to `end`, where CRLF counts as one."""
    return end - start - text.count("\r", start, end)


def skip_characters(text: str, start: int, count: int) -> int:
    """Return the offset `count` characters after `start`, where CRLF counts as one.

    >>> skip_characters("a\\r\\nb\\r\\nc", 0, 4)
    6
    """
    end = start + count
    while (stop := start + count + text.count("\r", start, end)) > end:
        end = stop
    return end


def skip_space(text: str, position: int) -> int:
    """Return the first cluster at or after `position` that is not white space, or the end."""
    if position < len(text) and not text[position].isspace():
        return position
    match = VISIBLE.search(text, position)
    if not match:
        return len(text)
    start = match.start()
    if text[start] < "\u0300":
        return start
    return cluster_floor(text, position, start)  # a mark on top of a space belongs to it


def trim_space(text: str, low: int, end: int) -> int:
    """Return the end of the text before `end` without trailing white space, at least `low`."""
    stop = space_start(text, low, end) if text[end - 1 : end].isspace() else end
    if stop < end and stop > low and text[stop - 1] > "\u05ff" and not at_cluster(text, low, stop):
        return cluster_end(text, stop - 1)  # a prefix mark (U+0600) includes the space after it
    return stop


def line_start(text: str, position: int) -> int:
    """Return the start of the indentation before `position`, or `position` after other text.

    >>> line_start("a\\n  b", 4), line_start("a b", 2)
    (2, 2)
    """
    start = position
    while start and text[start - 1].isspace() and text[start - 1] not in "\r\n":
        start -= 1
    return start if not start or text[start - 1] in "\r\n" else position


def positions(cuts: Sequence[int]) -> Finder:
    """Return the finder of these cuts, which must be sorted."""

    def last(low: int, high: int) -> int:
        index = bisect_right(cuts, high) - 1
        return cuts[index] if index >= 0 and cuts[index] > low else -1

    return last


def lazily(cuts: Callable[[], Sequence[int]]) -> Finder:
    """Return the finder of cuts that are computed at its first call."""
    finder: Finder | None = None

    def last(low: int, high: int) -> int:
        nonlocal finder
        if finder is None:
            finder = positions(cuts())
        return finder(low, high)

    return last


def paragraph_cuts(text: str) -> list[int]:
    """Return the offsets at which paragraphs begin, except the first.

    >>> paragraph_cuts("one\\n\\ntwo\\r\\n \\r\\nthree")
    [5, 13]
    """
    gaps = re.finditer(rf"{BLANK_LINE.pattern}\s*", text)
    return [gap.end() for gap in gaps if gap.end() < len(text)]


def paragraphs(text: str) -> Finder:
    """Return the finder of ends of paragraphs: blank lines."""
    return partial(_last_paragraph, text)


def _last_paragraph(text: str, low: int, high: int) -> int:
    line = text.rfind("\n", low, high)
    if line <= low or text[line - 1] == "\n":
        return line + 1 if line > low else -1
    blank = text.rfind("\n\n", low, line)
    for spaced in _SPACED_BLANK_LINE.finditer(text, max(low, blank), high):
        blank = spaced.start(1) - 1
    return blank + 2 if blank >= 0 else -1


def lines(text: str) -> Finder:
    """Return the finder of ends of lines."""
    return after(text, "\n")


def sentences(text: str) -> Finder:
    """Return the finder of ends of sentences, by our own rules.

    A sentence that begins with "It", "They", "This" and so on stays with the one before it, which
    says what is meant, unless that leaves less than a third of the searched range.

    >>> text = "Tea is hot. Milk is not. It is cold."
    >>> sentences(text)(0, 30), sentences(text)(10, 30)
    (12, 25)
    """
    return partial(_last_sentence, text)


def _last_sentence(text: str, low: int, high: int) -> int:
    cut = last_sentence_cut(text, low, high)
    if cut < 0 or not text.startswith(_PRONOUNS, cut):
        return cut
    middle = skip_characters(text, low, count_characters(text, low, high) // 3)
    earlier = cut
    while text.startswith(_PRONOUNS, earlier):
        earlier = last_sentence_cut(text, middle, earlier - 1)
        end = space_start(text, low, earlier)
        if earlier < 0 or (text[end - 1] not in ".!?" and text.count("\n", end, earlier) > 1):
            return cut  # there is none, or a paragraph begins there, perhaps under a heading
    return earlier


def words(text: str) -> Finder:
    """Return the finder of ends of words: white space of any kind, but not behind an item's mark.

    >>> words("one - two")(0, 8), words("one\\n- two")(0, 8)
    (6, 4)
    """
    return partial(_last_space, text)


def _last_space(text: str, low: int, high: int) -> int:
    part = text[low:high]
    words_only = part.rstrip()
    if not words_only:
        return -1
    cut = high
    if len(words_only) == len(part):
        pieces = part.rsplit(None, 1)
        cut -= len(pieces[1]) if len(pieces) == 2 else len(part)
    if is_behind_mark(text, cut):
        line = text.rfind("\n", low, cut) + 1
        return _last_space(text, low, line) if line > low else -1
    return cut if cut > low else -1


def after(text: str, separator: str) -> Finder:
    """Return the finder of ends of a literal separator."""
    find, length = text.rfind, len(separator)

    def last(low: int, high: int) -> int:
        start = find(separator, low, high)
        return start + length if start >= 0 else -1

    return last
