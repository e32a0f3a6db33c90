"""`rag-splitters index`: files and folders into an index on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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
from rag_splitters.reading.files import find_files, read_sources
from rag_splitters.reading.parts import OF_LINES
from rag_splitters.text.coloured import number_of

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_splitters.langchain import ParentDocumentRetriever
    from rag_splitters.span import Source


_STATES = {"added": "new", "changed": "changed", "unchanged": "unchanged"}
"""What the command says of a file, by what adding its documents did."""


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
        bool, typer.Option("--sync", help="Remove every document that is not among these files.")
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
    from rag_splitters.parent_child.index import add_and_report

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
        try:
            counts.count(add_and_report(retriever, _documents(progress.track(files), counts)))
            if not sync:  # messages of mailboxes and parts of logs that are gone
                for name in counts.divided:
                    _remove_others(retriever, counts, {"source": name})
            elif not counts.errors:
                counts.removed = _remove_others(retriever, counts, None)
        except KeyboardInterrupt:
            progress.stop()
            typer.echo(
                f"Interrupted. {folder} is sound: run the same command again to finish the job.",
                err=True,
            )
            raise typer.Exit(EXIT_CODE) from None
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
        divided: the names of the files that may consist of several documents, such as a mailbox.
        ids: the ids of all documents.
        ids_of_files: those of each file that could be read.
    """

    files: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_STATES.values(), 0))
    removed: int = 0
    errors: list[str] = field(default_factory=list)
    divided: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    ids_of_files: list[set[str]] = field(default_factory=list)

    def count(self, statuses: Mapping[str, str]) -> None:
        """Count the files by what adding their documents did."""
        for ids in self.ids_of_files:
            states = {_STATES[statuses[each]] for each in ids}
            state = states.pop() if len(states) == 1 else "changed" if states else "unchanged"
            self.files[state] += 1

    def row(self) -> dict[str, Any]:
        """Return the counts as JSON."""
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


def _documents(files: Iterable[Path], counts: _Counts) -> Iterator[Document]:
    """Yield the files as documents whose ids begin with their paths. Notes the ids on the way.

    A file of which a part cannot be read counts as unreadable, and its parts are not removed.
    """
    for path in files:
        ids = set[str]()
        try:
            for source in read_sources(path):
                document = _document(source, path)
                ids.add(str(document.id))
                counts.ids.add(str(document.id))
                yield document
        except RagSplittersError as error:
            counts.errors.append(str(error))
            continue
        counts.ids_of_files.append(ids)
        if path.suffix.lower() in (".mbox", *OF_LINES):
            counts.divided.append(document_name(path))


def _remove_others(
    retriever: ParentDocumentRetriever, counts: _Counts, scope: dict[str, str] | None
) -> int:
    """Remove the documents in the scope that are not in the files, and return their number."""
    others = [each for each in retriever.list_ids(scope=scope) if each not in counts.ids]
    return len(retriever.delete(ids=others)["succeeded"]) if others else 0


def _document(source: Source, path: Path) -> Document:
    """Make a text a document whose id begins with the path as `document_name` returns it."""
    from langchain_core.documents import Document

    name = document_name(path)
    new_id = f"{name}{str(source.id).removeprefix(path.as_posix())}"
    metadata = {**source.metadata, "source": name}
    return Document(page_content=source.text, metadata=metadata, id=new_id)


def document_name(path: Path) -> str:
    """Return the path relative to the current folder, with slashes on every system."""
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # the path is on another drive
        return path.absolute().as_posix()
