"""Opening Chroma, in memory, in a folder or on a server, with a model that matches its content."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api import ClientAPI
    from chromadb.api.collection_configuration import CreateCollectionConfiguration

__all__ = ["MODEL_KEY", "open_collection"]

MODEL_KEY = "embedding_model"
# As Chroma's defaults. Of the four nearest among 14,000 hashed vectors 97 in a hundred are found
# for a quoted line and 93 for four words. An ef_search of 150 finds one or two more, and a query
# takes a fifth longer; 24 neighbours and a construction of 150 find one or two more, and take half
# as long again.
_CONFIGURATION: CreateCollectionConfiguration = {
    "hnsw": {"space": "cosine", "ef_construction": 100, "ef_search": 100, "max_neighbors": 16}
}


def open_collection(
    folder: Path | None, client: Any, description: str, name: str
) -> tuple[ClientAPI, Collection, Callable[[], None]]:
    """A collection for the vectors of one model.

    It is in `client`, else in `folder`/chroma, else in memory. There it gets a name of its own,
    because clients in memory share theirs within a process.

    Parameters:
        folder: the index's folder, or None.
        client: a Chroma client of the user's own, or None.
        description: the embedding model's stable name.
        name: the collection's name.

    Returns: the client, the collection, and how to close what was opened here.

    Raises: ValueError for a collection that was written with another model.
    """
    given, temporary = client is not None, client is None and folder is None
    if client is None:
        client = _in_memory() if folder is None else _persistent(folder / "chroma")
    if temporary:
        name = f"{name}-{uuid.uuid4().hex}"
    where = "the server" if given else folder
    collection = _ensured(client, name, description, f"collection {name!r} in {where}")
    close = partial(_close, client, name if temporary else None)
    return client, collection, (lambda: None) if given else close


def _close(client: ClientAPI, temporary: str | None) -> None:
    if temporary is not None:
        client.delete_collection(temporary)
    close = getattr(client, "close", None)  # its interface does not declare it
    if close is not None:
        close()


def _ensured(client: ClientAPI, name: str, description: str, place: str) -> Collection:
    """The collection, created where it is not there and else checked to be of this model."""
    collection = client.get_or_create_collection(
        name,
        embedding_function=None,
        configuration=_CONFIGURATION,
        metadata={MODEL_KEY: description},
    )
    written = (client.get_collection(name, embedding_function=None).metadata or {}).get(MODEL_KEY)
    if written in (None, description):
        return collection
    if collection.count():
        raise ValueError(
            f"{place} was written with the embedding model {written} and cannot be searched with "
            f"{description}: open it with the first, or index into another one"
        )
    collection.modify(metadata={MODEL_KEY: description})
    return collection


def _persistent(path: Path) -> ClientAPI:
    import chromadb
    from chromadb.config import Settings

    path.mkdir(parents=True, exist_ok=True)
    known = str(path.resolve())  # Chroma shares clients by this name, wherever one stands
    return chromadb.PersistentClient(path=known, settings=Settings(anonymized_telemetry=False))


def _in_memory() -> ClientAPI:
    import chromadb

    # Chroma keeps one client in memory per process and refuses a second with other settings: with
    # ours, the user's own would raise. Chroma 1.5 sends no telemetry in any case.
    try:
        return chromadb.EphemeralClient()
    except ValueError:  # the user's own has other settings
        return chromadb.EphemeralClient(settings=_settings_in_use())


def _settings_in_use() -> Any:
    from chromadb.api.shared_system_client import SharedSystemClient

    return SharedSystemClient._identifier_to_system["ephemeral"].settings
