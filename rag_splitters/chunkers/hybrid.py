"""HybridChunker: strategies in a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import field_validator

from rag_splitters.chunker import Chunker, NestedMany
from rag_splitters.chunkers.paragraph import ParagraphChunker
from rag_splitters.chunkers.sentence import SentenceChunker
from rag_splitters.span import Span, shifted

__all__ = ["HybridChunker"]


class HybridChunker(Chunker):
    """Cuts by one strategy, and what it left by the next, and so on.

    Positions stay those of the source, and the metadata of all stages are kept; where two stages
    know the same key, the later one counts. Use it to put a size on a strategy that has none, or
    to cut inside borders that must hold: pages, then sentences. For titles, wrap it:
    `TitledChunker(chunker=HybridChunker(...))`; as a stage, `TitledChunker` sees only its part.

    Raises: ValueError for no stages, or a stage that rewrites before another one.

    >>> from rag_splitters import PageChunker
    >>> chunker = HybridChunker(stages=[PageChunker(), SentenceChunker(chunk_size=10)])
    >>> [(chunk.text, chunk.metadata["page_start"]) for chunk in chunker.chunk("A b. C d.\\fE f.")]
    [('A b. C d.', 1), ('E f.', 2)]
    """

    stages: NestedMany = (ParagraphChunker(), SentenceChunker())
    """The chunkers, the first one first."""

    @field_validator("stages")
    @classmethod
    def _check_stages(cls, value: Sequence[Chunker]) -> Sequence[Chunker]:
        if not value:
            raise ValueError("stages must hold at least one chunker")
        for stage in value[:-1]:
            if stage.rewrites:
                raise ValueError(
                    f"{type(stage).__name__} rewrites its chunks, so it must be the last stage"
                )
        return value

    @property
    def rewrites(self) -> bool:  # type: ignore[override]
        """Does the last stage rewrite?"""
        return self.stages[-1].rewrites

    def spans(self, text: str) -> list[Span]:
        return self.spans_of_documents([text], [{}])[0]

    def spans_many(self, texts: Iterable[str]) -> list[list[Span]]:
        known = list(texts)
        return self.spans_of_documents(known, [{}] * len(known))

    def spans_of_documents(
        self, texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]]
    ) -> list[list[Span]]:
        known = list(texts)
        results = self.stages[0].spans_of_documents(known, metadatas)
        for stage in self.stages[1:]:
            parts, details = _parts(known, results, metadatas)
            results = _joined(results, stage.spans_of_documents(parts, details))
        return results

    async def aspans_many(self, texts: Iterable[str]) -> list[list[Span]]:
        known = list(texts)
        return await self.aspans_of_documents(known, [{}] * len(known))

    async def aspans_of_documents(
        self, texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]]
    ) -> list[list[Span]]:
        known = list(texts)
        results = await self.stages[0].aspans_of_documents(known, metadatas)
        for stage in self.stages[1:]:
            parts, details = _parts(known, results, metadatas)
            results = _joined(results, await stage.aspans_of_documents(parts, details))
        return results

    def fits(self, content: str) -> bool:
        return self.stages[-1].fits(content)

    def narrowed(self, prefix: str) -> HybridChunker:
        last = self.stages[-1].narrowed(prefix)
        return self.model_copy(update={"stages": (*self.stages[:-1], last)})


def _parts(
    texts: Sequence[str],
    results: Sequence[Sequence[Span]],
    metadatas: Sequence[Mapping[str, Any]],
) -> tuple[list[str], list[Mapping[str, Any]]]:
    """The chunks of all documents as texts of their own, with what is known of each."""
    triples = list(zip(texts, results, metadatas, strict=True))
    parts = [span.text_of(text) for text, spans, _ in triples for span in spans]
    return parts, [{**known, **span.metadata} for _, spans, known in triples for span in spans]


def _joined(outer: Sequence[Sequence[Span]], inner: Iterable[Sequence[Span]]) -> list[list[Span]]:
    """The inner spans of every outer one, as spans of the whole text."""
    each = iter(inner)
    return [
        [shifted(part, span.start, span.metadata) for span in spans for part in next(each)]
        for spans in outer
    ]
