"""Docling: our strategies as Docling's chunkers, and a `DoclingDocument` as a source for them.

`DoclingChunker` replaces Docling's own chunkers. `read_docling` returns the Markdown of a document
with its pages, for any strategy. Needs the extra `docling`.
"""

from __future__ import annotations

from rag_splitters.extras import needs

with needs("rag_splitters.docling needs docling-core", "docling"):
    from rag_splitters.docling.docling_chunker import DoclingChunker
    from rag_splitters.docling.docling_text import DoclingText, read_docling

__all__ = ["DoclingChunker", "DoclingText", "read_docling"]
