"""Opening Chroma, in memory or in a folder, with a model that matches what is in it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_splitters.models import HashingEmbeddings, describe_embeddings, embedding_model

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.collection_configuration import CreateCollectionConfiguration
    from langchain_chroma import Chroma

__all__ = ["MODEL_KEY", "open_chroma"]

MODEL_KEY = "embedding_model"
# With Chroma's defaults (100, 100, 16) one in six of the four nearest among 20,000 hashed vectors
# was not found; with these one in sixty, for a fifth more time to write.
_CONFIGURATION: CreateCollectionConfiguration = {
    "hnsw": {"space": "cosine", "ef_construction": 150, "ef_search": 400, "max_neighbors": 24}
}


def open_chroma(
    folder: Path | None, embeddings: Any, collection_name: str
) -> tuple[Chroma, Callable[[], None]]:
    """LangChain's Chroma over `folder`/chroma or, for None, in memory, and how to close it.

    In memory the collection gets a name of its own, because clients in memory share theirs within a
    process. A folder that was written with another model raises a ValueError.
    """
    from langchain_chroma import Chroma

    model = embedding_model(HashingEmbeddings() if embeddings is None else embeddings)
    if folder is None:
        client, collection_name = _in_memory(), f"{collection_name}-{uuid.uuid4().hex}"
    else:
        client = _persistent(folder / "chroma")
    _ensure_collection(client, collection_name, describe_embeddings(model), folder)
    store = Chroma(
        client=client,
        collection_name=collection_name,
        embedding_function=model,
        create_collection_if_not_exists=False,
        relevance_score_fn=_similarity,
    )
    return store, partial(_close, client, collection_name if folder is None else None)


def _similarity(distance: float) -> float:
    return 1.0 - distance


def _close(client: ClientAPI, temporary: str | None) -> None:
    if temporary is not None:
        client.delete_collection(temporary)
    close = getattr(client, "close", None)  # its interface does not declare it
    if close is not None:
        close()


def _ensure_collection(client: ClientAPI, name: str, description: str, folder: Path | None) -> None:
    """Create the collection, or check that it was written with this model."""
    collection = client.get_or_create_collection(
        name,
        embedding_function=None,
        configuration=_CONFIGURATION,
        metadata={MODEL_KEY: description},
    )
    written = (client.get_collection(name, embedding_function=None).metadata or {}).get(MODEL_KEY)
    if written in (None, description):
        return
    if collection.count():
        raise ValueError(
            f"{folder} was written with the embedding model {written} and cannot be searched with "
            f"{description}: open it with the first, or index into another folder"
        )
    collection.modify(metadata={MODEL_KEY: description})


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
