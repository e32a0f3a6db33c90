"""Where a chunk of a PDF stands: the text inside its boxes is the chunk's text."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pypdfium2
import pytest
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph

from rag_splitters import RecursiveChunker, SentenceChunker, TitledChunker
from rag_splitters.langchain import FileLoader, RecursiveTextSplitter, parent_document_retriever
from rag_splitters.llama_index import FileReader, RecursiveNodeParser
from rag_splitters.reading import Box, locate, mark_pages
from rag_splitters.reading.files import read_file

WORDS = (
    "The keeper of the harbour counts every boat that comes in before the evening and writes its "
    "name, its length and its colour into a book with {} pages. Whoever asks may read in it. "
)


@pytest.fixture(params=[1, 2])
def pdf(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A PDF of several pages, in one column and in two, with hyphens at the ends of lines."""
    width, height = A4
    space = (width - 100) / request.param
    frames = [Frame(50 + space * n, 50, space - 10, height - 100) for n in range(request.param)]
    path = tmp_path / "harbour.pdf"
    document = BaseDocTemplate(str(path), pagesize=A4)
    document.addPageTemplates([PageTemplate(frames=frames)])
    style = getSampleStyleSheet()["BodyText"]
    style.embeddedHyphenation = 1
    words = WORDS.replace("harbour", "har\u00adbour").replace("evening", "eve\u00adning")
    document.build([Paragraph(words.format(number) * 3, style) for number in range(40)])
    return path


def letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum())


def text_in(path: Path, boxes: Sequence[Box]) -> str:
    with closing(pypdfium2.PdfDocument(path)) as document:
        pages = {box.page: document[box.page - 1].get_textpage() for box in boxes}
        return " ".join(
            pages[box.page].get_text_bounded(
                box.left - 0.2, box.bottom - 0.2, box.right + 0.2, box.top + 0.2
            )
            for box in boxes
        )


@pytest.mark.slow
def test_text_inside_the_boxes_is_the_text_of_the_chunk(pdf: Path) -> None:
    (source,) = read_file(pdf)
    chunks = RecursiveChunker(chunk_size=700).chunk(source.text, metadata=source.metadata)
    assert len(chunks) > 20
    for chunk in chunks[:: len(chunks) // 12]:
        boxes = locate(pdf, chunk)
        assert letters(text_in(pdf, boxes)) == letters(chunk.text)
        pages = {box.page for box in boxes}
        assert (min(pages), max(pages)) == (
            chunk.metadata["page_start"],
            chunk.metadata["page_end"],
        )


def test_line_with_raised_letters_is_located(tmp_path: Path) -> None:
    path = tmp_path / "powers.pdf"
    document = BaseDocTemplate(str(path), pagesize=A4)
    document.addPageTemplates([PageTemplate(frames=[Frame(50, 50, 500, 700)])])
    text = "The sum x<super>2</super> + y<super>3</super> of the note<super>4</super> is here."
    document.build([Paragraph(text, getSampleStyleSheet()["BodyText"])])
    (source,) = read_file(path)
    assert source.text == "The sum x2 + y3 of the note4 is here."
    (chunk,) = RecursiveChunker().chunk(source.text, metadata=source.metadata)
    assert set(letters(text_in(path, locate(path, chunk)))) == set(letters(source.text))


def test_chunks_of_both_frameworks_are_located(pdf: Path) -> None:
    documents = RecursiveTextSplitter(chunk_size=300).split_documents(FileLoader(pdf).load())
    nodes = RecursiveNodeParser(chunk_size=60)(FileReader().load_data(pdf))
    for chunk, text in (
        (documents[3], documents[3].page_content),
        (nodes[3], nodes[3].get_content()),
    ):
        assert letters(text_in(pdf, locate(pdf, chunk))) == letters(text)


def test_results_of_a_retriever_are_located(pdf: Path) -> None:
    with parent_document_retriever(FileLoader(pdf).load()) as retriever:
        result = retriever.invoke("a book with 17 pages")[0]
    shown = text_in(pdf, locate(pdf, result))
    assert "17 pages" in " ".join(shown.split())


def test_added_title_is_not_located(pdf: Path) -> None:
    (source,) = read_file(pdf)
    chunker = TitledChunker(chunker=SentenceChunker(chunk_size=200), title="On harbours")
    chunk = chunker.chunk(source.text)[2]
    assert chunk.text.startswith("On harbours")
    assert letters(chunk.text).endswith(letters(text_in(pdf, locate(pdf, chunk))))


def test_marked_pages_are_those_of_the_chunks(pdf: Path) -> None:
    (source,) = read_file(pdf)
    chunks = RecursiveChunker(chunk_size=300).chunk(source.text, metadata=source.metadata)
    chosen = [chunks[0], chunks[-1]]
    with closing(pypdfium2.PdfDocument(mark_pages(pdf, chosen))) as marked:
        assert len(marked) == 2
        counts = [pypdfium2.raw.FPDFPage_GetAnnotCount(page) for page in marked]
    assert counts == [len(locate(pdf, chunk)) for chunk in chosen]


def test_chunk_of_another_file_is_an_error(pdf: Path) -> None:
    chunk = RecursiveChunker(chunk_size=300).chunk("Another text. " * 300)[4]
    with pytest.raises(ValueError, match=r"does not hold this chunk at \d+ to \d+: the file has"):
        locate(pdf, chunk)


def test_chunk_without_positions_is_an_error(pdf: Path) -> None:
    with pytest.raises(ValueError, match="the chunk has no positions"):
        locate(pdf, FileLoader(pdf).load()[0])
