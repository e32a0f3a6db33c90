"""Where chunks stand: ours, LangChain's, LlamaIndex's and strings."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.schema import NodeWithScore, TextNode

from rag_splitters import Chunk, RecursiveChunker, SentenceChunker, TitledChunker
from rag_splitters.evaluation.measure.chunks import (
    ChunkLocator,
    locate_chunks,
    locate_results,
)
from rag_splitters.langchain import SentenceTextSplitter
from rag_splitters.llama_index import SentenceNodeParser

TEXT = (Path(__file__).parents[1] / "data" / "evaluation" / "corpora" / "bakery.md").read_text(
    "utf-8"
)


class Rewriting(SentenceTextSplitter):
    """Rewrites its chunks: one can still be found, one cannot."""

    def split_text(self, text: str) -> list[str]:
        return ["Tea  is old.", "MILK!"]


def test_chunks_that_a_subclass_rewrites_have_no_position_unless_they_are_found() -> None:
    chunks = locate_chunks(Rewriting(), {"one": "Milk is white. Tea is old."})
    assert [chunk.position for chunk in chunks] == [(15, 26), None]


REPEATED = "One line.\n\n" * 40


@pytest.mark.parametrize("text", [TEXT, REPEATED])
@pytest.mark.parametrize(
    "chunker",
    [
        SentenceChunker(chunk_size=120),
        SentenceTextSplitter(chunk_size=120),
        SentenceNodeParser(chunk_size=120, length_function="characters"),
        RecursiveCharacterTextSplitter(chunk_size=120, chunk_overlap=0),
        RecursiveCharacterTextSplitter(chunk_size=120, chunk_overlap=0, add_start_index=True),
        TokenTextSplitter(chunk_size=40, chunk_overlap=0),
        lambda text: [part for part in text.split("\n\n") if part],
    ],
    ids=lambda chunker: type(chunker).__name__,
)
def test_located_chunks_stand_where_their_text_is_and_go_on(chunker: Any, text: str) -> None:
    chunks = locate_chunks(chunker, {"one": text, "two": text[::-1]})
    assert {chunk.document for chunk in chunks} == {"one", "two"}
    last = 0
    for chunk in chunks:
        assert chunk.position is not None
        start, end = chunk.position
        if chunk.document == "one":
            assert text[start:end] == chunk.text
            assert start >= last, "chunks without overlap follow each other"
            last = end
    letters = {at for each in chunks if each.document == "one" for at in range(*each.position)}  # type: ignore[misc]
    assert [
        text[at] for at in range(len(text)) if at not in letters and not text[at].isspace()
    ] == []


def test_located_chunks_of_ours_carry_the_positions_of_rewritten_text() -> None:
    chunker = TitledChunker(chunker=RecursiveChunker(chunk_size=200))
    chunks = locate_chunks(chunker, {"bakery": TEXT})
    assert all(chunk.text.startswith("Brenner's bakery\n\n") for chunk in chunks[1:])
    assert all(
        chunk.text.endswith(TEXT[slice(*chunk.position)])  # type: ignore[misc]
        for chunk in chunks
    )


def test_located_results_stand_where_they_say_in_the_document_that_they_name() -> None:
    locators = {name: ChunkLocator(TEXT) for name in ("bakery", "copy")}
    told = {"source": "copy", "start_index": 3, "end_index": 90}
    cases = [
        (told, ("copy", (3, 90))),
        ({**told, "source": "lost"}, ("copy", None)),
        ({"source": "copy"}, ("copy", None)),
    ]
    for metadata, (name, position) in cases:
        (result,) = locate_results([Document("Rewritten.", metadata=metadata)], locators)
        assert (result.document, result.position) == (name, position), metadata


@pytest.mark.parametrize(
    "result",
    [
        Document("b", metadata={"source": "one", "start_index": 2.0, "end_index": 3.0}),
        TextNode(text="b", metadata={"source": "one", "start_index": 2, "end_index": 3}),
        NodeWithScore(
            node=TextNode(text="b", metadata={"source": "one"}, start_char_idx=2, end_char_idx=3)
        ),
        SimpleNamespace(text="b", metadata={"source": "one"}, start_index=2, end_index=3),
        Chunk("b", 2, 3, {"source": "one"}, "id"),
    ],
    ids=lambda result: type(result).__name__,
)
def test_position_is_read_wherever_a_result_states_it(result: Any) -> None:
    (located,) = locate_results([result], {"one": ChunkLocator("b b b")})
    assert located.position == (2, 3)


def test_start_that_llama_index_states_is_not_used_for_chunks() -> None:
    def split(text: str) -> list[TextNode]:
        return [TextNode(text="tick", start_char_idx=0, end_char_idx=4) for _ in range(2)]

    chunks = locate_chunks(split, {"clock": "tick tick"})
    assert [chunk.position for chunk in chunks] == [(0, 4), (5, 9)]


def test_located_chunks_do_not_believe_a_wrong_position() -> None:
    @dataclass
    class Part:
        text: str
        start_index: int

    def split(text: str) -> list[Part]:
        return [Part("tick", 7), Part("tock", 0), Part("tock", 99), Part("tuck", 0)]

    chunks = locate_chunks(split, {"clock": "tick tock tock"})
    assert [chunk.position for chunk in chunks] == [(0, 4), (5, 9), (10, 14), None]


def test_located_chunks_leave_blank_ones_out_and_keep_what_is_not_found() -> None:
    chunks = locate_chunks(lambda text: [" ", "tick", "summary of tock"], {"clock": "tick tock"})
    assert [(chunk.text, chunk.position) for chunk in chunks] == [
        ("tick", (0, 4)),
        ("summary of tock", None),
    ]


@pytest.mark.parametrize("chunker", [3, "recursive", SentenceChunker])
def test_located_chunks_refuses_what_is_no_chunker(chunker: Any) -> None:
    with pytest.raises(
        TypeError, match="a chunker is a Chunker, a LangChain TextSplitter, a Llama"
    ):
        locate_chunks(chunker, {"one": TEXT})


def test_located_chunks_refuses_parts_without_a_text() -> None:
    with pytest.raises(TypeError, match="a chunk must be a string or an object with a text, got 3"):
        locate_chunks(lambda text: [3], {"one": TEXT})


words = st.text("ab \n", min_size=1, max_size=30).filter(lambda text: text.strip())


@given(words, st.lists(st.integers(0, 30), max_size=5), st.booleans())
def test_places_of_pieces_in_a_row_are_found_however_often_the_text_repeats(
    text: str, cuts: list[int], squeeze: bool
) -> None:
    boundaries = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    places = ChunkLocator(text)
    last = 0
    for start, end in pairwise(boundaries):
        piece = text[start:end]
        if not piece.strip():
            continue
        found = places.locate(" ".join(piece.split()) if squeeze else piece)
        assert found is not None
        assert "".join(text[slice(*found)].split()) == "".join(piece.split())
        assert not text[last : found[0]].strip(), "nothing is passed over"
        last = found[1]


def test_places_finds_overlapping_chunks_behind_the_start_of_the_one_before() -> None:
    places = ChunkLocator("a b c d a b c d")
    found = [places.locate(chunk) for chunk in ("a b c", "c d a", "a b c", "c d")]
    assert found == [(0, 5), (4, 9), (8, 13), (12, 15)]


def test_places_finds_a_tree_that_begins_anew() -> None:
    places = ChunkLocator("one two three")
    assert [places.locate(chunk) for chunk in ("two three", "one", "two")] == [
        (4, 13),
        (0, 3),
        (4, 7),
    ]
