"""SentenceChunker: whole sentences, packed."""

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

    A sentence that is too big by itself fills one chunk and goes on in the next. Use it for prose,
    where a chunk that ends in the middle of a sentence costs an answer.

    Raises: ValueError for `overlap_sentences` together with `chunk_overlap`, an unknown segmenter,
    or one whose answer is no ascending list of (start, end).

    >>> text = "Rain fell. It was cold. Nobody came."
    >>> [chunk.text for chunk in SentenceChunker(chunk_size=25).chunk(text)]
    ['Rain fell. It was cold.', 'Nobody came.']
    """

    overlap_sentences: int = Field(default=0, ge=0)
    """How many whole sentences the next chunk repeats, as many as fit; instead of an overlap."""

    segmenter: Annotated[FunctionOrName, AfterValidator(check_segmenter)] = "rules"
    """"rules" (ours), "punkt", "spacy:<model>", or a function text -> list of (start, end)."""

    @model_validator(mode="after")
    def _check_overlap_sentences(self) -> Self:
        if self.overlap_sentences and self.chunk_overlap:
            raise ValueError(
                f"give overlap_sentences ({self.overlap_sentences}) or "
                f"chunk_overlap ({self.chunk_overlap}), not both"
            )
        return self

    def spans(self, text: str) -> list[Span]:
        if self.overlap_sentences:
            return self._overlapping(text)
        is_ours = self.segmenter == "rules"  # which need not look for all sentences first
        found = sentences(text) if is_ours else positions(segmenter_cuts(self.segmenter, text))
        return pack(text, (found, words(text)), **self.sizes)

    def _overlapping(self, text: str) -> list[Span]:
        cuts = segmenter_cuts(self.segmenter, text)
        measure, size = sizer(self.length_function)(text), self.chunk_size
        overlap = sentence_overlap(text, cuts, measure, size, self.overlap_sentences)
        levels = (positions(cuts), words(text))
        packer = Packer(text, measure, size, levels, overlap=overlap)
        return [Span(start, end) for start, end in packer.pack()]
