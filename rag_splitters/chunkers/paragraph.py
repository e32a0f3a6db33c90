"""ParagraphChunker: paragraphs, alone or packed."""

from __future__ import annotations

from rag_splitters.chunker import MergingChunker
from rag_splitters.span import Span
from rag_splitters.text.boundaries import paragraph_cuts, paragraphs, sentences, words
from rag_splitters.text.packing import pack

__all__ = ["ParagraphChunker"]


class ParagraphChunker(MergingChunker):
    """Makes chunks of paragraphs: text between blank lines.

    Neighbours are packed up to `chunk_size`, or each paragraph is a chunk with `group=False`; one
    that is too big is cut by sentences. Use it where the author's paragraphs carry one thought
    each: articles, reports, letters.

    Raises: ValueError for sizes that make no sense.

    >>> text = "One.\\n\\nTwo.\\n\\nThree."
    >>> [chunk.text for chunk in ParagraphChunker(group=False).chunk(text)]
    ['One.', 'Two.', 'Three.']
    """

    group: bool = True
    """Pack neighbouring paragraphs up to `chunk_size`?"""

    def spans(self, text: str) -> list[Span]:
        levels = (paragraphs(text), sentences(text), words(text))
        breaks = () if self.group else paragraph_cuts(text)
        return pack(text, levels, **self.sizes, breaks=breaks, min_size=self.min_chunk_size)
