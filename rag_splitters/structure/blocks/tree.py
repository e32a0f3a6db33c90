"""The tree of a document: sections, their subsections, and the pieces that they contain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag_splitters.structure.block import Block, find_sections
from rag_splitters.structure.blocks.layout import heads
from rag_splitters.text.boundaries import trim_space
from rag_splitters.text.leads import lead_start
from rag_splitters.text.sizing import Measure


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A part of a document, at a level of its tree.

    Parameters:
        start: offset of its first code point.
        end: offset after its last one.
        level: 0 for the document.
        is_leaf: whether it is a leaf, which contains no other part.
    """

    start: int
    end: int
    level: int
    is_leaf: bool = False


def sections(blocks: Sequence[Block]) -> list[Node]:
    """Return the document and its sections, each before its subsections.

    A heading with no text of its own belongs to its first subsection.
    """
    blocks = [block for block in blocks if block.kind != "dropped"]
    if not blocks:
        return []
    parts = find_sections(blocks)
    nodes = [Node(blocks[0].start, blocks[-1].end, 0)]
    for index, parent, end in parts:
        above = nodes[parent + 1]
        is_below = parent >= 0 and parts[parent].heading == index - 1
        start = above.start if is_below else blocks[index].start
        nodes.append(Node(start, end, above.level + 1))
    return nodes


def merged_units(text: str, blocks: Sequence[Block], measure: Measure, size: int) -> list[int]:
    """Return the starts of units, with tiny ones merged with a neighbour in their section.

    A unit is a paragraph, a whole list or quote, a code block or a table, each with the heading
    above it. If it has less than a tenth of `size`, it joins the next unit if both fit, else the
    previous one. A lead-in, such as a line that ends with a colon, joins the next unit as well.
    """
    section_starts = {node.start for node in sections(blocks)}
    starts = [block.start for block in blocks[:1]]
    for one, block in pairwise(blocks):
        if not heads(one, block) and (not block.group or block.group != one.group):
            starts.append(block.start)
    stops = [*starts[1:], len(text)] if starts else []

    def is_tiny(start: int, stop: int) -> bool:
        return measure.is_tiny(start, trim_space(text, start, stop), size)

    merged: list[int] = []
    for start, stop in zip(starts, stops, strict=True):
        if merged and start not in section_starts:
            group = merged[-1]
            belongs = is_tiny(group, start) or is_tiny(start, stop)
            belongs = belongs or lead_start(text, group, start) < start
            if belongs and measure.fits(group, trim_space(text, start, stop), size):
                continue
        merged.append(start)
    return merged


def family(nodes: Iterable[Node]) -> list[tuple[Node, int | None]]:
    """Return each node with the index of its parent, in order, parents before children.

    If several nodes have the same span, only the leaf is kept, or else the outermost one.

    >>> [parent for _, parent in family([Node(0, 9, 0), Node(0, 4, 1), Node(5, 9, 1)])]
    [None, 0, 0]
    """
    unique: dict[tuple[int, int], Node] = {}
    for node in sorted(
        nodes, key=lambda each: (each.start, -each.end, not each.is_leaf, each.level)
    ):
        unique.setdefault((node.start, node.end), node)
    members: list[tuple[Node, int | None]] = []
    above: list[int] = []
    for number, node in enumerate(unique.values()):
        while above and members[above[-1]][0].end < node.end:
            above.pop()
        members.append((node, above[-1] if above else None))
        if not node.is_leaf:
            above.append(number)
    return members
