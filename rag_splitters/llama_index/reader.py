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
    """Reads a file as one document: text as it is, a PDF with form feeds between its pages.

    With a parser's `page_break="\\f"`, every node knows its pages. For folders:
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
        name = Path(file).as_posix()
        metadata = {"file_path": name, **(extra_info or {})}
        return [Document(text=read_text(file), metadata=metadata, id_=name)]
