"""Files as LlamaIndex documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document
from typing_extensions import override

from rag_splitters.reading.files import read_text

__all__ = ["FileReader"]


class FileReader(BaseReader):
    """Reads a file as one document: text as it stands, a PDF with a form feed between its pages.

    Give the parser `page_break="\\f"`, and every node knows its pages. For folders:
    `SimpleDirectoryReader(folder, file_extractor={".pdf": FileReader()})`.
    """

    @override
    def load_data(
        self, file: str | Path, extra_info: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """The one document, with the path as its id.

        Parameters:
            file: a text, Markdown or HTML file in UTF-8, or a PDF (extra `pdf`).
            extra_info: further metadata.

        Raises: OSError, ValueError or ImportError that name the file.
        """
        name = Path(file).as_posix()
        metadata = {"file_path": name, **(extra_info or {})}
        return [Document(text=read_text(file), metadata=metadata, id_=name)]
