"""The parts of an HTML text that are left out of chunks: head, scripts, styles and comments."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from rag_splitters.structure.block import Block
from rag_splitters.text.boundaries import (
    boundary_after,
    boundary_before,
    skip_space,
    trim_space,
)
from rag_splitters.text.excerpt import Replacement


class Dropped:
    """The dropped blocks of a text.

    Parameters:
        text: the text.
        blocks: its blocks.
    """

    def __init__(self, text: str, blocks: Sequence[Block] = ()) -> None:
        self.text = text
        dropped = [block for block in blocks if block.kind == "dropped"]
        self._starts = [block.start for block in dropped]
        self._ends = [block.end for block in dropped]

    def around(self, start: int, end: int) -> tuple[int, int]:
        """Return the bounds of a part without white space and dropped blocks at its edges."""
        begin = skip_space(self.text, start)
        index = bisect_right(self._starts, begin) - 1
        while 0 <= index < len(self._starts) and self._starts[index] <= begin < self._ends[index]:
            begin, index = skip_space(self.text, self._ends[index]), index + 1
        if begin >= end:
            return end, end
        stop = trim_space(self.text, begin, end)
        index = bisect_left(self._starts, stop) - 1
        while index >= 0 and begin <= self._starts[index] < stop <= self._ends[index]:
            stop, index = trim_space(self.text, begin, self._starts[index]), index - 1
        return boundary_before(self.text, begin), boundary_after(self.text, stop)

    def within(self, start: int, end: int) -> list[Replacement]:
        """Return replacements of the dropped blocks inside a part by line breaks."""
        first, last = bisect_left(self._starts, start), bisect_right(self._ends, end)
        spans = zip(self._starts[first:last], self._ends[first:last], strict=True)
        return [(low, high, "\n") for low, high in spans]

    def holds(self, position: int) -> bool:
        """Whether an offset is inside a dropped block."""
        index = bisect_right(self._starts, position) - 1
        return index >= 0 and position < self._ends[index]
