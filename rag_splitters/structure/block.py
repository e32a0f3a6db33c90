"""Block: a heading, a table or another part of a document, by its position; and its format."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from rag_splitters.text.boundaries import boundary_after, boundary_before, skip_space, trim_space
from rag_splitters.text.excerpt import Replacement

Part = TypeVar("Part", bound=Any)
"""Anything with a start and an end."""

TextFormat: TypeAlias = Literal[
    "markdown",
    "html",
    "xml",
    "rst",
    "asciidoc",
    "org",
    "latex",
    "man",
    "mail",
    "csv",
    "tsv",
    "log",
    "subtitles",
    "code",
    "text",
]
"""The format in which to read the blocks and headings of a text."""

Kind: TypeAlias = Literal[
    "heading",
    "paragraph",
    "list_item",
    "quote",
    "code",
    "table",
    "formula",
    "image",
    "html",
    "rule",
    "front_matter",
    "dropped",
]
"""The kind of a block: "html" is an HTML block in Markdown, "dropped" a script or comment."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a text, such as a heading, a paragraph, a list item or a table.

    The blocks of a text are in order and do not overlap, and every character that is not white
    space is in one of them. All positions are code-point offsets.

    Parameters:
        kind: what it is.
        start: offset of its first code point. A Markdown block begins with the first character of
            a line that is not white space, an HTML block with its opening tags.
        end: offset after its last code point; the line break and white space after it are left out.
        level: the level of a heading, 1 to 6; the depth of a list item or a quote, from 1.
        title: the plain text of a heading, the language of a code block, the alternative text of an
            image, the caption of a table, the term of an HTML list of descriptions.
        group: a number above 0 that the blocks of one list, quote or figure share.

    >>> Block("heading", 0, 7, level=1, title="Title").level
    1
    """

    kind: Kind
    start: int
    end: int
    level: int = 0
    title: str = ""
    group: int = 0


def outermost(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield parts of a text in order, without those that begin inside another one."""
    end = 0
    for part in sorted(parts, key=lambda each: (each.start, -each.end)):
        if part.start >= end:
            yield part
            end = part.end


def clipped(text: str, blocks: Sequence[Block], start: int, end: int) -> list[Block]:
    """Return what is visible of the blocks in a part of a text: not dropped, and not blank.

    The first begins at a grapheme cluster, and the last ends at one.
    """
    first = max(bisect_right(blocks, start, key=lambda block: block.start) - 1, 0)
    inside: list[Block] = []
    for block in blocks[first : bisect_left(blocks, end, key=lambda block: block.start)]:
        low = skip_space(text, max(block.start, start))
        high = trim_space(text, low, min(block.end, end))
        if block.kind != "dropped" and low < high:
            inside.append(replace(block, start=low, end=high))
    if inside:
        inside[0] = replace(inside[0], start=boundary_before(text, inside[0].start))
        inside[-1] = replace(inside[-1], end=boundary_after(text, inside[-1].end))
    return inside


def without_dropped(text: str, visible: Sequence[Block]) -> list[Replacement]:
    """Return line breaks for what was dropped between these blocks; see `clipped`."""
    between = [(skip_space(text, one.end), other.start) for one, other in pairwise(visible)]
    return [(low, trim_space(text, low, high), "\n") for low, high in between if low < high]


def nesting(levels: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return, for headings of these levels, the heading above each, or -1, and the next beside it.

    A section ends at the next heading that is not deeper; the last sections end at `len(levels)`.

    >>> nesting([1, 2, 2, 1])
    ([-1, 0, 0, -1], [3, 2, 3, 4])
    """
    parents, stops = [], [len(levels)] * len(levels)
    open_headings: list[int] = []
    for index, level in enumerate(levels):
        while open_headings and levels[open_headings[-1]] >= level:
            stops[open_headings.pop()] = index
        parents.append(open_headings[-1] if open_headings else -1)
        open_headings.append(index)
    return parents, stops


class Section(NamedTuple):
    """A heading with the blocks under it.

    Parameters:
        heading: index of its heading among the blocks.
        parent: index of the section around it, or -1.
        end: end of its last block.
    """

    heading: int
    parent: int
    end: int


def find_sections(blocks: Sequence[Block]) -> list[Section]:
    """Return the sections of a text, each before its subsections; see `nesting`."""
    headings = [index for index, block in enumerate(blocks) if block.kind == "heading"]
    parents, stops = nesting([blocks[index].level for index in headings])
    starts = [*headings, len(blocks)]
    ends = [blocks[starts[stop] - 1].end for stop in stops]
    return list(map(Section, headings, parents, ends))
