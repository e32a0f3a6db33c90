"""Docling documents, built and read with docling-core itself."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from typing import Any

import pytest
from docling_core.transforms.chunker import BaseChunker, HierarchicalChunker
from docling_core.transforms.chunker.doc_chunk import DocChunk
from docling_core.types.doc import (
    BoundingBox,
    ContentLayer,
    DocItemLabel,
    DoclingDocument,
    DocumentOrigin,
    ProvenanceItem,
    TableCell,
    TableData,
)
from hypothesis import given
from hypothesis import strategies as st

from rag_splitters import (
    AutoChunker,
    ContentAwareChunker,
    RecursiveChunker,
    SentenceChunker,
    TableChunker,
)
from rag_splitters import HierarchicalChunker as OurHierarchicalChunker
from rag_splitters.docling import DoclingChunker, DoclingText, docling_text, read_docling
from rag_splitters.extras import install_command
from rag_splitters.langchain import AutoTextSplitter, SentenceTextSplitter
from rag_splitters.langchain import docling_document as langchain_document
from rag_splitters.llama_index import SentenceNodeParser
from rag_splitters.llama_index import docling_document as llama_index_document
from rag_splitters.testing import hostile_texts
from tests.support.counting import record_calls


def on(page: int) -> ProvenanceItem:
    return ProvenanceItem(page_no=page, bbox=BoundingBox(l=0, t=0, r=1, b=1), charspan=(0, 1))


def table(rows: list[list[str]]) -> TableData:
    cells = [
        TableCell(
            text=text,
            start_row_offset_idx=row,
            end_row_offset_idx=row + 1,
            start_col_offset_idx=column,
            end_col_offset_idx=column + 1,
            column_header=row == 0,
        )
        for row, texts in enumerate(rows)
        for column, text in enumerate(texts)
    ]
    return TableData(num_rows=len(rows), num_cols=len(rows[0]), table_cells=cells)


@pytest.fixture
def trams() -> DoclingDocument:
    """Four pages with every kind of item."""
    origin = DocumentOrigin(mimetype="application/pdf", binary_hash=1, filename="trams.pdf")
    document = DoclingDocument(name="trams", origin=origin)
    document.add_title("Trams", prov=on(1))
    document.add_text(DocItemLabel.TEXT, "The trams are green. They are old.", prov=on(1))
    document.add_heading("Lines", level=1, prov=on(1))
    lines = document.add_list_group()
    document.add_list_item("Line one_two goes north.", parent=lines, prov=on(1))
    document.add_list_item("Line three goes south.", parent=lines, prov=on(2))
    layer = ContentLayer.FURNITURE
    document.add_text(DocItemLabel.PAGE_FOOTER, "page 2", prov=on(2), content_layer=layer)
    caption = document.add_text(DocItemLabel.CAPTION, "Table 1: stops", prov=on(4))
    rows = [["stop", "line"], *([f"Stop {n}", str(n)] for n in range(9))]
    document.add_table(table(rows), caption=caption, prov=on(4))
    document.add_code("# depart\ndef depart():\n    return 1", prov=on(4))
    caption = document.add_text(DocItemLabel.CAPTION, "Figure 1: a tram", prov=on(4))
    document.add_picture(caption=caption, prov=on(4))
    document.add_formula("E=mc^2", prov=on(4))
    document.add_text(DocItemLabel.TEXT, "# no heading\fand <no> page", prov=on(4))
    return document


CHUNKERS = [
    ContentAwareChunker(chunk_size=70),
    SentenceChunker(chunk_size=70),
    RecursiveChunker(chunk_size=40),
    TableChunker(chunk_size=70),
    AutoChunker(chunk_size=70),
    OurHierarchicalChunker(emit="all"),
]


def chunks_of(document: DoclingDocument, chunker: Any) -> list[DocChunk]:
    chunks = list(DoclingChunker(chunker=chunker).chunk(document))
    assert all(isinstance(chunk, DocChunk) for chunk in chunks)
    return chunks  # type: ignore[return-value]


def captions(chunk: DocChunk) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return chunk.meta.captions or []


def test_document_is_written_as_markdown_once(
    trams: DoclingDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = record_calls(monkeypatch, docling_text, "_serialize")
    assert chunks_of(trams, SentenceChunker(chunk_size=70))
    assert len(written) == 1
    with pytest.raises(TypeError, match="document must be a DoclingDocument, got 'trams'"):
        chunks_of("trams", SentenceChunker())  # type: ignore[arg-type]


# The text


def test_text_is_markdown_with_pages(trams: DoclingDocument) -> None:
    source = read_docling(trams)
    assert source.metadata == {
        "source": "trams.pdf",
        "mimetype": "text/markdown",
        "title": "Trams",
        "page_start": 1,
        "page_end": 4,
    }
    pages = source.text.split("\f")
    assert pages[0].startswith("# Trams\n\nThe trams are green.")
    assert pages[0].endswith("\n## Lines\n\n- Line one_two goes north.")
    assert pages[1].strip() == "- Line three goes south."
    assert pages[2].strip() == ""
    assert "| Stop 8 |" in pages[3]
    assert "# depart\ndef depart():" in pages[3]
    assert pages[3].endswith("$$E=mc^2$$\n\n\\# no heading and <no> page")
    assert "page 2" not in source.text


def test_each_item_stands_where_the_text_says(trams: DoclingDocument) -> None:
    whole = DoclingText.of(trams)
    for each in whole.items:
        own = str(getattr(each.item, "text", ""))
        part = whole.text[each.start : each.end].replace("\\", "")
        assert own.replace("\f", " ") in part, each.item.self_ref
    starts = [each.start for each in whole.items]
    assert starts == sorted(starts)
    assert [(each.level, each.title) for each in whole.headings] == [(1, "Trams"), (2, "Lines")]
    headings = [whole.text[each.start : each.end].strip() for each in whole.headings]
    assert headings == ["# Trams", "## Lines"]
    assert {each.item.self_ref for each in whole.items} == {
        *(f"#/texts/{n}" for n in (0, 1, 2, 3, 4, 6, 7, 8, 9, 10)),
        "#/tables/0",
        "#/pictures/0",
    }


def test_pages_that_go_back_and_documents_without_pages() -> None:
    document = DoclingDocument(name="note")
    for page in (3, 5, 4, 5):
        document.add_text(DocItemLabel.TEXT, f"On page {page}.", prov=on(page))
    source = read_docling(document)
    assert (source.metadata["page_start"], source.metadata["page_end"]) == (3, 5)
    assert [len(part.split()) for part in source.text.split("\f")] == [3, 0, 9]
    plain = DoclingDocument(name="plain")
    plain.add_text(DocItemLabel.TEXT, "No page.")
    assert read_docling(plain).metadata == {"source": "plain", "mimetype": "text/markdown"}


def test_list_with_nested_items_that_are_alike() -> None:
    document = DoclingDocument(name="note")
    outer = document.add_list_group()
    for _ in range(3):
        item = document.add_list_item("same", parent=outer, prov=on(1))
        document.add_list_item("same", parent=document.add_list_group(parent=item), prov=on(1))
    whole = DoclingText.of(document)
    parts = [whole.text[each.start : each.end] for each in whole.items]
    assert [part.strip() for part in parts] == ["- same"] * 6
    assert "".join(parts) == whole.text


# The chunker


@pytest.mark.parametrize("chunker", CHUNKERS, ids=lambda each: type(each).__name__)
def test_chunks_have_the_items_that_they_were_made_from(
    trams: DoclingDocument, chunker: Any
) -> None:
    text, items = read_docling(trams).text, DoclingText.of(trams).items
    expected = chunker.chunk(text, metadata=read_docling(trams).metadata)
    chunks = chunks_of(trams, chunker)
    assert [chunk.text for chunk in chunks] == [chunk.text for chunk in expected]
    for chunk, own in zip(chunks, expected, strict=True):
        refs = [item.self_ref for item in chunk.meta.doc_items]
        inside = [e.item.self_ref for e in items if e.start < own.end and e.end > own.start]
        assert refs == inside
        assert chunk.meta.origin == trams.origin
        assert all(ref.prov[0].page_no in range(1, 5) for ref in chunk.meta.doc_items)
    seen = {item.self_ref for chunk in chunks for item in chunk.meta.doc_items}
    assert seen == {each.item.self_ref for each in items}


def test_headings_are_those_of_docling(trams: DoclingDocument) -> None:
    chunks = chunks_of(trams, SentenceChunker(chunk_size=70))
    assert chunks[0].meta.headings == ["Trams"]
    assert {tuple(chunk.meta.headings or ()) for chunk in chunks[1:]} == {("Trams", "Lines")}
    theirs = {
        tuple(chunk.meta.headings or ())
        for chunk in HierarchicalChunker().chunk(trams)
        if isinstance(chunk, DocChunk)
    }
    assert {tuple(chunk.meta.headings or ()) for chunk in chunks} == theirs
    bare = DoclingDocument(name="bare")
    bare.add_text(DocItemLabel.TEXT, "No heading.")
    assert chunks_of(bare, SentenceChunker())[0].meta.headings is None


def test_captions_are_there_where_the_text_lacks_them(trams: DoclingDocument) -> None:
    chunks = [chunk for chunk in chunks_of(trams, TableChunker(chunk_size=70)) if "|" in chunk.text]
    assert len(chunks) > 2
    for chunk in chunks:
        assert ("Table 1: stops" in chunk.text) != (captions(chunk) == ["Table 1: stops"])


def test_contextualize_repeats_nothing(trams: DoclingDocument) -> None:
    chunker = DoclingChunker(chunker=TableChunker(chunk_size=70))
    for chunk in chunker.chunk(trams):
        text = chunker.contextualize(chunk)
        assert text.endswith(chunk.text)
        assert text.count("Trams") == text.count("Lines") + (chunk.text.startswith("# Trams")) or (
            text.count("Lines") == text.count("Trams") == 1
        )
        assert text.count("Table 1: stops") <= 1
    assert chunker.contextualize(chunk).splitlines()[:2] == ["Trams", "Lines"]


def test_chunker_is_one_of_doclings(trams: DoclingDocument) -> None:
    chunker = DoclingChunker()
    assert isinstance(chunker, BaseChunker)
    restored = DoclingChunker.model_validate(chunker.model_dump())
    assert restored == chunker
    (first, *_) = chunker.chunk(trams)
    assert DocChunk.model_validate(first.export_json_dict()).text == first.text
    assert list(chunker.chunk(DoclingDocument(name="empty"))) == []


def test_what_is_no_chunker_and_no_document_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown parameter 'max_tokens': its parameters are "):
        DoclingChunker(max_tokens=512)
    with pytest.raises(ValueError, match=r"^chunker must be a chunker or .*, got 'sentence'"):
        DoclingChunker(chunker="sentence")
    with pytest.raises(TypeError, match="must be a DoclingDocument, got '# Tea'"):
        read_docling("# Tea")  # type: ignore[arg-type]


@given(st.lists(st.tuples(hostile_texts(), st.integers(1, 9)), max_size=5))
def test_any_text_on_any_page(parts: list[tuple[str, int]]) -> None:
    document = DoclingDocument(name="hostile")
    group = document.add_list_group()
    for number, (text, page) in enumerate(parts):
        if number % 2:
            document.add_list_item(text, parent=group, prov=on(page))
        else:
            document.add_text(DocItemLabel.TEXT, text, prov=on(page))
    whole, source = DoclingText.of(document), read_docling(document)
    assert source.text == whole.text
    assert all(0 <= e.start <= e.end <= len(whole.text) for e in whole.items)
    first, last = whole.pages or (1, 1)
    assert whole.text.count("\f") == last - first
    for chunk in DoclingChunker(chunker=RecursiveChunker(chunk_size=15)).chunk(document):
        assert isinstance(chunk, DocChunk)
        assert chunk.text.strip()
        assert chunk.meta.doc_items


# Sources for the frameworks


@pytest.mark.parametrize("splitter", [AutoTextSplitter, SentenceTextSplitter])
def test_langchain_keeps_pages_and_headings(trams: DoclingDocument, splitter: Any) -> None:
    document = langchain_document(trams, {"team": "depot"})
    assert document.id == "trams.pdf"
    chunks = splitter(chunk_size=70).split_documents([document])
    for chunk in chunks:
        start, end = chunk.metadata["start_index"], chunk.metadata["end_index"]
        before = document.page_content[:start].count("\f")
        assert chunk.metadata["page_start"] == before + 1
        assert chunk.metadata["page_end"] >= chunk.metadata["page_start"]
        assert chunk.page_content.endswith(document.page_content[start:end])  # under its header
        assert chunk.metadata["team"] == "depot"
    if splitter is AutoTextSplitter:
        assert {chunk.metadata["strategy"] for chunk in chunks} == {"content_aware"}
        assert chunks[-1].metadata["headings"] == ["Trams", "Lines"]


def test_llama_index_keeps_pages(trams: DoclingDocument) -> None:
    document = llama_index_document(trams, {"team": "depot"})
    nodes = SentenceNodeParser(chunk_size=30).get_nodes_from_documents([document])
    assert [nodes[0].metadata["page_start"], nodes[-1].metadata["page_end"]] == [1, 4]
    assert nodes[0].metadata["team"] == "depot"
    assert "mimetype" not in nodes[0].get_content("embed")  # type: ignore[arg-type]


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.startswith("rag_splitters.docling"):
            monkeypatch.delitem(sys.modules, name)
        elif name.partition(".")[0] == "docling_core":
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=re.escape(install_command("docling"))):
        importlib.import_module("rag_splitters.docling")
