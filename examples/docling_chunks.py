"""Chunks of a document that Docling has read, with their headings, pages and items.

Docling itself reads PDF, DOCX and others into a `DoclingDocument`:

    from docling.document_converter import DocumentConverter
    document = DocumentConverter().convert("report.pdf").document

This example builds a small one, because docling-core alone does not read files.
pip install 'rag-splitters[docling]'
"""

from __future__ import annotations

from docling_core.types.doc import BoundingBox, DocItemLabel, DoclingDocument, ProvenanceItem

from rag_splitters import SentenceChunker
from rag_splitters.docling import DoclingChunker
from rag_splitters.langchain import AutoTextSplitter, docling_document


def on_page(number: int) -> ProvenanceItem:
    """Where Docling found an item."""
    return ProvenanceItem(page_no=number, bbox=BoundingBox(l=0, t=0, r=1, b=1), charspan=(0, 1))


def main() -> None:
    document = DoclingDocument(name="trams.pdf")
    document.add_title("Trams", prov=on_page(1))
    document.add_text(DocItemLabel.TEXT, "The trams are green. They are old.", prov=on_page(1))
    document.add_heading("Lines", level=1, prov=on_page(2))
    lines = document.add_list_group()
    document.add_list_item("Line one goes to the harbour.", parent=lines, prov=on_page(2))
    document.add_list_item("Line two goes to the hills.", parent=lines, prov=on_page(2))

    print("In the place of Docling's own chunkers:")
    chunker = DoclingChunker(chunker=SentenceChunker(chunk_size=60))
    for chunk in chunker.chunk(document):
        items = [item.self_ref for item in chunk.meta.doc_items]
        print(f"  {chunk.meta.headings} {items}: {chunk.text!r}")

    print("As a LangChain document, for any splitter:")
    splitter = AutoTextSplitter(chunk_size=60)
    for each in splitter.split_documents([docling_document(document)]):
        print(f"  page {each.metadata['page_start']}: {each.page_content!r}")


if __name__ == "__main__":
    main()
