"""TokenChunker: windows of tokens."""

from __future__ import annotations

from typing import ClassVar

from rag_splitters.chunkers.sliding_window import SlidingWindowChunker
from rag_splitters.parameters.fields import Size, Unit
from rag_splitters.span import Span
from rag_splitters.text.packing import pack_windows


class TokenChunker(SlidingWindowChunker):
    """Cuts windows of `chunk_size` tokens with any tokenizer, and never inside a character.

    Use it if the only thing that matters is a model's limit in tokens. Each window has at most
    `chunk_size` tokens when it is encoded on its own.

    Raises ValueError if the size and the overlap are inconsistent, or if the tokenizer cannot be
    loaded.

    >>> chunker = TokenChunker(chunk_size=3, chunk_overlap=0)
    >>> [chunk.text for chunk in chunker.chunk("Tokens are not words.")]
    ['Tokens are not', ' words.']
    """

    strategy: ClassVar[str] = "token"

    chunk_size: Size = 256
    """Maximum size of a window, overlap included, in tokens."""

    length_function: Unit = "tokens"
    """Tokenizer: "tokens" (cl100k_base), "tokens:<encoding or model>", or a tokenizer object."""

    strip_whitespace: bool = False
    """Whether to remove white space at the edges of windows."""

    def _windows(self, text: str, last: Span | None = None) -> list[Span]:
        return pack_windows(text, self.sizes, trim=self.strip_whitespace, last=last)
