"""SentenceChunker: packs whole sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from rag_splitters.contract.sized import SizedChunker
from rag_splitters.errors import InputError
from rag_splitters.parameters.checks import compile_pattern
from rag_splitters.span import Source, Span
from rag_splitters.structure.stored_outline import uncut_headings
from rag_splitters.text.boundaries import Finder, positions, sentences, words
from rag_splitters.text.overlaps import counted_overlap
from rag_splitters.text.packing import pack
from rag_splitters.text.segmenters import SegmenterField, segmenter_cuts
from rag_splitters.text.separators import separators
from rag_splitters.text.structure import Structure
from rag_splitters.text.unbreakable import find_unbreakable
from rag_splitters.text.wrapping import clauses, unwrapped_lines


class SentenceChunker(SizedChunker):
    """Packs whole sentences up to `chunk_size`.

    Use it for prose, if no chunk should end in the middle of a sentence. A sentence that is larger
    than `chunk_size` is cut at a line break that does not merely wrap a paragraph, else after a
    clause in the last third of the chunk, else between words. Headings and lead-ins, such as a line
    that ends with a colon, stay with what follows them; a sentence that begins with "It", "They" or
    "This" stays with the one before it. A code fence, a table row, a list item or a quotation is
    not cut if it fits.

    Raises ValueError if both `overlap_sentences` and `chunk_overlap` are given, if the segmenter is
    unknown or does not return an ascending list of (start, end), or if `secondary_chunking_regex`
    is not a valid regular expression.

    >>> text = "Rain fell. It was cold. Nobody came."
    >>> [chunk.text for chunk in SentenceChunker(chunk_size=25).chunk(text)]
    ['Rain fell. It was cold.', 'Nobody came.']
    """

    strategy: ClassVar[str] = "sentence"

    overlap_sentences: int = Field(default=0, ge=0)
    """Maximum number of whole sentences that the next chunk repeats; an alternative to
    `chunk_overlap`."""

    segmenter: SegmenterField = "rules"

    paragraph_separator: str | None = None
    """Text that separates paragraphs; chunks preferably end there. None: ends of sentences only."""

    secondary_chunking_regex: str | None = None
    """Regular expression for phrases; a sentence that is too big is cut between them."""

    @classmethod
    def implied_parameters(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """No `chunk_overlap` if `overlap_sentences` is given."""
        if parameters.get("overlap_sentences"):
            return {"chunk_overlap": 0}
        return super().implied_parameters(parameters)

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.overlap_sentences and self.chunk_overlap:
            raise InputError(
                f"pass overlap_sentences ({self.overlap_sentences}) or "
                f"chunk_overlap ({self.chunk_overlap}), not both"
            )
        if self.secondary_chunking_regex:
            compile_pattern(self.secondary_chunking_regex, "secondary_chunking_regex")

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        return [self._spans(source.text, source.metadata) for source in sources]

    def _spans(self, text: str, metadata: Mapping[str, Any]) -> list[Span]:
        def unbreakable() -> list[tuple[int, int]]:
            return [*find_unbreakable(text), *uncut_headings(text, metadata)]

        structure = Structure(text, unbreakable=unbreakable)
        finder, overlap = sentences(text), None  # our rules read only where a chunk may end
        if self.segmenter != "rules" or self.overlap_sentences:
            cuts = segmenter_cuts(self.segmenter, text)
            if count := self.overlap_sentences:
                _, measure, whole, _ = structure.fit(self.sizes)
                cuts = whole.outside(cuts)
                overlap = counted_overlap(text, cuts, measure, self.chunk_size, count)
            finder, structure.sentences = positions(cuts), cuts
        structure.levels = self._levels(text, finder)
        return pack(structure, self.sizes, repeat=overlap)

    def _levels(self, text: str, cuts: Finder) -> list[Finder]:
        """Return the levels of cuts; paragraphs and phrases only if the user defined them."""
        coarse, fine = self.paragraph_separator, self.secondary_chunking_regex
        return [
            *([separators(text, (coarse,), keep="end")] if coarse else []),
            cuts,
            *([separators(text, (fine,), is_regex=True, keep="end")] if fine else []),
            unwrapped_lines(text),
            clauses(text),
            words(text),
        ]
