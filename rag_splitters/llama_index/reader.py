"""Files as LlamaIndex documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document
from typing_extensions import override

from rag_splitters.reading.files import read_source


class FileReader(BaseReader):
    """Reads a file as one document: text as it is, a PDF with form feeds between its pages.

    The nodes of a PDF know their pages, whatever the strategy: the document's metadata have the
    first and the last page as `page_start` and `page_end`, and each node has its own.
    Running heads and page numbers are dropped from a PDF, and divided words are joined.

    For folders:
    `SimpleDirectoryReader(folder, file_extractor={".pdf": FileReader()})`.
    """

    @override
    def load_data(
        self, file: str | Path, extra_info: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """The document, with the path as its id.

        Parameters:
            file: a text, Markdown or HTML file in UTF-8, or a PDF (extra `pdf`).
            extra_info: further metadata.

        Raises: OSError, ValueError or ImportError that names the file.
        """
        source = read_source(file)
        pages = {key: value for key, value in source.metadata.items() if key != "source"}
        document = Document(
            text=source.text,
            metadata={"file_path": source.id, **(extra_info or {}), **pages},
            id_=source.id,
            excluded_embed_metadata_keys=list(pages),
            excluded_llm_metadata_keys=list(pages),
        )
        return [document]
