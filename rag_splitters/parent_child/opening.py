"""Opening an index: what the factories of both frameworks share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rag_splitters.errors import InputError
from rag_splitters.models import describe_model
from rag_splitters.parent_child.chroma import open_collection
from rag_splitters.parent_child.disk import explaining_full_disk
from rag_splitters.parent_child.guard import Guard, own_folder
from rag_splitters.parent_child.index import ParentChildIndex, Shared
from rag_splitters.parent_child.keyword_index import KeywordIndex
from rag_splitters.parent_child.options import SearchType
from rag_splitters.parent_child.stores import ClassicParents

if TYPE_CHECKING:
    from chromadb import Collection


R = TypeVar("R", bound=ParentChildIndex[Any, Any])

CHILDREN: dict[str, Any] = {"chunk_size": 400, "length_function": "characters"}
PARENTS: dict[str, Any] = {"chunk_size": 2000, "length_function": "characters"}
"""The default sizes, which are the same in both frameworks."""
CLASSIC_ID_KEY = "doc_id"
"""The key under which `langchain_classic`'s retriever keeps a parent's id."""


class Place:
    """A folder, memory or a server, and what a factory opens there.

    In a `with` block, everything is closed again unless `hand_over` has given it to a retriever.

    Parameters:
        path: the folder, which this process owns from now on; None for memory. With a vector store
            and a docstore of your own, it holds the keyword index alone.
        name: what the framework calls a vector store.

    Raises ValueError if one of these would not be used, and FolderInUseError if another process has
    the folder.
    """

    def __init__(
        self, path: str | Path | None, client: Any, vector_store: Any, docstore: Any, name: str
    ) -> None:
        has_children = vector_store is not None or client is not None
        if vector_store is not None and client is not None:
            raise InputError(f"client would not be used: pass either client or {name}")
        self._resources, self._client = ExitStack(), client
        self._is_ours = path is not None and not has_children and docstore is None
        # A folder is this process's own, and so is memory.
        self._is_exclusive = not has_children and docstore is None
        self._folder = None if path is None else Path(path)
        self._guard = Guard()
        if self._folder is not None:
            self._guard, release = own_folder(self._folder)
            self._resources.callback(release)
        self._keywords = KeywordIndex(self._folder and self._folder / "keywords.sqlite")
        self._resources.callback(self._keywords.close)

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *error: object) -> None:
        self._resources.close()

    def open_collection(self, model: Any, name: str) -> tuple[Any, Collection]:
        """Open the client and the collection for a model's vectors; see `open_collection`."""
        model_name = describe_model(model)
        with explaining_full_disk(self._folder):
            client, collection, close = open_collection(
                self._folder, self._client, model_name, name
            )
        self._resources.callback(close)
        return client, collection

    def open_docstore(self, in_folder: Callable[[Path], Any], in_memory: Callable[[], Any]) -> Any:
        """Open a docstore in the folder or, without a folder, in memory."""
        if self._folder is None:
            return in_memory()
        docstore = in_folder(self._folder / "parents.sqlite")
        self._resources.callback(docstore.close)
        return docstore

    def hand_over(self, retriever: R, documents: Iterable[Any] | None) -> R:
        """Give a retriever all that was opened, and add documents to it."""
        classic = None if self._is_ours else ClassicParents()
        retriever.shared = Shared(self._guard, self._keywords, classic, self._is_exclusive)
        if documents is not None:
            retriever.add_documents(documents)
        resources = retriever.shared.resources = self._resources.pop_all()
        resources.callback(setattr, retriever.shared, "is_closed", True)
        return retriever


def search_options(
    is_ours: bool, search_type: SearchType | None, smoothing: float | None, headings: bool | None
) -> dict[str, Any]:
    """Fill in the options that are None.

    Parameters:
        is_ours: whether the index is our own Chroma, which can do what retrieves best; other vector
            stores get what every one of them can do.

    >>> search_options(True, None, None, False)
    {'search_type': 'hybrid', 'smoothing': 0.6, 'headings': False}
    """
    return {
        "search_type": search_type or ("hybrid" if is_ours else "similarity"),
        "smoothing": (0.6 if is_ours else 0.0) if smoothing is None else smoothing,
        "headings": is_ours if headings is None else headings,
    }
