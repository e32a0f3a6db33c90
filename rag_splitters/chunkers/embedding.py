"""EmbeddingChunker: groups sentences that the retrieval model finds similar."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from rag_splitters.chunkers.embedded import EmbeddingStrategy, Passages, Vectors
from rag_splitters.meaning.similarity import join_runs
from rag_splitters.meaning.units import sentence_units, unit_texts
from rag_splitters.text.sizing import Measure
from rag_splitters.text.structure import Range, Structure


class EmbeddingChunker(EmbeddingStrategy):
    """Adds sentences to a chunk as long as the retrieval model finds them similar.

    A sentence joins the current chunk if its cosine similarity to the chunk's running mean is at
    least `similarity_threshold` and the size allows it; otherwise it begins the next chunk. A chunk
    below `min_chunk_size` takes the sentence in any case, or joins the previous chunk if it is
    closer to that. Use it with the model that will embed the chunks: each chunk's vector then lies
    near all of its sentences.

    Each sentence is embedded once, and all documents share a few requests. Sentences of less than
    40 characters share a vector with a neighbour.

    Source: the running mean of M. Hearst's block comparison (1997, TextTiling), with sentence
    vectors instead of words. Several packages call it "semantic chunking by centroid".

    Raises ValueError if the threshold is outside [-1, 1], and ModelError if the model fails or
    answers with anything but vectors.

    >>> from rag_splitters.models import HashingEmbeddings
    >>> chunker = EmbeddingChunker(
    ...     embeddings=HashingEmbeddings(), similarity_threshold=0.2, min_chunk_size=0
    ... )
    >>> cats = "The cat slept on the old sofa all day long. The cat woke up on the sofa at noon."
    >>> tax = "The new tax rate was raised by the council. The council will raise the tax again."
    >>> [chunk.text == part for chunk, part in zip(chunker.chunk(f"{cats} {tax}"), (cats, tax))]
    [True, True]
    """

    strategy: ClassVar[str] = "embedding"

    similarity_threshold: float = Field(default=0.7, ge=-1, le=1)
    """Minimum cosine similarity, from -1 to 1, to a chunk's mean for a sentence to join it."""

    def _passages(self, structure: Structure) -> Passages:
        units = sentence_units(structure, self.sizes)
        return units, unit_texts(structure.text, units) if len(units) > 1 else []

    def _breaks(self, units: list[Range], vectors: Vectors, measure: Measure) -> list[int]:
        def fits(first: int, last: int) -> bool:
            return measure.fits(units[first][0], units[last][1], self._budget(first))

        def is_small(first: int, last: int) -> bool:
            return measure.fits(units[first][0], units[last][1], self.min_size - 1)

        return join_runs(vectors, self.similarity_threshold, fits, is_small)
