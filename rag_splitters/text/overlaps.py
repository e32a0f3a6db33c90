"""Overlap: the start of a chunk that repeats the end of the previous one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from rag_splitters.text.boundaries import (
    boundary_after,
    boundary_before,
    last_word,
    next_word,
    skip_space,
    trim_space,
)
from rag_splitters.text.lines import SPACE
from rag_splitters.text.measures import Measure
from rag_splitters.text.sentences import first_sentence_start, last_sentence_cut
from rag_splitters.text.sizing import Sizes
from rag_splitters.text.structure import Structure
from rag_splitters.text.wrapping import next_clause, next_line

Overlap: TypeAlias = Callable[[int, int, int], int]
"""(start, end, low) -> the first offset from `low` on, inside the chunk from `start` to `end`, at
which the next chunk may begin; or -1."""


class Starts(NamedTuple):
    """The places at which an overlap may begin: sentences, words or grapheme clusters.

    Parameters:
        first: (start, low, end) -> the first place from `low` on, before `end`, in a chunk that
            begins at `start`; or -1.
        last: (start, low, high) -> the last place from `low` on, before `high`, in a chunk that
            begins at `start`; or -1.
    """

    first: Callable[[int, int, int], int]
    last: Callable[[int, int, int], int]


def tail_overlap(structure: Structure, sizes: Sizes) -> Overlap:
    """Return an overlap of as many whole sentences as fit, else lines, else clauses, else words.

    If a chunk ends inside a word that is too big for a chunk, an overlap may begin inside it.

    >>> text = "It was cold. It rained. "
    >>> overlap = tail_overlap(Structure(text), Sizes(100, overlap=12))
    >>> text[overlap(0, 23, 0) :]
    'It rained. '
    """
    text = structure.text
    _, measure, unbreakable = structure.fit(sizes)
    kinds = [
        sentence_starts(text, structure.sentences),
        line_starts(text),
        clause_starts(text),
        word_starts(text, measure, sizes.size),
    ]
    if unbreakable:
        kinds = [_outside(kind, unbreakable.end_of) for kind in kinds]
    return longest_overlap(measure, sizes.overlap, kinds)


def _outside(kind: Starts, end_of: Callable[[int], int]) -> Starts:
    """Leave out the places inside what is unbreakable."""

    def first(start: int, low: int, end: int) -> int:
        place = kind.first(start, low, end)
        while place >= 0 and (outside := end_of(place)) != place:
            place = kind.first(start, outside, end) if outside < end else -1
        return place

    def last(start: int, low: int, high: int) -> int:
        place = kind.last(start, low, high)
        while place >= 0 and end_of(place) != place:
            place = kind.last(start, low, place)
        return place

    return Starts(first, last)


def longest_overlap(measure: Measure, size: int, kinds: Sequence[Starts]) -> Overlap:
    """Return the longest overlap of at most `size` units, preferably of the first kinds.

    Parameters:
        measure: the text's measure.
        size: maximum size of an overlap.
        kinds: the places at which it may begin; the first kind with a place that fits is used.
    """

    earliest, is_monotone = measure.earliest, measure.is_monotone
    finders = [(kind.first, kind) for kind in kinds]

    def next_start(start: int, end: int, low: int) -> int:
        low = low if low > start else start
        position = earliest(end, size)
        position = position if position > low else low
        for first, kind in finders:
            place = first(start, position, end)
            if not is_monotone:
                place = _longer(kind, place, start, end, low, position)
            if place >= 0:
                return place
        return -1

    def _longer(kind: Starts, place: int, start: int, end: int, low: int, position: int) -> int:
        """Correct a place for a measure that may find a part longer than the whole."""
        while place >= 0 and not measure.fits(place, end, size):
            place = kind.first(start, place + 1, end)
        before = kind.last(start, low, position)
        while before >= 0 and measure.fits(before, end, size):
            place, before = before, kind.last(start, low, before)
        return place

    return next_start


def sentence_starts(text: str, cuts: Sequence[int] | None = None) -> Starts:
    """Return the beginnings of sentences, by our own rules or from sorted offsets."""
    visible = len(text) - len(text.lstrip())
    is_whole = boundary_before(text, visible) == visible  # a mark may combine with a space
    if cuts is not None:
        return _sentences_at(text, [visible, *cuts] if is_whole else cuts)

    def first(start: int, low: int, end: int) -> int:
        place = first_sentence_start(text, low, end)
        if place <= 0 or (text[place] < "\u0300" and text[place - 1] < "\u0300"):
            return place  # the usual case, in which a visible character begins a cluster
        while place >= 0 and boundary_before(text, place) != place:
            place = first_sentence_start(text, place + 1, end)
        return place

    def last(start: int, low: int, high: int) -> int:
        place = last_sentence_cut(text, low - 1, high - 1)
        while place >= 0 and boundary_before(text, place) != place:
            place = last_sentence_cut(text, low - 1, place - 1)
        return visible if place < 0 and is_whole and low <= visible < high else place

    return Starts(first, last)


def _sentences_at(text: str, cuts: Sequence[int]) -> Starts:
    """Return the first visible character at or after each cut."""

    def first(start: int, low: int, end: int) -> int:
        index = bisect_left(cuts, low)
        for cut in cuts[max(0, index - 1) : index + 1]:
            if low <= (place := skip_space(text, cut)) < end:
                return place
        return -1

    def last(start: int, low: int, high: int) -> int:
        index = bisect_left(cuts, high) - 1
        return skip_space(text, cuts[index]) if index >= 0 and cuts[index] >= low else -1

    return Starts(first, last)


def line_starts(text: str) -> Starts:
    """Return the beginnings of lines; see `next_line`.

    A chunk that fits into the overlap is repeated as a whole.

    >>> text = "x = 1, 2\\ny = 3, 4"
    >>> text[line_starts(text).first(0, 4, len(text)) :]
    'y = 3, 4'
    """
    return _starts_at(text, next_line)


def clause_starts(text: str) -> Starts:
    """Return the beginnings of clauses; see `next_clause`.

    >>> text = "It was cold there, and it rained"
    >>> text[clause_starts(text).first(0, 9, len(text)) :]
    'and it rained'
    """
    return _starts_at(text, next_clause)


def _starts_at(text: str, find: Callable[[str, int, int], int]) -> Starts:
    """Return the places that a function finds, and the beginning of a chunk."""

    def first(start: int, low: int, end: int) -> int:
        if low <= start < end:
            return start
        place = find(text, low, end)
        while place >= 0 and boundary_before(text, place) != place:
            place = find(text, place + 1, end)
        return place

    def last(start: int, low: int, high: int) -> int:
        place = first(start, low, high)
        while (later := first(start, place + 1, high) if place >= 0 else -1) >= 0:
            place = later
        return place

    return Starts(first, last)


def word_starts(text: str, measure: Measure, chunk_size: int) -> Starts:
    """Return the beginnings of words, and all places inside a last word too big for a chunk.

    A chunk that fits into the overlap is repeated as a whole.
    """

    def first(start: int, low: int, end: int) -> int:
        if low <= start:
            return start
        word = next_word(text, low, end)
        if word >= 0 or not _is_inside_long_word(text, measure, chunk_size, start, end):
            return word
        boundary = boundary_after(text, low)
        return boundary if boundary < end else -1

    def last(start: int, low: int, high: int) -> int:
        word = last_word(text, low, high)
        return start if word < 0 and low <= start < high else word

    return Starts(first, last)


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
        visible = skip_space(text, place) if place < end and text[place].isspace() else place
        if visible < end and (trim or measure.length(visible, end) == measure.length(place, end)):
            place = visible
        return place if place < end else -1

    def last(start: int, low: int, high: int) -> int:
        place = boundary_before(text, high - 1) if high > low else -1
        return place if place >= low else -1

    return longest_overlap(measure, size, [Starts(first, last)])


def counted_overlap(
    text: str, cuts: Sequence[int], measure: Measure, size: int, count: int
) -> Overlap:
    """Return an overlap of `count` whole sentences, or fewer to leave room for the next one.

    Parameters:
        text: the text.
        cuts: the offsets at which its sentences begin, except the first.
        measure: its measure.
        size: maximum chunk size.
        count: maximum number of sentences.
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
