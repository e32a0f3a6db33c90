"""Packing: the loop that cuts a text into chunks of a maximum size, with an overlap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import Literal, TypeAlias

from rag_splitters.span import Span
from rag_splitters.text.boundaries import (
    Finder,
    at_cluster,
    cluster_end,
    cluster_floor,
    next_word,
    skip_space,
    trim_space,
)
from rag_splitters.text.lines import SPACE
from rag_splitters.text.overlaps import ExactOverlap, Overlap, TailOverlap
from rag_splitters.text.sentences import last_sentence_cut, space_start
from rag_splitters.text.sizing import Sizes
from rag_splitters.text.structure import Structure

_CLAUSE_ENDS = frozenset(",;.!?，；、")
"""What precedes a cut that is inside a sentence, but not inside a clause."""

Piece: TypeAlias = tuple[int, int, int]
"""A chunk while it is packed: its start, where its own text begins, and its end."""

Cut: TypeAlias = tuple[int, int]
"""Where a chunk ends, and what is wrong with this cut: 0 (nothing), AFTER_LEAD or INSIDE_WORD."""

AFTER_LEAD = 1
"""Only a lead, such as a heading, precedes the cut."""

INSIDE_WORD = 2
"""No word ends early enough."""


def pack(
    structure: Structure,
    sizes: Sizes,
    *,
    repeat: Overlap | None = None,
    trim: bool = True,
    without_overlap_at: Collection[int] = (),
    last: Span | None = None,
) -> list[Span]:
    """Cut a text into spans of at most `sizes.size` units, from left to right.

    A chunk ends at the last cut that fits, on the coarsest level that has one, or else after the
    last grapheme cluster that fits. The cut moves before lines that must keep with what follows,
    and out of what is unbreakable. The next chunk begins with an overlap that obeys the same rules.
    A cluster that is too big becomes a chunk of its own.

    Parameters:
        structure: the text, and where it may be cut.
        sizes: the sizes of chunks and overlaps.
        repeat: finds the start of the next chunk inside the last one; None: whole sentences, else
            lines, else clauses, else words.
        trim: whether to remove white space at the edges of chunks.
        without_overlap_at: offsets at which a chunk begins without an overlap.
        last: a chunk that was cut already; the text after it is cut.

    Returns: the spans, each with the start of its own text after the overlap.

    >>> from rag_splitters.text.boundaries import words
    >>> text = "one two three"
    >>> pack(Structure(text, [words(text)]), Sizes(8))[1].text_of(text)
    'three'
    """
    text = structure.text
    begin, end = structure.part or (0, len(text))
    begin = last.end if last else begin
    if trim:
        begin, end = skip_space(text, begin), trim_space(text, begin, end)
    if begin >= end or (not trim and text[begin:end].isspace()):
        return []
    if last is None and _is_whole(structure, sizes, begin, end):
        return [Span(begin, end, own_start=begin)]
    if repeat is None and sizes.overlap:
        repeat = TailOverlap(structure, sizes).next_start
    packer = _Packer(structure, sizes, end, trim, repeat, without_overlap_at)
    pieces = packer.pieces(begin, last)
    if sizes.min_size:
        pieces = packer.merge_small(pieces)
    if structure.indentation:
        pieces = packer.with_indentation(pieces)
    return [Span(start, end, own_start=own) for start, own, end in pieces]


def pack_windows(text: str, sizes: Sizes, trim: bool, last: Span | None = None) -> list[Span]:
    """Cut a text into windows of exactly `sizes.size` units that overlap by exactly the overlap.

    With `last`, a window that was cut already, it cuts the text after it.
    """
    structure = Structure(text)
    overlap = ExactOverlap(text, structure.fit(sizes).measure, sizes.overlap, trim).next_start
    return pack(structure, sizes, repeat=overlap if sizes.overlap else None, trim=trim, last=last)


def _is_whole(structure: Structure, sizes: Sizes, begin: int, end: int) -> bool:
    """Whether a text fits into one chunk, so that nothing needs to be looked for."""
    if structure.required or structure.indentation is not None:
        return False
    if sizes.length_function == "characters":
        return end - begin <= sizes.size
    return structure.measure(sizes).fits(begin, end, sizes.size)


def _divided(text: str, low: int, cut: int) -> Literal["", "sentence", "clause"]:
    """Return what a cut divides, unless it is at the end of a line or a sentence.

    >>> [_divided("Tea is hot, or not. It is.", 0, cut) for cut in (7, 12, 20)]
    ['clause', 'sentence', '']
    """
    end = space_start(text, low, cut)
    if text.find("\n", end, cut) >= 0 or last_sentence_cut(text, cut - 1, cut) == cut:
        return ""
    if text[end - 1] in _CLAUSE_ENDS:
        return "sentence"
    return "clause" if text[cut - 1] == " " else ""


def _nowhere(start: int, end: int, low: int) -> int:
    """Return -1, the overlap of strategies without one."""
    return -1


class _Packer:
    """Answers where the chunks of one text begin and end."""

    def __init__(
        self,
        structure: Structure,
        sizes: Sizes,
        text_end: int,
        trim: bool,
        repeat: Overlap | None,
        without_overlap_at: Collection[int],
    ) -> None:
        text = structure.text
        self.text, self.structure, self.text_end = text, structure, text_end
        self.size, self.overlap, _, self.min_size = sizes
        self.levels, self.required = structure.levels, structure.required
        self.keep_with_next = structure.keep_with_next
        _, self.measure, unbreakable, closed = structure.fit(sizes)
        self.unbreakable, self.closed = unbreakable or None, closed or None
        self.trim, self.repeat, self.repeats = trim, repeat or _nowhere, repeat is not None
        self.apart = {skip_space(text, offset) for offset in without_overlap_at}

    def pieces(self, begin: int, last: Span | None) -> list[Piece]:
        """Return the chunks of the text from `begin` on, after the chunk `last`."""
        text, trim, text_end = self.text, self.trim, self.text_end
        pieces: list[Piece] = []
        start, end = (last.start, last.end) if last else (begin, begin)
        while begin < text_end:
            if self.repeats and start < end and begin not in self.apart:
                first, cut = self.next_chunk(start, end, begin)
            else:
                first, cut = begin, self.cut_alone(begin)[0]
            if trim or not text[begin:cut].isspace():
                start = first
                end = trim_space(text, begin, cut) if trim and text[cut - 1].isspace() else cut
                pieces.append((start, begin, end))
            elif first < begin:
                cut = skip_space(text, cut)  # nothing else fits after the overlap
            else:
                start = end  # what stands before a whole window of white space is not repeated
            begin = self.next_begin(cut)
        return pieces

    def next_begin(self, cut: int) -> int:
        """Return the start of the text after a cut."""
        begin = self.structure.resume(cut) if self.structure.resume else cut
        is_space = self.trim and begin < self.text_end and self.text[begin].isspace()
        return skip_space(self.text, begin) if is_space else begin

    def cut_alone(self, begin: int) -> Cut:
        """Return the cut of the chunk that begins at `begin`, without an overlap."""
        if self.structure.indentation and (line := self.indented(begin)) < begin:
            cut = self.find_cut(line, begin)
            if cut[0] > begin:
                return cut
        cut = self.find_cut(begin, begin)
        if cut[0] > begin:
            return cut
        whole = self.unbreakable.end_from(begin) if self.unbreakable else -1
        return max(whole, cluster_end(self.text, begin)), 0

    def next_chunk(self, start: int, end: int, begin: int) -> tuple[int, int]:
        """Return the start and the cut of the chunk after the one from `start` to `end`.

        It has the longest overlap that leaves room for new text: for a whole word and, if that room
        holds only a lead, such as a heading, for all text that would fit without an overlap.
        """
        low, stop = 0, begin
        if self.closed is not None and (whole := self.closed.end_from(begin)) > begin:
            line = self.indented(begin)
            if line == begin or self.measure.fits(line, whole, self.size):
                low, stop = self.earliest_before(whole), whole  # it must fit after the overlap
        if end < begin and not self.trim:  # after white space that may fill a chunk
            low = max(low, self.earliest_before(begin + 1))
        is_sure = stop == begin or self.measure.is_monotone
        next_start = self.repeat(start, end, low)
        while next_start >= 0:
            if is_sure or self.measure.fits(next_start, stop, self.size):
                cut, fault = self.find_cut(next_start, begin)
                if cut > begin:
                    break
            next_start = self.repeat(start, end, next_start + 1)
        else:
            return begin, self.cut_alone(begin)[0]
        if not fault:
            return next_start, cut
        is_inside_word = fault == INSIDE_WORD
        alone, fault = self.cut_alone(begin)
        if fault == INSIDE_WORD or (fault and alone == cut):
            return next_start, cut
        if is_inside_word and (space := SPACE.search(self.text, skip_space(self.text, begin))):
            low = self.measure.earliest(space.start(), self.size)
            next_start = self.repeat(start, end, low)
            while next_start >= 0:
                cut, fault = self.find_cut(next_start, begin)
                if cut > begin and not fault:
                    alone = cut
                    break
                next_start = self.repeat(start, end, next_start + 1)
        stop = trim_space(self.text, begin, alone) if self.trim else alone
        return self.start_after([(start, start, end)], begin, stop), alone

    def start_after(self, pieces: Sequence[Piece], begin: int, stop: int) -> int:
        """Return the start of the next chunk, whose own text is from `begin` to `stop`.

        It has the longest overlap with the last chunk that leaves room for that text.
        """
        if not pieces or begin in self.apart:
            return begin
        start, _, end = pieces[-1]
        next_start = self.repeat(start, end, self.earliest_before(stop))
        while next_start >= 0 and not self.measure.fits(next_start, stop, self.size):
            next_start = self.repeat(start, end, next_start + 1)
        return next_start if next_start >= 0 else begin

    def earliest_before(self, end: int) -> int:
        """Return the earliest start of a chunk that ends at `end`, or one that is a little too big.

        A tokenizer may measure a part longer than the whole, so an earlier start may fit after all.
        """
        return self.measure.earliest(end, self.size + (not self.measure.is_monotone))

    def find_cut(self, start: int, begin: int) -> Cut:
        """Return the cut of the chunk from `start` whose own text begins at `begin`.

        It is `begin` itself if no new text fits.
        """
        text, measure, size, trim = self.text, self.measure, self.size, self.trim
        stop = self.next_required(start, begin) if self.required else self.text_end
        limit = measure.furthest(start, size)
        while limit > begin:
            if limit >= stop:
                cut = stop, 0
            elif trim and text[limit].isspace() and self.may_trim_from(begin, limit):
                cut = self.last_cut(start, begin, min(skip_space(text, limit), stop), limit)
            else:
                cut = self.last_cut(start, begin, limit, limit)
            is_near = stop - limit < limit - start  # else the rest needs no measuring
            if self.min_size and is_near and begin < cut[0] < stop:
                cut = self.with_large_rest(start, begin, cut, stop)
            if measure.is_monotone:
                return cut
            end = trim_space(text, begin, cut[0]) if trim else cut[0]
            if end > begin and measure.fits(start, end, size):
                return cut
            limit = min(end, limit) - 1  # the user's length function is not monotone: try less
        return begin, 0

    def with_large_rest(self, start: int, begin: int, cut: Cut, stop: int) -> Cut:
        """Return an earlier cut, as good, if what follows up to `stop` would be too small."""
        if not self.is_small(cut[0], stop):
            return cut
        high = min(self.measure.earliest(stop, self.min_size), cut[0])
        earlier = self.last_cut(start, begin, high, high) if high > begin else cut
        is_worse = earlier[1] > cut[1] or self.is_small(begin, earlier[0])
        return cut if is_worse or earlier[0] <= begin else earlier

    def is_small(self, start: int, end: int) -> bool:
        """Whether a chunk would be below `min_size`."""
        return self.measure.fits(start, end, self.min_size - 1)

    def may_trim_from(self, begin: int, limit: int) -> bool:
        """Whether the white space at `limit` can be trimmed off a chunk.

        It cannot if it belongs to the cluster of a prefix mark (U+0600) before it.
        """
        return trim_space(self.text, begin, limit + 1) <= limit

    def next_required(self, start: int, begin: int) -> int:
        """Return the first required cut that leaves a chunk of at least `min_size`, or the end."""
        for index in range(bisect_right(self.required, begin), len(self.required)):
            stop = self.required[index]
            stop = self.unbreakable.start_of(stop) if self.unbreakable else stop
            if not at_cluster(self.text, begin, stop):
                stop = cluster_floor(self.text, begin, stop)
            if stop <= begin:
                continue
            if not self.is_small(start, stop) or stop in self.apart:
                return min(stop, self.text_end)
        return self.text_end

    def last_cut(self, start: int, begin: int, high: int, limit: int) -> Cut:
        """Return the last cut of the coarsest level, or else after the last cluster that fits."""
        cut = (
            self.coarsest_cut(start, begin, high, limit)
            if self.min_size
            else self.level_cut(start, begin, begin, high, limit)
        )
        if cut is not None:
            return cut
        place = self.before_unbreakable(begin, cluster_floor(self.text, begin, limit))
        is_sure = self.measure.is_monotone and bool(self.levels)
        if not is_sure or place >= len(self.text) or self.text[place].isspace():
            return place, 0
        return place, 0 if next_word(self.text, place, place + 1) == place else INSIDE_WORD

    def coarsest_cut(self, start: int, begin: int, high: int, limit: int) -> Cut | None:
        """Return the last cut of the coarsest level, if possible one that leaves `min_size`."""
        least = max(begin, self.measure.furthest(start, self.min_size - 1))
        if self.structure.whole_levels and (whole := self.whole_cut(least, begin, high)) >= 0:
            return whole, 0
        cut = self.level_cut(start, begin, least, high, limit)
        return cut or self.level_cut(start, begin, begin, high, limit)

    def level_cut(self, start: int, begin: int, low: int, high: int, limit: int) -> Cut | None:
        """Return the last cut of the coarsest level between `low` and `high`, or None."""
        unbreakable = self.unbreakable
        if unbreakable and (whole := unbreakable.end_from(begin)) > begin:
            if whole > limit:  # it fits only without the overlap
                return begin, 0
            low = max(low, whole - 1)
        is_bound = self.keep_with_next is not None or unbreakable is not None
        for number, level in enumerate(self.levels):
            cut = level(low, high)
            while cut > low and not at_cluster(self.text, begin, cut):
                cut = level(low, cut - 1)
            if cut > low:
                lead = self.before_leads(begin, cut) if is_bound else cut
                if lead > low:
                    return lead, 0
                after_lead = self.before_unbreakable(begin, cut)
                rest = self.levels[number + 1 :]
                cut = self.cut_after_lead(rest, begin, low, high, after_lead)
                return (cut, 0) if cut > low else (after_lead, AFTER_LEAD)
        return None

    def cut_after_lead(
        self, levels: Sequence[Finder], begin: int, low: int, high: int, after_lead: int
    ) -> int:
        """Return a cut of finer levels, with enough text after the lead before `after_lead`; or -1.

        Enough is more text than the lead, or twice as much if the cut is inside a clause. Then all
        of the lines before that cut are enough. If only a cut that divides a sentence leaves enough
        text, a sentence or a line that ends after the lead is enough, too.
        """
        text, length = self.text, self.measure.length
        lead_length = length(begin, after_lead)
        whole = -1  # the coarsest cut after too little text that divides no sentence
        for level in levels:
            cut = level(low, high)
            while cut > low and not at_cluster(text, begin, cut):
                cut = level(low, cut - 1)
            if cut <= low or (cut := self.before_leads(begin, cut)) <= low:
                continue
            divided = _divided(text, low, cut)
            is_inside = divided == "clause"
            if length(after_lead, cut) <= lead_length * (1 + is_inside):
                if whole < 0 and not divided and cut > after_lead:
                    whole = cut
                continue
            if divided and whole >= 0:
                return whole
            line = text.rfind("\n", skip_space(text, after_lead), cut) + 1 if is_inside else 0
            if not line:
                return cut
            if (line := self.before_leads(begin, line)) > low:
                return line
        return -1

    def whole_cut(self, least: int, begin: int, high: int) -> int:
        """Return the last cut between blocks, if possible after `least`; or -1."""
        for low in (least, begin):
            for level in self.levels[: self.structure.whole_levels]:
                cut = level(low, high)
                if cut > low and at_cluster(self.text, begin, cut):
                    lead = self.before_leads(begin, cut)
                    if lead > low:
                        return lead
        return -1

    def before_leads(self, begin: int, cut: int) -> int:
        """Move a cut out of what is unbreakable, and before the lines that belong to that."""
        inner = self.before_unbreakable(begin, cut) if self.unbreakable else cut
        if self.keep_with_next is None:
            return inner
        lead = self.keep_with_next(self.text, begin, inner)
        if self.unbreakable and begin < (whole := self.unbreakable.start_of(lead)) < lead:
            above = self.keep_with_next(self.text, begin, whole)  # such as the heading of a list
            lead = self.before_unbreakable(begin, above) if above > begin else whole
        return lead if lead == cut or at_cluster(self.text, begin, lead) else inner

    def before_unbreakable(self, begin: int, cut: int) -> int:
        """Move a cut before the unbreakable range that it would divide."""
        whole = self.unbreakable.start_of(cut) if self.unbreakable else cut
        return whole if begin < whole < cut and at_cluster(self.text, begin, whole) else cut

    def merge_small(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Merge each chunk below `min_size` with the one before or, else, the next, if both fit."""
        merged: list[Piece] = []
        was_small = was_merged = False
        for start, own, end in pieces:
            if was_merged:
                start = self.start_after(merged, own, end)
            is_small = self.is_small(start, end)
            may_merge = bool(merged) and (is_small or was_small) and own not in self.apart
            was_merged = may_merge and self.measure.fits(merged[-1][0], end, self.size)
            if was_merged:
                merged[-1] = (merged[-1][0], merged[-1][1], end)
                is_small = self.is_small(merged[-1][0], end)
            else:
                merged.append((start, own, end))
            was_small = is_small
        return merged

    def indented(self, start: int) -> int:
        """Return the start of the indentation before `start`, if it leaves half of a chunk."""
        line = self.structure.indentation(start) if self.structure.indentation else start
        return line if self.measure.length(line, start) * 2 <= self.size else start

    def with_indentation(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Add the indentation of its first line to each chunk in which there is room for it."""
        length, results = self.measure.length, list[Piece]()
        for start, own, end in pieces:
            line = self.indented(start)
            last_start, _, last_end = results[-1] if results else (0, 0, 0)
            repeated = length(line, last_end) if line < last_end else 0
            keeps = line >= last_start and repeated <= self.overlap
            if keeps and self.measure.fits(line, end, self.size):
                results.append((line, max(line, last_end) if start == own else own, end))
            else:
                results.append((start, own, end))
        return results
