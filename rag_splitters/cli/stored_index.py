"""The index on disk that the commands `index` and `query` share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_splitters.models import Embedder

if TYPE_CHECKING:
    from rag_splitters.langchain import ParentDocumentRetriever


def is_index(folder: Path) -> bool:
    """Whether the folder holds an index."""
    return (folder / "parents.sqlite").is_file() and (folder / "chroma").is_dir()


@contextmanager
def open_index(
    folder: Path, embeddings: Embedder | None, **options: Any
) -> Iterator[ParentDocumentRetriever]:
    """The retriever over a folder, closed afterwards.

    Parameters:
        embeddings: the model; None for the built-in one.
        options: further options of `parent_document_retriever`.

    Raises: ValueError if the index is damaged or in use.
    """
    from chromadb.errors import ChromaError

    from rag_splitters.langchain import parent_document_retriever
    from rag_splitters.parent_child.guard import FolderInUseError
    from rag_splitters.parent_child.keyvalue import StoreError

    try:
        opened = parent_document_retriever(path=folder, embeddings=embeddings, **options)
        with closing(opened) as retriever:
            yield retriever
    except FolderInUseError as error:
        raise ValueError(str(error)) from error
    except (ChromaError, StoreError, sqlite3.Error) as error:
        raise ValueError(f"the index in {folder} cannot be used: {error}") from error
