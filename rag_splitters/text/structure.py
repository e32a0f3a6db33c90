"""Structure: where a text may be cut, and what in it belongs together.

A parser for a new kind of text returns one; `packing.pack` cuts it. All positions are code-point
offsets into the text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from rag_splitters.text.boundaries import Finder, paragraphs, sentences, skip_space, words
from rag_splitters.text.leads import lead_start
from rag_splitters.text.sizing import LengthFunction, Measure, Sizes
from rag_splitters.text.wrapping import clauses, unwrapped_lines

Range: TypeAlias = tuple[int, int]
"""(start, end) of a part of a text."""


class Unbreakable:
    """Sorted ranges of a text inside which it is not cut, and no overlap begins.

    >>> unbreakable = Unbreakable([(3, 9), (12, 20)])
    >>> unbreakable.start_of(5), unbreakable.start_of(10), unbreakable.end_from(12)
    (3, 10, 20)
    """

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in ranges:
            self._starts.append(start)
            self._ends.append(end)

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __iter__(self) -> Iterator[Range]:
        return zip(self._starts, self._ends, strict=True)

    def start_of(self, cut: int) -> int:
        """Return the start of the range that a cut would divide, or the cut if there is none."""
        index = bisect_left(self._starts, cut) - 1
        return self._starts[index] if index >= 0 and cut < self._ends[index] else cut

    def end_of(self, cut: int) -> int:
        """Return the end of the range that a cut would divide, or the cut if there is none."""
        index = bisect_left(self._starts, cut) - 1
        return max(cut, self._ends[index]) if index >= 0 else cut

    def end_from(self, start: int) -> int:
        """Return the end of the range that starts here, or -1."""
        index = bisect_left(self._starts, start)
        is_here = index < len(self._starts) and self._starts[index] == start
        return self._ends[index] if is_here else -1

    def outside(self, cuts: Iterable[int]) -> list[int]:
        """Return the cuts that divide no range."""
        return [cut for cut in cuts if self.start_of(cut) == cut]

    def guard(self, finder: Finder) -> Finder:
        """Return the finder of the same cuts, without those that divide a range."""
        if not self:
            return finder

        def last(low: int, high: int) -> int:
            cut = finder(low, high)
            while cut > low and (start := self.start_of(cut)) < cut:
                cut = finder(low, start) if start > low else -1
            return cut

        return last

    def is_in(self, start: int, end: int) -> bool:
        """Whether a range lies in this part of the text."""
        index = bisect_left(self._starts, start)
        return index < len(self._starts) and self._ends[index] <= end


class Fit(NamedTuple):
    """A structure under certain sizes: the measure of its text, and the ranges that fit."""

    sizes: Sizes
    measure: Measure
    unbreakable: Unbreakable
    closed: Unbreakable


class Structure:
    """Where a text may be cut, and what in it belongs together.

    Nothing passes over the text before it is needed: a level finds cuts when it is asked, and
    `unbreakable` is called only if the text does not fit into one chunk.

    Parameters:
        text: the text.
        levels: finders of cuts, the coarsest first. A finder `last(low, high)` returns the last cut
            above `low` and up to `high`, or -1.
        unbreakable: finds the ranges to keep whole if they fit, such as fences, rows and items;
            of nested ones the outermost that fits counts.
        closed: finds the ranges inside which no overlap begins, and before which it leaves room for
            them, if they fit; None: those that are unbreakable.
        keep_with_next: (text, low, cut) -> the start of the lines before a cut that belong to what
            follows it (headings, lead-ins, labels), or the cut; None: no line does.
        required: sorted offsets at which a new chunk begins.
        sentences: the offsets at which sentences begin, except the first; None: by our own rules.
        part: the part of the text to cut; None: all of it.
        resume: returns where the next chunk's own text begins after a cut, if text is dropped
            there; None: at the cut.
        whole_levels: how many of the levels cut between blocks. A chunk below the minimum size is
            preferred to a cut at the levels after them.
        indentation: returns the start of the indentation of the line that begins at an offset, if
            a chunk is to keep it, or the offset.

    >>> from rag_splitters.text.boundaries import words
    >>> structure = Structure("one two three", [words("one two three")])
    >>> structure.fit(Sizes(8)).measure.furthest(0, 8)
    8
    """

    def __init__(
        self,
        text: str,
        levels: Sequence[Finder] = (),
        unbreakable: Callable[[], Iterable[Range]] | None = None,
        closed: Callable[[], Iterable[Range]] | None = None,
        keep_with_next: Callable[[str, int, int], int] | None = lead_start,
        required: Sequence[int] = (),
        sentences: Sequence[int] | None = None,
        part: Range | None = None,
        resume: Callable[[int], int] | None = None,
        whole_levels: int = 0,
        indentation: Callable[[int], int] | None = None,
    ) -> None:
        self.text, self.levels, self.required, self.part = text, levels, required, part
        self.unbreakable, self.closed, self.keep_with_next = unbreakable, closed, keep_with_next
        self.sentences, self.resume, self.indentation = sentences, resume, indentation
        self.whole_levels = whole_levels
        self._fit: Fit | None = None
        self._measure: tuple[LengthFunction, Measure] | None = None

    def measure(self, sizes: Sizes) -> Measure:
        """Return the measure of the text. It is made once for each unit."""
        unit = sizes.length_function
        if self._measure is None or self._measure[0] is not unit:
            self._measure = unit, sizes.measure(self.text)
        return self._measure[1]

    def fit(self, sizes: Sizes) -> Fit:
        """Measure the text, and choose the unbreakable ranges that fit. Done once for each size."""
        if self._fit is None or (self._fit.sizes is not sizes and self._fit.sizes != sizes):
            measure = self.measure(sizes)
            unbreakable = _fitting(self.text, self.unbreakable, measure, sizes.size)
            closed = unbreakable
            if self.closed and sizes.overlap:
                closed = _fitting(self.text, self.closed, measure, sizes.size)
            self._fit = Fit(sizes, measure, unbreakable, closed)
        return self._fit


def _fitting(
    text: str, find: Callable[[], Iterable[Range]] | None, measure: Measure, size: int
) -> Unbreakable:
    """Return the outermost ranges that fit into a chunk."""
    ranges: list[Range] = []
    outer_end = 0
    for start, end in sorted(find(), key=outer_first) if find else ():
        if start >= outer_end and measure.fits(start, end, size):
            ranges.append((skip_space(text, start) if text[start].isspace() else start, end))
            outer_end = end
    return Unbreakable(ranges)


def outer_first(part: Range) -> tuple[int, int]:
    """Return the key by which ranges are sorted: outer ones before those inside them."""
    return part[0], -part[1]


def recursive_levels(text: str) -> list[Finder]:
    """Return the default levels of a text: paragraph, line, sentence, clause, word."""
    return [paragraphs(text), unwrapped_lines(text), sentences(text), clauses(text), words(text)]


def recursive_structure(text: str, required: Sequence[int] = ()) -> Structure:
    """Return the default structure of a text, with a new chunk at each of the required cuts."""
    return Structure(text, recursive_levels(text), required=required)
