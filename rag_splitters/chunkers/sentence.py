"""SentenceChunker: packs whole sentences."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import Self

from rag_splitters.chunker import SizedChunker
from rag_splitters.fields import FunctionOrName
from rag_splitters.span import Span
from rag_splitters.text.boundaries import positions, sentences, words
from rag_splitters.text.packing import Packer, pack, sentence_overlap
from rag_splitters.text.segmenters import check_segmenter, segmenter_cuts
from rag_splitters.text.sizing import sizer

__all__ = ["SentenceChunker"]


class SentenceChunker(SizedChunker):
    """Packs whole sentences up to `chunk_size`.

    Use it for prose, if no chunk should end in the middle of a sentence. A sentence that is larger
    than `chunk_size` fills one chunk and continues in the next.

    Raises ValueError if both `overlap_sentences` and `chunk_overlap` are given, if the segmenter is
    unknown, or if it does not return an ascending list of (start, end).

    >>> text = "Rain fell. It was cold. Nobody came."
    >>> [chunk.text for chunk in SentenceChunker(chunk_size=25).chunk(text)]
    ['Rain fell. It was cold.', 'Nobody came.']
    """

    overlap_sentences: int = Field(default=0, ge=0)
    """Maximum number of whole sentences that the next chunk repeats, instead of `chunk_overlap`."""

    segmenter: Annotated[FunctionOrName, AfterValidator(check_segmenter)] = "rules"
    """Segmenter: "rules", "punkt", "spacy:<model>" or a function text -> (start, end) pairs."""

    @model_validator(mode="after")
    def _check_overlap_sentences(self) -> Self:
        if self.overlap_sentences and self.chunk_overlap:
            raise ValueError(
                f"pass overlap_sentences ({self.overlap_sentences}) or "
                f"chunk_overlap ({self.chunk_overlap}), not both"
            )
        return self

    def spans(self, text: str) -> list[Span]:
        if self.overlap_sentences:
            return self._overlapping(text)
        is_ours = self.segmenter == "rules"  # our rules need not find all sentences first
        cuts = sentences(text) if is_ours else positions(segmenter_cuts(self.segmenter, text))
        return pack(text, (cuts, words(text)), **self.sizes)

    def _overlapping(self, text: str) -> list[Span]:
        cuts = segmenter_cuts(self.segmenter, text)
        measure, size = sizer(self.length_function)(text), self.chunk_size
        overlap = sentence_overlap(text, cuts, measure, size, self.overlap_sentences)
        levels = (positions(cuts), words(text))
        packer = Packer(text, measure, size, levels, overlap=overlap)
        return [Span(start, end) for start, end in packer.pack()]
