"""TopicChunker: segments of one topic, found by a topic model."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from rag_splitters.contract.sized import MergingChunker
from rag_splitters.meaning.topics import Segment, find_segments
from rag_splitters.meaning.units import pack_units, unit_cuts
from rag_splitters.span import Span
from rag_splitters.text.segmenters import SegmenterField, segmenter_cuts
from rag_splitters.text.unbreakable import marked_structure

_Topics = Annotated[int, Field(ge=2, strict=True)]


class TopicChunker(MergingChunker):
    """Cuts where the topic changes, according to a topic model of the document's own sentences.

    Use it for long texts that go through several subjects without headings: transcripts, minutes,
    reports. It compares the words within one text, so it needs no language model, but it finds
    little in a text of a few sentences.

    With "nmf", sentences are TF-IDF vectors, non-negative matrix factorisation finds the topics,
    and dynamic programming finds the partition into contiguous segments with the least variance,
    with a penalty for each boundary. With "lda", latent Dirichlet allocation over each sentence and
    its neighbours replaces the first two steps. Inside a segment whole sentences are packed up to
    `chunk_size`. A text of fewer than three sentences, or without words, is packed without a model.
    A code fence, a table row, a list item or a quotation counts as one sentence, and is not cut if
    it fits.

    Metadata, if topics were found: `topic`, its number in the document (0 for the first that
    appears; a topic that returns keeps its number), and `topic_terms`, its strongest terms,
    at most five. A chunk that holds parts of several topics (`min_chunk_size`) gets the largest.

    Source: Lee and Seung (1999), Learning the Parts of Objects by Non-Negative Matrix
    Factorization; Blei, Ng and Jordan (2003), Latent Dirichlet Allocation; Utiyama and Isahara
    (2001), A Statistical Model for Domain-Independent Text Segmentation, for the partition.

    Raises ValueError if the model or the segmenter is unknown, if `n_topics` is less than 2, or if
    the sizes are inconsistent, and ImportError at first use without scikit-learn (extra `topics`).

    >>> text = "Bees make honey. Bees store honey. A rook takes a pawn. The pawn takes a rook."
    >>> chunks = TopicChunker(n_topics=2).chunk(text)
    >>> [(chunk.text, chunk.metadata["topic"]) for chunk in chunks]
    [('Bees make honey. Bees store honey.', 0), ('A rook takes a pawn. The pawn takes a rook.', 1)]
    """

    strategy: ClassVar[str] = "topic"

    model: Literal["nmf", "lda"] = "nmf"
    """The topic model: "nmf", or "lda" (slower, and less accurate in our measurements)."""

    n_topics: _Topics | Literal["auto"] = "auto"
    """Number of topics to look for; "auto": one for every three sentences, from 2 to 10."""

    random_state: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the topic model: the same seed gives the same chunks."""

    segmenter: SegmenterField = "rules"

    def spans(self, text: str) -> list[Span]:
        structure = marked_structure(text, sentences=segmenter_cuts(self.segmenter, text))
        cuts = unit_cuts(structure, self.sizes)
        starts = [0, *cuts]
        ends = [*cuts, len(text)]
        segments = find_segments(
            [text[start:end] for start, end in zip(starts, ends, strict=True)],
            model=self.model,
            n_topics=None if self.n_topics == "auto" else self.n_topics,
            random_state=self.random_state,
        )
        boundaries = [starts[segment.first] for segment in segments]
        spans = pack_units(structure, cuts, boundaries[1:], self.sizes)
        if segments:
            _add_topics(spans, boundaries, segments)
        return spans


def _add_topics(
    spans: Sequence[Span], boundaries: Sequence[int], segments: Sequence[Segment]
) -> None:
    """Add to each span the topic that most of its new text belongs to."""
    for span in spans:
        start = span.own
        first, last = bisect_right(boundaries, start) - 1, bisect_right(boundaries, span.end - 1)
        edges = [start, *boundaries[first + 1 : last], span.end]
        shares = [after - before for before, after in pairwise(edges)]
        segment = segments[first + shares.index(max(shares))]
        span.metadata = {"topic": segment.topic, "topic_terms": list(segment.terms)}
