"""Files, and documents of Docling, as LangChain documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from typing_extensions import override

from rag_splitters.reading.files import read_sources
from rag_splitters.text.origin import reading_options

if TYPE_CHECKING:
    from docling_core.types.doc.document import DoclingDocument


class FileLoader(BaseLoader):
    """Loads a file, or each file in a folder, as a document.

    A file may be any text, a PDF (extra `pdf`), a Word document or a presentation (extra `office`),
    a workbook or a book. From notebooks, subtitles and mails, it loads the text without the markup,
    and each message of a mailbox as a document of its own.

    Chunks know where they come from, whatever the strategy: `page_start` and `page_end` in PDFs and
    presentations; `file_start` and `file_end` (positions in the file) in notebooks, subtitles and
    mails, with `cell_start` and `cell_end`, `start_time` and `end_time` (seconds), or `subject`,
    `sender`, `date` and `message_id`. They take this, and the headings of a PDF, from `origin` and
    `outline` in the document's metadata, which they do not repeat.

    Parameters:
        path: a file or a folder. From a folder, files with the suffixes of these kinds are loaded;
            a warning in the log says how many others were skipped, and with which suffixes.
        max_output: maximum number of characters to keep of each output in a notebook; a line says
            how many were left out. 0 drops outputs, None keeps them whole.
        quotations: whether to keep quotations in mails: lines after ">", quotations in HTML, and
            the original message below a reply.
        attachments: whether to keep the attachments of mails that are text.

    Raises: OSError, ValueError or ImportError, which names the file, when it is loaded.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        max_output: int | None = None,
        quotations: bool = True,
        attachments: bool = False,
    ) -> None:
        self.path = Path(path)
        self.options = reading_options(max_output, quotations, attachments)

    @override
    def lazy_load(self) -> Iterator[Document]:
        """Yield each document, with the path as `source` in its metadata and as its id.

        The id of a message in a mailbox is the path, "#" and the Message-ID.
        """
        for source in read_sources(self.path, self.options):
            yield Document(page_content=source.text, metadata=dict(source.metadata), id=source.id)


def docling_document(
    document: DoclingDocument, metadata: Mapping[str, Any] | None = None
) -> Document:
    """Convert a `DoclingDocument` to a LangChain document, for any of our splitters.

    The text is Markdown with the headings, lists, tables and code that Docling found, and chunks
    know their pages. For the parameters and errors, see `rag_splitters.docling.read_docling`.
    """
    from rag_splitters.docling import read_docling

    source = read_docling(document, metadata)
    return Document(page_content=source.text, metadata=dict(source.metadata), id=source.id)
