"""Packing: the loop that cuts a text into chunks of a maximum size, with an overlap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from rag_splitters.span import Span
from rag_splitters.text.atoms import Atoms
from rag_splitters.text.boundaries import (
    Finder,
    at_cluster,
    cluster_end,
    cluster_floor,
    skip_space,
    trim_space,
)
from rag_splitters.text.leads import lead_start
from rag_splitters.text.overlaps import Overlap, exact_overlap, tail_overlap
from rag_splitters.text.sizing import LengthFunction, Measure, sizer


def pack(
    text: str,
    levels: Sequence[Finder],
    *,
    size: int,
    overlap: int,
    length_function: LengthFunction,
    breaks: Sequence[int] = (),
    min_size: int = 0,
    trim: bool = True,
    part: tuple[int, int] | None = None,
    resume: Callable[[int], int] | None = None,
    keep_leads: bool = True,
    atoms: Atoms | None = None,
    sentence_cuts: Sequence[int] | None = None,
    is_exact: bool = False,
) -> list[Span]:
    """Pack a text into spans of at most `size` units.

    Parameters: those of `Packer`, and
        overlap: maximum size of the tail that the next chunk repeats: whole sentences, or whole
            words if no sentence fits.
        length_function: the unit of the sizes.
        sentence_cuts: the offsets at which sentences begin, except the first; None: our own rules.
        is_exact: whether exactly `overlap` units are repeated instead.

    >>> from rag_splitters.text.boundaries import words
    >>> text = "one two three"
    >>> pack(text, [words(text)], size=8, overlap=0, length_function="characters")[1].text_of(text)
    'three'
    """
    measure = atoms.measure if atoms is not None else sizer(length_function)(text)
    repeat: Overlap | None = None
    if overlap and is_exact:
        repeat = exact_overlap(text, measure, overlap)
    elif overlap:
        repeat = tail_overlap(text, measure, overlap, size, sentence_cuts)
    packer = Packer(
        text,
        measure,
        size,
        levels,
        breaks=breaks,
        overlap=repeat,
        min_size=min_size,
        trim=trim,
        part=part,
        resume=resume,
        keep_leads=keep_leads,
        atoms=atoms,
    )
    return [Span(start, end) for start, end in packer.pack()]


class Packer:
    """Packs a text into chunks, from left to right.

    A chunk ends at the last cut that fits, on the coarsest level that has one, or else after the
    last grapheme cluster that fits. A cluster that is too big becomes a chunk of its own. A
    subclass can override `find_cut` and `best_cut` to keep other places together.

    Parameters:
        text: the text.
        measure: its measure.
        size: maximum chunk size, overlap included, in the measure's units.
        levels: finders of cuts, the coarsest first.
        breaks: offsets at which a new chunk begins, in ascending order.
        overlap: finds the place inside a chunk at which the next one starts; None: no overlap.
        min_size: smaller chunks are merged with a neighbour if the result fits.
        trim: whether to remove white space at the edges of chunks.
        part: the part of the text to pack; None: all of it.
        resume: finds the start of the next chunk's new text after a cut; None: the cut itself.
        keep_leads: whether to keep headings, lead-ins and so on with what follows them.
        atoms: parts of the text to keep whole.
    """

    def __init__(
        self,
        text: str,
        measure: Measure,
        size: int,
        levels: Sequence[Finder] = (),
        *,
        breaks: Sequence[int] = (),
        overlap: Overlap | None = None,
        min_size: int = 0,
        trim: bool = True,
        part: tuple[int, int] | None = None,
        resume: Callable[[int], int] | None = None,
        keep_leads: bool = True,
        atoms: Atoms | None = None,
    ) -> None:
        self.text = text
        self.measure = measure
        self.size = size
        self.levels = levels
        self.breaks = breaks
        self.overlap = overlap
        self.min_size = min_size
        self.trim = trim
        self.part = part or (0, len(text))
        self.resume = resume
        self.keep_leads = keep_leads
        self.atoms = atoms if atoms is not None and atoms.exist else None
        self._after_lead = -1  # the last cut that leaves a lead alone

    def pack(self) -> list[tuple[int, int]]:
        """Return (start, end) of every chunk, in order; blank text gives none."""
        text, trim, overlap, resume = self.text, self.trim, self.overlap, self.resume
        find_cut = self.find_cut
        begin, text_end = self.part  # the text that is in no chunk yet
        if trim:
            begin, text_end = skip_space(text, begin), trim_space(text, begin, text_end)
        chunks: list[tuple[int, int]] = []
        start = end = begin
        while begin < text_end:
            if overlap and start < end:
                start, cut = self._next_chunk(overlap, start, end, begin, text_end)
            else:
                start, cut = begin, find_cut(begin, begin, text_end)
                cut = cut if cut > begin else cluster_end(text, begin)
            end = trim_space(text, begin, cut) if trim and text[cut - 1].isspace() else cut
            if trim or not text[start:end].isspace():
                chunks.append((start, end))
            is_space = cut < text_end and text[cut].isspace()
            begin = self._next_begin(cut, text_end) if resume or is_space else cut
        return self._merge_last(chunks) if self.min_size else chunks

    def _cut_alone(self, begin: int, text_end: int) -> int:
        """Return the cut of the chunk that begins at `begin`, without an overlap."""
        cut = self.find_cut(begin, begin, text_end)
        return cut if cut > begin else cluster_end(self.text, begin)

    def _next_chunk(
        self, overlap: Overlap, start: int, end: int, begin: int, text_end: int
    ) -> tuple[int, int]:
        """Return the start and the cut of the chunk after the one from `start` to `end`.

        It has the longest overlap that leaves room for new text. If that room holds only a lead,
        such as a heading, the overlap leaves room for all text that would fit without an overlap.
        """
        next_start = overlap(start, end, 0)
        while next_start >= 0:
            cut = self.find_cut(next_start, begin, text_end)
            if cut > begin:
                break
            next_start = overlap(start, end, next_start + 1)
        else:
            return begin, self._cut_alone(begin, text_end)
        if cut != self._after_lead:
            return next_start, cut
        alone = self._cut_alone(begin, text_end)
        if alone == self._after_lead:
            return next_start, cut
        stop = trim_space(self.text, begin, alone) if self.trim else alone
        next_start = overlap(start, end, self.measure.earliest(stop, self.size))
        while next_start >= 0 and self.measure.length(next_start, stop) > self.size:
            next_start = overlap(start, end, next_start + 1)
        return next_start if next_start >= 0 else begin, alone

    def _next_begin(self, cut: int, text_end: int) -> int:
        """Return the start of the text after a cut."""
        begin = self.resume(cut) if self.resume else cut
        is_space = self.trim and begin < text_end and self.text[begin].isspace()
        return skip_space(self.text, begin) if is_space else begin

    def find_cut(self, start: int, begin: int, text_end: int) -> int:
        """Return the cut of the chunk from `start` whose new text begins at `begin`.

        It is `begin` itself if no new text fits.
        """
        text, measure, size, trim = self.text, self.measure, self.size, self.trim
        stop = self._next_break(start, begin, text_end) if self.breaks else text_end
        limit = measure.furthest(start, size)
        while limit > begin:
            if limit >= stop:
                cut = stop
            elif trim and text[limit].isspace() and self._may_trim_from(begin, limit):
                cut = self.best_cut(start, begin, min(skip_space(text, limit), stop), limit)
            else:
                cut = self.best_cut(start, begin, limit, limit)
            if measure.is_monotone:
                return cut
            end = trim_space(text, begin, cut) if trim else cut
            if end > begin and measure.length(start, end) <= size:
                return cut
            limit = min(end, limit) - 1  # the user's length function is not monotone: try less
        return begin

    def _may_trim_from(self, begin: int, limit: int) -> bool:
        """Whether the white space at `limit` can be trimmed off a chunk.

        It cannot if it belongs to the cluster of a prefix mark (U+0600) before it.
        """
        return trim_space(self.text, begin, limit + 1) <= limit

    def _next_break(self, start: int, begin: int, text_end: int) -> int:
        """Return the first break that leaves a chunk of at least `min_size`, or the end."""
        for index in range(bisect_right(self.breaks, begin), len(self.breaks)):
            stop = self.breaks[index]
            stop = self.atoms.start_of(stop) if self.atoms else stop
            if not at_cluster(self.text, begin, stop):
                stop = cluster_floor(self.text, begin, stop)
            if stop <= begin:
                continue
            if not self.min_size or self.measure.length(start, stop) >= self.min_size:
                return min(stop, text_end)
        return text_end

    def best_cut(self, start: int, begin: int, high: int, limit: int) -> int:
        """Return the last cut of the coarsest level between `begin` and `high`.

        A lead that would be alone is joined with part of what follows, if that is twice as long.
        """
        text, low = self.text, begin
        if self.min_size:
            low = max(begin, self.measure.furthest(start, self.min_size - 1))
        if self.atoms is not None and (atom_end := self.atoms.end_from(begin)) <= limit:
            low = max(low, atom_end - 1)
        is_bound = self.keep_leads or self.atoms is not None
        after_lead = -1  # the coarsest cut, if only a lead precedes it
        for level in self.levels:
            cut = level(low, high)
            while cut > low:
                if at_cluster(text, begin, cut):
                    lead = self.before_leads(begin, cut) if is_bound else cut
                    if lead > low:
                        if after_lead < 0 or lead - after_lead > 2 * (after_lead - begin):
                            return lead
                    elif after_lead < 0:
                        after_lead = self.before_atom(begin, cut)
                    break
                cut = level(low, cut - 1)
        cut = after_lead if after_lead >= 0 else cluster_floor(text, begin, limit)
        cut = self.before_atom(begin, cut)
        if after_lead >= 0:
            self._after_lead = cut
        return cut

    def before_leads(self, begin: int, cut: int) -> int:
        """Move a cut before the atom that it would divide, and the lines that belong to that."""
        if self.atoms is None:
            lead = lead_start(self.text, begin, cut) if self.keep_leads else cut
            return lead if lead == cut or at_cluster(self.text, begin, lead) else cut
        cut = self.before_atom(begin, cut)
        lead = lead_start(self.text, begin, cut) if self.keep_leads else cut
        if (atom := self.atoms.start_of(lead)) > begin:
            lead = atom
        return lead if lead == cut or at_cluster(self.text, begin, lead) else cut

    def before_atom(self, begin: int, cut: int) -> int:
        """Move a cut before the atom that it would divide."""
        atom = self.atoms.start_of(cut) if self.atoms is not None else cut
        return atom if begin < atom < cut and at_cluster(self.text, begin, atom) else cut

    def _merge_last(self, chunks: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Merge a last chunk below `min_size` with the one before, or move text to it."""
        text, measure = self.text, self.measure
        if len(chunks) < 2 or measure.length(*chunks[-1]) >= self.min_size:
            return chunks
        (start, middle), (_, end) = chunks[-2:]
        if measure.length(start, end) <= self.size:
            return [*chunks[:-2], (start, end)]
        high = min(measure.earliest(end, self.min_size), middle)
        cut = self.best_cut(start, start, high, high)
        first_end = trim_space(text, start, cut) if self.trim else cut
        last_start = self._next_begin(cut, end)
        overlap_start = self.overlap(start, first_end, 0) if self.overlap else -1
        last_start = overlap_start if overlap_start >= 0 else last_start
        fits = first_end > start and measure.length(last_start, end) <= self.size
        return [*chunks[:-2], (start, first_end), (last_start, end)] if fits else chunks
