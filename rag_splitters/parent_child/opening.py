"""Opening an index: what the factories of both frameworks share."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from rag_splitters.contract.help_texts import with_field_descriptions
from rag_splitters.errors import FileError, InputError
from rag_splitters.parent_child.errors import (
    CLOSED,
    FolderInUseError,
    StoreError,
    explaining_full_disk,
)
from rag_splitters.parent_child.keywords.index import KeywordIndex
from rag_splitters.parent_child.options import Count, SearchType
from rag_splitters.parent_child.representations import RepresentationsField
from rag_splitters.parent_child.stores.chroma import open_collection
from rag_splitters.parent_child.stores.keyvalue import SQLiteStore
from rag_splitters.parent_child.writing import WRITE_TIMEOUT, Process, Writer, lock_file
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    from chromadb import Collection


CHILDREN: dict[str, Any] = {"chunk_size": 400, "length_function": "characters"}
PARENTS: dict[str, Any] = {"chunk_size": 2000, "length_function": "characters"}
"""The default sizes, which are the same in both frameworks."""
CLASSIC_ID_KEY = "doc_id"
"""The key under which `langchain_classic`'s retriever keeps a parent's id."""


def _check_id_key(value: str) -> str:
    if not value:
        raise InputError("id_key must not be empty")
    return value


@with_field_descriptions
class IndexOptions(BaseModel):
    """How an index is written. The retrievers of both frameworks have these options."""

    id_key: Annotated[str, AfterValidator(_check_id_key)] = "parent_id"
    """Key in a child's metadata that holds its parent's UUID."""
    smoothing: float = Field(default=0.0, ge=0.0, le=10.0)
    """Standard deviation, in children, of a Gaussian that mixes each child's vector with those of
    its neighbours in the document; the neighbours' words then also count half in keyword search. 0
    does neither. Needs Chroma."""
    headings: bool = False
    """Whether to embed and index each child with the document's title (`metadata["title"]`) and the
    headings above it. The text that is returned stays the same. Needs Chroma."""
    representations: RepresentationsField = None
    """`Representations` of parents or children, which are searched beside the children, such as
    summaries; or a chat model that summarizes each parent, or a function from a parent's text to
    texts. Pass it whenever you open the index to write."""
    batch_size: Count | None = None
    """Number of children to embed at once; None: 4,000, or fewer if the store accepts fewer. At
    most 1,000 are written at once, as Chroma stops all threads of a process while it writes."""
    model_name: str | None = None
    """Name of the embedding model, by which an index is recognised when it is opened again. None:
    the name of the model itself; a function without one, such as a lambda, needs this."""
    write_timeout: float = Field(default=WRITE_TIMEOUT, ge=0.0, allow_inf_nan=False)
    """Seconds to wait for another writer to finish, before an error names it."""


class Shared:
    """What retrievers over the same stores share, also those that are copied from one another.

    A factory opens stores with it, and in its `with` block they are closed again if anything fails.

    Parameters:
        path: the index's folder, which this process owns from now on; None for memory or servers.
            With a vector store and a docstore of your own, it holds the keyword index alone.
        collection: the name of the collection, after which its files in the folder are named.

    Raises FolderInUseError if another process has the folder.
    """

    def __init__(self, path: str | Path | None = None, collection: str = "") -> None:
        # The program may change its current directory, and two names may lead to one folder.
        self.folder = None if path is None else Path(path).resolve()
        self.writer = Writer(self.folder)
        self.searchable: set[str] = set()
        """Metadata keys that children are known to store, so that filters can name them."""
        self.is_checked = False
        """Whether the vector store was seen to hold the children that it should."""
        self._is_closed = False
        self._process: int | None = None
        """The process that opened Chroma, which hangs in one that was forked from it."""
        self._collection, self._resources = collection, ExitStack()
        if self.folder is not None:
            self._resources.callback(own_folder(self.folder))
        keywords = self.folder and self.folder / "keywords" / f"{collection}.sqlite"
        self.keywords = KeywordIndex(keywords)

    def __enter__(self) -> Shared:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._resources.callback(self.keywords.close)
        self._resources.callback(setattr, self, "_is_closed", True)
        retriever = getattr(error, "result", None)  # of a RefusedDocumentsError; it stays open
        if error is not None and getattr(retriever, "shared", None) is not self:
            self.close()

    def open_collection(
        self, client: Any, model_name: str, *, reembed: bool
    ) -> tuple[Any, Collection]:
        """Open the client and the collection for a model's vectors; see `open_collection`."""
        collection = open_collection(
            self.folder, client, model_name, self._collection, renew=reembed
        )
        self._process = os.getpid()
        with explaining_full_disk(self.folder):
            return self._resources.enter_context(collection)

    def open_docstore(self, in_memory: Callable[[], Any]) -> Any:
        """Open a docstore in the folder or, without a folder, in memory."""
        if self.folder is None:
            return in_memory()
        docstore = SQLiteStore(self.folder / "parents" / f"{self._collection}.sqlite")
        self._resources.callback(docstore.close)
        return docstore

    def check_open(self) -> None:
        """Raise a StoreError if the retriever was closed, or opened in another process."""
        if self._is_closed:
            raise StoreError(CLOSED)
        if self._process not in (None, os.getpid()):
            raise StoreError(
                "this retriever was opened in another process: open the index again in this one"
            )

    def close(self) -> None:
        """Close what the factory opened."""
        self._resources.close()


_folders_lock = threading.Lock()


def own_folder(folder: Path) -> Callable[[], object]:
    """Reserve a folder for this process, and return a function that releases it.

    A process can reserve a folder several times. The operating system releases the folder when the
    process ends, however it ends.

    Raises FolderInUseError if another process has the folder: Chroma's files are silently damaged
    when two processes write to them.
    """
    if folder.is_file():
        raise FileError(f"{folder} is a file: an index needs a folder")
    if without_surrogates(str(folder)) != str(folder):
        raise InputError(f"the path {folder} is not in UTF-8, and Chroma opens no such folder")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _folders_lock:
        try:
            lock = lock_file(folder / "lock", is_shared=True)
        except OSError as error:
            raise FileError(
                f"{folder} cannot be written ({error}), and Chroma needs that also to read: "
                "make it writable, or open a copy of it"
            ) from error
        if lock is None:
            raise FolderInUseError(_in_use_message(folder))
        process = json.dumps(asdict(Process.current()))
        (folder / "owner").write_text(process, encoding="utf-8")

    def release() -> None:
        with _folders_lock:  # else another thread may find the file locked and the lock released
            lock.release()

    return release


def _in_use_message(folder: Path) -> str:
    try:
        owner = (folder / "owner").read_text(encoding="utf-8")
        process: object = Process(**json.loads(owner))
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
