"""Cutting at separators: literal texts or regular expressions, kept on either side or dropped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from rag_splitters.errors import InputError
from rag_splitters.parameters.checks import compile_pattern
from rag_splitters.text.boundaries import (
    Finder,
    after,
    boundary_before,
    lazily,
    positions,
    skip_space,
    trim_space,
)
from rag_splitters.text.lines import NEWLINE
from rag_splitters.text.structure import Structure

KeepSeparator: TypeAlias = Literal["auto", "start", "end", "none", True, False]
"""Where to keep a separator: at the "start" of the piece after it, at the "end" of the piece before
it, or nowhere ("none"). "auto": punctuation such as ". " at the end, anything else at the start.
True is "start" and False is "none", as in LangChain."""

_LONGEST_SPACE = 8  # characters after the limit in which white space may end
_CLOSING = re.compile(r"[.,;:!?…。．，、；：！？।॥؟؛،۔)\]}»”’]+\s*")


def check_separators(separators: Sequence[str], is_regex: bool = False) -> None:
    """Raise ValueError for an empty separator or an invalid regular expression."""
    for separator in separators:
        if not separator:
            raise InputError("separators must not contain empty strings")
        _pattern(separator, is_regex)


def _pattern(separator: str, is_regex: bool) -> re.Pattern[str]:
    """Compile a separator by itself, so that its flags and groups are its own."""
    if is_regex:
        return compile_pattern(separator, "separator", re.MULTILINE)
    return re.compile(re.escape(separator).replace("\\\n", NEWLINE))


def separator_matches(
    text: str, separators: Sequence[str], is_regex: bool = False
) -> Iterator[re.Match[str]]:
    """Yield the matches of any of the separators; of two at one place, that of the first one.

    They are regular expressions, or literal texts, in which "\\n" stands for any line break.
    """
    patterns = [_pattern(separator, is_regex) for separator in separators]
    if len(patterns) == 1:
        yield from patterns[0].finditer(text)
        return
    waiting = [(pattern.search(text), pattern) for pattern in patterns]
    while waiting := [(match, pattern) for match, pattern in waiting if match]:
        match = min((match for match, _ in waiting if match), key=re.Match.start)
        yield match
        low = max(match.end(), match.start() + 1)
        waiting = [
            (each if each and each.start() >= low else pattern.search(text, low), pattern)
            for each, pattern in waiting
        ]


def separators(
    text: str,
    group: Sequence[str],
    is_regex: bool = False,
    keep: KeepSeparator = "auto",
    strip: bool = True,
) -> Finder:
    """Return the finder of the cuts at separators of equal rank; see `pieces`."""
    if is_regex or len(group) > 1 or ("\n" in group[0] and "\r" in text):
        return lazily(
            lambda: [
                _gap(match, keep, strip)[0] for match in separator_matches(text, group, is_regex)
            ]
        )
    separator, find, width = group[0], text.rfind, len(group[0])
    if _side(separator, keep, strip) == "end":
        return after(text, separator)
    return lambda low, high: find(separator, low + 1, high + width)


def separator_gaps(
    text: str, group: Sequence[str], is_regex: bool, keep: KeepSeparator, strip: bool
) -> list[tuple[int, int]]:
    """Return the gaps between pieces: the end of one, and the start of the next.

    Separators that are dropped and have only white space between them make one gap.

    >>> separator_gaps("a;b; ;c", [";"], False, "none", False)
    [(1, 2), (3, 6)]
    """
    gaps: list[tuple[int, int]] = []
    for match in separator_matches(text, group, is_regex):
        end, start = _gap(match, keep, strip)
        if boundary_before(text, end) != end or boundary_before(text, start) != start:
            continue  # part of a longer grapheme cluster
        if end < start and gaps and not text[gaps[-1][1] : end].strip():
            gaps[-1] = (gaps[-1][0], start)
        else:
            gaps.append((end, start))
    return gaps


def _gap(match: re.Match[str], keep: KeepSeparator, strip: bool) -> tuple[int, int]:
    side = _side(match.group(), keep, strip)
    end = match.end() if side == "end" else match.start()
    return end, match.start() if side == "start" else match.end()


def _side(separator: str, keep: KeepSeparator, strip: bool) -> Literal["start", "end", "none"]:
    if keep == "auto":
        is_closing = _CLOSING.fullmatch(separator) or (strip and separator.isspace())
        return "end" if is_closing else "start"
    return "start" if keep is True else keep or "none"


def pieces(
    text: str,
    groups: Sequence[Sequence[str]],
    finer: Sequence[Finder],
    *,
    is_regex: bool,
    keep: KeepSeparator,
    strip: bool,
) -> Structure:
    """Return the structure of a text that consists of pieces between separators.

    Dropped separators are left out where the text is cut, and at its edges; between two pieces of
    one chunk, they are kept.

    Parameters:
        groups: separators of equal rank, the coarsest first.
        finer: where to cut a piece that is too big.
        strip: whether white space at the edges of chunks is removed.
    """
    if not strip and keep != "end":
        finer = [_before_space(text, finder) for finder in finer]
    if keep not in ("none", False):
        levels = [separators(text, group, is_regex, keep, strip) for group in groups]
        return Structure(text, [*levels, *finer], keep_with_next=None)
    gaps = [separator_gaps(text, group, is_regex, keep, strip) for group in groups]
    starts = {end: start for each in reversed(gaps) for end, start in each}

    def resume(cut: int) -> int:
        return starts.get(cut, skip_space(text, cut) if finer else cut)

    return Structure(
        text,
        [*(positions([end for end, _ in each]) for each in gaps), *finer],
        keep_with_next=None,
        part=_inner_part(text, next(filter(None, gaps), [])),
        resume=resume,
    )


def _inner_part(text: str, gaps: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the part of the text without gaps at its edges."""
    start, stop = 0, len(text)
    if gaps and not text[: gaps[0][0]].strip():
        start = gaps[0][1]
    if gaps and not text[gaps[-1][1] :].strip():
        stop = gaps[-1][0]
    return start, stop


def _before_space(text: str, finder: Finder) -> Finder:
    """Return the finder of the same cuts, moved before the white space in front of them."""

    def last(low: int, high: int) -> int:
        if text[low:high].isspace():
            return -1
        cut = finder(low, min(high + _LONGEST_SPACE, len(text)))
        if cut > high and text[high:cut].strip():
            cut = finder(low, high)
        cut = trim_space(text, low, cut) if cut > low else -1
        return cut if low < cut <= high else -1

    return last
