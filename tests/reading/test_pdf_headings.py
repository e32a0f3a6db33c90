"""Headings of PDFs by their fonts: an outline beside the text, which every strategy knows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.node_parser import SentenceSplitter
from reportlab.pdfgen.canvas import Canvas

from rag_splitters import (
    AutoChunker,
    Chunk,
    Chunker,
    ContentAwareChunker,
    HybridChunker,
    PageChunker,
    RecursiveChunker,
    SentenceChunker,
    TitledChunker,
)
from rag_splitters.langchain import (
    ContentAwareTextSplitter,
    FileLoader,
    RecursiveTextSplitter,
    parent_document_retriever,
)
from rag_splitters.llama_index import ContentAwareNodeParser, FileReader
from rag_splitters.reading.files import read_sources
from rag_splitters.span import Source
from rag_splitters.structure.outline import Outline, title_of
from rag_splitters.structure.stored_outline import outline_of_part
from tests.support.embedding_doubles import CountingEmbeddings

Row = tuple[float, str] | tuple[float, str, str] | None
"""Size, text and font of a line; None for a new page."""

BODY = [
    (11, "The museum keeps the tools of clock makers from four centuries, and most of"),
    (11, "them still work. Visitors may wind up some of the clocks themselves on the last"),
    (11, "Sunday of a month. The guides explain how an escapement counts the time."),
]
REPORT: list[Row] = [
    (24, "Annual report of the"),
    (24.3, "clock museum"),
    (16, "Visitors"),
    *BODY,
    (11, "Opening hours", "Helvetica-Bold"),
    *BODY,
    (16, "Repairs"),
    *BODY,
    None,
    *BODY,
    (16, "What is next?"),
    *BODY,
]
OUTLINE = [
    (1, "Annual report of the clock museum"),
    (2, "Visitors"),
    (3, "Opening hours"),
    (2, "Repairs"),
    (2, "What is next?"),
]


def make_pdf(path: Path, rows: Sequence[Row]) -> Path:
    """A PDF with these lines from the top; there is more space above another font.

    A line's font ends at `|`.
    """
    canvas = Canvas(str(path))
    height, last = 780.0, rows[0]
    for row in rows:
        if row is None:
            canvas.showPage()
            height = 780.0
            continue
        size, text, font = (*row, "Helvetica")[:3]
        is_same = last is not None and abs(last[0] - size) < 1 and len(last) == len(row)
        height -= size * (1.2 if is_same else 2.4)
        line = canvas.beginText(72, height)
        for part, face in zip(text.split("|"), (font, "Helvetica"), strict=False):
            line.setFont(face, size)
            line.textOut(part)
        canvas.drawText(line)
        last = row
    canvas.save()
    return path


def outline_of(source: Source) -> list[tuple[int, str]]:
    """Level and text of the headings that the metadata hands over."""
    rows = json.loads(source.metadata.get("outline", "[]"))
    for _, start, text in rows:
        assert source.text[start : start + len(text)].replace("\n", " ") == text
    return [(level, text) for level, _, text in rows]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return make_pdf(tmp_path / "report.pdf", REPORT)


def chunks_of(chunker: Chunker, path: Path) -> list[Chunk]:
    source = next(read_sources(path))
    return chunker.chunk(source.text, metadata=source.metadata)


def test_larger_and_bold_lines_are_headings_and_the_text_is_as_it_was(report: Path) -> None:
    source = next(read_sources(report))
    assert outline_of(source) == OUTLINE
    lines = [row[1] for row in REPORT if row]
    assert source.text.replace("\f", "").split("\n") == lines


PLAIN = [(size, text) for size, text, *_ in BODY]
LARGE = [(16, text[:60]) for _, text in PLAIN]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [(14, "2 Tools"), *BODY, (14, "2.1 Files"), *BODY, (14, "3 Oil"), *BODY],
            [(1, "2 Tools"), (2, "2.1 Files"), (1, "3 Oil")],
        ),
        ([(20, "Clocks"), *LARGE, *LARGE, *BODY, *BODY, *BODY], [(1, "Clocks")]),
        (BODY, []),
        *(
            (
                [(16, "Visitors"), *BODY, row, *BODY, (16, "Oil"), *BODY],
                [(1, "Visitors"), (1, "Oil")],
            )
            for row in (
                (16, "1 Visitors . . . . . . . . . . . . . . 7"),  # a table of contents
                (16, "1867"),
                (11, "Please note:", "Helvetica-Bold"),
                (11, "The last bus leaves at nine.", "Helvetica-Bold"),
                (11, "and then some bold words", "Helvetica-Bold"),
                (11, "Some bold words|and others", "Helvetica-Bold"),
            )
        ),
    ],
    ids="numbers large-text none contents number label sentence small-letter partly-bold".split(),
)
def test_headings_by_font(rows: list[Row], expected: list[tuple[int, str]], tmp_path: Path) -> None:
    source = next(read_sources(make_pdf(tmp_path / "a.pdf", rows)))
    assert outline_of(source) == expected
    assert ("outline" in source.metadata) == bool(expected)


def test_bold_words_inside_a_paragraph_are_no_heading(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "a.pdf"))
    for number, (_, text) in enumerate(3 * PLAIN):
        canvas.setFont("Helvetica-Bold" if number == 3 else "Helvetica", 11)
        canvas.drawString(72, 780 - 13 * number, text[:60])
    canvas.save()
    assert outline_of(next(read_sources(tmp_path / "a.pdf"))) == []


@pytest.mark.parametrize("is_first", [True, False])
def test_large_first_letter_belongs_to_its_word(is_first: bool, tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "a.pdf"))
    rows = [(16, 72, 780, "Clock news"), (40, 72, 726, "T")]
    if is_first:  # as browsers print it
        rows.reverse()
    rows += [(11, 100, 748, BODY[0][1].removeprefix("T")), (11, 100, 735, BODY[1][1])]
    rows += [(11, 72, 713 - 13 * number, text) for number, (_, text) in enumerate(PLAIN)]
    for size, left, bottom, text in rows:
        canvas.setFont("Helvetica", size)
        canvas.drawString(left, bottom, text)
    canvas.save()
    source = next(read_sources(tmp_path / "a.pdf"))
    assert source.text.startswith("Clock news\nThe museum keeps")
    assert outline_of(source) == [(1, "Clock news")]


def test_divided_words_do_not_move_headings(tmp_path: Path) -> None:
    divided: list[Row] = [(11, "Every clock has an escape-"), (11, "ment that counts the time.")]
    rows = [*BODY, *divided, (16, "Clock-"), (16, "making"), *BODY, *divided, (16, "Oil"), *BODY]
    source = next(read_sources(make_pdf(tmp_path / "a.pdf", rows)))
    assert "escapement\nthat" in source.text
    assert [text for _, text in outline_of(source)] == ["Clockmaking", "Oil"]


def test_running_heads_are_no_headings(tmp_path: Path) -> None:
    rows: list[Row] = []
    for name in ("Visitors", "Repairs", "Oil"):
        body = [(11, f"{name}: {text}") for _, text in PLAIN]
        rows += [None, (16, "Clock news"), (18, name), *body]
    source = next(read_sources(make_pdf(tmp_path / "a.pdf", rows[1:])))
    assert "Clock news" not in source.text
    assert [text for _, text in outline_of(source)] == ["Visitors", "Repairs", "Oil"]


def test_title_that_running_heads_repeat_is_a_heading(tmp_path: Path) -> None:
    rows: list[Row] = [(24, "Clock news")]
    for name in ("Visitors", "Repairs", "Oil"):
        rows += [
            (16, name),
            *((11, f"{name}: {text}") for _, text in PLAIN),
            None,
            (9, "Clock news"),
        ]
    source = next(read_sources(make_pdf(tmp_path / "a.pdf", [*rows, *BODY])))
    assert source.text.count("Clock news") == 1
    assert outline_of(source) == [(1, "Clock news"), (2, "Visitors"), (2, "Repairs"), (2, "Oil")]


def test_strategies_know_the_headings(report: Path, tmp_path: Path) -> None:
    title = OUTLINE[0][1]
    headings = [
        [title, "Visitors"],
        [title, "Visitors", "Opening hours"],
        [title, "Repairs"],
        [title, "Repairs"],
        [title, "What is next?"],
    ]
    chunks = chunks_of(ContentAwareChunker(chunk_size=300), report)
    assert [chunk.metadata["headings"] for chunk in chunks] == headings
    assert all("outline" not in chunk.metadata for chunk in chunks)
    chunks = chunks_of(AutoChunker(chunk_size=300), report)
    assert [chunk.metadata["headings"] for chunk in chunks] == headings
    assert {chunk.metadata["strategy"] for chunk in chunks} == {"content_aware"}
    plain = chunks_of(AutoChunker(chunk_size=300), make_pdf(tmp_path / "b.pdf", BODY))
    assert "headings" not in plain[0].metadata
    titled = chunks_of(TitledChunker(include_headings=True, chunker=RecursiveChunker()), report)
    assert titled[1].text.startswith(f"{title}\n\nRepairs")
    stages = [PageChunker(chunk_size=2000), ContentAwareChunker(chunk_size=300)]
    nested = chunks_of(HybridChunker(stages=stages), report)
    assert nested[1].metadata["headings"] == headings[1]
    assert nested[-1].metadata["headings"] == ["What is next?"]


@pytest.mark.parametrize("kind", [RecursiveChunker, SentenceChunker, ContentAwareChunker])
def test_no_chunk_ends_with_a_heading(kind: type[RecursiveChunker], report: Path) -> None:
    source = next(read_sources(report))
    headings = Outline.of(source.text, metadata=source.metadata).headings
    for size, overlap in product(range(120, 900, 20), (0, 60)):
        chunker = kind(chunk_size=size, chunk_overlap=overlap)
        for chunk in chunker.chunk(source.text, metadata=source.metadata)[:-1]:
            assert not any(each.start < chunk.end <= each.end for each in headings), (size, chunk)


def test_both_frameworks_hand_the_headings_on(report: Path) -> None:
    expected = [
        (chunk.text, chunk.metadata["headings"])
        for chunk in chunks_of(ContentAwareChunker(chunk_size=300), report)
    ]
    documents = ContentAwareTextSplitter(chunk_size=300).split_documents(FileLoader(report).load())
    assert [(each.page_content, each.metadata["headings"]) for each in documents] == expected
    parser = ContentAwareNodeParser(
        chunk_size=300, length_function="characters", count_metadata=False
    )
    nodes = parser.get_nodes_from_documents(FileReader().load_data(report))
    assert [(node.text, node.metadata["headings"].split(" > ")) for node in nodes] == expected
    related: list[dict[str, Any]] = [node.source_node.metadata for node in nodes]
    for metadata in [*(each.metadata for each in (*documents, *nodes)), *related]:
        assert "outline" not in metadata


def test_the_outline_is_hidden_and_headings_are_embedded(report: Path) -> None:
    nodes = SentenceSplitter(chunk_size=64, chunk_overlap=0)(FileReader().load_data(report))
    assert "outline" in nodes[0].excluded_embed_metadata_keys
    assert "outline" in nodes[0].excluded_llm_metadata_keys
    model = CountingEmbeddings()
    retriever = parent_document_retriever(
        FileLoader(report).load(),
        embeddings=model,
        parent_splitter=RecursiveTextSplitter(chunk_size=400),
        child_splitter=RecursiveTextSplitter(chunk_size=200),
    )
    assert any(f"{OUTLINE[0][1]} > Visitors > Opening hours" in text for text in model.texts)
    assert "outline" not in retriever.invoke("clock")[0].metadata


TEXT = "Tea\nHot.\nMilk\nCold."


def test_an_outline_of_your_own() -> None:
    outline = '[[1, 0, "Tea"], [2, 9, "Milk"]]'
    assert Outline.of(TEXT, metadata={"outline": outline}).paths == [("Tea",), ("Tea", "Milk")]
    assert title_of(TEXT, {"outline": outline}) == "Tea"


@pytest.mark.parametrize(
    "outline",
    [
        "Tea, milk",
        ["Tea"],
        "[[",
        "[[1]]",
        '[[1, 1, "Tea"]]',
        '[[0, 0, "Tea"]]',
        '[[1, -1, "Tea"]]',
        '[[true, 0, "Tea"]]',
        '[[1, 9, "Milk"], [1, 0, "Tea"]]',
        '[[1, 0, "Tea"], [1, 900, "Milk"]]',
        "[[" * 100_000,
    ],
    ids=range(11),
)
def test_what_is_no_outline_of_the_text_is_metadata_like_any_other(outline: object) -> None:
    metadata = {"outline": outline}
    assert Outline.of(TEXT, metadata=metadata).headings == []
    chunks = RecursiveTextSplitter().create_documents([TEXT], [metadata])
    is_made_for_another_text = str(outline).startswith('[[1, 1, "T') or "900" in str(outline)
    assert is_made_for_another_text or chunks[0].metadata["outline"] == outline


def test_outlines_of_many_parts_take_linear_time() -> None:
    outline = json.dumps([(1, 10 * number, "Tea") for number in range(10_000)])
    parts = [outline_of_part({"outline": outline}, 10 * n, 10 * n + 10) for n in range(10_000)]
    assert {part["outline"] for part in parts} == {'[[1, 0, "Tea"]]'}
