"""SlidingWindowChunker: windows that overlap."""

from __future__ import annotations

from rag_splitters.chunkers.fixed_size import FixedSizeChunker

__all__ = ["SlidingWindowChunker"]


class SlidingWindowChunker(FixedSizeChunker):
    """Cuts windows of `chunk_size` units of which each repeats the end of the one before.

    Each window starts `chunk_overlap` before the previous end, at the beginning of a word, and the
    last one ends where the text ends. Use it where an answer may lie across a border and the text
    has no structure to cut at; 10 to 15 % overlap is the usual advice.

    Raises: ValueError for a size or an overlap that makes no sense.

    >>> chunker = SlidingWindowChunker(chunk_size=3, chunk_overlap=1, length_function="words")
    >>> [chunk.text for chunk in chunker.chunk("one two three four five")]
    ['one two three ', 'three four five']
    """

    chunk_overlap: int | float = 0.1
    """How much of a window the next one repeats: units, or a share of `chunk_size`."""
