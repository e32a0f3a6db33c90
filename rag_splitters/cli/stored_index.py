"""The index on disk that several commands share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, PositiveInt

from rag_splitters.cli.options import models_from_options
from rag_splitters.errors import FileError, InputError, MissingFileError
from rag_splitters.models import Embedder
from rag_splitters.parameters.messages import plain_errors
from rag_splitters.parent_child.errors import FolderInUseError, StoreError

if TYPE_CHECKING:
    from langchain_text_splitters import TextSplitter

    from rag_splitters.langchain import ParentDocumentRetriever

SETTINGS = "settings.json"


class IndexSettings(BaseModel):
    """How the documents of an index are cut. The index remembers it, so that a later version with
    other defaults does not cut all of them again.

    The strategy is that of children; "recursive" for an index that was not made by the command
    line. Parents are cut by the kind of their document. The sizes are the maximum characters of a
    child and of a parent.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    strategy: Literal["auto", "recursive"] = "auto"
    child_size: PositiveInt = 400
    parent_size: PositiveInt = 2000

    @classmethod
    def of(cls, folder: Path, sizes: Mapping[str, int | None]) -> IndexSettings:
        """Return the settings of a folder's index, or of a new one, with sizes that are not None.

        Raises ValueError if the file of settings is damaged, or if the sizes are inconsistent.
        """
        settings = cls(strategy="recursive" if is_index(folder) else "auto")
        if (file := folder / SETTINGS).is_file():
            try:
                with plain_errors(cls):
                    settings = cls.model_validate_json(file.read_text(encoding="utf-8"))
            except OSError as error:
                raise FileError(f"{file} cannot be read: {error.strerror or error}") from error
            except ValueError as error:
                raise InputError(f"{file} is damaged: {error}") from error
        changes = {name: size for name, size in sizes.items() if size is not None}
        settings = settings.model_copy(update=changes)
        if settings.child_size > settings.parent_size:
            raise InputError(
                f"--child-size must not be above --parent-size ({settings.parent_size}), "
                f"got {settings.child_size}"
            )
        return settings

    def write(self, folder: Path) -> None:
        """Write the settings, if the folder does not have them already."""
        file, text = folder / SETTINGS, self.model_dump_json() + "\n"
        try:
            if not file.is_file() or file.read_text(encoding="utf-8") != text:
                folder.mkdir(parents=True, exist_ok=True)
                draft = file.with_suffix(".draft")
                draft.write_text(text, encoding="utf-8")
                draft.replace(file)
        except OSError as error:
            raise FileError(f"{folder} cannot be written: {error.strerror or error}") from error

    def splitters(self) -> dict[str, TextSplitter]:
        """Return the splitters of the retriever, by the names of its options."""
        from rag_splitters import langchain

        kinds = {"auto": langchain.AutoTextSplitter, "recursive": langchain.RecursiveTextSplitter}
        return {
            "child_splitter": kinds[self.strategy](chunk_size=self.child_size),
            "parent_splitter": langchain.AutoTextSplitter(chunk_size=self.parent_size),
        }


def is_index(folder: Path) -> bool:
    """Whether the folder holds an index."""
    return (folder / "parents").is_dir() and (folder / "chroma").is_dir()


def existing_index(
    folder: Path, embeddings: str | None, base_url: str | None, **options: Any
) -> AbstractContextManager[ParentDocumentRetriever]:
    """Open the index of a folder with the model that the command's options name.

    Raises FileNotFoundError if the folder holds no index, and what `open_index` raises.
    """
    model = models_from_options(embeddings, None, base_url).get("embeddings")
    if not is_index(folder):
        raise MissingFileError(
            f"{folder} holds no index: make one with rag-splitters index {folder} FILE..."
        )
    return open_index(folder, model, **options)


@contextmanager
def open_index(
    folder: Path, embeddings: Embedder | None, **options: Any
) -> Iterator[ParentDocumentRetriever]:
    """Open the retriever over a folder, closed afterwards.

    Parameters:
        embeddings: the model; None for the built-in one.
        options: further options of `parent_document_retriever`.

    Raises: ValueError if the index is damaged or in use.
    """
    from chromadb.errors import ChromaError

    from rag_splitters.langchain import parent_document_retriever

    try:
        opened = parent_document_retriever(path=folder, embeddings=embeddings, **options)
        with closing(opened) as retriever:
            yield retriever
    except FolderInUseError as error:
        raise InputError(str(error)) from error
    except (ChromaError, StoreError, sqlite3.Error) as error:
        raise InputError(f"the index in {folder} cannot be used: {error}") from error
