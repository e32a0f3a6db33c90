"""Files as LangChain documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from typing_extensions import override

from rag_splitters.reading.files import read_text

__all__ = ["FileLoader"]


class FileLoader(BaseLoader):
    """Loads a file as one document: text as it is, a PDF with form feeds between its pages.

    With a splitter's `page_break="\\f"`, every chunk knows its pages.

    Parameters:
        path: a text, Markdown or HTML file in UTF-8, or a PDF (extra `pdf`).

    Raises: OSError, ValueError or ImportError that names the file, when it is loaded.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @override
    def lazy_load(self) -> Iterator[Document]:
        """The document, with the path as its id and as `source` in its metadata."""
        name = self.path.as_posix()
        yield Document(page_content=read_text(self.path), metadata={"source": name}, id=name)
