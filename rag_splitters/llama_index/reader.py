"""Files as LlamaIndex documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document
from typing_extensions import override

from rag_splitters.reading.files import read_sources
from rag_splitters.span import Source
from rag_splitters.structure.mails import MAIL_KEYS
from rag_splitters.text.origin import reading_options


class FileReader(BaseReader):
    """Reads a file, or each file of a folder, as a document: text as it is, PDF page by page.

    Of notebooks, subtitles and mails, it reads what there is to read: the cells of a notebook as
    Markdown, the words of subtitles as running text, each message of a mailbox as a document. The
    nodes of these know where they stand in the file: `file_start` and `file_end` and, in
    notebooks, `cell_start` and `cell_end`, in subtitles `start_time` and `end_time` in seconds.
    Mails have `subject`, `sender`, `date` and `message_id`. The document's metadata say this in
    `origin`, which its nodes do not repeat.

    The nodes of a PDF know their pages, whatever the strategy: the document's metadata have the
    first and the last page as `page_start` and `page_end`, and each node has its own.
    Running heads and page numbers are dropped from a PDF, and divided words are joined. Lines in a
    larger or bold font are its headings: `outline` in the metadata lists them for the strategies,
    and nodes do not repeat it.

    For folders:
    `SimpleDirectoryReader(folder, file_extractor={".pdf": FileReader(), ".ipynb": FileReader()})`.

    Parameters:
        max_output: maximum number of characters of each output in a notebook, and a line that says
            how many were left out; 0 drops outputs, None keeps them whole.
        quotations: whether to keep what a mail quotes: lines after ">", quotations in HTML, and
            the original message below a reply.
        attachments: whether to keep attachments of mails that are text.
    """

    def __init__(
        self, *, max_output: int | None = None, quotations: bool = True, attachments: bool = False
    ) -> None:
        self.options = reading_options(max_output, quotations, attachments)

    @override
    def load_data(
        self, file: str | Path, extra_info: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """The documents, with their paths as their ids; messages of a mailbox add "#" and their
        Message-ID.

        Parameters:
            file: a text of any kind, a PDF (extra `pdf`), a Word document or a presentation
                (extra `office`), which come as Markdown with slides as pages, or a folder, of which
                the files are read whose names say that they are one of these. A warning in the log
                says how many files were passed over, and of which kinds.
            extra_info: further metadata.

        Raises: OSError, ValueError or ImportError that names the file.
        """
        return [_document(source, extra_info or {}) for source in read_sources(file, self.options)]


def _document(source: Source, extra_info: dict[str, Any]) -> Document:
    own = {key: value for key, value in source.metadata.items() if key != "source"}
    excluded = [key for key in own if key not in MAIL_KEYS]
    return Document(
        text=source.text,
        metadata={"file_path": source.metadata["source"], **extra_info, **own},
        id_=source.id,
        excluded_embed_metadata_keys=excluded,
        excluded_llm_metadata_keys=excluded.copy(),
    )
