"""Room for a prefix: titles, contexts and metadata count towards the size."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from rag_splitters import (
    AutoChunker,
    Chunker,
    ContentAwareChunker,
    ContextualChunker,
    HierarchicalChunker,
    HybridChunker,
    ModalityChunker,
    PageChunker,
    ParagraphChunker,
    RecursiveChunker,
    SemanticChunker,
    SentenceChunker,
    Source,
    TableChunker,
    TitledChunker,
)
from rag_splitters.models import HashingEmbeddings

TEXT = "The kettle boils over at noon. Nobody notices it for an hour, except the cat. " * 20
NESTED = HybridChunker(stages=[SentenceChunker(chunk_size=100)])
SIZED: list[Chunker] = [
    RecursiveChunker(chunk_size=100),
    RecursiveChunker(chunk_size=100, min_chunk_size=100),
    SentenceChunker(chunk_size=100),
    ParagraphChunker(chunk_size=100, min_chunk_size=90),
    ContentAwareChunker(chunk_size=100, min_chunk_size=90),
    HierarchicalChunker(chunk_size=100),
    SemanticChunker(embeddings=HashingEmbeddings(), chunk_size=100, min_chunk_size=90),
    AutoChunker(chunk_size=100),
    AutoChunker(chunk_size=100, min_chunk_size=90),
    AutoChunker(chunk_size=100, rules={"text": NESTED}),
    TableChunker(chunk_size=100),
    TableChunker(chunk_size=100, text=NESTED),
    HybridChunker(stages=[PageChunker(), SentenceChunker(chunk_size=100)]),
    ModalityChunker(text=RecursiveChunker(chunk_size=100)),
]
NAMES = [f"{type(chunker).__name__}{index}" for index, chunker in enumerate(SIZED)]


def words_are_whole(text: str, start: int, end: int) -> bool:
    return not (text[start - 1 : start + 1].isalnum() and start) and (
        end == len(text) or not text[end - 1 : end + 1].isalnum()
    )


@pytest.mark.parametrize("chunker", SIZED, ids=NAMES)
def test_chunks_leave_room_for_the_prefix_of_their_source(chunker: Chunker) -> None:
    sources = [Source(TEXT), Source(TEXT, prefix="x" * 40), Source(TEXT, prefix="y" * 10)]
    for prefix, spans in zip(("", "x" * 40, "y" * 10), chunker.split(sources), strict=True):
        assert spans
        for span in spans:
            assert len(prefix + span.text_of(TEXT)) <= 100
            assert words_are_whole(TEXT, span.start, span.end)
    (spans,) = chunker.split([Source("tea", prefix="x" * 99)])
    assert len(spans) == 3
    assert len(next(chunker.split([replace(sources[0])]))) < len(next(chunker.split(sources[1:2])))


@pytest.mark.parametrize("kind", [AutoChunker, ModalityChunker, TableChunker])
def test_tables_leave_room_for_the_prefix_of_their_source(kind: Any) -> None:
    text = "| tea | price |\n|---|---|\n" + "| green | 3 |\n" * 20
    for prefix in ("", "x" * 40):
        spans = next(kind(chunk_size=100).split([Source(text, prefix=prefix)]))
        sizes = {len(span.text_of(text)) for span in spans}
        assert 80 - len(prefix) < max(sizes) <= 100 - len(prefix)


@pytest.mark.parametrize("kind", [RecursiveChunker, SentenceChunker, ParagraphChunker])
@pytest.mark.parametrize("unit", ["characters", "words", "tokens", lambda text: len(text) // 4])
def test_every_chunk_after_the_first_has_its_title(kind: Any, unit: Any) -> None:
    size = 100 if unit == "characters" else 25
    least = {"min_chunk_size": size - 2} if "min_chunk_size" in kind.model_fields else {}
    inner = kind(chunk_size=size, length_function=unit, **least)
    spans = TitledChunker(chunker=inner, title="Kettles, cats and noon").spans(TEXT)
    for span in spans[1:]:
        assert span.text_of(TEXT).startswith("Kettles, cats and noon\n\n")
        assert inner.fits(span.text_of(TEXT))
        assert words_are_whole(TEXT, span.start, span.end)


def test_counted_context_cuts_no_word() -> None:
    inner = RecursiveChunker(chunk_size=120, min_chunk_size=110)
    chunker = ContextualChunker(chunker=inner, llm=lambda prompt: "Cats.")
    for span in chunker.spans(TEXT):
        assert words_are_whole(TEXT, span.start, span.end)


def test_strategy_of_a_user_leaves_room_by_itself() -> None:
    class Firsts(RecursiveChunker):
        async def plan(self, sources: Any) -> Any:
            assert all(self.chunk_size < 100 for _ in sources)
            return await super().plan(sources)

    chunker = TitledChunker(chunker=Firsts(chunk_size=100), title="Tea")
    spans = asyncio.run(_first(chunker))
    assert all(len(span.text_of(TEXT)) <= 100 for span in spans)


async def _first(chunker: Chunker) -> Any:
    async for spans in chunker.asplit([Source(TEXT)]):
        return spans
    return []
