"""TokenChunker: windows of tokens."""

from __future__ import annotations

from rag_splitters.chunkers.sliding_window import SlidingWindowChunker
from rag_splitters.fields import Size, Unit

__all__ = ["TokenChunker"]


class TokenChunker(SlidingWindowChunker):
    """Cuts windows of `chunk_size` tokens, by any tokenizer, and never inside a character.

    Use it where a model's limit in tokens is all that counts. Each window measures at most
    `chunk_size` tokens when it is encoded again by itself.

    Raises: ValueError for a size or an overlap that makes no sense, or a tokenizer that cannot be
    had.

    >>> chunker = TokenChunker(chunk_size=3, chunk_overlap=0)
    >>> [chunk.text for chunk in chunker.chunk("Tokens are not words.")]
    ['Tokens are not', ' words.']
    """

    chunk_size: Size = 256
    """The most that a window measures, in tokens."""

    length_function: Unit = "tokens"
    """The tokenizer: "tokens" (cl100k_base), "tokens:<name>", or the tokenizer itself."""
