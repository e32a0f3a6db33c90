"""The chunks of a text, and figures about them. What was cut is kept, so nothing is cut twice."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.sized import unit_of
from rag_splitters.evaluation.measure.chunks import LocatedChunk
from rag_splitters.evaluation.measure.faults import DocumentFaults, count_faults
from rag_splitters.evaluation.measure.metrics import rank, total, union
from rag_splitters.meaning.similarity import unit_vectors
from rag_splitters.playground.model_set import ModelSet
from rag_splitters.playground.recent import Recent
from rag_splitters.playground.texts import Text
from rag_splitters.span import Chunk
from rag_splitters.structure.blocks import read_blocks
from rag_splitters.text.coloured import Piece, pieces
from rag_splitters.text.sizing import sizer, unit_name
from rag_splitters.text.structure import Range


@dataclass(frozen=True)
class Hit:
    """A chunk that a question retrieves: its number, and its similarity to the question."""

    chunk: int
    score: float


@dataclass
class Cut:
    """What a strategy made of a text.

    Parameters:
        seconds: how long it took.
        searches: the chunks that the last questions have retrieved, by question and number.

    >>> from rag_splitters import SentenceChunker
    >>> cut = Cut.of(SentenceChunker(chunk_size=8), Text("", "", "One two. Three."))
    >>> cut.sizes, cut.unit, cut.coverage
    ([8, 6], 'characters', (0, 0))
    """

    text: Text
    chunker: Chunker
    chunks: Sequence[Chunk]
    seconds: float
    searches: Recent[tuple[str, int], list[Hit]] = field(default_factory=partial(Recent, 64))

    @classmethod
    def of(cls, chunker: Chunker, text: Text) -> Cut:
        """Cut a text; its metadata tells strategies what kind of text it is."""
        start = time.perf_counter()
        chunks = chunker.chunk(text.text, metadata=text.metadata)
        return cls(text, chunker, chunks, time.perf_counter() - start)

    @cached_property
    def positions(self) -> list[Range]:
        """The position of each chunk."""
        return [(chunk.start, chunk.end) for chunk in self.chunks]

    @cached_property
    def numbers(self) -> dict[tuple[int, int, str], int]:
        """The number of each chunk, by its position and its text."""
        return {(c.start, c.end, c.text): number for number, c in enumerate(self.chunks)}

    @cached_property
    def pieces(self) -> list[Piece]:
        """The text in pieces, each of which is in the same chunks from beginning to end."""
        return list(pieces(self.text.text, self.chunks))

    @cached_property
    def unit(self) -> str:
        """The name of the unit of the sizes."""
        return unit_name(unit_of(self.chunker))

    @cached_property
    def sizes(self) -> list[int]:
        """The size of each chunk. The text is measured only once."""
        measure, text = sizer(unit_of(self.chunker)), self.text.text
        length = measure(text).length
        return [
            length(chunk.start, chunk.end)
            if chunk.text == text[chunk.start : chunk.end]
            else measure(chunk.text).length(0, len(chunk.text))
            for chunk in self.chunks
        ]

    @cached_property
    def sentence_cuts(self) -> list[tuple[bool, bool]]:
        """Whether each chunk begins, and whether it ends, inside a sentence."""
        return document_faults(self.text).sentence_cuts(self.positions)

    @cached_property
    def faults(self) -> dict[str, int]:
        """How many chunks have each of the faults."""
        name = self.text.name
        located = [LocatedChunk(each.text, name, (each.start, each.end)) for each in self.chunks]
        return count_faults({name: document_faults(self.text)}, located, self.sizes)

    @cached_property
    def coverage(self) -> tuple[int, int]:
        """How many characters are in more than one chunk, and how many visible ones in none."""
        covered = union(self.positions)
        starts, ends = [low for low, _ in covered], [high for _, high in covered]
        gaps = zip([0, *ends], [*starts, len(self.text.text)], strict=True)
        dropped = sum(len("".join(self.text.text[low:high].split())) for low, high in gaps)
        return total(self.positions) - total(covered), dropped

    def search(self, question: str, k: int, models: ModelSet) -> list[Hit]:
        """Return the chunks most similar to the question, by cosine similarity, and keep them.

        Raises: ModelError if the model fails.
        """
        hits: list[Hit] = []
        numbers = [number for number, each in enumerate(self.chunks) if each.text.strip()]
        if numbers:
            vectors = models.embed([self.chunks[number].text for number in numbers], question)
            units = unit_vectors(vectors)
            hits = [
                Hit(numbers[row], float(units[row] @ units[-1]))
                for row in next(rank(vectors[:-1], vectors[-1:]))[:k].tolist()
            ]
        self.searches.put((question, k), hits)
        return hits


@lru_cache(maxsize=4)
def document_faults(text: Text) -> DocumentFaults:
    """Return the faults of a text; kept, because every strategy needs what belongs to the text."""
    return DocumentFaults(text.text, text.metadata)


@lru_cache(maxsize=4)
def monospace_ranges(text: Text) -> list[Range]:
    """Return where a text has tables and code, whose columns need letters of one width.

    >>> monospace_ranges(Text("", "", "# Run\\n\\n    make\\n"))
    [(7, 15)]
    """
    source, blocks = text.text, read_blocks(text.text, metadata=text.metadata)
    return [
        (source.rfind("\n", 0, block.start) + 1 if block.kind == "code" else block.start, block.end)
        for block in blocks
        if block.kind in ("code", "table")
    ]
