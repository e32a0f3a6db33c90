"""Opening an index: what the factories of both frameworks share."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rag_splitters.errors import FileError, InputError
from rag_splitters.parent_child.chroma import open_collection
from rag_splitters.parent_child.errors import (
    FolderInUseError,
    RefusedDocumentsError,
    explaining_full_disk,
)
from rag_splitters.parent_child.index import ParentChildIndex, Shared
from rag_splitters.parent_child.keyword_index import KeywordIndex
from rag_splitters.parent_child.options import SearchType
from rag_splitters.parent_child.writing import Process, lock_file

if TYPE_CHECKING:
    from chromadb import Collection


R = TypeVar("R", bound=ParentChildIndex[Any, Any])

CHILDREN: dict[str, Any] = {"chunk_size": 400, "length_function": "characters"}
PARENTS: dict[str, Any] = {"chunk_size": 2000, "length_function": "characters"}
"""The default sizes, which are the same in both frameworks."""
CLASSIC_ID_KEY = "doc_id"
"""The key under which `langchain_classic`'s retriever keeps a parent's id."""


class StoreLocation:
    """A folder, memory or a server, and what a factory opens there.

    In a `with` block, everything is closed again unless `hand_over` has given it to a retriever.

    Parameters:
        path: the folder, which this process owns from now on; None for memory. With a vector store
            and a docstore of your own, it holds the keyword index alone.
        collection: the name of the collection, after which its files in the folder are named.
        name: what the framework calls a vector store.
        reembed: whether to embed all documents anew, if they were embedded with another model.

    Raises ValueError if one of these would not be used, and FolderInUseError if another process has
    the folder.
    """

    def __init__(
        self,
        path: str | Path | None,
        collection: str,
        client: Any,
        vector_store: Any,
        name: str,
        *,
        reembed: bool,
    ) -> None:
        if vector_store is not None and client is not None:
            raise InputError(f"client would not be used: pass either client or {name}")
        self._resources, self._client, self._collection = ExitStack(), client, collection
        self._reembed = reembed
        self._folder = None if path is None else Path(path)
        if self._folder is not None:
            self._resources.callback(own_folder(self._folder))
        keywords = self._folder and self._folder / "keywords" / f"{collection}.sqlite"
        self._keywords = KeywordIndex(keywords)
        self._resources.callback(self._keywords.close)

    def __enter__(self) -> StoreLocation:
        return self

    def __exit__(self, *error: object) -> None:
        self._resources.close()

    def open_collection(self, model_name: str) -> tuple[Any, Collection]:
        """Open the client and the collection for a model's vectors; see `open_collection`."""
        collection = open_collection(
            self._folder, self._client, model_name, self._collection, renew=self._reembed
        )
        with explaining_full_disk(self._folder):
            return self._resources.enter_context(collection)

    def open_docstore(self, in_folder: Callable[[Path], Any], in_memory: Callable[[], Any]) -> Any:
        """Open a docstore in the folder or, without a folder, in memory."""
        if self._folder is None:
            return in_memory()
        docstore = in_folder(self._folder / "parents" / f"{self._collection}.sqlite")
        self._resources.callback(docstore.close)
        return docstore

    def hand_over(self, retriever: R, documents: Iterable[Any] | None) -> R:
        """Give a retriever all that was opened, and add documents to it.

        Raises IndexMismatchError if the stores belong to another index, or were written with
        another model, and RefusedDocumentsError, whose `result` is the retriever, for documents
        that cannot be stored.
        """
        retriever.shared = Shared(self._folder, keywords=self._keywords)
        retriever.open(reembed=self._reembed)
        refusal: RefusedDocumentsError | None = None
        if documents is not None:
            try:
                retriever.add_documents(documents)
            except RefusedDocumentsError as error:
                refusal = error
        resources = retriever.shared.resources = self._resources.pop_all()
        resources.callback(setattr, retriever.shared, "is_closed", True)
        if refusal is not None:
            raise RefusedDocumentsError(refusal.refusals, retriever)
        return retriever


_folders_lock = threading.Lock()


def own_folder(folder: Path) -> Callable[[], object]:
    """Reserve a folder for this process, and return a function that releases it.

    A process can reserve a folder several times. The operating system releases the folder when the
    process ends, however it ends.

    Raises FolderInUseError if another process has the folder: Chroma's files are silently damaged
    when two processes write to them.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder.resolve()
    with _folders_lock:
        try:
            lock = lock_file(path / "lock", is_shared=True)
        except OSError as error:
            raise FileError(
                f"{folder} cannot be written ({error}), and Chroma needs that also to read: "
                "make it writable, or open a copy of it"
            ) from error
        if lock is None:
            raise FolderInUseError(_in_use_message(folder, path / "owner"))
        process = json.dumps(asdict(Process.current()))
        (path / "owner").write_text(process, encoding="utf-8")
    return lock.release


def _in_use_message(folder: Path, owner: Path) -> str:
    try:
        process: object = Process(**json.loads(owner.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        process = "another process"
    if isinstance(process, Process) and process.has_ended():
        return (
            f"{folder} was open in {process}, which has ended without removing its lock, as "
            "happens on file systems that have no locks: if nobody else has the folder open, "
            f"delete {folder / 'lock'}"
        )
    return (
        f"{folder} is open in {process}, and one process at a time may have a Chroma folder open. "
        f"Close it there; or, for several processes, run `chroma run --path {folder / 'chroma'}` "
        "and pass client=chromadb.HttpClient() and a docstore that they share, such as "
        "PostgreSQL's or Redis's"
    )


def search_options(
    is_ours: bool, search_type: SearchType | None, smoothing: float | None, headings: bool | None
) -> dict[str, Any]:
    """Fill in the options that are None: with what retrieves best if the index is our own Chroma.

    Other vector stores get what every one of them can do.
    """
    return {
        "search_type": search_type or ("hybrid" if is_ours else "similarity"),
        "smoothing": (0.6 if is_ours else 0.0) if smoothing is None else smoothing,
        "headings": is_ours if headings is None else headings,
    }
