"""Packs blocks into chunks: whole sections, blocks, items and rows, if they fit."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise

from rag_splitters.span import Span
from rag_splitters.structure.block import Block, find_sections
from rag_splitters.text.boundaries import (
    Finder,
    lazily,
    line_start,
    lines,
    paragraphs,
    positions,
    sentences,
    skip_space,
    words,
)
from rag_splitters.text.leads import lead_start
from rag_splitters.text.lines import LINE, LONGEST_MARK, is_item
from rag_splitters.text.packing import pack
from rag_splitters.text.sizing import Measure, Sizes
from rag_splitters.text.structure import Range, Structure, Unbreakable
from rag_splitters.text.wrapping import clauses, unwrapped_lines

_COARSE = 4
"""The number of levels that cut between blocks. The levels after them cut inside blocks."""

_LINED = frozenset(("code", "formula", "front_matter", "html", "rule"))
_PROSE = frozenset(("paragraph", "list_item", "quote", "heading", "image"))
_DELIMITED = _LINED | {"quote", "table"}
_BAR = re.compile(r"(?<!\\)\|[ \t]*|\t")


def _section_breaks(
    blocks: Sequence[Block], measure: Measure, size: int
) -> tuple[list[int], set[int]]:
    """Return where new chunks begin, and the starts of the headings that stay with earlier text.

    Chunks begin at every section, except inside a section that fits in one chunk. There is no break
    between two headings without text between them, and a subheading does not begin a chunk if less
    than a tenth of a chunk precedes it.
    """
    breaks: list[int] = []
    attached: set[int] = set()
    fitting = -1  # the end of a section that fits
    text = (block.start for block in blocks if block.kind != "front_matter")
    run, level = next(text, 0), 0  # the start of a chunk, and the level there
    for index, _, end in find_sections(blocks):
        block = blocks[index]
        if block.start < fitting:
            continue
        before = blocks[index - 1] if index else block
        is_tiny = run < before.end and measure.is_tiny(run, before.end, size)
        if block is not before and (before.kind == "heading" or (level < block.level and is_tiny)):
            attached.add(block.start)
            level = min(level, block.level) or block.level
        else:
            run, level = block.start, block.level
            breaks.append(run)
        if measure.fits(run, end, size):
            fitting = end
    return breaks, attached


def heads(heading: Block, block: Block) -> bool:
    """Whether `heading` is a heading to which the block right after it belongs."""
    if heading.kind != "heading" or block.kind == "dropped":
        return False
    return block.kind != "heading" or block.level > heading.level


def _block_levels(
    text: str, blocks: Sequence[Block], attached: Collection[int], kept: Unbreakable
) -> list[Finder]:
    """Return the levels of cuts, from coarse to fine. A heading stays with its text if possible.

    Parameters:
        text: the text.
        blocks: its blocks.
        attached: the starts of headings that stay with the few words before them.
        kept: see `_headings_with_text`.
    """
    following = [(one, block) for one, block in pairwise(blocks)]
    headings = [block.start for _, block in following if block.kind == "heading"]
    sections = [start for start in headings if start not in attached]
    groups = [b.start for one, b in following if not b.group or b.group != one.group]
    outer = [b.start for one, b in following if b.level < 2 or b.kind == "heading"]
    coarse = [sections, groups, outer, [block.start for _, block in following]]
    bars = lazily(lambda: [bar.start() for bar in _BAR.finditer(text)])
    fine = [
        _inside(blocks, _LINED | {"list_item", "quote"}, paragraphs(text)),
        _inside(blocks, {"table"}, lines(text)),
        _inside(blocks, _LINED, lines(text)),
        _inside(blocks, {"table"}, bars),
        _inside(blocks, _PROSE | {"table"}, sentences(text)),
        _inside(blocks, _PROSE, unwrapped_lines(text)),
        _inside(blocks, _PROSE, clauses(text)),
    ]
    word = words(text)
    guarded = [kept.guard(finder) for finder in [*map(positions, coarse), *fine, word]]
    return [*guarded, positions(headings), positions(coarse[-1]), word]


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


def _headings_with_text(blocks: Sequence[Block]) -> Unbreakable:
    """Return the headings and terms, each with the subheading or first character under it."""
    ranges: list[Range] = []
    for one, block in pairwise(blocks):
        is_term = one.kind == "list_item" and one.title and one.group == block.group
        if heads(one, block) or is_term:
            is_next = bool(ranges) and ranges[-1][1] > one.start
            start = ranges.pop()[0] if is_next else one.start
            ranges.append((start, block.end if block.kind == "heading" else block.start + 1))
    return Unbreakable(ranges)


def _keep_with_next(blocks: Sequence[Block], kept: Unbreakable) -> Callable[[str, int, int], int]:
    """Return the rule of leads for blocks: the last lines of code, a quote or a table are none.

    The line before the end of a delimited block looks like a heading that is underlined. The
    heading above a lead-in is a lead, too, in any format.
    """
    starts = [block.start for block in blocks]

    def leads_start(text: str, low: int, cut: int) -> int:
        start = lead_start(text, low, cut)
        block = blocks[max(bisect_left(starts, start + 1) - 1, 0)]
        is_inside = block.start < start < block.end <= cut
        if start < cut and is_inside and block.kind in _DELIMITED:
            return cut
        heading = kept.start_of(start)
        return heading if heading >= low else start

    return leads_start


def _indentation(
    text: str, blocks: Sequence[Block], boundaries: Sequence[int]
) -> Callable[[int], int]:
    """Return the indentation of items and code, from no further back than one of `boundaries`."""
    blocks = [block for block in blocks if block.kind in ("code", "list_item")]
    starts = [block.start for block in blocks]

    def indentation(start: int) -> int:
        index = bisect_right(starts, start) - 1
        if index < 0 or start >= blocks[index].end:
            return start
        if blocks[index].kind == "list_item" and not is_item(text[start : start + LONGEST_MARK]):
            return start
        boundary = bisect_right(boundaries, start) - 1
        return max(line_start(text, start), boundaries[boundary] if boundary >= 0 else 0)

    return indentation


def _whole_ranges(text: str, blocks: Sequence[Block]) -> Iterator[Range]:
    """Yield the blocks that stay whole if they fit, and the rows of tables."""
    for block in blocks:
        if block.kind == "table":
            yield from (row.span() for row in LINE.finditer(text, block.start, block.end))
        elif block.kind == "list_item" or block.kind in _DELIMITED:
            yield block.start, block.end


def pack_blocks(
    text: str,
    blocks: Sequence[Block],
    sizes: Sizes,
    *,
    required: Sequence[int] = (),
    without_overlap_at: Collection[int] = (),
) -> list[Span]:
    """Pack blocks into spans, and keep headings with their text.

    No chunk holds a dropped block.

    Parameters:
        text: the text.
        blocks: its blocks.
        sizes: the sizes of chunks and overlaps.
        required: offsets at which a new chunk begins, in addition to the sections that do not fit.
            Such a chunk keeps no indentation from before the offset.
        without_overlap_at: offsets at which a chunk begins without overlap.
    """
    dropped = {block.start: block.end for block in blocks if block.kind == "dropped"}
    blocks = [block for block in blocks if block.kind != "dropped"]
    kept = _headings_with_text(blocks)
    structure = Structure(
        text,
        closed=lambda: _whole_ranges(text, blocks),
        keep_with_next=_keep_with_next(blocks, kept),
        whole_levels=_COARSE,
        indentation=_indentation(text, blocks, required),
    )
    if dropped and blocks:
        structure.part = blocks[0].start, blocks[-1].end
        structure.resume = lambda cut: dropped.get(skip_space(text, cut), cut)
        required = [*required, *dropped, *(skip_space(text, end) for end in dropped.values())]
        without_overlap_at = {*without_overlap_at, *required}
    sections, attached = _section_breaks(blocks, structure.fit(sizes).measure, sizes.size)
    structure.levels = _block_levels(text, blocks, attached, kept)
    structure.required = sorted({*sections, *required})
    return pack(structure, sizes, without_overlap_at=without_overlap_at)
