"""Opening what an index is kept in, for the factories of both frameworks."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_splitters.models import describe_model
from rag_splitters.parent_child.chroma import open_collection
from rag_splitters.parent_child.guard import Guard, own_folder
from rag_splitters.parent_child.keywords import KeywordIndex
from rag_splitters.parent_child.search import SearchType

if TYPE_CHECKING:
    from chromadb import Collection

__all__ = ["CHILD_SIZE", "PARENT_SIZE", "Place", "refuse_contradictions", "search_options"]

CHILD_SIZE, PARENT_SIZE = 400, 2000
"""The default sizes of children and parents, in characters."""


class Place:
    """A folder, or memory; what is opened in it is closed by `opened`.

    Parameters:
        path: the folder, which this process owns from now on, or None.
        opened: closes everything, the last first.

    Raises: FolderInUseError where another process has the folder.
    """

    def __init__(self, path: str | Path | None, opened: ExitStack) -> None:
        self.folder = None if path is None else Path(path)
        self.opened = opened
        self.guard = Guard()
        if self.folder is not None:
            self.guard, release = own_folder(self.folder)
            opened.callback(release)
        self.keywords = KeywordIndex(self.folder and self.folder / "keywords.sqlite")
        opened.callback(self.keywords.close)

    def collection(self, client: Any, model: Any, name: str) -> tuple[Any, Collection]:
        """The client and the collection for a model's vectors; see `open_collection`."""
        description = describe_model(model)
        client, collection, close = open_collection(self.folder, client, description, name)
        self.opened.callback(close)
        return client, collection


def refuse_contradictions(
    path: object, client: object, vector_store: object, docstore: object, name: str
) -> None:
    """Raise a ValueError for stores of which one would not be used.

    Parameters:
        path: the folder.
        client: the Chroma client.
        vector_store: the vector store.
        docstore: the docstore.
        name: what the framework calls the vector store.
    """
    has_children = vector_store is not None or client is not None
    if path is not None and has_children and docstore is not None:
        raise ValueError(f"path has nothing to keep: docstore and {name} or client were given")
    if vector_store is not None and client is not None:
        raise ValueError(f"client would not be used: the {name} is given")


def search_options(
    is_ours: bool, search_type: SearchType | None, smoothing: float | None, headings: bool | None
) -> dict[str, Any]:
    """The options as they were given, else what finds most, else what any vector store can do.

    >>> search_options(True, None, None, False)
    {'search_type': 'hybrid', 'smoothing': 0.6, 'headings': False}
    """
    return {
        "search_type": search_type or ("hybrid" if is_ours else "similarity"),
        "smoothing": (0.6 if is_ours else 0.0) if smoothing is None else smoothing,
        "headings": is_ours if headings is None else headings,
    }
