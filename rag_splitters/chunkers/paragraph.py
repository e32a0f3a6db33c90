"""ParagraphChunker: chunks of one or several whole paragraphs."""

from __future__ import annotations

from typing import ClassVar

from rag_splitters.contract.sized import MergingChunker
from rag_splitters.span import Span
from rag_splitters.text.boundaries import paragraph_cuts
from rag_splitters.text.packing import pack
from rag_splitters.text.structure import recursive_levels
from rag_splitters.text.unbreakable import marked_structure


class ParagraphChunker(MergingChunker):
    """Makes chunks of paragraphs: text between blank lines.

    Use it if each paragraph is one thought, as in articles, reports and letters. Neighbouring
    paragraphs are packed up to `chunk_size`; with `group=False`, each paragraph is a chunk. A
    paragraph that is too big is cut at the ends of its lines if it is not wrapped to a width, else
    by sentences, but not inside a list item, a row, a quotation or a fence that fits.

    Raises ValueError if the sizes are inconsistent.

    >>> text = "One.\\n\\nTwo.\\n\\nThree."
    >>> [chunk.text for chunk in ParagraphChunker(group=False).chunk(text)]
    ['One.', 'Two.', 'Three.']
    """

    strategy: ClassVar[str] = "paragraph"

    group: bool = True
    """Whether to pack neighbouring paragraphs up to `chunk_size`."""

    def spans(self, text: str) -> list[Span]:
        structure = marked_structure(text, recursive_levels(text))
        structure.required = () if self.group else paragraph_cuts(text)
        return pack(structure, self.sizes)
