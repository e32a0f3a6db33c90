"""Files, and documents of Docling, as LlamaIndex documents."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document
from typing_extensions import override

from rag_splitters.reading.files import read_sources
from rag_splitters.span import Source
from rag_splitters.structure.mails import MAIL_KEYS
from rag_splitters.text.origin import reading_options

if TYPE_CHECKING:
    from docling_core.types.doc.document import DoclingDocument


class FileReader(BaseReader):
    """Reads a file, or each file in a folder, as a document.

    A file may be any text, a PDF (extra `pdf`), a Word document or a presentation (extra `office`),
    a workbook or a book. From notebooks, subtitles and mails, it reads the text without the markup,
    and each message of a mailbox as a document of its own.

    Nodes know where they come from, whatever the strategy: `page_start` and `page_end` in PDFs and
    presentations; `file_start` and `file_end` (positions in the file) in notebooks, subtitles and
    mails, with `cell_start` and `cell_end`, `start_time` and `end_time` (seconds), or `subject`,
    `sender`, `date` and `message_id`. They take this, and the headings of a PDF, from `origin` and
    `outline` in the document's metadata, which they do not repeat.

    To read a folder with several readers:
    `SimpleDirectoryReader(folder, file_extractor={".pdf": FileReader(), ".ipynb": FileReader()})`.

    Parameters:
        max_output: maximum number of characters to keep of each output in a notebook; a line says
            how many were left out. 0 drops outputs, None keeps them whole.
        quotations: whether to keep quotations in mails: lines after ">", quotations in HTML, and
            the original message below a reply.
        attachments: whether to keep the attachments of mails that are text.
    """

    def __init__(
        self, *, max_output: int | None = None, quotations: bool = True, attachments: bool = False
    ) -> None:
        self.options = reading_options(max_output, quotations, attachments)

    @override
    def load_data(
        self, file: str | Path, extra_info: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Read the documents of a file or folder, as `lazy_load_data` does, into a list."""
        return list(self.lazy_load_data(file, extra_info))

    @override
    def lazy_load_data(
        self, file: str | Path, extra_info: dict[str, Any] | None = None, **kwargs: Any
    ) -> Iterator[Document]:
        """Yield the documents of a file or folder.

        Their paths are their ids; the id of a message in a mailbox is the path, "#" and the
        Message-ID.

        Parameters:
            file: a file or a folder. From a folder, files with the suffixes of these kinds are
                read; a warning in the log says how many others were skipped, and with which
                suffixes.
            extra_info: more metadata to add.

        Raises: OSError, ValueError or ImportError, which names the file.
        """
        for source in read_sources(file, self.options):
            own = {key: value for key, value in source.metadata.items() if key != "source"}
            metadata = {"file_path": source.metadata["source"], **(extra_info or {}), **own}
            yield _document(source, metadata, own.keys() - MAIL_KEYS)


def _document(source: Source, metadata: dict[str, Any], hidden: Collection[str]) -> Document:
    """Make a document of a source; models do not see the hidden keys of its metadata."""
    excluded = [key for key in metadata if key in hidden]
    return Document(
        text=source.text,
        metadata=metadata,
        id_=source.id,
        excluded_embed_metadata_keys=excluded,
        excluded_llm_metadata_keys=excluded.copy(),
    )


def docling_document(
    document: DoclingDocument, metadata: Mapping[str, Any] | None = None
) -> Document:
    """Convert a `DoclingDocument` to a LlamaIndex document, for any of our node parsers.

    The text is Markdown with the headings, lists, tables and code that Docling found, and nodes
    know their pages. For the parameters and errors, see `rag_splitters.docling.read_docling`.
    """
    from rag_splitters.docling import read_docling

    source = read_docling(document, metadata)
    hidden = source.metadata.keys() - {"source", "title", *(metadata or ())}
    return _document(source, dict(source.metadata), hidden)
