"""Files as documents of both frameworks, with their page numbers through any strategy."""

from __future__ import annotations

from pathlib import Path

import pytest
from llama_index.core import SimpleDirectoryReader

from rag_splitters.langchain import FileLoader, RecursiveTextSplitter
from rag_splitters.llama_index import FileReader, SentenceNodeParser


@pytest.fixture
def pdf(tmp_path: Path) -> Path:
    """Three pages; the text of the second runs on to the third."""
    from reportlab.pdfgen.canvas import Canvas

    path = tmp_path / "report.pdf"
    canvas = Canvas(str(path))
    for line in ("The first page is short.", "The second page goes on", "to the third page."):
        canvas.drawString(72, 700, line)
        canvas.showPage()
    canvas.save()
    return path


def test_file_loader_keeps_page_numbers_in_any_splitter(pdf: Path) -> None:
    (document,) = FileLoader(pdf).load()
    assert document.id == document.metadata["source"] == pdf.as_posix()
    chunks = RecursiveTextSplitter(chunk_size=50, page_break="\f").split_documents([document])
    found = [(c.page_content, c.metadata["page_start"], c.metadata["page_end"]) for c in chunks]
    assert found == [
        ("The first page is short.\n\fThe second page goes on", 1, 2),
        ("to the third page.", 3, 3),
    ]


def test_file_reader_keeps_page_numbers_in_any_parser(pdf: Path) -> None:
    reader = SimpleDirectoryReader(str(pdf.parent), file_extractor={".pdf": FileReader()})
    parser = SentenceNodeParser(chunk_size=50, page_break="\f")
    nodes = parser.get_nodes_from_documents(reader.load_data())
    assert [(n.metadata["page_start"], n.metadata["page_end"]) for n in nodes] == [(1, 1), (2, 3)]
    assert all("page_start" in node.excluded_embed_metadata_keys for node in nodes)


@pytest.mark.parametrize("page_break", ["(", "x*"])
def test_page_break_that_cannot_be_one_is_refused(page_break: str) -> None:
    with pytest.raises(ValueError, match="page_break"):
        RecursiveTextSplitter(page_break=page_break)


def test_pages_of_a_chunk_s_chunks_are_those_of_the_source() -> None:
    outer = RecursiveTextSplitter(chunk_size=12, page_break="\f")
    inner = RecursiveTextSplitter(chunk_size=6, page_break="\f")
    chunks = inner.split_documents(outer.create_documents(["one two\fthree four\ffive six"]))
    found = {c.page_content: c.metadata["page_start"] for c in chunks}
    assert found["one"] == 1
    assert found["three"] == 2
    assert found["six"] == 3
