"""What the strategies that embed have in common: units of text, one request set, sizes."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pydantic import ConfigDict, model_validator
from typing_extensions import Self

from rag_splitters.chunker import SizedChunker
from rag_splitters.fields import Function
from rag_splitters.models.embedding import Embeddings
from rag_splitters.models.vectors import Place
from rag_splitters.span import Span
from rag_splitters.text.boundaries import positions, skip_space, trim_space, words
from rag_splitters.text.packing import pack
from rag_splitters.text.segmenters import segmenter_cuts
from rag_splitters.text.sizing import LengthFunction, Measure, sizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Asked", "EmbeddedSizes", "Range", "parts_of", "sentence_units", "unit_texts"]

Range: TypeAlias = tuple[int, int]
"""(start, end) of a part of a text."""

Asked: TypeAlias = tuple[list[Range], list[str]]
"""Units of a text, and what to embed for each."""

_SHORTEST, _LONGEST = 40, 2000  # characters of a unit


class EmbeddedSizes(SizedChunker):
    """A sized chunker that asks an embedding model where to cut.

    A subclass says what is embedded of a text (`_asked`), and where chunks begin when the vectors
    are there (`_breaks`). The model is asked once for all texts; sizes, overlaps and edges are
    those of `packing`, like every strategy's.

    Raises: ValueError for a `min_chunk_size` above `chunk_size`, and for what is no model.
    """

    model_config = ConfigDict(hide_input_in_errors=True)  # a model's repr may hold its key

    embeddings: Embeddings
    """A LangChain or LlamaIndex embedding model, a function texts -> vectors, or one of these as
    `rag_splitters.models.Embedder(model, max_texts=..., max_tokens=...)`, which bounds requests."""

    min_chunk_size: int | float = 0.2
    """Smaller chunks join a neighbour where that fits: units, or a share of `chunk_size`."""

    segmenter: str | Function = "rules"
    """"rules" (ours), "punkt", "spacy:<model>", or a function text -> list of (start, end)."""

    @model_validator(mode="after")
    def _check_min_size(self) -> Self:
        least = self.min_chunk_size
        if isinstance(least, float) and not 0 <= least <= 1:
            raise ValueError(
                f"min_chunk_size must be a share in [0, 1] or a whole number, got {least!r}"
            )
        if least < 0 or least > self.chunk_size:
            raise ValueError(
                f"min_chunk_size must be from 0 to chunk_size ({self.chunk_size}), got {least}"
            )
        return self

    @property
    def min_size(self) -> int:
        """`min_chunk_size` in units."""
        if isinstance(self.min_chunk_size, float):
            return int(self.min_chunk_size * self.chunk_size)
        return min(self.min_chunk_size, self.chunk_size)

    @abstractmethod
    def _asked(self, text: str) -> Asked:
        """The units between which the text may be cut, and a passage to embed for each.

        No passages for a text that the model need not be asked about.
        """

    @abstractmethod
    def _breaks(
        self, units: list[Range], vectors: NDArray[np.float32], measure: Measure
    ) -> list[int]:
        """The units, but for the first, with which a chunk begins."""

    def spans(self, text: str) -> list[Span]:
        return self.spans_many([text])[0]

    def spans_many(self, texts: Iterable[str]) -> list[list[Span]]:
        known = list(texts)
        asked = [self._asked(text) for text in known]
        vectors = self.embeddings.embed(*_questions(asked))
        return self._cut(known, asked, vectors)

    async def aspans_many(self, texts: Iterable[str]) -> list[list[Span]]:
        known = list(texts)
        asked = await asyncio.to_thread(lambda: [self._asked(text) for text in known])
        vectors = await self.embeddings.aembed(*_questions(asked))
        return await asyncio.to_thread(self._cut, known, asked, vectors)

    def _cut(
        self,
        texts: Sequence[str],
        asked: Sequence[Asked],
        vectors: NDArray[np.float32],
    ) -> list[list[Span]]:
        results: list[list[Span]] = []
        start = 0
        for text, (units, passages) in zip(texts, asked, strict=True):
            end = start + len(passages)
            results.append(self._packed(text, units, vectors[start:end]))
            start = end
        return results

    def _packed(self, text: str, units: list[Range], vectors: NDArray[np.float32]) -> list[Span]:
        """Chunks that begin at the breaks; what is too big is cut by sentences, then words."""
        measure = sizer(self.length_function)(text)
        found = self._breaks(units, vectors, measure) if len(vectors) else []
        starts = [start for start, _ in units]
        return pack(
            text,
            (positions(starts), words(text)),
            **self.sizes,
            breaks=[starts[unit] for unit in found],
            min_size=self.min_size,
        )


def _questions(asked: Sequence[Asked]) -> tuple[list[str], list[Place]]:
    """The passages of all documents, and where they stand."""
    passages = [passage for _, own in asked for passage in own]
    places = [
        (document, start)
        for document, (units, own) in enumerate(asked)
        for start, _ in units[: len(own)]
    ]
    return passages, places


def unit_texts(text: str, units: Iterable[Range]) -> list[str]:
    """The texts of units with single spaces, which is how they are embedded."""
    return [" ".join(text[start:end].split()) for start, end in units]


def sentence_units(text: str, segmenter: str | Function) -> list[Range]:
    """The sentences of a text, as units that are worth a vector.

    What is shorter than 40 characters ("Yes.", a heading, an item) says too little by itself: what
    begins a line joins what follows, the rest what precedes. What is longer than 2,000 is cut
    between words, so that three of them are within what a model takes.

    >>> sentence_units("A heading\\n\\nThis is the first of two sentences here. Yes.", "rules")
    [(0, 56)]
    """
    units: list[Range] = []
    pending = -1
    previous = 0
    for start, end in _sentences(text, segmenter):
        begin = start if pending < 0 else pending
        if end - begin >= _SHORTEST:
            units.append((begin, end))
            pending = -1
        elif pending >= 0 or not units or _has_line_break(text, previous, start):
            pending = begin
        elif end - units[-1][0] < 4 * _SHORTEST:
            units[-1] = (units[-1][0], end)
        else:
            pending = begin
        previous = end
    if pending >= 0:
        units[-1:] = [(units[-1][0] if units else pending, previous)]
    return parts_of(text, units, _LONGEST, "characters")


def _sentences(text: str, segmenter: str | Function) -> Iterable[Range]:
    starts = [skip_space(text, 0), *segmenter_cuts(segmenter, text)]
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        begin = skip_space(text, start) if text[start : start + 1].isspace() else start
        if begin < (end := trim_space(text, begin, stop)):
            yield begin, end


def _has_line_break(text: str, start: int, end: int) -> bool:
    return text.find("\n", start, end) >= 0 or text.find("\r", start, end) >= 0


def parts_of(
    text: str, units: Iterable[Range], size: int, length_function: LengthFunction
) -> list[Range]:
    """The units, those above `size` cut between words into parts of much the same length."""
    measure = sizer(length_function)(text)
    found: list[Range] = []
    for start, end in units:
        length = measure.length(start, end)
        if length <= size:
            found.append((start, end))
            continue
        part = text[start:end]
        even = min(size, length // -(-length // size) * 9 // 8 + 1)
        spans = pack(part, [words(part)], size=even, overlap=0, length_function=length_function)
        found += [(start + span.start, start + span.end) for span in spans]
    return found
