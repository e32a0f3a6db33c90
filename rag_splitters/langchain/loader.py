"""Files as LangChain documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from typing_extensions import override

from rag_splitters.reading.files import read_sources


class FileLoader(BaseLoader):
    """Loads a file, or each file of a folder, as a document: text as it is, PDF page by page.

    The chunks of a PDF know their pages, whatever the strategy: the document's metadata have the
    first and the last page as `page_start` and `page_end`, and each chunk has its own.
    Running heads and page numbers are dropped from a PDF, and divided words are joined. Lines in a
    larger or bold font are its headings: `outline` in the metadata lists them for the strategies,
    and chunks do not repeat it.

    Parameters:
        path: a text of any kind, a PDF (extra `pdf`), or a folder, of which the files are
            loaded whose names say that they are one of these. A warning in the log says how many
            files were passed over, and of which kinds.

    Raises: OSError, ValueError or ImportError that names the file, when it is loaded.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @override
    def lazy_load(self) -> Iterator[Document]:
        """Each document, with the path as its id and as `source` in its metadata."""
        for source in read_sources(self.path):
            yield Document(page_content=source.text, metadata=dict(source.metadata), id=source.id)
