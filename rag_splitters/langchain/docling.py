"""Documents of Docling as LangChain documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

if TYPE_CHECKING:
    from docling_core.types.doc.document import DoclingDocument


def docling_document(
    document: DoclingDocument, metadata: Mapping[str, Any] | None = None
) -> Document:
    """Convert a `DoclingDocument` to a LangChain document, for any of our splitters.

    The text is Markdown with the headings, lists, tables and code that Docling found, and chunks
    know their pages; see `rag_splitters.docling.read_docling`.

    Parameters:
        document: what Docling's `DocumentConverter` returns in `.document`.
        metadata: more metadata to add; it wins over what Docling says.

    Raises: ImportError if docling-core is not installed; TypeError if it is not a DoclingDocument.
    """
    from rag_splitters.docling import read_docling

    source = read_docling(document, metadata)
    return Document(page_content=source.text, metadata=dict(source.metadata), id=source.id)
