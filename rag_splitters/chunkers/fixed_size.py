"""FixedSizeChunker: windows that look at nothing but their size."""

from __future__ import annotations

from rag_splitters.chunker import SizedChunker
from rag_splitters.span import Span
from rag_splitters.text.packing import pack

__all__ = ["FixedSizeChunker"]


class FixedSizeChunker(SizedChunker):
    """Cuts windows of exactly `chunk_size` units, the last one shorter, and keeps all white space.

    A window ends inside a word when the unit is characters, between words when it is words; it
    never ends inside a grapheme cluster. Windows of white space alone are dropped. Use it as a
    baseline, or where every chunk must have the same size.

    Raises: ValueError for a size or an overlap that makes no sense.

    >>> [chunk.text for chunk in FixedSizeChunker(chunk_size=4).chunk("abcdefghij")]
    ['abcd', 'efgh', 'ij']
    """

    def spans(self, text: str) -> list[Span]:
        return pack(text, (), **self.sizes, trim=False)
