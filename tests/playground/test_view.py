"""What the page draws and says of chunks at any positions, of which no strategy has all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rag_splitters import Chunk, FixedSizeChunker
from rag_splitters.playground.cutting import Cut, Hit
from rag_splitters.playground.texts import Text
from rag_splitters.playground.view import (
    answer_sentence,
    difference,
    draw,
    facts,
    figure_rows,
    summary,
    twins_of,
)

TEXT = "Aa bb cc dd.\n```\nx = 1\n```\n- ב ff gg"


def cut_at(ranges: Sequence[tuple[int, int]], text: str = TEXT) -> Cut:
    chunks = [Chunk(text[low:high], low, high, {}, str(n)) for n, (low, high) in enumerate(ranges)]
    return Cut(Text("a.md", "a.md", text), FixedSizeChunker(), chunks, 0.5)


def drawn(cut: Cut, shown: tuple[int, int], **options: object) -> list[str]:
    """Each piece as `start number classes: |text<classes>label|...`."""
    return [
        f"{each.start} {each.number} {each.classes.removeprefix('piece ')}: "
        + "|".join(f"{s.text!r}<{s.classes}>{s.label or ''}" for s in each.segments)
        for each in draw(cut, shown, **options)  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize(
    ("ranges", "shown", "options", "expected"),
    [
        (
            [(0, 12), (8, 20), (16, 28), (24, 36)],
            (0, 36),
            {"hits": [Hit(1, 0.5)], "twins": {0: 0, 1: 3}, "answer": (3, 8)},
            [
                "0 0 c0 same: 'A'<mark is-same>1|'a '<>|'bb cc'<answer>",
                "8 1 c0 shared d1 same hit: ' '<>|'d'<mark is-same>2 ★1|'d.'<>",
                "12 1 c1 same hit: '\\n'<>|'```'<mono>",
                "16 2 c1 shared d2 hit: '\\n'<mono>|'x'<mono mark e2>3|' ='<mono>",
                "20 2 c2: ' 1\\n`'<mono>",
                "24 3 c2 shared d3: '`'<mono mark e3>4|'`'<mono>|'\\n-'<>",
                "28 3 c3: ' ב ff gg'<>",
            ],
        ),
        (  # more labels at one place than there is room for, and twins of only some chunks there
            [(0, 2), (0, 2), (0, 5), (0, 7), (8, 9), (9, 11), (27, 34)],
            (0, 30),
            {"hits": [Hit(3, 0.5), Hit(0, 0.4)], "twins": {0: 0}},
            [
                "0 3 c0 shared d3 hit: 'A'<mark e0>1 2 3… ★2 ★1|'a'<>",
                "2 3 c2 shared d3 hit: ' bb'<>",
                "5 3 c3 hit: ' c'<>",
                "7 None dropped: 'c'<>",
                "8 4 c0: ' '<>",
                "9 5 c1: 'd'<mark e1>|'d'<>",
                "11 None dropped: '.\\n'<>|'```\\nx = 1\\n```'<mono>|'\\n'<>",
                "27 6 c2: '-'<mark e2 rtl>7|' ב'<>",
            ],
        ),
        (  # a chunk that begins before the part, and one of white space, have no label
            [(2, 6), (7, 12), (12, 13), (14, 36)],
            (3, 16),
            {},
            [
                "3 0 c0: 'bb '<>",
                "6 None dropped: 'c'<>",
                "7 1 c1: 'c'<mark e1>2|' dd.'<>",
                "12 2 c2: '\\n'<>",
                "13 None dropped: '`'<mono>",
                "14 3 c3: '`'<mono mark e3>4|'`'<mono>",
            ],
        ),
    ],
)
def test_pieces_are_drawn(
    ranges: list[tuple[int, int]],
    shown: tuple[int, int],
    options: dict[str, object],
    expected: list[str],
) -> None:
    assert drawn(cut_at(ranges), shown, **options) == expected


def test_figures_and_sentences_about_chunks() -> None:
    a = cut_at([(0, 7), (4, 12), (13, 20), (20, 26), (27, 36)])
    b = cut_at([(0, 7), (4, 12), (5, 6)])
    assert [summary(each) for each in (a, cut_at([]), cut_at([(0, 36)]))] == [
        ("5 chunks", ["6 to 9 characters", "2 begin mid-sentence"]),
        ("0 chunks", ["24 characters dropped"]),
        ("1 chunk", ["36 characters"]),
    ]
    values = [value for _, value, _ in figure_rows(a)]
    assert values == ["5", "6, 7, 9", "500.0 ms", "8.3%", "0.0%", "2", "0", "0", "0", "0"]
    assert difference(a, b) == "2 chunks in both (grey), 3 only in A, 1 only in B."
    assert difference(a, a) == "A and B give the same 5 chunks."
    assert difference(a, cut_at([(1, 2)])) == "A and B have no chunk in common."
    assert twins_of(a, b) == {0: 0, 1: 1}


def test_facts_about_one_chunk() -> None:
    cut = cut_at([(0, 7), (4, 12)])
    details = [
        [("size", "7 characters"), ("position", "0 to 7"), ("cut", "ends mid-sentence")],
        [("size", "8 characters"), ("position", "4 to 12"), ("cut", "starts mid-sentence")],
    ]
    assert facts(cut, 0, {0: 4}, "B") == {
        "details": [*details[0], ("in B", "the same, chunk 5")],
        "texts": [("text", "Aa bb c")],
        "mono": False,
    }
    assert facts(cut, 1, {0: 4}, "B")["details"] == [*details[1], ("in B", "no such chunk")]
    beside_code = cut_at([(2, 13), (20, 26), (26, 36)])
    assert [facts(beside_code, n, None, "B")["mono"] for n in range(3)] == [False, True, False]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((1, 3), "The answer lies in chunk 1 (result 1)."),
        ((4, 7), "The answer lies in chunks 1 (result 1) and 2."),
        ((8, 12), "The answer lies in chunk 2, not among the top 3."),
        ((2, 15), "The answer is cut into chunks 1 (result 1), 2 and 3."),
        ((12, 13), "The answer is in no chunk."),
        ((25, 27), "Only a part of the answer is in a chunk: chunk 4, not among the top 3."),
    ],
)
def test_a_sentence_says_where_the_answer_is(answer: tuple[int, int], sentence: str) -> None:
    cut = cut_at([(0, 7), (4, 12), (13, 20), (20, 26)])
    assert answer_sentence(cut, answer, [Hit(0, 0.5)], 3) == sentence
