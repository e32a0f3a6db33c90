"""Opening an index: what the factories of both frameworks share."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_splitters.models import describe_model
from rag_splitters.parent_child.chroma import open_collection
from rag_splitters.parent_child.guard import Guard, own_folder
from rag_splitters.parent_child.keyword_index import KeywordIndex
from rag_splitters.parent_child.search import SearchType

if TYPE_CHECKING:
    from chromadb import Collection

__all__ = ["CHILD_SIZE", "PARENT_SIZE", "Place", "refuse_contradictions", "search_options"]

CHILD_SIZE, PARENT_SIZE = 400, 2000
"""The default sizes of children and parents, in characters."""


class Place:
    """A folder or memory, and what is opened in it.

    Parameters:
        path: the folder, which this process owns from now on; None for memory.
        resources: closes everything, the last first.

    Raises FolderInUseError if another process has the folder.
    """

    def __init__(self, path: str | Path | None, resources: ExitStack) -> None:
        self.folder = None if path is None else Path(path)
        self.resources = resources
        self.guard = Guard()
        if self.folder is not None:
            self.guard, release = own_folder(self.folder)
            resources.callback(release)
        self.keywords = KeywordIndex(self.folder and self.folder / "keywords.sqlite")
        resources.callback(self.keywords.close)

    def open_collection(self, client: Any, model: Any, name: str) -> tuple[Any, Collection]:
        """Open the client and the collection for a model's vectors; see `open_collection`."""
        model_name = describe_model(model)
        client, collection, close = open_collection(self.folder, client, model_name, name)
        self.resources.callback(close)
        return client, collection


def refuse_contradictions(
    path: object, client: object, vector_store: object, docstore: object, name: str
) -> None:
    """Raise a ValueError if one of these stores would not be used.

    Parameters:
        path: the folder.
        client: the Chroma client.
        vector_store: the vector store.
        docstore: the docstore.
        name: what the framework calls the vector store.
    """
    has_children = vector_store is not None or client is not None
    if path is not None and has_children and docstore is not None:
        raise ValueError(
            f"path would not be used: docstore and {name} or client hold everything already"
        )
    if vector_store is not None and client is not None:
        raise ValueError(f"client would not be used: pass either client or {name}")


def search_options(
    is_ours: bool, search_type: SearchType | None, smoothing: float | None, headings: bool | None
) -> dict[str, Any]:
    """Fill in the options that are None.

    Parameters:
        is_ours: whether the index is our own Chroma, which can do what retrieves best; other vector
            stores get what every one of them can do.
        search_type: as the user passed it, like the other options.
        smoothing: see the retrievers.
        headings: see the retrievers.

    >>> search_options(True, None, None, False)
    {'search_type': 'hybrid', 'smoothing': 0.6, 'headings': False}
    """
    return {
        "search_type": search_type or ("hybrid" if is_ours else "similarity"),
        "smoothing": (0.6 if is_ours else 0.0) if smoothing is None else smoothing,
        "headings": is_ours if headings is None else headings,
    }
