"""What the strategies that embed share: one request for all texts, and sizes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import AfterValidator, ConfigDict

from rag_splitters.chunker import SizedChunker
from rag_splitters.fields import FunctionOrName
from rag_splitters.meaning.units import Range
from rag_splitters.models import Embeddings, embed
from rag_splitters.models.embedder import Place
from rag_splitters.span import Source, Span
from rag_splitters.text.atoms import Atoms
from rag_splitters.text.boundaries import positions, words
from rag_splitters.text.packing import pack
from rag_splitters.text.segmenters import check_segmenter, own_cuts
from rag_splitters.text.sizing import Measure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Passages: TypeAlias = tuple[list[Range], list[str]]
"""The units of a text, and a passage to embed for each."""


class EmbeddingSizes(SizedChunker):
    """A sized chunker that asks an embedding model where to cut.

    A subclass says which passages of a text are embedded (`_passages`), and where chunks begin
    once the vectors are there (`_breaks`). The model is asked once for all texts; sizes, overlaps
    and edges are those of `packing`, as in every strategy. Code fences, table rows, list items and
    quotations that fit into `chunk_size` less `chunk_overlap` are not cut.

    Raises ValueError if `min_chunk_size` is larger than `chunk_size`, or if `embeddings` is not a
    model.
    """

    model_config = ConfigDict(hide_input_in_errors=True)  # a model's repr may hold its key

    embeddings: Embeddings
    """A LangChain or LlamaIndex embedding model, a function texts -> vectors, or one of these as
    `rag_splitters.models.Embedder(model, max_texts=..., max_tokens=...)`, which bounds requests."""

    min_chunk_size: int | float = 0.2
    """Smaller chunks join a neighbour if the result fits: units, or a share of `chunk_size`."""

    segmenter: Annotated[FunctionOrName, AfterValidator(check_segmenter)] = "rules"
    """"rules" (ours), "punkt", "spacy:<model>", or a function text -> list of (start, end)."""

    def check_parameters(self) -> None:
        super().check_parameters()
        least = self.min_chunk_size
        if isinstance(least, float) and not 0 <= least <= 1:
            raise ValueError(
                f"min_chunk_size must be a share in [0, 1] or a whole number, got {least!r}"
            )
        if least < 0 or least > self.chunk_size:
            raise ValueError(
                f"min_chunk_size must be from 0 to chunk_size ({self.chunk_size}), got {least}"
            )

    @property
    def min_size(self) -> int:
        """`min_chunk_size` in units."""
        if isinstance(self.min_chunk_size, float):
            return int(self.min_chunk_size * self.chunk_size)
        return min(self.min_chunk_size, self.chunk_size)

    @abstractmethod
    def _passages(self, text: str) -> Passages:
        """The units between which the text may be cut, and a passage to embed for each.

        There are no passages if the model need not be asked about the text.
        """

    @abstractmethod
    def _breaks(
        self, units: list[Range], vectors: NDArray[np.float32], measure: Measure
    ) -> list[int]:
        """The numbers of the units, except the first, with which a chunk begins."""

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        units = [self._passages(source.text) for source in sources]
        passages = [passage for _, own in units for passage in own]
        vectors = await embed(self.embeddings, passages, list(_places(sources, units)))
        spans, first = [], 0
        for source, (ranges, own) in zip(sources, units, strict=True):
            last = first + len(own)
            spans.append(self._packed(source.text, ranges, vectors[first:last]))
            first = last
        return spans

    def _packed(self, text: str, units: list[Range], vectors: NDArray[np.float32]) -> list[Span]:
        """Chunks that begin at the breaks; what is too big is cut by sentences, then words."""
        atoms = Atoms(text, **self.sizes)
        breaks = self._breaks(units, vectors, atoms.measure) if len(vectors) else []
        starts = [start for start, _ in units]
        return pack(
            text,
            (positions(starts), words(text)),
            **self.sizes,
            breaks=[starts[unit] for unit in breaks],
            min_size=self.min_size,
            atoms=atoms,
            sentence_cuts=own_cuts(self.segmenter, text) if self.overlap else None,
        )


def _places(sources: Sequence[Source], units: Sequence[Passages]) -> Iterator[Place]:
    """The document and the offset of each passage, for error messages."""
    for source, (ranges, passages) in zip(sources, units, strict=True):
        for start, _ in ranges[: len(passages)]:
            yield source.number, source.offset + start
