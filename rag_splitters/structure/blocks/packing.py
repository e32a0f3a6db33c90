"""Packs the blocks of a text into chunks of a size."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from rag_splitters.span import Span
from rag_splitters.structure.blocks.block import Block
from rag_splitters.structure.blocks.indents import IndentPacker
from rag_splitters.structure.blocks.layout import COARSE, block_levels, section_breaks
from rag_splitters.text.boundaries import at_cluster, cluster_end, cluster_floor, skip_space
from rag_splitters.text.packing import Overlap, word_overlap
from rag_splitters.text.sizing import LengthFunction, Measure, sizer

__all__ = ["between_dropped", "pack_blocks"]


_MARKER = re.compile(r"(?:[-+*]|\d{1,9}[.)])\s")


class _BlockPacker(IndentPacker):
    """A packer that rather leaves a chunk below `min_size` than cuts a block that fits.

    Of the first lines of chunks it keeps the indentation of list items and in code, where that
    does not reach over a border.

    Parameters: those of `IndentPacker`, and
        blocks: the blocks of the text.
        borders: offsets, ascending, over which no indentation reaches.
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

    def _best(self, start: int, begin: int, high: int, limit: int) -> int:
        if self.min_size:
            least = max(begin, self.measure.furthest(start, self.min_size - 1))
            for low in (least, begin):
                for level in self.levels[:COARSE]:
                    cut = level(low, high)
                    if cut > low and at_cluster(self.text, begin, cut):
                        return cut
        return super()._best(start, begin, high, limit)


def pack_blocks(
    text: str,
    blocks: Sequence[Block],
    *,
    size: int,
    overlap: int,
    length_function: LengthFunction,
    min_size: int = 0,
    is_html: bool = False,
    breaks: Sequence[int] = (),
    apart: Collection[int] = (),
) -> list[Span]:
    """Spans of at most `size` units that keep blocks whole, and headings with what they head.

    Parameters:
        text: the text.
        blocks: its blocks, none of them dropped.
        size: the most that a chunk measures.
        overlap: how much of a chunk's tail the next one repeats.
        length_function: the unit of the sizes.
        min_size: chunks that measure less are merged with a neighbour where that fits.
        is_html: is it HTML, with its tags?
        breaks: where new chunks begin, besides the sections that do not fit as a whole; what
            begins there keeps no indentation from before.
        apart: beginnings of chunks that repeat nothing.
    """
    measure = sizer(length_function)(text)
    sections = section_breaks(blocks, measure, size)
    packer = _BlockPacker(
        text,
        measure,
        size,
        block_levels(text, blocks, is_html),
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
    """Whole words of the chunk before, but for chunks that begin at one of these offsets."""
    repeated = word_overlap(text, measure, overlap, size)
    begins = {skip_space(text, offset) for offset in apart}

    def next_start(start: int, end: int, after: int) -> int:
        return -1 if begins and skip_space(text, end) in begins else repeated(start, end, after)

    return next_start


def between_dropped(text: str, blocks: Sequence[Block]) -> Iterator[tuple[int, str, list[Block]]]:
    """The parts of a text between its dropped blocks: offset, text, and blocks at their places."""
    kept: list[Block] = []
    for block in [*blocks, Block("dropped", len(text), len(text))]:
        if block.kind != "dropped":
            kept.append(block)
            continue
        if kept:
            first, last = kept[0].start, kept[-1].end
            start = cluster_floor(text, max(first - 64, 0), first)
            end = last if at_cluster(text, start, last) else cluster_end(text, last - 1)
            yield start, text[start:end], [_moved(each, -start) for each in kept]
        kept = []


def _moved(block: Block, offset: int) -> Block:
    return replace(
        block,
        start=block.start + offset,
        end=block.end + offset,
        content_start=block.content_start + offset,
        content_end=block.content_end + offset,
    )
