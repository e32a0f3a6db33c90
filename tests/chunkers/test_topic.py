"""TopicChunker: determinism, texts without topics, guarantees."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest

from rag_splitters.chunkers.topic import TopicChunker
from rag_splitters.meaning.topics import _partition, find_segments
from tests.support.boundaries import CASES, ORDERS, cuts_of, errors, sentences, uneven
from tests.support.checks import check_chunker
from tests.support.processes import run_python

pytest.importorskip("sklearn")

BEES, VOLCANOES, BOOKS, CHESS, BAKING = sentences()
CASE = CASES["uneven"]


def test_topic_with_lda_beats_no_cut() -> None:
    by_lda = cuts_of(TopicChunker(chunk_size=10_000, model="lda"))
    assert (errors(by_lda, CASE) < errors(lambda text: [], CASE)).all()


def test_topic_terms_name_the_subject() -> None:
    text, _ = uneven(ORDERS[0])
    chunks = TopicChunker(chunk_size=10_000).chunk(text)
    found = [set(chunk.metadata["topic_terms"]) for chunk in chunks]
    wanted = ({"hive", "comb"}, {"magma", "rock"}, {"balance", "accountant"}, {"king", "pawn"})
    assert all(one <= other for one, other in zip((*wanted, {"dough"}), found, strict=True)), found
    assert chunks[0].metadata["topic"] == 0
    for chunk in chunks:
        assert 1 <= len(chunk.metadata["topic_terms"]) <= 5
        assert all(term in text.casefold() for term in chunk.metadata["topic_terms"])
    json.dumps([chunk.metadata for chunk in chunks])


def test_topic_that_returns_has_its_number_again() -> None:
    hum = "Bees hum in the hive. The hive is full of bees. Bees leave the hive. "
    play = "The king takes a pawn. A pawn guards the king. The king needs a pawn. "
    chunks = TopicChunker(n_topics=2).chunk(hum + play + hum)
    assert [chunk.text for chunk in chunks] == [hum.strip(), play.strip(), hum.strip()]
    assert [chunk.metadata["topic"] for chunk in chunks] == [0, 1, 0]


@pytest.mark.slow
def test_topic_is_the_same_in_another_process() -> None:
    code = (
        "import sys\n"
        "from rag_splitters.chunkers.topic import TopicChunker\n"
        "text = sys.stdin.read()\n"
        "for model in ('nmf', 'lda'):\n"
        "    for c in TopicChunker(chunk_size=300, model=model).chunk(text):\n"
        "        print(c.start, c.end, c.id, c.metadata)\n"
    )
    text = uneven(ORDERS[1])[0]
    models: tuple[Literal["nmf", "lda"], ...] = ("nmf", "lda")
    chunks = [c for m in models for c in TopicChunker(chunk_size=300, model=m).chunk(text)]
    lines = [f"{c.start} {c.end} {c.id} {c.metadata}\n" for c in chunks]
    assert run_python(code, stdin=text, PYTHONHASHSEED="1", OMP_NUM_THREADS="2") == "".join(lines)
    assert "topic_terms" in lines[0]


@pytest.mark.parametrize("model", ["nmf", "lda"])
@pytest.mark.parametrize(
    ("text", "has_topics"),
    [
        ("", False),
        ("One word.", False),
        ("Bees hum. Bees fly.", False),
        ("!!! ??? \n\n *** --- +++ \n\n $$$ %%% ### \n\n ...", False),
        ("the and of. It is. Was he? Who is it?", False),
        ("蜜蜂采蜜。蜜蜂筑巢。国王下棋。国王移动棋子。", True),
        ("ผึ้งทำน้ำหวาน\n\nผึ้งบิน\n\nหมากรุกหมากรุก\n\nหมากรุก", True),
        ("Same again. " * 200, False),
        ("Bees hum here. " * 100 + "Kings play chess. " * 100, True),
    ],
)
def test_topic_falls_back_to_packing_where_there_are_none(
    model: Any, text: str, has_topics: bool
) -> None:
    spans = check_chunker(TopicChunker(chunk_size=60, model=model, segmenter="rules"), text)
    if has_topics or not text:
        assert all(span.metadata["topic_terms"] for span in spans)
    else:
        assert all(set(span.metadata) <= {"topic", "topic_terms"} for span in spans)
        assert len({str(span.metadata) for span in spans}) == 1


def test_topic_of_a_chunk_is_that_of_most_of_it() -> None:
    text = " ".join([*CHESS, *BEES, *BAKING])
    chunker = TopicChunker(chunk_size=600, min_chunk_size=500, n_topics=3)
    chess, bees, mixed, baking = check_chunker(chunker, text)
    assert text.startswith(BEES[-1], mixed.start)
    assert mixed.metadata == baking.metadata
    assert len({span.metadata["topic"] for span in (chess, bees, baking)}) == 3


def test_topic_segments_are_bounded() -> None:
    """The partition looks at 60 beginnings for each end, whatever the length of the text."""
    starts = _partition(np.ones((500, 2)), 1.8)
    assert starts[0] == 0
    assert max(after - before for before, after in pairwise([*starts, 500])) <= 60


def test_segments_cover_the_sentences_in_order() -> None:
    sentences = [*BEES, *VOLCANOES, *BOOKS]
    segments = find_segments(sentences, model="nmf", n_topics=3, random_state=0)
    assert segments[0].first == 0
    assert all(one.first < other.first for one, other in pairwise(segments))
    assert all(one.topic != other.topic for one, other in pairwise(segments))
