"""Faults of chunks, which are counted on what a reader sees."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from rag_splitters import (
    ContentAwareChunker,
    FixedSizeChunker,
    ParagraphChunker,
    RecursiveChunker,
    TableChunker,
)
from rag_splitters.evaluation import compare
from rag_splitters.evaluation.measure.chunks import LocatedChunk, locate_chunks
from rag_splitters.evaluation.measure.faults import (
    FAULTS,
    DocumentFaults,
    VisibleText,
    count_faults,
)
from rag_splitters.structure.block import Block
from rag_splitters.structure.stored_outline import write_outline
from rag_splitters.testing import hostile_texts

MARKDOWN = (
    "# Kettle\n\nBoil the water. It sings when it is hot.\n\n## Care\n\n1. Rinse it.\n"
    "2. Dry it.\n\n| part | price |\n|---|---|\n| lid | 3 |\n| spout | 4 |\n\nThe end.\n"
)
HTML = (
    "<html><head><title>Kettle</title><style>p { color: red; }</style></head><body>"
    "<script>track('page', 1);</script><nav><a href='/'>Home</a></nav><h1>Kettle</h1>"
    "<p>Boil the <b>water</b>. It <i>sings</i> when it is hot.</p><ul><li>Rinse it.<li>Dry it.</ul>"
    "<table><tr><th>part<th>price</tr><tr><td>lid<td>3</tr><tr><td>spout<td>4</tr></table>"
    "<h2>Code</h2><pre>&lt;b&gt; is a tag</pre><p>The end.</p></body></html>"
)


def faults(text: str, *parts: str) -> list[list[str]]:
    """The faults of slices of a text."""
    starts = [text.index(part) for part in parts]
    chunks = [
        LocatedChunk(part, "", (start, start + len(part)))
        for part, start in zip(parts, starts, strict=True)
    ]
    flags = DocumentFaults(text).flags(chunks)
    return [[name for name, values in flags.items() if values[row]] for row in range(len(chunks))]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("# Kettle\n\nBoil the water.", []),
        ("It sings when it is hot.\n\n", []),
        ("water. It sings", ["mid_sentence"]),
        ("# Kettle", ["orphan_headings"]),
        ("It sings when it is hot.\n\n## Care\n", ["orphan_headings"]),
        ("Rinse it.", []),  # the number of the item is no word
        ("2. Dry it.", []),
        ("| part | price |\n|---|---|\n| lid | 3 |", []),
        ("| lid | 3 |\n| spout | 4 |", ["tables_without_header"]),
        ("| spout | 4 |", ["tables_without_header"]),
        ("The end.\n", []),
    ],
)
def test_faults_of_markdown(part: str, expected: list[str]) -> None:
    assert faults(MARKDOWN, part) == [expected]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("<p>Boil the <b>water</b>. ", ["leaked_markup"]),
        ("</b>. It <i>sings</i> when", ["leaked_markup"]),
        ("It <i>sings", ["leaked_markup"]),
        ("water", ["mid_sentence"]),
        ("<b>water</b>. It", ["mid_sentence", "leaked_markup"]),
        ("<h1>Kettle</h1>", ["orphan_headings", "leaked_markup"]),
        ("Rinse it.", []),
        ("Dry it.", []),
        ("<td>lid<td>3</tr>", ["tables_without_header", "leaked_markup"]),
        ("color: red; }", ["leaked_markup"]),
        ("track('page', 1);", ["leaked_markup"]),
        ("when it is hot.", ["mid_sentence"]),
    ],
)
def test_faults_of_html_are_those_that_a_reader_sees(part: str, expected: list[str]) -> None:
    assert faults(HTML, part) == [expected]


def test_visible_tags_do_not_leak() -> None:
    chunk = LocatedChunk("<b> is a tag", "", (HTML.index("&lt;b"), HTML.index("</pre>")))
    assert not any(flags[0] for flags in DocumentFaults(HTML).flags([chunk]).values())


def test_last_heading_is_no_orphan() -> None:
    assert faults("The end\n=======", "The end\n=======") == [[]]


def test_headings_in_the_metadata_count() -> None:
    text = "Lamp\nIt is lit.\nHorn\nIt is old."
    chunk = LocatedChunk(text[:20], "", (0, 20))
    metadata = write_outline(text, [Block("heading", 16, 20, 1, "Horn")])
    assert DocumentFaults(text).flags([chunk])["orphan_headings"] == [False]
    assert DocumentFaults(text, metadata).flags([chunk])["orphan_headings"] == [True]


def test_what_nobody_sees_behind_a_heading_is_no_heading() -> None:
    page = "<html><p>It rains.</p><h2>Wind</h2><!-- old: none --><p>It blows.</p></html>"
    assert faults(page, "<h2>Wind</h2>") == [["orphan_headings", "leaked_markup"]]
    assert faults(page, "old: none") == [[]]
    assert faults("<html><script>x = 1;</script></html>", "x = 1;") == [["leaked_markup"]]


def test_rewritten_chunks_that_repeat_the_header_have_no_fault() -> None:
    for text in (MARKDOWN, HTML):
        for chunk_size in (40, 1000):
            chunker = TableChunker(chunk_size=chunk_size, length_function="tokens")
            rows = [each for each in locate_chunks(chunker, {"": text}) if "spout" in each.text]
            assert rows
            assert not any(DocumentFaults(text).flags(rows)["tables_without_header"])


def test_comparison_prefers_no_strategy_that_keeps_scripts() -> None:
    chunkers = {
        "paragraph": ParagraphChunker(chunk_size=200),
        "content_aware": ContentAwareChunker(chunk_size=200),
        "fixed": FixedSizeChunker(chunk_size=30),
    }
    report = compare(chunkers, {"page.html": HTML})
    counts = {each.name: dict(each.faults or {}) for each in report.strategies}
    assert counts["paragraph"]["leaked_markup"] > 0
    assert set(counts["content_aware"].values()) == {0}
    assert counts["fixed"]["mid_sentence"] > 1
    assert [list(each) for each in counts.values()] == [list(FAULTS)] * 3


def test_report_without_questions_has_the_faults_and_no_score() -> None:
    report = compare([RecursiveChunker(chunk_size=40)], {"kettle": MARKDOWN, "page.html": HTML})
    (strategy,) = report.strategies
    assert strategy.faults is not None
    assert str(report).startswith("No verdict: without questions")
    row = json.loads(report.to_json())["strategies"][0]
    assert row["faults"] == strategy.faults
    assert "metrics" not in row
    for form in (str(report), report.to_html()):
        assert "header" in form
        assert str(strategy.faults["leaked_markup"]) in form
    with pytest.raises(ValueError, match="the comparison had no questions"):
        report.metric(strategy.name, "recall")


def test_chunks_without_positions_have_the_faults_of_their_text() -> None:
    report = compare({"own": lambda text: ["<p>Nowhere</p>", "Nothing at all."]}, {"h": HTML})
    (strategy,) = report.strategies
    assert strategy.faults == {**dict.fromkeys(FAULTS, 0), "leaked_markup": 1}


def test_tiny_chunks_are_smaller_than_a_tenth_of_the_largest() -> None:
    sizes: list[tuple[int, ...]] = [(), (0, 100), (9, 100), (10, 100), (100,), (0, 9, 10, 100)]
    counts = [count_faults({}, [], each)["tiny"] for each in sizes]
    assert counts == [0, 1, 1, 0, 0, 2]


@given(hostile_texts())
def test_any_text_has_countable_faults(text: str) -> None:
    for source in (text, f"<html><body><p>{text}</p></body></html>"):
        chunks = locate_chunks(FixedSizeChunker(chunk_size=9), {"": source})
        flags = DocumentFaults(source).flags(chunks)
        assert all(len(values) == len(chunks) for values in flags.values())


@given(hostile_texts())
def test_visible_range_of_a_whole_text_is_all_that_is_visible(text: str) -> None:
    for source in (text, f"<html><body><p>{text}</p></body></html>"):
        visible = VisibleText(source)
        low, high = visible.range_of((0, len(source)))
        assert visible.text[low:high] == visible.text.strip()
