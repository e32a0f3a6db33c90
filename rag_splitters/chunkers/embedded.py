"""Base class of the strategies that use an embedding model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import ConfigDict, Field

from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.registry import Nested
from rag_splitters.contract.sized import MergingChunker
from rag_splitters.meaning.units import pack_units
from rag_splitters.models import Embeddings, ModelError
from rag_splitters.models.asking import embed_each
from rag_splitters.models.cache import Cache, check_cache
from rag_splitters.models.embedder import Row, TextPosition, is_vector, rows_of
from rag_splitters.models.failures import Failure, apply_on_error
from rag_splitters.parameters.fields import Least
from rag_splitters.span import Source, Span
from rag_splitters.text.segmenters import SegmenterField, segmenter_cuts
from rag_splitters.text.sizing import Measure
from rag_splitters.text.structure import Range, Structure
from rag_splitters.text.unbreakable import marked_structure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Passages: TypeAlias = tuple[list[Range], list[str]]
"""The units of a text, and a passage to embed for each."""

Vectors: TypeAlias = "NDArray[np.float32]"
"""The vector of each passage."""


class EmbeddingStrategy(MergingChunker):
    """A sized chunker that finds the places to cut with an embedding model.

    A subclass says which passages of a text to embed (`_passages`), and where chunks begin, given
    their vectors (`_breaks`). The passages of all texts are embedded together. Sizes, overlaps and
    edges are handled by `packing`, as in every strategy. Code fences, table rows, list items and
    quotations that fit are not cut.

    Raises ValueError if `min_chunk_size` is larger than `chunk_size`, or if `embeddings` is not a
    model.
    """

    model_config = ConfigDict(hide_input_in_errors=True)  # a model's repr may hold its key

    embeddings: Embeddings
    """A LangChain or LlamaIndex embedding model, or a function from texts to vectors. To limit the
    size of requests, pass `rag_splitters.models.Embedder(model, max_texts=..., max_tokens=...)`."""

    min_chunk_size: Least = 0.2

    max_concurrency: int | None = Field(default=None, ge=1)
    """Maximum number of concurrent requests; None: that of the `Embedder`, which is 4 by default.
    A model that runs on this machine gets one request at a time."""

    segmenter: SegmenterField = "rules"

    on_error: Literal["raise", "skip"] | Nested = "raise"
    """What to do about a document that the model failed on. "raise": raise an error when the others
    are finished. "skip": leave it out, and log a warning. A chunker: cut where that chunker would,
    and log a warning."""

    cache: Cache = Field(default=None, repr=False)
    """Cache for embeddings: a LangChain `BaseStore`, a LlamaIndex `BaseKVStore`, or the `Path`
    of a folder; None: no cache."""

    def check_parameters(self) -> None:
        super().check_parameters()
        check_cache(self.cache, self.embeddings)

    @abstractmethod
    def _passages(self, structure: Structure) -> Passages:
        """Return the units between which a text may be cut, and a passage to embed for each.

        There are no passages if the text can be cut without the model.
        """

    @abstractmethod
    def _breaks(self, units: list[Range], vectors: Vectors, measure: Measure) -> list[int]:
        """Return the indices of the units with which a chunk begins, without the first."""

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        structures = [
            marked_structure(each.text, sentences=segmenter_cuts(self.segmenter, each.text))
            for each in sources
        ]
        units = list(map(self._passages, structures))
        passages = [passage for _, own in units for passage in own]
        places = list(_places(sources, units))
        embedder = self.embeddings
        if self.max_concurrency is not None:
            embedder = replace(embedder, max_concurrency=self.max_concurrency)
        rows = await embed_each(embedder, passages, places, cache=self.cache)
        results: list[list[Span]] = []
        failures: list[Failure] = []
        first = 0
        for index, (structure, (ranges, own)) in enumerate(zip(structures, units, strict=True)):
            last = first + len(own)
            if error := next((r for r in rows[first:last] if isinstance(r, ModelError)), None):
                failures.append((index, _place(rows[first:last], places[first:last]), error))
                results.append([])
            else:
                results.append(self._semantic(structure, ranges, rows_of(rows[first:last])))
            first = last
        if isinstance(self.on_error, Chunker):
            failed = [index for index, _, _ in failures]
            plans = await self.on_error.plan([sources[index] for index in failed])
            for index, spans in zip(failed, plans, strict=True):
                results[index] = self._fallback(structures[index], units[index][0], spans)
        return apply_on_error(type(self), self.on_error, sources, failures, results)

    def _semantic(self, structure: Structure, units: list[Range], vectors: Vectors) -> list[Span]:
        """Return chunks that begin at the breaks that the vectors show."""
        measure = structure.measure(self.sizes)
        breaks = self._breaks(units, vectors, measure) if len(vectors) else []
        return self._pack(structure, units, [units[unit][0] for unit in breaks])

    def _fallback(
        self, structure: Structure, units: list[Range], spans: Sequence[Span]
    ) -> list[Span]:
        """Return chunks that begin where those of the fallback chunker do."""
        chunks = self._pack(structure, units, sorted({span.start for span in spans}))
        fallback = {"fallback": type(self.on_error).__name__}
        return [replace(span, metadata={**span.metadata, **fallback}) for span in chunks]

    def _pack(self, structure: Structure, units: list[Range], breaks: Sequence[int]) -> list[Span]:
        """Return chunks that begin at the breaks, cut by sentences, then words, if too big."""
        return pack_units(structure, [start for start, _ in units], breaks, self.sizes)

    def _budget(self, first: int) -> int:
        """Maximum size of a chunk without its overlap; the chunk begins with the unit `first`."""
        return self.chunk_size - (self.overlap if first else 0)


def _place(rows: Sequence[Row], places: Sequence[TextPosition]) -> str:
    """Say where the first text without a vector is, and how many more there are."""
    offsets = [place[1] for row, place in zip(rows, places, strict=True) if not is_vector(row)]
    return f"offset {offsets[0]}" + (f" and {len(offsets) - 1} more" if len(offsets) > 1 else "")


def _places(sources: Sequence[Source], units: Sequence[Passages]) -> Iterator[TextPosition]:
    """Yield the document and the offset of each passage, for error messages."""
    for source, (ranges, passages) in zip(sources, units, strict=True):
        for start, _ in ranges[: len(passages)]:
            yield source.number, source.offset + start
