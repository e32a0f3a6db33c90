"""The tree of a document: which spans contain which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag_splitters.structure.blocks.block import Block
from rag_splitters.structure.blocks.layout import heads

__all__ = ["Node", "family", "sections", "units"]


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A part of a document at a level of its tree.

    Parameters:
        start: offset of its first code point.
        end: offset after its last one.
        level: 0 for the document.
        is_leaf: is it one of those that no other is part of?
    """

    start: int
    end: int
    level: int
    is_leaf: bool = False


def sections(blocks: Sequence[Block]) -> list[Node]:
    """The document and its sections, each before its subsections.

    A heading without text of its own goes with its first subsection.
    """
    kept = [block for block in blocks if block.kind != "dropped"]
    if not kept:
        return []
    opened: list[tuple[int, int]] = []  # heading level, index in found
    found: list[list[int]] = [[kept[0].start, kept[-1].end, 0]]
    previous: Block | None = None
    for block in kept:
        if block.kind == "heading":
            while opened and opened[-1][0] >= block.level:
                found[opened.pop()[1]][1] = previous.end if previous else block.start
            start = block.start
            if previous and opened and heads(previous, block):
                start = found[opened[-1][1]][0]
            opened.append((block.level, len(found)))
            found.append([start, kept[-1].end, len(opened)])
        previous = block
    return [Node(start, end, level) for start, end, level in found]


def units(blocks: Sequence[Block]) -> list[int]:
    """Where paragraphs and what stands beside them begin: whole lists and quotes, code, tables.

    What follows a heading begins with the heading.
    """
    starts = [block.start for block in blocks[:1]]
    for one, block in pairwise(blocks):
        if not heads(one, block) and (not block.group or block.group != one.group):
            starts.append(block.start)
    return starts


def family(nodes: Iterable[Node]) -> list[tuple[Node, int | None]]:
    """Each node with the number of its parent in the list: parents before children, by position.

    Of nodes with the same span only the leaf, or else the outermost one, is kept.

    >>> [parent for _, parent in family([Node(0, 9, 0), Node(0, 4, 1), Node(5, 9, 1)])]
    [None, 0, 0]
    """
    kept: dict[tuple[int, int], Node] = {}
    for node in sorted(nodes, key=_order):
        kept.setdefault((node.start, node.end), node)
    members: list[tuple[Node, int | None]] = []
    above: list[int] = []
    for number, node in enumerate(kept.values()):
        while above and not _contains(members[above[-1]][0], node):
            above.pop()
        members.append((node, above[-1] if above else None))
        if not node.is_leaf:
            above.append(number)
    return members


def _order(node: Node) -> tuple[int, int, bool, int]:
    return node.start, -node.end, not node.is_leaf, node.level


def _contains(outer: Node, inner: Node) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end
