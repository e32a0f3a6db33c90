"""An index on disk, as the command line writes and searches it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rag_splitters.models import Embedder
from rag_splitters.reading.files import SUFFIXES, read_text

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_splitters.langchain import ParentDocumentRetriever

__all__ = ["Added", "add_files", "search", "text_files"]


@dataclass
class Added:
    """What became of the files."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    failed: list[str] = field(default_factory=list)

    def summary(self, folder: Path) -> str:
        """The figures in one line."""
        total = self.new + self.changed + self.unchanged
        return (
            f"{folder}: {total} file{'' if total == 1 else 's'} ({self.new} new, "
            f"{self.changed} changed, {self.unchanged} unchanged)"
        )

    def failures(self) -> str:
        """What could not be read, in one line."""
        more = f"; and {len(self.failed) - 3} more" if len(self.failed) > 3 else ""
        return f"not indexed: {'; '.join(self.failed[:3])}{more}"


def text_files(folder: Path, paths: Sequence[Path]) -> list[Path]:
    """The files to read: those that are named, and those below a folder that look like text.

    Hidden files and folders are passed over, and so is the index itself. Raises a ValueError or an
    OSError where a path does not exist, or where a folder holds nothing to read.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        below = list(_walk(path, folder)) if path.is_dir() else [path]
        if not below:
            raise ValueError(f"{path} holds no files to read ({' '.join(sorted(SUFFIXES))})")
        for file in below:
            found.setdefault(_identity(file), file)
    return list(found.values())


def add_files(
    folder: Path,
    files: Sequence[Path],
    console: Console,
    *,
    embeddings: Embedder | None,
    sizes: tuple[int, int],
) -> Added:
    """Add files to the index in `folder`, with a progress bar; what cannot be read is told.

    Parameters:
        folder: the index's own folder.
        files: the files.
        console: where the bar is shown.
        embeddings: the model; None for the built-in one.
        sizes: the most characters of a child and of a parent.
    """
    from rag_splitters.langchain import RecursiveTextSplitter

    if sizes[0] > sizes[1]:
        raise ValueError(
            f"--child-size must not be above --parent-size ({sizes[1]}), got {sizes[0]}"
        )
    child, parent = (RecursiveTextSplitter(chunk_size=size) for size in sizes)
    if folder.is_dir() and not _is_index(folder):
        if any(not path.name.startswith(".") for path in folder.iterdir()):
            raise ValueError(f"{folder} holds other files and no index: name a new folder")
    elif folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file: name a folder for the index")
    added = Added()
    columns = (TextColumn("Indexing"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    opened = _opened(folder, embeddings, child_splitter=child, parent_splitter=parent)
    with opened as retriever, bar as progress:
        retriever.add_documents(_documents(progress.track(files), retriever, added))
    return added


def search(
    folder: Path, question: str, k: int, *, children: bool, embeddings: Embedder | None
) -> list[Document]:
    """The k best results for a question; nothing is created where there is no index."""
    if not question.strip():
        raise ValueError("the question is blank")
    if not _is_index(folder):
        raise FileNotFoundError(
            f"{folder} holds no index: make one with rag-splitters index {folder} FILE..."
        )
    with _opened(folder, embeddings, retrieve="children" if children else "parents") as retriever:
        return retriever.invoke(question, k=k)


def _documents(
    files: Iterable[Path], retriever: ParentDocumentRetriever, added: Added
) -> Iterator[Document]:
    """The files as documents that are known by their paths; counts what becomes of them."""
    from langchain_core.documents import Document

    for path in files:
        try:
            text = read_text(path)
        except (ValueError, ImportError, OSError) as error:
            added.failed.append(str(error))
            continue
        identity = _identity(path)
        known = retriever.get([identity])
        if not known:
            added.new += 1
        elif known[0].page_content == text:
            added.unchanged += 1
        else:
            added.changed += 1
        yield Document(page_content=text, metadata={"source": identity}, id=identity)


@contextmanager
def _opened(
    folder: Path, embeddings: Embedder | None, **options: Any
) -> Iterator[ParentDocumentRetriever]:
    """The retriever over a folder; one that is damaged or in use is a ValueError."""
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


def _is_index(folder: Path) -> bool:
    return (folder / "parents.sqlite").is_file() and (folder / "chroma").is_dir()


def _identity(path: Path) -> str:
    """The path relative to the current folder, with slashes on every system."""
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # on another drive
        return path.absolute().as_posix()


def _walk(path: Path, index: Path) -> Iterator[Path]:
    """The files below a folder that look like text, in order."""
    for name, folders, files in os.walk(path):
        here = Path(name)
        visible = sorted(folder for folder in folders if not folder.startswith("."))
        folders[:] = [each for each in visible if not _is_same(here / each, index)]
        for file in sorted(files):
            if not file.startswith(".") and Path(file).suffix.lower() in SUFFIXES:
                yield here / file


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)
