"""Overlap: the start of a chunk that repeats the end of the previous one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from rag_splitters.text.boundaries import (
    boundary_after,
    boundary_before,
    next_word,
    skip_space,
    trim_space,
)
from rag_splitters.text.lines import SPACE
from rag_splitters.text.measures import Measure
from rag_splitters.text.sentences import first_sentence_start
from rag_splitters.text.sizing import Sizes
from rag_splitters.text.structure import Structure
from rag_splitters.text.wrapping import next_clause, next_line

Overlap: TypeAlias = Callable[[int, int, int], int]
"""(start, end, low) -> the first offset from `low` on, inside the chunk from `start` to `end`, at
which the next chunk may begin; or -1."""


Starts: TypeAlias = Callable[[int, int, int], int]
"""(start, low, end) -> the first place from `low` on, before `end`, at which an overlap may begin
in a chunk that begins at `start`; or -1."""

_SURPLUS = 2
"""Units by which a tokenizer may measure a part longer than the whole: an earlier start may fit."""


def tail_overlap(structure: Structure, sizes: Sizes) -> Overlap:
    """Return an overlap of as many whole sentences as fit, else lines, else clauses, else words.

    If a chunk ends inside a word that is too big for a chunk, an overlap may begin inside it.

    >>> text = "It was cold. It rained. "
    >>> overlap = tail_overlap(Structure(text), Sizes(100, overlap=12))
    >>> text[overlap(0, 23, 0) :]
    'It rained. '
    """
    text, cuts = structure.text, structure.sentences
    _, measure, _, closed = structure.fit(sizes)
    if cuts is None:
        next_sentence = partial(first_sentence_start, text)
    else:
        visible = len(text) - len(text.lstrip())
        next_sentence = partial(_next_visible, text, [visible, *cuts])
    kinds = [
        _at_clusters(text, next_sentence),
        lambda start, low, end: start if low <= start else -1,  # the whole chunk
        _at_clusters(text, partial(next_line, text)),
        _at_clusters(text, partial(next_clause, text)),
        _word_starts(text, measure, sizes.size),
    ]
    if closed:
        kinds = [_outside(kind, closed.end_of) for kind in kinds]
    return _longest_overlap(measure, sizes.overlap, kinds)


def _outside(kind: Starts, end_of: Callable[[int], int]) -> Starts:
    """Leave out the places inside what is closed to overlaps."""

    def first(start: int, low: int, end: int) -> int:
        place = kind(start, low, end)
        while place >= 0 and (outside := end_of(place)) != place:
            place = kind(start, outside, end) if outside < end else -1
        return place

    return first


def _longest_overlap(measure: Measure, size: int, kinds: Sequence[Starts]) -> Overlap:
    """Return the longest overlap of at most `size` units that begins at a place of the first kind.

    If none of these fits, it begins at one of the second kind, and so on.
    """
    earliest, is_monotone = measure.earliest, measure.is_monotone
    reach = size if is_monotone else size + _SURPLUS

    def next_start(start: int, end: int, low: int) -> int:
        low = low if low > start else start
        position = earliest(end, reach)
        position = position if position > low else low
        for first in kinds:
            place = first(start, position, end)
            while place >= 0 and not is_monotone and not measure.fits(place, end, size):
                place = first(start, place + 1, end)
            if place >= 0:
                return place
        return -1

    return next_start


def _next_visible(text: str, cuts: Sequence[int], low: int, end: int) -> int:
    """Return the first visible character from `low` to before `end` that follows a cut, or -1."""
    index = bisect_left(cuts, low)
    for cut in cuts[max(0, index - 1) : index + 1]:
        if low <= (place := skip_space(text, cut)) < end:
            return place
    return -1


def _at_clusters(text: str, find: Callable[[int, int], int]) -> Starts:
    """Return the places that `find` finds, without those inside a grapheme cluster."""

    def first(start: int, low: int, end: int) -> int:
        place = find(low, end)
        if place <= 0 or (text[place] < "\u0300" and text[place - 1] < "\u0300"):
            return place  # the usual case, in which a visible character begins a cluster
        while place >= 0 and boundary_before(text, place) != place:
            place = find(place + 1, end)
        return place

    return first


def _word_starts(text: str, measure: Measure, chunk_size: int) -> Starts:
    """Return the beginnings of words, and all places inside a last word too big for a chunk."""

    def first(start: int, low: int, end: int) -> int:
        word = next_word(text, low, end)
        if word >= 0 or not _is_inside_long_word(text, measure, chunk_size, start, end):
            return word
        boundary = boundary_after(text, low)
        return boundary if boundary < end else -1

    return first


def _is_inside_long_word(
    text: str, measure: Measure, chunk_size: int, start: int, end: int
) -> bool:
    """Whether `end` is inside a word that does not fit in a chunk."""
    if end >= len(text) or text[end - 1].isspace() or text[end].isspace():
        return False
    word = end - len(text[start:end].rsplit(None, 1)[-1])
    limit = measure.furthest(word, chunk_size)
    return limit < len(text) and not SPACE.search(text, end, limit + 1)


def exact_overlap(text: str, measure: Measure, size: int, trim: bool = False) -> Overlap:
    """Return an overlap of exactly `size` units, or less if that would cut a grapheme cluster.

    White space at its beginning that adds no units is left out; with `trim`, all of it.
    """

    def first(start: int, low: int, end: int) -> int:
        place = boundary_after(text, low)
        visible = skip_space(text, place)
        if visible < end and (trim or measure.length(visible, end) == measure.length(place, end)):
            place = visible
        return place if place < end else -1

    return _longest_overlap(measure, size, [first])


def counted_overlap(
    text: str, cuts: Sequence[int], measure: Measure, size: int, count: int
) -> Overlap:
    """Return an overlap of `count` whole sentences, or fewer to leave room for the next one.

    `cuts` are the offsets at which sentences begin, except the first; `size` is the chunk size.
    """
    starts = [skip_space(text, 0), *cuts]

    def next_start(start: int, end: int, low: int) -> int:
        following = bisect_left(starts, end)  # the first sentence that the next chunk adds
        stop = starts[following + 1] if following + 1 < len(starts) else len(text)
        stop = trim_space(text, end, stop)
        for index in range(max(following - count, 0), following):
            sentence = starts[index]
            if max(start, low) <= sentence and measure.fits(sentence, stop, size):
                return sentence
        return -1

    return next_start
