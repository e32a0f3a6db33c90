"""Overlap: the start of a chunk that repeats the end of the previous one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

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
from rag_splitters.text.structure import Structure, Unbreakable
from rag_splitters.text.wrapping import next_clause, next_line

Overlap: TypeAlias = Callable[[int, int, int], int]
"""(start, end, low) -> the first offset from `low` on, inside the chunk from `start` to `end`, at
which the next chunk may begin; or -1."""

_SURPLUS = 2
"""Units by which a tokenizer may measure a part longer than the whole: an earlier start may fit."""

_SENTENCE: Final = 0
_CHUNK: Final = 1
_LINE: Final = 2
_CLAUSE: Final = 3
_WORD: Final = 4
"""The kinds of places at which an overlap may begin, the best first."""


class _Longest(ABC):
    """The longest overlap of at most `size` units that begins at a place of the first kind.

    If none of these fits, it begins at a place of the second kind, and so on.
    """

    def __init__(self, text: str, measure: Measure, size: int, kinds: int) -> None:
        self.text, self.measure, self.size, self.kinds = text, measure, size, kinds
        self.is_monotone = measure.is_monotone
        self.reach = size if measure.is_monotone else size + _SURPLUS

    def next_start(self, start: int, end: int, low: int) -> int:
        """Return where the overlap begins; see `Overlap`."""
        low = low if low > start else start
        position = self.measure.earliest(end, self.reach)
        position = position if position > low else low
        for kind in range(self.kinds):
            place = self.find(kind, start, position, end)
            while place >= 0 and (beyond := self.first_allowed(place, end)) > place:
                place = self.find(kind, start, beyond, end) if beyond < end else -1
            if place >= 0:
                return place
        return -1

    @abstractmethod
    def find(self, kind: int, start: int, low: int, end: int) -> int:
        """Return the first place of a kind from `low` on, in the chunk from `start` to `end`."""

    def first_allowed(self, place: int, end: int) -> int:
        """Return a place if an overlap up to `end` may begin there, or where to look on."""
        fits = self.is_monotone or self.measure.fits(place, end, self.size)
        return place if fits else place + 1


class TailOverlap(_Longest):
    """As many whole sentences as fit, else the whole chunk, else lines, else clauses, else words.

    If a chunk ends inside a word that is too big for a chunk, an overlap may begin inside it.

    >>> text = "It was cold. It rained. "
    >>> overlap = TailOverlap(Structure(text), Sizes(100, overlap=12))
    >>> text[overlap.next_start(0, 23, 0) :]
    'It rained. '
    """

    def __init__(self, structure: Structure, sizes: Sizes) -> None:
        _, measure, _, closed = structure.fit(sizes)
        super().__init__(structure.text, measure, sizes.overlap, kinds=_WORD + 1)
        self.closed: Unbreakable | None = closed or None
        self.chunk_size = sizes.size
        self.sentences: list[int] | None = None
        if structure.sentences is not None:
            visible = len(self.text) - len(self.text.lstrip())
            self.sentences = [visible, *structure.sentences]

    def find(self, kind: int, start: int, low: int, end: int) -> int:
        text = self.text
        if kind == _SENTENCE:
            if self.sentences is None:
                return first_sentence_start(text, low, end)
            return _next_visible(text, self.sentences, low, end)
        if kind == _CHUNK:
            return start if low <= start else -1
        if kind == _LINE:
            return next_line(text, low, end)
        if kind == _CLAUSE:
            return next_clause(text, low, end)
        word = next_word(text, low, end)
        if word >= 0 or not self.is_inside_long_word(start, end):
            return word
        boundary = boundary_after(text, low)
        return boundary if boundary < end else -1

    def first_allowed(self, place: int, end: int) -> int:
        text = self.text
        if self.closed is not None and (outside := self.closed.end_of(place)) > place:
            return outside
        may_be_inside = place and (text[place] >= "\u0300" or text[place - 1] >= "\u0300")
        if may_be_inside and boundary_before(text, place) != place:
            return place + 1  # it is inside a grapheme cluster
        return super().first_allowed(place, end)

    def is_inside_long_word(self, start: int, end: int) -> bool:
        """Whether `end` is inside a word that does not fit in a chunk."""
        text = self.text
        if end >= len(text) or text[end - 1].isspace() or text[end].isspace():
            return False
        word = end - len(text[start:end].rsplit(None, 1)[-1])
        limit = self.measure.furthest(word, self.chunk_size)
        return limit < len(text) and not SPACE.search(text, end, limit + 1)


class ExactOverlap(_Longest):
    """Exactly `size` units, or less if that would cut a grapheme cluster.

    White space at its beginning that adds no units is left out; with `trim`, all of it.
    """

    def __init__(self, text: str, measure: Measure, size: int, trim: bool) -> None:
        super().__init__(text, measure, size, kinds=1)
        self.trim = trim

    def find(self, kind: int, start: int, low: int, end: int) -> int:
        place, length = boundary_after(self.text, low), self.measure.length
        visible = skip_space(self.text, place)
        if place < visible < end and (self.trim or length(visible, end) == length(place, end)):
            place = visible
        return place if place < end else -1


def _next_visible(text: str, cuts: Sequence[int], low: int, end: int) -> int:
    """Return the first visible character from `low` to before `end` that follows a cut, or -1."""
    index = bisect_left(cuts, low)
    for cut in cuts[max(0, index - 1) : index + 1]:
        if low <= (place := skip_space(text, cut)) < end:
            return place
    return -1


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
