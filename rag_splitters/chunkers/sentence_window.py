"""SentenceWindowChunker: single sentences, with their neighbours in the metadata."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from rag_splitters.contract.sized import SizedChunker
from rag_splitters.span import Span
from rag_splitters.text.boundaries import positions, words
from rag_splitters.text.leads import lead_start
from rag_splitters.text.packing import pack
from rag_splitters.text.segmenters import SegmenterField, segmenter_cuts
from rag_splitters.text.structure import Structure
from rag_splitters.text.unbreakable import find_unbreakable
from rag_splitters.text.wrapping import clauses, unwrapped_lines


class SentenceWindowChunker(SizedChunker):
    """Makes each sentence a chunk, and puts the text around it into the metadata.

    Use it to search single sentences, whose embeddings are precise, and to give the model the
    window around each hit. A heading or a lead-in forms one chunk with the sentence that follows
    it, and a code fence or a table row that fits counts as one sentence. A sentence that is larger
    than `chunk_size` is cut as in `SentenceChunker`, and its parts count as sentences.

    Metadata: `window`, the part of the text from up to `window_size` chunks before the chunk to as
    many after it. `SentenceWindowNodeParser` also adds `original_text`, the chunk itself, as
    LlamaIndex's parser of that name does; `MetadataReplacementPostProcessor("window")` replaces the
    sentence by the window.

    Raises ValueError if `window_size` is negative, if the segmenter is unknown or does not return
    an ascending list of (start, end), or if the sizes are inconsistent.

    >>> chunks = SentenceWindowChunker(window_size=1).chunk("Rain fell. It was cold. Nobody came.")
    >>> chunks[0].text, chunks[0].metadata["window"]
    ('Rain fell.', 'Rain fell. It was cold.')
    """

    strategy: ClassVar[str] = "sentence_window"

    window_size: int = Field(default=3, ge=0)
    """Number of sentences in the window before each sentence, and the same after it."""

    segmenter: SegmenterField = "rules"

    def spans(self, text: str) -> list[Span]:
        cuts = segmenter_cuts(self.segmenter, text)
        structure = Structure(
            text,
            [positions(cuts), unwrapped_lines(text), clauses(text), words(text)],
            unbreakable=lambda: _fences_and_rows(text),
            required=_without_leads(text, cuts),
            sentences=cuts,
        )
        spans = pack(structure, self.sizes)
        last, reach = len(spans) - 1, self.window_size
        for index, span in enumerate(spans):
            first = spans[max(index - reach, 0)].start
            span.metadata = {"window": text[first : spans[min(index + reach, last)].end]}
        return spans


def _without_leads(text: str, cuts: list[int]) -> list[int]:
    """Move cuts before headings and lead-ins, which stay with what follows them."""
    breaks, begin = list[int](), 0
    for cut in cuts:
        start = lead_start(text, begin, cut)
        if text[begin:start].strip():
            breaks.append(start)
            begin = start
    return breaks


def _fences_and_rows(text: str) -> list[tuple[int, int]]:
    """Return the parts of a text in which full stops do not end sentences."""
    return [part for part in find_unbreakable(text) if text[part[0]] in "`~|"]
