"""EntityChunker: keeps sentences about the same entities together."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from pydantic import Field

from rag_splitters.calls import call
from rag_splitters.contract.sized import MergingChunker
from rag_splitters.meaning.entities import Recogniser, find_mentions
from rag_splitters.meaning.mentions import Mention
from rag_splitters.parameters.fields import Texts
from rag_splitters.span import Source, Span
from rag_splitters.text.boundaries import boundary_after, boundary_before, positions, words
from rag_splitters.text.packing import pack
from rag_splitters.text.segmenters import SegmenterField, segmenter_cuts
from rag_splitters.text.structure import Structure, Unbreakable
from rag_splitters.text.unbreakable import find_unbreakable


class EntityChunker(MergingChunker):
    """Keeps sentences about the same entities together, and never cuts a mention of one.

    Use it for news, contracts and patient records: texts in which names matter, and a chunk should
    hold what is said about one. It has no recogniser of its own: pass one as `ner`.

    A chain links each mention of an entity to its next one, if that is at most `max_gap` sentences
    away. A new chunk begins before a sentence that mentions entities if no chain crosses that
    point; a sentence without entities stays with the one before it. Two mentions belong to the same
    entity if their texts are equal apart from case. A single word also refers to the last entity
    with the same label whose name begins or ends with it ("Lovelace": "Ada Lovelace"). Sentences
    are packed up to `chunk_size`; if that forces a cut, it falls between sentences that share no
    entity if possible.

    A mention that is longer than `chunk_size` is cut like any text, and an overlap is shortened
    rather than cut a mention. Metadata `entities`: text, label, start and end (code points of the
    source) of each mention inside the chunk, if there are any.

    Source: lexical chains (Morris and Hirst, 1991, Lexical Cohesion Computed by Thesaural
    Relations) over entities and sentences, as in the entity grid (Barzilay and Lapata, 2008,
    Modeling Local Coherence: An Entity-Based Approach).

    Raises ValueError if `ner` is not a recogniser, if it fails on a document or reports a mention
    outside of it, or if the sizes are inconsistent, and ImportError at first use if spaCy or the
    named pipeline is missing.

    >>> import re
    >>> def names(text):
    ...     return [(*match.span(), "NAME") for match in re.finditer("Ada|Bern", text)]
    >>> chunks = EntityChunker(ner=names).chunk("Ada wrote. She sang. Ada left. Bern is old.")
    >>> [chunk.text for chunk in chunks]
    ['Ada wrote. She sang. Ada left.', 'Bern is old.']
    >>> chunks[1].metadata["entities"]
    [{'text': 'Bern', 'label': 'NAME', 'start': 31, 'end': 35}]
    """

    strategy: ClassVar[str] = "entity"

    ner: Recogniser
    """Entity recogniser: a spaCy pipeline or its name, a Hugging Face pipeline, a GLiNER model, or
    a function from a text to (start, end, label) triples, which may be asynchronous."""

    labels: Texts = ()
    """Labels of the entities to use; empty: all. GLiNER models need to be told which."""

    max_gap: int = Field(default=3, ge=1)
    """Maximum distance, in sentences, between two mentions that are linked."""

    segmenter: SegmenterField = "rules"

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        mentions = await call(find_mentions, self.ner, sources, self.labels)
        return [self._spans(each.text, own) for each, own in zip(sources, mentions, strict=True)]

    def _spans(self, text: str, mentions: list[Mention]) -> list[Span]:
        cuts = segmenter_cuts(self.segmenter, text)
        rows = _rows(text, mentions, cuts)
        structure = Structure(text, required=_boundaries(rows, cuts, self.max_gap), sentences=cuts)
        fits = structure.measure(self.sizes).fits
        whole = _whole_mentions(text, mentions)
        fitting = Unbreakable(each for each in whole if fits(*each, self.chunk_size))
        structure.unbreakable = lambda: [*_around_mentions(text, fitting), *fitting]
        levels = (positions(_boundaries(rows, cuts, 1)), positions(cuts), words(text))
        structure.levels = [fitting.guard(level) for level in levels]
        spans = pack(structure, self.sizes)
        for span in spans:
            first, last = (bisect_left(mentions, (edge,)) for edge in (span.start, span.end))
            entities = [
                {"text": text[m.start : m.end], "label": m.label, "start": m.start, "end": m.end}
                for m in mentions[first:last]
                if m.end <= span.end
            ]
            if entities:
                span.metadata = {"entities": entities}
        return spans


# Chains of mentions


def _rows(text: str, mentions: Iterable[Mention], cuts: Sequence[int]) -> list[tuple[int, Any]]:
    """Return (sentence, entity) of every mention, sorted: the cells of the entity grid."""
    names: dict[tuple[str, str], str] = {}  # the last long name that begins or ends with a word
    rows = []
    for start, end, label in mentions:
        parts = text[start:end].casefold().split()
        entity = " ".join(parts)
        if len(parts) > 1:
            names[parts[0], label] = names[parts[-1], label] = entity
        else:
            entity = names.get((entity, label), entity)
        rows.append((bisect_right(cuts, start), entity))
    return rows


def _boundaries(rows: Sequence[tuple[int, Any]], cuts: Sequence[int], max_gap: int) -> list[int]:
    """Return the cuts before sentences that mention entities, if no chain crosses them."""
    last_of: dict[Any, int] = {}
    crossed = [0] * (len(cuts) + 2)  # chains that begin at a sentence, less those that end
    for sentence, entity in rows:
        before = last_of.get(entity, sentence)
        if 0 < sentence - before <= max_gap:
            crossed[before + 1] += 1
            crossed[sentence + 1] -= 1
        last_of[entity] = sentence
    boundaries, chains, first = [], 0, 0
    for sentence in sorted({sentence for sentence, _ in rows}):
        chains += sum(crossed[first : sentence + 1])
        first = sentence + 1
        if not chains and sentence and sentence != rows[0][0]:
            boundaries.append(cuts[sentence - 1])
    return boundaries


def _around_mentions(text: str, mentions: Unbreakable) -> Iterator[tuple[int, int]]:
    """Yield the items, rows and so on of a text, with the mentions that they would divide."""
    for start, end in find_unbreakable(text):
        yield mentions.start_of(start), mentions.end_of(end)


def _whole_mentions(text: str, mentions: Iterable[Mention]) -> list[tuple[int, int]]:
    """Return the ranges of mentions, extended to whole grapheme clusters."""
    ranges: list[tuple[int, int]] = []
    for start, end, _ in mentions:
        start, end = boundary_before(text, start), boundary_after(text, end)
        if ranges and start < ranges[-1][1]:
            start = ranges.pop()[0]
        ranges.append((start, end))
    return ranges
