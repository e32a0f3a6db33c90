"""FixedSizeChunker: windows of a fixed size."""

from __future__ import annotations

from typing import ClassVar

from rag_splitters.contract.sized import SizedChunker
from rag_splitters.contract.streams import check_unit
from rag_splitters.parameters.fields import Overlap
from rag_splitters.span import Span
from rag_splitters.text.packing import pack_windows


class FixedSizeChunker(SizedChunker):
    """Cuts windows of exactly `chunk_size` units and keeps all white space; the last is shorter.

    Use it as a baseline, or if all chunks must have the same size. A window may end inside a word
    if the unit is characters, and never ends inside a grapheme cluster. Windows that contain only
    white space are dropped.

    Raises ValueError if the size and the overlap are inconsistent.

    >>> [chunk.text for chunk in FixedSizeChunker(chunk_size=4).chunk("abcdefghij")]
    ['abcd', 'efgh', 'ij']
    """

    strategy: ClassVar[str] = "fixed_size"

    chunk_overlap: Overlap = 0
    """How much of the end of a window the next one repeats, exactly: a number of units (an int), or
    a share of `chunk_size` (a float below 1)."""

    def spans(self, text: str) -> list[Span]:
        return self._windows(text)

    def spans_after(self, text: str, last: Span | None) -> list[Span]:
        check_unit(self)
        return self._windows(text, last)

    def _windows(self, text: str, last: Span | None = None) -> list[Span]:
        return pack_windows(text, self.sizes, trim=False, last=last)
