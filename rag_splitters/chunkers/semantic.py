"""SemanticChunker: cuts where the meaning changes most."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import ClassVar, Literal

from pydantic import Field

from rag_splitters.chunkers.embedded import EmbeddingStrategy, Passages, Vectors
from rag_splitters.errors import InputError
from rag_splitters.meaning.similarity import Distances, breakpoints, neighbour_distances
from rag_splitters.meaning.units import sentence_units, unit_texts
from rag_splitters.text.sizing import Measure, Sizes
from rag_splitters.text.structure import Range, Structure

_AMOUNTS = {
    "percentile": 95.0,
    "standard_deviation": 3.0,
    "interquartile": 1.5,
    "gradient": 95.0,
    "absolute": 0.5,
}


class SemanticChunker(EmbeddingStrategy):
    """Cuts between sentences where the meaning changes most.

    Each sentence is embedded together with its neighbours. A chunk ends where the distance between
    the groups of sentences before and after is greater than a threshold, which is computed from the
    text itself. A segment that is too big is cut at its greatest distances, and a fragment joins
    the neighbour that it is closer to. Use it for texts that change their subject without saying
    so: transcripts, reports, pages without headings.

    Each group is embedded once, and all documents share a few requests. Sentences of less than 40
    characters count as one with a neighbour.

    Source: G. Kamradt (2024), 5 Levels of Text Splitting, level 4, and LangChain's
    `SemanticChunker`, which is based on it. LangChain's has no maximum size, and compares groups
    that share sentences; groups that share none show a boundary more clearly, at the same cost.

    Raises ValueError if both `breakpoint_threshold_amount` and `number_of_chunks` are given or the
    amount is out of range, and ModelError if the model fails or answers with anything but vectors.

    >>> from rag_splitters.models import HashingEmbeddings
    >>> chunker = SemanticChunker(
    ...     embeddings=HashingEmbeddings(), buffer_size=0, number_of_chunks=2, min_chunk_size=0
    ... )
    >>> cats = "The cat slept on the old sofa all day long. The cat woke up on the sofa at noon."
    >>> tax = "The new tax rate was raised by the council. The council will raise the tax again."
    >>> [chunk.text == part for chunk, part in zip(chunker.chunk(f"{cats} {tax}"), (cats, tax))]
    [True, True]
    """

    strategy: ClassVar[str] = "semantic"

    buffer_size: int = Field(default=1, ge=0)
    """Number of neighbours on each side that are embedded together with a sentence."""

    breakpoint_threshold_type: Literal[
        "percentile", "standard_deviation", "interquartile", "gradient", "absolute"
    ] = "percentile"
    """How to compute the threshold from the distances in the text; "absolute" is a fixed cosine
    distance, the same for all texts."""

    breakpoint_threshold_amount: float | None = Field(default=None, ge=0)
    """The percentile, factor or distance of the threshold; None: 95 for "percentile" and
    "gradient", 3 for "standard_deviation", 1.5 for "interquartile", 0.5 for "absolute"."""

    number_of_chunks: int | None = Field(default=None, ge=1)
    """Number of segments, cut at the greatest distances; None: cut at the threshold instead."""

    like_langchain: bool = False
    """Whether to cut into as many segments as LangChain's class: each sentence has a group, groups
    that share sentences are compared, and a small segment continues to the next break."""

    def check_parameters(self) -> None:
        super().check_parameters()
        amount = self.breakpoint_threshold_amount
        if amount is None:
            return
        if self.number_of_chunks is not None:
            raise InputError(
                f"pass number_of_chunks ({self.number_of_chunks}) or "
                f"breakpoint_threshold_amount ({amount}), not both"
            )
        if self.breakpoint_threshold_type in ("percentile", "gradient") and amount > 100:
            raise InputError(
                f"breakpoint_threshold_amount must be a percentile from 0 to 100, got {amount}"
            )

    @property
    def sizes(self) -> Sizes:
        sizes = super().sizes
        return sizes._replace(min_size=0) if self.like_langchain else sizes

    def _passages(self, structure: Structure) -> Passages:
        units = sentence_units(structure, self.sizes, join_short=not self.like_langchain)
        size = self.buffer_size
        if len(units) <= size + 1:  # then every group is the whole text
            return units, []
        parts = unit_texts(structure.text, units)
        return units, [
            " ".join(parts[max(0, unit - size) : unit + size + 1]) for unit in range(len(parts))
        ]

    def _breaks(self, units: list[Range], vectors: Vectors, measure: Measure) -> list[int]:
        distances = neighbour_distances(vectors, 0 if self.like_langchain else self.buffer_size)
        with_least_size = _in_turn if self.like_langchain else _with_least_size
        breaks = with_least_size(self._candidates(distances), units, measure, self.min_size)
        edges = [0, *breaks, len(units)]
        budget = max(1, self.chunk_size - self.overlap)
        cuts = _cuts_inside(edges, units, distances, measure, budget, self.min_size)
        return sorted({*breaks, *cuts})

    def _candidates(self, distances: Distances) -> list[int]:
        """Return the units before which the text may be cut, the greatest distance first."""
        import numpy as np

        order = np.argsort(-distances, kind="stable")
        if self.number_of_chunks is not None:
            return [int(place) + 1 for place in order[: self.number_of_chunks - 1]]
        kind, amount = self.breakpoint_threshold_type, self.breakpoint_threshold_amount
        is_break = breakpoints(distances, kind, _AMOUNTS[kind] if amount is None else amount)
        return [int(place) + 1 for place in order[is_break[order]]]


def _with_least_size(
    candidates: Iterable[int], units: list[Range], measure: Measure, least: int
) -> list[int]:
    """Return the candidates in ascending order, without those that would leave a tiny chunk.

    The first candidates take precedence, so a fragment joins the neighbour that it is closer to.
    """
    edges = [0, len(units)]
    for unit in candidates:
        place = bisect_left(edges, unit)
        before, after = edges[place - 1], edges[place]
        parts = ((before, unit), (unit, after))
        if not any(measure.fits(units[i][0], units[j - 1][1], least - 1) for i, j in parts):
            insort(edges, unit)
    return edges[1:-1]


def _in_turn(
    candidates: Iterable[int], units: list[Range], measure: Measure, least: int
) -> list[int]:
    """Return the candidates in ascending order, without those after a segment that is too small."""
    breaks = [0]
    for unit in sorted(candidates):
        if not measure.fits(units[breaks[-1]][0], units[unit - 1][1], least - 1):
            breaks.append(unit)
    return breaks[1:]


def _cuts_inside(
    edges: Sequence[int],
    units: list[Range],
    distances: Distances,
    measure: Measure,
    budget: int,
    least: int,
) -> Iterator[int]:
    """Yield cuts at great distances between these edges, so that at most `budget` is uncut."""
    ends = [end for _, end in units]
    for i, j in pairwise(edges):
        while i < j and not measure.fits(units[i][0], ends[j - 1], budget):
            full = bisect_right(ends, measure.furthest(units[i][0], budget), i, j)
            if full <= i + 1:  # one unit fills the chunk
                i += 1
                if i < j and full == i:
                    yield i
                continue
            rest = bisect_right(ends, measure.earliest(ends[j - 1], least), i, j)
            high = max(min(full, rest), i + 1)
            low = min(i + (full - i + 1) // 2, high)
            i = high - int(distances[low - 1 : high][::-1].argmax())  # the last of equals
            yield i
