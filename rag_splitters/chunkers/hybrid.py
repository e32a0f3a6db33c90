"""HybridChunker: a chain of strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from rag_splitters.chunkers.paragraph import ParagraphChunker
from rag_splitters.chunkers.parts import Part, Parts, plan_parts
from rag_splitters.chunkers.sentence import SentenceChunker
from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.registry import NestedMany
from rag_splitters.contract.sized import CompositeChunker
from rag_splitters.span import Source, Span
from rag_splitters.text.excerpt import Excerpt


class HybridChunker(CompositeChunker):
    """Chains strategies: each one cuts what the previous one left too big.

    Use it to limit the size of a strategy that has no limit, or to cut inside fixed boundaries:
    pages first, then sentences. All positions refer to the source, and the metadata of all stages
    is kept; if two stages set the same key, the later one wins. For titles, wrap it:
    `TitledChunker(chunker=HybridChunker(...))`; as a stage, `TitledChunker` would see only parts of
    the document. If a stage rewrites a chunk, the pieces that the next stage cuts it into get the
    position of the whole chunk.

    Raises ValueError if there are no stages.

    >>> from rag_splitters import PageChunker
    >>> chunker = HybridChunker(stages=[PageChunker(), SentenceChunker(chunk_size=10)])
    >>> [(chunk.text, chunk.metadata["page_start"]) for chunk in chunker.chunk("A b. C d.\\fE f.")]
    [('A b. C d.', 1), ('E f.', 2)]
    """

    strategy: ClassVar[str] = "hybrid"

    stages: NestedMany = (ParagraphChunker(), SentenceChunker())
    """The chunkers, in the order in which they cut."""

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        first, *others = self.resized().stages
        bare = [replace(source, prefix="") for source in sources]  # only the last one makes room
        results = await first.plan(bare if others else sources)
        for stage in others:
            pairs = zip(sources, results, strict=True)
            parts: list[Parts] = [
                [_part(stage, source.text, span) for span in spans] for source, spans in pairs
            ]
            results = await plan_parts(sources if stage is others[-1] else bare, parts)
        return results

    def makers(self) -> list[Chunker]:
        return super().makers()[-1:]


def _part(stage: Chunker, text: str, span: Span) -> Part:
    """Return a chunk as a part for the next stage.

    The pieces of a rewritten chunk get the position of the whole chunk, because nothing says where
    in it they come from.
    """
    rewritten = [] if span.content is None else [(span.start, span.end, span.content)]
    return Part(stage, Excerpt.of(text, span.start, span.end, rewritten), span)
