"""Packs blocks into chunks: whole sections, blocks, items and rows, if they fit."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Any

from rag_splitters.span import Span
from rag_splitters.structure.blocks.block import Block
from rag_splitters.structure.blocks.indents import IndentPacker
from rag_splitters.text.boundaries import (
    Finder,
    at_cluster,
    lines,
    paragraphs,
    positions,
    sentences,
    skip_space,
    words,
)
from rag_splitters.text.overlaps import Overlap, tail_overlap
from rag_splitters.text.sizing import LengthFunction, Measure, sizer

_COARSE = 4
"""The number of levels that cut between blocks. The levels after them cut inside blocks."""

_LINED = frozenset(("code", "formula", "front_matter", "html", "rule"))
_PROSE = frozenset(("paragraph", "list_item", "quote", "heading", "image"))
_BAR = re.compile(r"(?<!\\)\|[ \t]*|\t")


def _section_breaks(
    blocks: Sequence[Block], measure: Measure, size: int
) -> tuple[list[int], set[int]]:
    """Return where new chunks begin, and the starts of the headings that stay with earlier text.

    Chunks begin at every section, except inside a section that fits in one chunk. There is no break
    between two headings without text between them. There is none either before a heading that is
    deeper than the first one of the chunk, if the text before it is less than a tenth of a chunk.
    """
    headings = [index for index, block in enumerate(blocks) if block.kind == "heading"]
    ends = _section_ends(blocks, headings)
    breaks: list[int] = []
    attached: set[int] = set()
    fitting = -1  # the end of a section that fits
    text = (block.start for block in blocks if block.kind != "front_matter")
    run, level = next(text, 0), 0  # the start of a chunk, and the level there
    for index, end in zip(headings, ends, strict=True):
        block = blocks[index]
        if block.start < fitting:
            continue
        before = blocks[index - 1] if index else block
        is_tiny = run < before.end and measure.length(run, before.end) * 10 < size
        if block is not before and (before.kind == "heading" or (level < block.level and is_tiny)):
            attached.add(block.start)
            level = min(level, block.level) or block.level
        else:
            run, level = block.start, block.level
            breaks.append(run)
        if measure.length(run, end) <= size:
            fitting = end
    return breaks, attached


def _section_ends(blocks: Sequence[Block], headings: Sequence[int]) -> list[int]:
    """Return the end of each heading's section, before the next heading that is not deeper."""
    ends = [blocks[-1].end if blocks else 0] * len(headings)
    open_headings: list[int] = []
    for number, index in enumerate(headings):
        while open_headings and blocks[headings[open_headings[-1]]].level >= blocks[index].level:
            ends[open_headings.pop()] = blocks[index - 1].end
        open_headings.append(number)
    return ends


def heads(heading: Block, block: Block) -> bool:
    """Whether `heading` is a heading to which the block right after it belongs."""
    if heading.kind != "heading" or block.kind == "dropped":
        return False
    return block.kind != "heading" or block.level > heading.level


def _block_levels(text: str, blocks: Sequence[Block], attached: Collection[int]) -> list[Finder]:
    """Return the levels of cuts, from coarse to fine. A heading stays with its text if possible.

    Parameters:
        text: the text.
        blocks: its blocks.
        attached: the starts of headings that stay with the few words before them.
    """
    following = [(one, block) for one, block in pairwise(blocks)]
    headings = [block.start for _, block in following if block.kind == "heading"]
    sections = [start for start in headings if start not in attached]
    groups = [b.start for one, b in following if not b.group or b.group != one.group]
    outer = [b.start for one, b in following if b.level < 2 or b.kind == "heading"]
    coarse = [sections, groups, outer, [block.start for _, block in following]]
    fine = [
        _inside(blocks, _LINED | {"list_item", "quote"}, paragraphs(text)),
        _inside(blocks, {"table"}, lines(text)),
        _inside(blocks, _LINED, lines(text)),
        _inside(blocks, {"table"}, _matches(text, _BAR)),
        _inside(blocks, _PROSE | {"table"}, sentences(text)),
    ]
    guard = _heading_guard(blocks)
    word = words(text)
    guarded = [guard(finder) for finder in [*map(positions, coarse), *fine, word]]
    return [*guarded, positions(coarse[-1]), word]


def _matches(text: str, pattern: re.Pattern[str]) -> Finder:
    """Cuts at the start of each match. The search is done at the first use."""
    finders: list[Finder] = []

    def last(low: int, high: int) -> int:
        if not finders:
            finders.append(positions([match.start() for match in pattern.finditer(text)]))
        return finders[0](low, high)

    return last


def _inside(blocks: Sequence[Block], kinds: Collection[str], finder: Finder) -> Finder:
    """Return the finder's cuts inside blocks of these kinds."""
    blocks = [block for block in blocks if block.kind in kinds]
    starts = [block.start for block in blocks]

    def last(low: int, high: int) -> int:
        index = bisect_left(starts, high) - 1
        while index >= 0 and blocks[index].end > low:
            block = blocks[index]
            cut = finder(max(low, block.start), min(high, block.end - 1))
            if cut > low:
                return cut
            index -= 1
        return -1

    return last


def _forbidding(finder: Finder, starts: Sequence[int], ends: Sequence[int]) -> Finder:
    """Return the finder's cuts outside these sorted zones, each `(start, end]`."""

    def last(low: int, high: int) -> int:
        cut = finder(low, high)
        while cut > low:
            zone = bisect_left(starts, cut) - 1
            if zone < 0 or cut > ends[zone]:
                return cut
            if starts[zone] <= low:
                return -1
            cut = finder(low, starts[zone])
        return -1

    return last


def _heading_guard(blocks: Sequence[Block]) -> Callable[[Finder], Finder]:
    """Forbids cuts inside a heading or a term, and between it and the block under it."""
    starts: list[int] = []
    ends: list[int] = []
    for one, block in pairwise(blocks):
        is_term = one.kind == "list_item" and one.title and one.group == block.group
        if not heads(one, block) and not is_term:
            continue
        if ends and ends[-1] == one.start:
            ends[-1] = block.start
        else:
            starts.append(one.start)
            ends.append(block.start)
    return lambda finder: _forbidding(finder, starts, ends)


_MARKER = re.compile(r"(?:[-+*]|\d{1,9}[.)])\s")


class _BlockPacker(IndentPacker):
    """A packer that prefers a chunk below `min_size` to cutting a block that fits.

    It keeps the indentation of list items and code, but not across a border.

    Parameters: those of `IndentPacker`, and
        blocks: the blocks of the text.
        borders: sorted offsets before which no indentation is kept.
    """

    def __init__(
        self, *arguments: Any, blocks: Sequence[Block], borders: Sequence[int], **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._borders = borders
        self._blocks = [block for block in blocks if block.kind in ("code", "list_item")]
        self._starts = [block.start for block in self._blocks]

    def indented(self, start: int) -> int:
        index = bisect_right(self._starts, start) - 1
        if index < 0 or start >= self._blocks[index].end:
            return start
        if self._blocks[index].kind == "list_item" and not _MARKER.match(self.text, start):
            return start
        line = super().indented(start)
        border = bisect_right(self._borders, start) - 1
        return max(line, self._borders[border]) if border >= 0 else line

    def best_cut(self, start: int, begin: int, high: int, limit: int) -> int:
        if self.min_size:
            least = max(begin, self.measure.furthest(start, self.min_size - 1))
            for low in (least, begin):
                for level in self.levels[:_COARSE]:
                    cut = level(low, high)
                    if cut > low and at_cluster(self.text, begin, cut):
                        lead = self.before_leads(begin, cut)
                        if lead > low:
                            return lead
        return super().best_cut(start, begin, high, limit)


def pack_blocks(
    text: str,
    blocks: Sequence[Block],
    *,
    size: int,
    overlap: int,
    length_function: LengthFunction,
    min_size: int = 0,
    breaks: Sequence[int] = (),
    apart: Collection[int] = (),
) -> list[Span]:
    """Pack blocks into spans of at most `size` units, and keep headings with their text.

    Parameters:
        text: the text.
        blocks: its blocks, without dropped ones.
        size: maximum chunk size, overlap included.
        overlap: maximum overlap.
        length_function: the unit of the sizes.
        min_size: smaller chunks are merged with a neighbour if the result fits.
        breaks: offsets at which a new chunk begins, in addition to the sections that do not fit.
            Such a chunk keeps no indentation from before the offset.
        apart: offsets at which a chunk begins without overlap.
    """
    measure = sizer(length_function)(text)
    sections, attached = _section_breaks(blocks, measure, size)
    packer = _BlockPacker(
        text,
        measure,
        size,
        _block_levels(text, blocks, attached),
        blocks=blocks,
        borders=breaks,
        breaks=sorted({*sections, *breaks}),
        repeated=overlap,
        overlap=_overlap(text, measure, overlap, size, apart) if overlap else None,
        min_size=min_size,
    )
    return [Span(start, end) for start, end in packer.pack()]


def _overlap(
    text: str, measure: Measure, overlap: int, size: int, apart: Collection[int]
) -> Overlap:
    """Return `tail_overlap`, but no overlap for chunks that begin at one of these offsets."""
    repeated = tail_overlap(text, measure, overlap, size)
    begins = {skip_space(text, offset) for offset in apart}

    def next_start(start: int, end: int, low: int) -> int:
        return -1 if begins and skip_space(text, end) in begins else repeated(start, end, low)

    return next_start
