"""Where may a text of blocks be cut? Between sections, blocks, items, rows, lines, sentences."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from rag_splitters.structure.blocks.block import Block
from rag_splitters.structure.blocks.tags import Tag, scan_tags
from rag_splitters.text.boundaries import Finder, lines, paragraphs, positions, sentences, words
from rag_splitters.text.sizing import Measure

__all__ = ["COARSE", "block_levels", "heads", "section_breaks"]

COARSE = 4
"""How many of the levels cut between blocks; those that follow cut inside them."""

_LINED = frozenset(("code", "formula", "front_matter", "html", "rule"))
_PROSE = frozenset(("paragraph", "list_item", "quote", "heading", "image"))
_ROW = re.compile(r"<tr\b", re.IGNORECASE)
_CELL = re.compile(r"<t[dh]\b", re.IGNORECASE)
_BAR = re.compile(r"(?<!\\)\|[ \t]*|\t")


def section_breaks(blocks: Sequence[Block], measure: Measure, size: int) -> list[int]:
    """Where new chunks begin: at every section, but inside those that fit in one chunk as a whole.

    None begins between a heading and the deeper one right below it.
    """
    headings = [index for index, block in enumerate(blocks) if block.kind == "heading"]
    ends = _section_ends(blocks, headings)
    breaks: list[int] = []
    fitting = run = -1  # where a section that fits ends, where a row of headings begins
    for index, end in zip(headings, ends, strict=True):
        block = blocks[index]
        if block.start < fitting:
            continue
        if not (index and heads(blocks[index - 1], block)):
            run = block.start
            breaks.append(run)
        if measure.length(run, end) <= size:
            fitting = end
    return breaks


def _section_ends(blocks: Sequence[Block], headings: Sequence[int]) -> list[int]:
    """Where the section of each heading ends: before the next one that is not deeper."""
    ends = [blocks[-1].end if blocks else 0] * len(headings)
    opened: list[int] = []
    for number, index in enumerate(headings):
        while opened and blocks[headings[opened[-1]]].level >= blocks[index].level:
            ends[opened.pop()] = blocks[index - 1].end
        opened.append(number)
    return ends


def heads(heading: Block, block: Block) -> bool:
    """Is `heading` a heading that the block right behind it stands under?"""
    if heading.kind != "heading" or block.kind == "dropped":
        return False
    return block.kind != "heading" or block.level > heading.level


def block_levels(text: str, blocks: Sequence[Block], is_html: bool = False) -> list[Finder]:
    """The finders of cuts, the coarsest first; a heading is last only where not a word fits in.

    Parameters:
        text: the text.
        blocks: its blocks.
        is_html: is it HTML with its tags, inside which nothing is cut?
    """
    following = [(one, block) for one, block in pairwise(blocks)]
    sections = [block.start for one, block in following if block.kind == "heading"]
    groups = [b.start for one, b in following if not b.group or b.group != one.group]
    outer = [b.start for one, b in following if b.level < 2 or b.kind == "heading"]
    coarse = [sections, groups, outer, [block.start for _, block in following]]
    found = list(scan_tags(text)) if is_html else []
    tags = _tag_guard(found)
    rows = _matches(text, _ROW) if is_html else lines(text)
    cells = _matches(text, _CELL) if is_html else _matches(text, _BAR)
    spaced = _LINED if is_html else _LINED | {"list_item", "quote"}
    fine = [
        _inside(blocks, spaced, tags(paragraphs(text))),
        _inside(blocks, {"table"}, rows),
        _inside(blocks, _LINED, tags(lines(text))),
        _inside(blocks, {"table"}, cells),
        _inside(blocks, _PROSE | {"table"}, tags(sentences(text))),
    ]
    guard = _heading_guard(blocks)
    word = tags(words(text))
    guarded = [guard(finder) for finder in [*map(positions, coarse), *fine, word]]
    return [*guarded, positions(coarse[-1]), word, *([_edges(found)] if is_html else [])]


def _edges(tags: Sequence[Tag]) -> Finder:
    """Finds the edges of tags, for where nothing better is found."""
    starts, ends = positions([tag.start for tag in tags]), positions([tag.end for tag in tags])
    return lambda low, high: max(starts(low, high), ends(low, high))


def _matches(text: str, pattern: re.Pattern[str]) -> Finder:
    """Finds the beginnings of matches, which are looked for when first asked."""
    known: list[Finder] = []

    def last(low: int, high: int) -> int:
        if not known:
            known.append(positions([match.start() for match in pattern.finditer(text)]))
        return known[0](low, high)

    return last


def _inside(blocks: Sequence[Block], kinds: Collection[str], finder: Finder) -> Finder:
    """The finder's cuts that are inside blocks of these kinds."""
    chosen = [block for block in blocks if block.kind in kinds]
    starts = [block.start for block in chosen]

    def last(low: int, high: int) -> int:
        index = bisect_left(starts, high) - 1
        while index >= 0 and chosen[index].end > low:
            block = chosen[index]
            found = finder(max(low, block.start), min(high, block.end - 1))
            if found > low:
                return found
            index -= 1
        return -1

    return last


def _forbidding(finder: Finder, starts: Sequence[int], ends: Sequence[int]) -> Finder:
    """The finder's cuts that are not in `(start, end]` of any of these ascending zones."""

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
    """Forbids cuts in a heading that heads something, and between it and what it heads."""
    starts: list[int] = []
    ends: list[int] = []
    for one, block in pairwise(blocks):
        if not heads(one, block):
            continue
        if ends and ends[-1] == one.start:
            ends[-1] = block.start
        else:
            starts.append(one.start)
            ends.append(block.start)
    return lambda finder: _forbidding(finder, starts, ends)


def _tag_guard(tags: Sequence[Tag]) -> Callable[[Finder], Finder]:
    """Forbids cuts inside a tag."""
    if not tags:
        return lambda finder: finder
    starts, ends = [tag.start for tag in tags], [tag.end - 1 for tag in tags]
    return lambda finder: _forbidding(finder, starts, ends)
