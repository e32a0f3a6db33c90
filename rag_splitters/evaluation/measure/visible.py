"""What a reader sees of a text: HTML without tags and scripts, with positions in the source."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from rag_splitters.structure.blocks import TextFormat, detect_format
from rag_splitters.structure.html.text import plain_page
from rag_splitters.text.excerpt import Excerpt
from rag_splitters.text.structure import Range


class VisibleText:
    """The text that a reader sees, with the way there from the source, and back.

    For all formats but HTML, that is the source itself.

    Parameters:
        source: the document.
        name: its file name, from which its format may be known.

    >>> visible = VisibleText("<p>Tea is <b>hot</b>.</p>")
    >>> low, high = visible.range_of((0, 16))
    >>> visible.text, visible.text[low:high], visible.excerpt.bounds(7, 10)
    ('Tea is hot.', 'Tea is hot', (13, 16))
    """

    def __init__(self, source: str, name: str = "") -> None:
        self.format: TextFormat = detect_format(source, {"source": name} if name else None)
        if self.format == "html":
            self.excerpt = plain_page(source, main_content_only=False).excerpt
        else:
            self.excerpt = Excerpt.of(source, 0, len(source))
        self.text = self.excerpt.text
        offsets = pairwise((*self.excerpt.offsets, len(self.text)))
        segments = zip(self.excerpt.starts, self.excerpt.ends, offsets, strict=True)
        # White space and marks that were added stand for nothing in the source.
        self._segments = sorted(each for each in segments if each[0] < each[1])
        self._starts = [start for start, _, _ in self._segments]

    def range_of(self, position: Range) -> Range:
        """Return the visible text of a part of the source, trimmed; empty if there is none."""
        first = bisect_right(self._starts, position[0]) - 1
        if first < 0 or self._segments[first][1] <= position[0]:
            first += 1
        last = bisect_right(self._starts, position[1] - 1) - 1
        if first > last:
            return 0, 0
        low, high = self._offset(first, position[0]), self._offset(last, position[1])
        part = self.text[low:high]
        low += len(part) - len(part.lstrip())
        return low, low + len(part.strip())

    def _offset(self, index: int, place: int) -> int:
        """Return the offset of a place of the source, which is in a segment or at its edge."""
        start, end, (low, high) = self._segments[index]
        if high - low == end - start:  # a copy
            return low + min(max(place, start), end) - start
        return high if place >= end else low
