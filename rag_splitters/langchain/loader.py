"""Files as LangChain documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from typing_extensions import override

from rag_splitters.reading.files import read_source


class FileLoader(BaseLoader):
    """Loads a file as one document: text as it is, a PDF with form feeds between its pages.

    The chunks of a PDF know their pages, whatever the strategy: the document's metadata have the
    first and the last page as `page_start` and `page_end`, and each chunk has its own.
    Running heads and page numbers are dropped from a PDF, and divided words are joined.

    Parameters:
        path: a text, Markdown or HTML file in UTF-8, or a PDF (extra `pdf`).

    Raises: OSError, ValueError or ImportError that names the file, when it is loaded.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @override
    def lazy_load(self) -> Iterator[Document]:
        """The document, with the path as its id and as `source` in its metadata."""
        source = read_source(self.path)
        yield Document(page_content=source.text, metadata=dict(source.metadata), id=source.id)
