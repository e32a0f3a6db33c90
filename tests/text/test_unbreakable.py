"""Fences, table rows, list items and quotations that fit are not cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_splitters import (
    AgenticChunker,
    Chunker,
    ClusterChunker,
    EmbeddingChunker,
    EntityChunker,
    SemanticChunker,
    SentenceChunker,
    TopicChunker,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.testing import hostile_texts
from rag_splitters.text.boundaries import positions, skip_space, trim_space
from rag_splitters.text.sizing import Sizes
from rag_splitters.text.structure import Unbreakable
from rag_splitters.text.unbreakable import find_unbreakable, marked_structure
from tests.support.checks import check_chunker

PROSE = "The kettle has been on the stove since six. Nobody has looked at it, and it is dry. "
SENTENCES = "It is filled from the tap. It must not be too full! Is it hot? Wait. Then pour it. "
CODE = 'def boil():\n    """Boils it. All of it."""\n\n    fill()\n\n    # Wait. Then go on.\n'
WHOLE = {
    "fence": f"```python\n{CODE}```",
    "long fence": f"````md\n```python\n{CODE}```\n\nIt is done. So it is.\n````",
    "indented fence": f"   ~~~\n{CODE}\n   ~~~",
    "item": f"- {SENTENCES}{SENTENCES}",
    "wrapped item": "* " + "\n  ".join(SENTENCES.split(". ")),
    "item of two paragraphs": f"1. {SENTENCES}\n\n   {SENTENCES}",
    "lettered item": f"(a) {SENTENCES}",
    "row": f"| Kettle | {SENTENCES} | {SENTENCES} |",
    "quotation": f"> {SENTENCES}\n>\n> {SENTENCES}",
    "lazy quotation": f"> {SENTENCES}\n{SENTENCES}",
    "item of HTML": f"<li>{SENTENCES}</li>",
    "row of HTML": f"<TR><td>{SENTENCES}</td>\n<td>{SENTENCES}</td></TR>",
    "listing of HTML": f"<pre>\n{CODE}</pre>",
    "quotation of HTML": f"<blockquote><p>{SENTENCES}</p>\n\n<p>{SENTENCES}</p></blockquote>",
}
BREAKABLE = {
    "paragraph": SENTENCES,
    "heading": "# Tea",
    "paragraph indented with tabs": "\tIt is filled from\n\tthe tap. It must not\n\tbe too full.",
    "dialogue": f"— {SENTENCES}",
    "number in a line": "It has 1. a lid and 2. a spout. It boils.",
    "fence that is not closed": f"```\n{SENTENCES}",
    "code": "It says `boil()` here. ```So it``` does.",
    "tag that is not closed": f"<li>{SENTENCES}",
}


def at_every_sentence(prompt: str) -> str:
    """A chat model that cuts before every sentence."""
    count = prompt.split("<sentences>")[1].count("\n[")
    return ", ".join(str(number) for number in range(1, count + 1))


def no_entities(text: str) -> list[dict[str, Any]]:
    return []


def strategies(**sizes: Any) -> list[Chunker]:
    vectors = HashingEmbeddings(dimensions=32)
    return [
        SentenceChunker(**sizes),
        SemanticChunker(embeddings=vectors, breakpoint_threshold_amount=20.0, **sizes),
        EmbeddingChunker(embeddings=vectors, similarity_threshold=0.9, **sizes),
        ClusterChunker(embeddings=vectors, **sizes),
        TopicChunker(n_topics=3, **sizes),
        AgenticChunker(llm=at_every_sentence, **sizes),
        EntityChunker(ner=no_entities, **sizes),
    ]


NAMES = [type(chunker).__name__ for chunker in strategies()]


@pytest.mark.parametrize("strategy", range(len(NAMES)), ids=NAMES)
def test_no_strategy_cuts_a_whole_that_fits(strategy: int) -> None:
    for number, whole in enumerate(map(str.strip, WHOLE.values())):
        for size in (len(whole), len(whole) + 60, 2 * len(whole)):
            sizes = {"chunk_size": size, "chunk_overlap": (0, 40)[number % 2]}
            chunker = strategies(**sizes)[strategy]
            for before in range(number, 2 * len(PROSE), 122):
                text = f"{(PROSE * 4)[:before]}.\n\n{whole}\n\n{PROSE * 3}"
                chunks = [chunk.text for chunk in chunker.chunk(text)]
                assert any(whole in chunk for chunk in chunks), (whole, before, size)
                assert len(chunks) > 1 or len(text) <= size


@pytest.mark.parametrize("strategy", range(len(NAMES)), ids=NAMES)
def test_whole_that_is_too_big_is_cut(strategy: int) -> None:
    chunker = strategies(chunk_size=60)[strategy]
    for whole in WHOLE.values():
        text = f"{PROSE}\n\n{whole}\n\n{PROSE}"
        spans = check_chunker(chunker, text)
        assert all(whole not in span.text_of(text) for span in spans)
        assert len(spans) > len(text) / 60


def test_heading_alone_is_better_than_a_whole_in_two() -> None:
    whole = WHOLE["fence"]
    text = f"{PROSE}\n\n## Boiling\n\n{whole}\n\n{PROSE}"
    for chunker in strategies(chunk_size=len(whole) + 5):
        assert any(chunk.text == whole for chunk in chunker.chunk(text)), chunker


def test_heading_stays_with_a_whole_if_both_fit() -> None:
    whole = WHOLE["fence"]
    text = f"{PROSE}\n\n## Boiling\n\n{whole}\n\n{PROSE}"
    for chunker in strategies(chunk_size=len(whole) + 20)[:5]:  # a model says where others cut
        assert any(f"## Boiling\n\n{whole}" in chunk.text for chunk in chunker.chunk(text)), chunker


def test_overlap_of_sentences_keeps_items_whole() -> None:
    items = [f"- Item {number}. It has two sentences." for number in range(9)]
    chunks = SentenceChunker(chunk_size=80, overlap_sentences=1).chunk("\n".join(items))
    assert [chunk.text for chunk in chunks] == ["\n".join(pair) for pair in pairwise(items)]


@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE)
def test_whole_is_one(whole: str) -> None:
    text = f"{PROSE}\n\n{whole}\n\n{PROSE}"
    start = len(PROSE) + 2 + len(whole) - len(whole.lstrip())
    assert (start, len(PROSE) + 2 + len(whole.rstrip())) in find_unbreakable(text)
    assert find_unbreakable(text.replace("\n", "\r\n")) != []


@pytest.mark.parametrize("text", BREAKABLE.values(), ids=BREAKABLE)
def test_other_text_is_none(text: str) -> None:
    assert find_unbreakable(f"{PROSE}\n\n{text}\n\n{PROSE}") == []


def test_items_and_rows_end_where_the_next_begins() -> None:
    text = "- a\n  - b\n+ c\n# d\n1. e\n```\nf\n```\n> g\n| h |\n| i |\n"
    parts = ["- a", "- b", "+ c", "1. e", "```\nf\n```", "> g", "| h |", "| i |"]
    assert [text[start:end] for start, end in find_unbreakable(text)] == parts


def test_centred_heading_is_not_part_of_an_item() -> None:
    text = f"  1. {SENTENCES}\n\n                NO WARRANTY\n\n  2. {SENTENCES}"
    assert [text[start:end] for start, end in find_unbreakable(text)] == [
        f"1. {SENTENCES}".strip(),
        f"2. {SENTENCES}".strip(),
    ]


def test_rows_of_a_table_need_no_outer_bars() -> None:
    text = "\n\n  Name | What it is\n  :--- | ----------\n  Assam | Black. Strong.\n\nIt | is"
    rows = ["Name | What it is", ":--- | ----------", "Assam | Black. Strong."]
    assert [text[start:end] for start, end in find_unbreakable(text)] == rows


def test_inner_item_of_html_is_kept_if_the_outer_one_is_too_big() -> None:
    inner = "<li>Fill it. Not too much.</li>"
    text = f"<tr><td><ul>{inner * 3}</ul></td></tr>"
    unbreakable = marked_structure(text).fit(Sizes(40)).unbreakable
    assert unbreakable.start_of(text.index("Not")) == text.index("<li>")


@given(text=hostile_texts(), data=st.data())
def test_wholes_ascend_and_are_visible(text: str, data: st.DataObject) -> None:
    marks = ["```", "\n```\n", "\n- ", "\n> ", "\n| ", "\n1. ", "|---|\n", "<li>", "</li>", "\n"]
    parts = data.draw(st.lists(st.sampled_from(marks) | st.just(text[:20]), max_size=30))
    text = "".join(parts)
    ranges = find_unbreakable(text)
    assert ranges == sorted(ranges, key=lambda part: (part[0], -part[1]))
    for start, end in ranges:
        assert text[start:end].strip()
        assert (skip_space(text, start), trim_space(text, start, end)) == (start, end)
    check_sentences(text)


def check_sentences(text: str) -> None:
    for overlap in (0, 5):
        check_chunker(SentenceChunker(chunk_size=12, chunk_overlap=overlap), text)


@pytest.mark.parametrize(
    "text",
    [
        "</li>\n- aaa\u0600  aaaaa",  # a mark and a space are a cluster, which ends a word
        " aaa\r\n\r\n``` aaa\r\n\r\n",  # the end of a block is no new text
    ],
)
def test_texts_that_once_broke_an_overlap(text: str) -> None:
    check_sentences(text)


def test_guarded_cuts_divide_no_range() -> None:
    guarded = Unbreakable([(3, 9), (9, 12)]).guard(positions([2, 3, 5, 9, 11, 14]))
    assert [guarded(0, high) for high in (14, 11, 8, 2)] == [14, 9, 3, 2]
    assert guarded(3, 8) == -1
