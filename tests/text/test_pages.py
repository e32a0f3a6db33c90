"""Page numbers, from a real PDF to its chunks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rag_splitters import PageChunker
from rag_splitters.reading.files import read_text

PAGES, EMPTY, LINES = 100, 37, 30
WORDS = "rain fell on the long road and nobody came to the house by the river".split()


@pytest.fixture(scope="module")
def pdf_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PDF of 100 pages: sentences run over page ends, each page says its number, one is empty."""
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    pytest.importorskip("pypdfium2")
    path: Path = tmp_path_factory.mktemp("pdf") / "report.pdf"
    drawing = canvas.Canvas(str(path), pagesize=(595, 842))
    word = 0
    for page in range(1, PAGES + 1):
        for line in range(LINES if page != EMPTY else 0):
            said = [WORDS[(word + i) % len(WORDS)] for i in range(9)]
            word += 9
            stop = "." if line % 7 == 3 else ""
            drawing.drawString(72, 780 - 22 * line, f"p{page}l{line} {' '.join(said)}{stop}")
        if page != EMPTY:
            drawing.drawString(280, 40, f"Page {page}")
        drawing.showPage()
    drawing.save()
    return read_text(path)


def pages_named(text: str) -> set[int]:
    """The pages whose lines, marked "p12l3", are in a text."""
    return {int(number) for number in re.findall(r"\bp(\d+)l\d+\b", text)}


def test_pdf_is_read_page_by_page(pdf_text: str) -> None:
    pages = pdf_text.split("\f")
    assert len(pages) == PAGES
    for number, page in enumerate(pages, 1):
        assert pages_named(page) == (set() if number == EMPTY else {number})
        assert f"Page {number}" not in page  # the running foot is dropped


@pytest.mark.parametrize(
    "sizes",
    [
        {"chunk_size": 5000},
        {"chunk_size": 400},
        {"chunk_size": 300, "chunk_overlap": 60},
        {"chunk_size": 90, "length_function": "tokens"},
    ],
    ids=str,
)
def test_every_page_keeps_its_number(sizes: dict[str, object], pdf_text: str) -> None:
    chunks = PageChunker(**sizes).chunk(pdf_text)
    seen: set[int] = set()
    for chunk in chunks:
        first, last = chunk.metadata["page_start"], chunk.metadata["page_end"]
        named = pages_named(chunk.text)
        assert named <= set(range(first, last + 1))
        assert pdf_text.count("\f", 0, chunk.start) + 1 == first
        assert pdf_text.count("\f", 0, chunk.end) + 1 == last
        seen |= named
    assert seen == set(range(1, PAGES + 1)) - {EMPTY}
    assert EMPTY not in {chunk.metadata["page_end"] for chunk in chunks}


def test_whole_pages_are_chunks(pdf_text: str) -> None:
    chunks = PageChunker(chunk_size=5000).chunk(pdf_text)
    numbers = [(chunk.metadata["page_start"], chunk.metadata["page_end"]) for chunk in chunks]
    assert numbers == [(page, page) for page in range(1, PAGES + 1) if page != EMPTY]


def test_several_pages_make_a_chunk(pdf_text: str) -> None:
    chunks = PageChunker(chunk_size=20_000, pages_per_chunk=3).chunk(pdf_text)
    numbers = [(chunk.metadata["page_start"], chunk.metadata["page_end"]) for chunk in chunks]
    expected = [(first, min(first + 2, PAGES)) for first in range(1, PAGES + 1, 3)]
    expected[(EMPTY - 1) // 3] = (EMPTY + 1, EMPTY + 2)  # white space is no part of a chunk
    assert numbers == expected
