"""ClusterChunker: the best segmentation of the whole text."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from rag_splitters.chunkers.embedded import EmbeddingStrategy, Passages, Vectors
from rag_splitters.meaning.similarity import best_runs
from rag_splitters.meaning.units import parts_of, sentence_units, unit_texts
from rag_splitters.text.sizing import Measure, Sizes
from rag_splitters.text.structure import Range, Structure


class ClusterChunker(EmbeddingStrategy):
    """Finds the segmentation of the whole text whose chunks are most coherent.

    The pieces are sentences, and parts of long sentences. Dynamic programming finds the chunks of
    at most `chunk_size` with the greatest sum of similarities between their pieces, measured
    against the mean similarity in the text. Use it if the single threshold of `SemanticChunker`
    cuts one part of a text too finely and another too coarsely.

    Each piece is embedded once, and all documents share a few requests. The running time grows
    with the number of pieces times the number of pieces in a chunk.

    Source: `ClusterSemanticChunker` of B. Smith and A. Troynikov (2024), Evaluating Chunking
    Strategies for Retrieval, Chroma. The original uses pieces of 50 tokens and quadratic time.

    Raises ValueError if the sizes are inconsistent, and ModelError if the model fails or answers
    with anything but vectors.

    >>> from rag_splitters.models import HashingEmbeddings
    >>> chunker = ClusterChunker(embeddings=HashingEmbeddings(), chunk_size=200)
    >>> cats = "The cat slept on the old sofa all day long. The cat woke up on the sofa at noon."
    >>> tax = "The new tax rate was raised by the council. The council will raise the tax again."
    >>> [chunk.text == part for chunk, part in zip(chunker.chunk(f"{cats} {tax}"), (cats, tax))]
    [True, True]
    """

    strategy: ClassVar[str] = "cluster"

    piece_size: int | None = Field(default=None, ge=1)
    """Maximum size of a piece, in units of `length_function`. Longer sentences are cut between
    words. None: only sentences that do not fit into a chunk are cut."""

    def _passages(self, structure: Structure) -> Passages:
        largest = max(1, self._budget(1))
        size = min(self.piece_size or largest, largest)
        units = sentence_units(structure, self.sizes)
        pieces = parts_of(structure, units, self.sizes, Sizes(size, 0, self.length_function))
        return pieces, unit_texts(structure.text, pieces) if len(pieces) > 1 else []

    def _breaks(self, units: list[Range], vectors: Vectors, measure: Measure) -> list[int]:
        longest, shortest = [], []
        first = enough = 0
        for last, (_, end) in enumerate(units):
            while first < last and not measure.fits(units[first][0], end, self._budget(first)):
                first += 1
            while enough <= last and not measure.fits(units[enough][0], end, self.min_size - 1):
                enough += 1
            longest.append(last - first + 1)
            shortest.append(last - enough + 2)
        return best_runs(vectors, longest, shortest)
