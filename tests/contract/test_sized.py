"""The sizes of strategies that cut with others: the strategies inside have them, too."""

from __future__ import annotations

from typing import Any

import pytest

from rag_splitters import (
    AutoChunker,
    Chunker,
    ContextualChunker,
    HybridChunker,
    JsonChunker,
    ModalityChunker,
    PageChunker,
    ParagraphChunker,
    RecursiveChunker,
    SentenceChunker,
    Span,
    TableChunker,
    TitledChunker,
)
from rag_splitters.contract.sized import unit_of, with_sizes
from rag_splitters.langchain import TitledTextSplitter
from rag_splitters.llama_index import HybridNodeParser

TEXT = "\n\n".join(
    f"{number} ships came to the harbour, and all of them left." for number in range(9)
)
TABLE = "| a | b |\n|---|---|\n" + "| one | two |\n" * 9


class Whole(Chunker):
    """One chunk, without a size."""

    def spans(self, text: str) -> list[Span]:
        return [Span(0, len(text))]


@pytest.mark.parametrize(
    "chunker",
    [
        TitledChunker(title="Ships", chunk_size=40),
        HybridChunker(chunk_size=40),
        ContextualChunker(llm=lambda prompt: "Ships.", chunk_size=40),
        ModalityChunker(chunk_size=40),
        ModalityChunker(text=TableChunker(), chunk_size=40),
        HybridChunker(stages=[ParagraphChunker(), TitledChunker(chunk_size=900)], chunk_size=40),
        HybridChunker(stages=[Whole(), SentenceChunker(chunk_size=900)], chunk_size=40),
        TitledChunker(chunker=AutoChunker(rules={"*": RecursiveChunker()}), chunk_size=40),
    ],
)
def test_all_strategies_inside_have_the_size(chunker: Chunker) -> None:
    chunks = chunker.chunk(TEXT)
    assert max(len(chunk.text) for chunk in chunks) <= 40
    assert len(chunks) > 9


def test_the_table_is_cut_in_the_size_from_outside() -> None:
    assert len(ModalityChunker(chunk_size=60).chunk(TABLE)) > 2


def test_sizes_that_are_not_given_stay() -> None:
    words = SentenceChunker(chunk_size=90, chunk_overlap=5, length_function="words")
    inner = TitledChunker(chunker=words, chunk_overlap=7)
    resized = HybridChunker(stages=[inner], chunk_size=20).resized()
    assert resized.stages[0].chunk_overlap is None
    (stage,) = resized.stages
    assert isinstance(stage, TitledChunker)
    assert stage.chunker == words.model_copy(update={"chunk_size": 20, "chunk_overlap": 7})
    assert HybridChunker(stages=[inner]).resized().stages == (inner,)


def test_front_ends_have_the_sizes() -> None:
    splitter = TitledTextSplitter(title="Ships", chunk_size=40)
    assert max(map(len, splitter.split_text(TEXT))) <= 40
    parser = HybridNodeParser(chunk_size=8)
    assert parser.stages[-1].length_function == parser.resized().stages[-1].length_function
    assert parser.resized().stages[-1].chunk_size == 8


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: HybridChunker(stages=[SentenceChunker(chunk_overlap=9)], chunk_size=5),
            r"chunk_overlap must be smaller than chunk_size \(5\), got 9",
        ),
        (
            lambda: TitledChunker(chunker=Whole(), chunk_size=5, chunk_overlap=1),
            "no strategy inside has sizes: leave out chunk_size, chunk_overlap",
        ),
    ],
)
def test_sizes_that_cannot_be_are_refused(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("chunker", "unit"),
    [
        (SentenceChunker(length_function="words"), "words"),
        (TitledChunker(chunker=SentenceChunker(length_function="words")), "words"),
        (TitledChunker(length_function="words"), "words"),
        (HybridChunker(stages=[PageChunker(), RecursiveChunker(length_function="words")]), "words"),
        (TitledChunker(chunker=with_sizes(TableChunker(), {"length_function": "words"})), "words"),
        (TableChunker(text=RecursiveChunker(length_function="words")), "characters"),
        (Whole(), "characters"),
    ],
)
def test_the_unit_is_that_of_the_last_strategy_inside(chunker: Chunker, unit: str) -> None:
    assert unit_of(chunker) == unit


@pytest.mark.parametrize("length_function", ["tokens", "words"])
def test_a_title_leaves_room_in_the_unit_of_the_chunker(length_function: str) -> None:
    # The longest title in characters is not the one with the most words or tokens.
    parts = [
        "# Internationalisation and standardisation considerations\n\n" + "Ships came in. " * 40,
        "# 港の灯台守は 毎晩 ランプ を 灯す のです\n\n" + "Ships came in. " * 40,
    ]
    chunker = TitledChunker(
        chunker=RecursiveChunker(chunk_size=40, length_function=length_function),
        include_headings=True,
    )
    chunks = chunker.chunk("\n\n".join(parts), metadata={"title": "Log"})
    assert all(chunk.text.startswith(("Log\n", "Log > ")) for chunk in chunks[1:])
    assert all(chunker.fits(chunk.text) for chunk in chunks)


def test_a_path_leaves_room_in_the_unit_of_the_chunker() -> None:
    text = '{"a": {"b c d e": ["' + "one two " * 40 + '"]}, "abcdefghijklmnopqrstuvw": ["x"]}'
    chunks = JsonChunker(chunk_size=16, length_function="words", with_path=True).chunk(text)
    assert {chunk.text.split("\n\n")[0] for chunk in chunks[1:-1]} == {"$.a['b c d e'][0]"}
