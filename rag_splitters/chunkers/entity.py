"""EntityChunker: keeps sentences about the same entities together."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from rag_splitters.calls import call
from rag_splitters.contract.sized import MergingChunker
from rag_splitters.meaning.entities import Recogniser, find_mentions
from rag_splitters.meaning.mentions import Mention
from rag_splitters.parameters.fields import FunctionOrName, Texts
from rag_splitters.span import Source, Span
from rag_splitters.text.atoms import Atoms
from rag_splitters.text.boundaries import Finder, cluster_end, cluster_floor, positions, words
from rag_splitters.text.overlaps import Starts, longest_overlap, sentence_starts, word_starts
from rag_splitters.text.packing import Packer
from rag_splitters.text.segmenters import check_segmenter, segmenter_cuts
from rag_splitters.text.sizing import Measure


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

    segmenter: Annotated[FunctionOrName, AfterValidator(check_segmenter)] = "rules"
    """How to find sentences: "rules" (built in), "punkt" (NLTK), "spacy:<model>", or a function
    from a text to a list of (start, end)."""

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        texts = [source.text for source in sources]
        numbers = [source.number for source in sources]
        mentions = await call(find_mentions, self.ner, texts, self.labels, numbers)
        return [self._spans(text, own) for text, own in zip(texts, mentions, strict=True)]

    def _spans(self, text: str, mentions: list[Mention]) -> list[Span]:
        atoms = Atoms(text, **self.sizes)
        measure, cuts = atoms.measure, segmenter_cuts(self.segmenter, text)
        ranges = _ranges(text, mentions, measure, self.chunk_size)
        rows = _rows(text, mentions, cuts)
        breaks = _borders(rows, cuts, self.max_gap)
        levels = (positions(_borders(rows, cuts, 1)), positions(cuts), words(text))
        kinds = [sentence_starts(text, cuts), word_starts(text, measure, self.chunk_size)]
        outside = [ranges.outside(kind) for kind in kinds]
        packer = _MentionPacker(
            text,
            measure,
            self.chunk_size,
            [ranges.before(level) for level in levels],
            breaks=[each for each in breaks if ranges.floor(each) == each],
            overlap=longest_overlap(measure, self.overlap, outside) if self.overlap else None,
            min_size=self.min_chunk_size,
            atoms=atoms,
        )
        packer.ranges = ranges
        return [_with_entities(text, start, end, mentions) for start, end in packer.pack()]


def _with_entities(text: str, start: int, end: int, mentions: Sequence[Mention]) -> Span:
    first = bisect_left(mentions, (start,))
    last = bisect_left(mentions, (end,))
    entities = [
        {"text": text[m.start : m.end], "label": m.label, "start": m.start, "end": m.end}
        for m in mentions[first:last]
        if m.end <= end
    ]
    return Span(start, end, {"entities": entities} if entities else {})


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


def _borders(rows: Sequence[tuple[int, Any]], cuts: Sequence[int], max_gap: int) -> list[int]:
    """Return the cuts before sentences that mention entities, if no chain crosses them."""
    last_of: dict[Any, int] = {}
    crossed = [0] * (len(cuts) + 2)  # chains that begin at a sentence, less those that end
    for sentence, entity in rows:
        before = last_of.get(entity, sentence)
        if 0 < sentence - before <= max_gap:
            crossed[before + 1] += 1
            crossed[sentence + 1] -= 1
        last_of[entity] = sentence
    borders, chains, first = [], 0, 0
    for sentence in sorted({sentence for sentence, _ in rows}):
        chains += sum(crossed[first : sentence + 1])
        first = sentence + 1
        if not chains and sentence and sentence != rows[0][0]:
            borders.append(cuts[sentence - 1])
    return borders


# Mentions that must not be cut


def _ranges(text: str, mentions: Iterable[Mention], measure: Measure, size: int) -> _Ranges:
    """Return the mentions that fit in a chunk, extended to whole grapheme clusters."""
    ranges: list[tuple[int, int]] = []
    for start, end, _ in mentions:
        low = ranges[-1][1] if ranges else 0
        start = cluster_floor(text, low, start)
        end = max(end, cluster_end(text, cluster_floor(text, low, end - 1)))
        if ranges and start < ranges[-1][1]:
            start = ranges.pop()[0]
        ranges.append((start, end))
    return _Ranges([each for each in ranges if measure.length(*each) <= size])


class _Ranges:
    """Parts of a text inside which it must not be cut."""

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self._starts = [start for start, _ in ranges]
        self._ends = [end for _, end in ranges]

    def at(self, position: int) -> tuple[int, int] | None:
        """Return the range that a cut at `position` would divide."""
        index = bisect_left(self._starts, position) - 1
        if index < 0 or self._ends[index] <= position:
            return None
        return self._starts[index], self._ends[index]

    def floor(self, position: int) -> int:
        """Return `position`, or the start of the range around it."""
        around = self.at(position)
        return around[0] if around else position

    def end_from(self, start: int) -> int:
        """Return the end of the range that begins at `start`, or `start`."""
        around = self.at(start + 1)
        return around[1] if around and around[0] == start else start

    def before(self, level: Finder) -> Finder:
        """Return the finder without cuts inside a range."""

        def last(low: int, high: int) -> int:
            cut = level(low, high)
            while cut > low and (floor := self.floor(cut)) < cut:
                cut = level(low, floor) if floor > low else -1
            return cut

        return last

    def outside(self, starts: Starts) -> Starts:
        """Return the places without those inside a range."""

        def first(start: int, low: int, end: int) -> int:
            place = starts.first(start, low, end)
            while place >= 0 and (around := self.at(place)):
                place = starts.first(start, around[1], end) if around[1] < end else -1
            return place

        def last(low: int, high: int) -> int:
            place = starts.last(low, high)
            while place >= 0 and (around := self.at(place)):
                place = starts.last(low, around[0] + 1)
            return place

        return Starts(first, last)


class _MentionPacker(Packer):
    """A packer that cuts before a mention instead of inside it."""

    ranges: _Ranges

    def find_cut(self, start: int, begin: int, text_end: int) -> int:
        cut = super().find_cut(start, begin, text_end)
        # If the measure is not monotone, part of a mention may not fit although all of it does.
        return cut if cut > begin or start < begin else self.ranges.end_from(begin)

    def best_cut(self, start: int, begin: int, high: int, limit: int) -> int:
        cut = super().best_cut(start, begin, high, limit)
        floor = self.ranges.floor(cut)
        if floor > begin or floor == cut:
            return floor
        return self.ranges.end_from(begin) if start == begin else begin
