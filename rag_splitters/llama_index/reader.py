"""Files as LlamaIndex documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document
from typing_extensions import override

from rag_splitters.reading.files import read_sources
from rag_splitters.span import Source


class FileReader(BaseReader):
    """Reads a file, or each file of a folder, as a document: text as it is, PDF page by page.

    The nodes of a PDF know their pages, whatever the strategy: the document's metadata have the
    first and the last page as `page_start` and `page_end`, and each node has its own.
    Running heads and page numbers are dropped from a PDF, and divided words are joined. Lines in a
    larger or bold font are its headings: `outline` in the metadata lists them for the strategies,
    and nodes do not repeat it.

    For folders:
    `SimpleDirectoryReader(folder, file_extractor={".pdf": FileReader()})`.
    """

    @override
    def load_data(
        self, file: str | Path, extra_info: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """The documents, with their paths as their ids.

        Parameters:
            file: a text of any kind, a PDF (extra `pdf`), or a folder, of which the files
                are read whose names say that they are one of these. A warning in the log says how
                many files were passed over, and of which kinds.
            extra_info: further metadata.

        Raises: OSError, ValueError or ImportError that names the file.
        """
        return [_document(source, extra_info or {}) for source in read_sources(file)]


def _document(source: Source, extra_info: dict[str, Any]) -> Document:
    pages = {key: value for key, value in source.metadata.items() if key != "source"}
    return Document(
        text=source.text,
        metadata={"file_path": source.id, **extra_info, **pages},
        id_=source.id,
        excluded_embed_metadata_keys=list(pages),
        excluded_llm_metadata_keys=list(pages),
    )
