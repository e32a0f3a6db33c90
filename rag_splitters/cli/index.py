"""`rag-splitters index`: files and folders into an index on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_splitters.cli.options import (
    BaseUrlOption,
    EmbeddingsOption,
    JsonOption,
    models_from_options,
)
from rag_splitters.cli.stored_index import SETTINGS, IndexSettings, is_index, open_index
from rag_splitters.cli.views import note_left_out, progress_bar, write_line
from rag_splitters.errors import FileError, InputError, RagSplittersError
from rag_splitters.interrupts import EXIT_CODE
from rag_splitters.reading.files import find_files, read_file
from rag_splitters.reading.parts import OF_LINES, is_huge, read_parts
from rag_splitters.text.coloured import number_of

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_splitters.langchain import ParentDocumentRetriever
    from rag_splitters.span import Source


_STATES = ("new", "changed", "unchanged")


def index(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Folder of the index.")],
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.")],
    embeddings: EmbeddingsOption = None,
    base_url: BaseUrlOption = None,
    child_size: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Maximum characters of a child, which is searched (400)."
        ),
    ] = None,
    parent_size: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Maximum characters of a parent, which is returned (2000)."
        ),
    ] = None,
    sync: Annotated[
        bool,
        typer.Option("--sync", help="Remove every document that is not among these files."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Add files and folders to an index on disk; changed files are replaced.

    With --sync, the index holds exactly these files afterwards. If one of them cannot be read, the
    others are indexed, and nothing is removed. `rag-splitters delete` removes single files. A file
    is identified by its path relative to the current folder, and cut by the strategy for its kind.
    Without --embeddings, the built-in embeddings are used, which match words, not meaning. An index
    always uses the model that it was created with, and remembers its strategy and its sizes. A log,
    a table or JSON lines of more than 50 MB are indexed in parts of a million characters, so that
    only the last part changes if text is added at the end.
    """
    model = models_from_options(embeddings, None, base_url).get("embeddings")
    files, others = find_files(paths, skip=folder)
    _check_folder(folder)
    sizes = {"child_size": child_size, "parent_size": parent_size}
    settings = IndexSettings.of(folder, sizes)
    if not is_index(folder):
        settings.write(folder)
    counts = _Counts()
    with (
        open_index(folder, model, **settings.splitters()) as retriever,
        progress_bar("Indexing") as progress,
    ):
        settings.write(folder)
        documents: Iterable[Document] = _documents(progress.track(files), retriever, counts)
        try:
            if sync:
                documents = list(documents)  # all are read before anything is removed
            if sync and not counts.errors:
                parts = chain.from_iterable(_parts(path, retriever, counts) for path in counts.huge)
                counts.removed = len(retriever.sync(chain(documents, parts)).deleted)
            else:
                retriever.add_documents(documents)
                for path in counts.huge:
                    scope = {"source": document_name(path)}
                    retriever.sync(_parts(path, retriever, counts), scope=scope)
        except KeyboardInterrupt:
            progress.stop()
            typer.echo(
                f"Interrupted. {folder} is sound: run the same command again to finish the job.",
                err=True,
            )
            raise typer.Exit(EXIT_CODE) from None
        for name, pieces in counts.divided.items():  # removes those that were deleted
            retriever.sync(pieces, scope={"source": name})
    if json:
        write_line({"index": str(folder), **counts.row()})
    else:
        typer.echo(f"{folder}: {counts}")
    note_left_out(others)
    if counts.errors:
        problem = "not indexed"
        if sync:
            problem = "nothing was removed, because these files cannot be read"
        more = f"; and {len(counts.errors) - 3} more" if len(counts.errors) > 3 else ""
        raise InputError(f"{problem}: {'; '.join(counts.errors[:3])}{more}")


@dataclass
class _Counts:
    """How many files are new, changed and unchanged, and what went wrong with the others.

    Parameters:
        divided: the documents of each file that may have several, such as a mailbox.
        huge: the files to read in parts.
    """

    files: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_STATES, 0))
    removed: int = 0
    errors: list[str] = field(default_factory=list)
    divided: dict[str, list[Document]] = field(default_factory=dict)
    huge: list[Path] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """The counts as JSON."""
        return {**self.files, "removed": self.removed, "errors": self.errors}

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {state}" for state, count in self.files.items())
        removed = f", {number_of(self.removed, 'document')} removed" if self.removed else ""
        return f"{number_of(sum(self.files.values()), 'file')} ({counts}){removed}"


def _check_folder(folder: Path) -> None:
    """Refuse a folder that holds something other than an index."""
    if folder.is_dir() and not is_index(folder):
        names = {path.name for path in folder.iterdir()} - {SETTINGS}
        if any(not name.startswith(".") for name in names):
            raise InputError(f"{folder} holds other files and no index: name a new folder")
    elif folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file: name a folder for the index")


def _documents(
    files: Iterable[Path],
    retriever: ParentDocumentRetriever,
    counts: _Counts,
) -> Iterator[Document]:
    """The files as documents whose ids begin with their paths. Counts the files on the way.

    Huge files are listed in the counts, to be read in parts.
    """
    for path in files:
        if path.is_file() and is_huge(path):
            counts.huge.append(path)
            continue
        try:
            sources = read_file(path)
        except RagSplittersError as error:
            counts.errors.append(str(error))
            continue
        documents = [_document(each, path) for each in sources]
        counts.files[_state(documents, retriever)] += 1
        if path.suffix.lower() in (".mbox", *OF_LINES):
            counts.divided[document_name(path)] = documents
        yield from documents


def _parts(path: Path, retriever: ParentDocumentRetriever, counts: _Counts) -> Iterator[Document]:
    """The parts of a huge file as documents. Counts the file at its end."""
    states = set()
    for source in read_parts(path):
        document = _document(source, path)
        states.add(_state([document], retriever))
        yield document
    counts.files[states.pop() if len(states) == 1 else "changed"] += 1


def _document(source: Source, path: Path) -> Document:
    """A text as a document whose id and source begin with the path as `document_name` gives it."""
    from langchain_core.documents import Document

    name = document_name(path)
    new_id = f"{name}{str(source.id).removeprefix(path.as_posix())}"
    metadata = {**source.metadata, "source": name}
    return Document(page_content=source.text, metadata=metadata, id=new_id)


def _state(documents: Sequence[Document], retriever: ParentDocumentRetriever) -> str:
    """Whether documents of a file are new, changed or unchanged."""
    texts = {str(each.id): each.page_content for each in documents}
    before = {str(each.id): each.page_content for each in retriever.get(list(texts))}
    return "unchanged" if before == texts else "changed" if before else "new"


def document_name(path: Path) -> str:
    """The path relative to the current folder, with slashes on every system."""
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # the path is on another drive
        return path.absolute().as_posix()
