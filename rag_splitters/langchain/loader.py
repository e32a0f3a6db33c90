"""Files as LangChain documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from typing_extensions import override

from rag_splitters.reading.files import read_sources
from rag_splitters.text.origin import reading_options


class FileLoader(BaseLoader):
    """Loads a file, or each file of a folder, as a document: text as it is, PDF page by page.

    Of notebooks, subtitles and mails, it loads what there is to read: the cells of a notebook as
    Markdown, the words of subtitles as running text, each message of a mailbox as a document. The
    chunks of these know where they stand in the file: `file_start` and `file_end` and, in
    notebooks, `cell_start` and `cell_end`, in subtitles `start_time` and `end_time` in seconds.
    Mails have `subject`, `sender`, `date` and `message_id`. The document's metadata say this in
    `origin`, which its chunks do not repeat.

    The chunks of a PDF know their pages, whatever the strategy: the document's metadata have the
    first and the last page as `page_start` and `page_end`, and each chunk has its own.
    Running heads and page numbers are dropped from a PDF, and divided words are joined. Lines in a
    larger or bold font are its headings: `outline` in the metadata lists them for the strategies,
    and chunks do not repeat it.

    Parameters:
        path: a text of any kind, a PDF (extra `pdf`), a Word document or a presentation (extra
            `office`), which come as Markdown with slides as pages, or a folder, of which the files
            are loaded whose names say that they are one of these. A warning in the log says how
            many files were passed over, and of which kinds.
        max_output: maximum number of characters of each output in a notebook, and a line that says
            how many were left out; 0 drops outputs, None keeps them whole.
        quotations: whether to keep what a mail quotes: lines after ">", quotations in HTML, and
            the original message below a reply.
        attachments: whether to keep attachments of mails that are text.

    Raises: OSError, ValueError or ImportError that names the file, when it is loaded.
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
        """Each document, with the path as `source` in its metadata and as its id.

        The ids of messages in a mailbox are the path, "#" and their Message-ID.
        """
        for source in read_sources(self.path, self.options):
            yield Document(page_content=source.text, metadata=dict(source.metadata), id=source.id)
