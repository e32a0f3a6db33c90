"""SlidingWindowChunker: overlapping windows."""

from __future__ import annotations

from typing import ClassVar

from rag_splitters.chunkers.fixed_size import FixedSizeChunker
from rag_splitters.parameters.fields import Overlap


class SlidingWindowChunker(FixedSizeChunker):
    """Cuts windows of `chunk_size` units, each of which repeats the end of the previous one.

    Use it if the text has no structure to cut at and an answer may cross a boundary. Each window
    starts exactly `chunk_overlap` before the end of the previous one, but never inside a grapheme
    cluster, and the last window ends where the text ends. The usual advice is an overlap of 10 to
    15 %.

    Raises ValueError if the size and the overlap are inconsistent.

    >>> chunker = SlidingWindowChunker(chunk_size=3, chunk_overlap=1, length_function="words")
    >>> [chunk.text for chunk in chunker.chunk("one two three four five")]
    ['one two three ', 'three four five']
    """

    strategy: ClassVar[str] = "sliding_window"

    chunk_overlap: Overlap = 0.1
    """How much of the end of a window the next one repeats, exactly: a number of units (an int), or
    a share of `chunk_size` (a float below 1)."""
