"""Children in Chroma: opening a collection that matches the embedding model, and using it."""

from __future__ import annotations

import copy
import math
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_splitters.calls import call
from rag_splitters.errors import InputError, InputTypeError, OperationError
from rag_splitters.parameters.messages import describe_value
from rag_splitters.parent_child.batching import CHILDREN_AT_ONCE, batched
from rag_splitters.parent_child.errors import StoreError, UnreachableStoreError
from rag_splitters.parent_child.keywords.metadata_index import can_evaluate, filter_keys
from rag_splitters.parent_child.records import EDITION_KEY, Entry
from rag_splitters.parent_child.stores.children import ChildStore, Detail, Match
from rag_splitters.parent_child.vectors import Draft, Vectors, select_diverse
from rag_splitters.parent_child.writing import Turn
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import chromadb
    import numpy as np
    from chromadb.api import ClientAPI
    from chromadb.api.collection_configuration import CreateCollectionConfiguration
    from numpy.typing import NDArray


MODEL_LABEL = "embedding_model"
"""The key in a collection's metadata that holds the name of its embedding model."""

# These are Chroma's defaults. Of the four nearest of 14,000 hashed vectors, they find 97 % for a
# quoted line and 93 % for four words. An ef_search of 150 finds one or two points more, and a query
# takes 20 % longer; 24 neighbours and an ef_construction of 150 find one or two points more, and
# take 50 % longer.
_CONFIGURATION: CreateCollectionConfiguration = {
    "hnsw": {"space": "cosine", "ef_construction": 100, "ef_search": 100, "max_neighbors": 16}
}
_EMBEDDED_AT_ONCE = 4000  # children: several requests to a model, which go side by side
_SAMPLE = 100
_QUERIES = 20  # while others delete what is found
_clients_lock = threading.Lock()
"""Chroma counts the clients of a folder, but not when two threads open or close one at once."""
_INCLUDED: dict[Detail, list[str]] = {
    "id": [],
    "metadata": ["metadatas"],
    "text": ["metadatas", "documents"],
}


@contextmanager
def open_collection(
    folder: Path | None, client: Any, model: str, name: str, *, renew: bool = False
) -> Iterator[tuple[ClientAPI, chromadb.Collection]]:
    """Open a client and a collection for the vectors of one model, and close them in the end.

    The collection is in `client`, which stays open, else in `folder`/chroma, else in memory. In
    memory it gets a unique name, because all clients in memory share one database per process.

    Parameters:
        folder: the index's folder, or None.
        client: the user's own Chroma client, or None.
        model: the embedding model's stable name.
        name: the collection's name.
        renew: whether a collection that was written with another model is emptied.

    Raises TypeError for anything else in place of a client, such as an asynchronous one.
    """
    from chromadb.api import ClientAPI

    if not isinstance(client, ClientAPI | None):
        raise InputTypeError(
            "client must be a synchronous client of Chroma, such as chromadb.HttpClient(), got "
            f"{describe_value(client)}"
        )
    is_temporary = folder is None and client is None
    if is_temporary:
        name = f"{name}-{uuid.uuid4().hex}"
    opened = client
    if opened is None:
        with _clients_lock:
            opened = _in_memory() if folder is None else _persistent(folder / "chroma")
    collection = _ensure_collection(opened, name, model)
    if renew and (collection.metadata or {}).get(MODEL_LABEL) not in (None, model):
        _delete_collection(opened, name)
        collection = _ensure_collection(opened, name, model)
    yield opened, collection
    if is_temporary:
        _delete_collection(opened, name)
    if client is None and hasattr(opened, "close"):  # its interface does not declare it
        with _clients_lock:
            opened.close()


def _ensure_collection(client: ClientAPI, name: str, model: str) -> chromadb.Collection:
    client.get_or_create_collection(
        name,
        embedding_function=None,
        configuration=_CONFIGURATION,
        metadata={MODEL_LABEL: model},
    )
    return client.get_collection(name, embedding_function=None)


def _delete_collection(client: ClientAPI, name: str) -> None:
    """Delete a collection, and its rows before.

    Chroma 1.5 leaves the lists in the metadata of a deleted collection behind, such as headings,
    and the rows of the next collection seem to have them.
    """
    collection = client.get_collection(name, embedding_function=None)
    for batch in batched(collection.get(include=[])["ids"], CHILDREN_AT_ONCE):
        collection.delete(ids=batch)
    client.delete_collection(name)


def _persistent(path: Path) -> ClientAPI:
    import chromadb
    from chromadb.config import Settings

    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings = Settings(anonymized_telemetry=False)
    try:
        try:
            return chromadb.PersistentClient(path=str(path), settings=settings)
        except AttributeError:  # Chroma 1.5 kept a client that failed, and has dropped it now
            return chromadb.PersistentClient(path=str(path), settings=settings)
    except Exception as error:
        raise StoreError(
            f"Chroma cannot open its files in {path} ({error}): if they are damaged, restore them "
            "from a backup; or delete that folder, open the index again, and call "
            "verify(repair=True), which embeds all documents anew"
        ) from error


def _in_memory() -> ClientAPI:
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient

    # Chroma keeps one client in memory per process and refuses a second one with other settings:
    # with ours, the user's own would raise. Chroma 1.5 sends no telemetry in any case.
    try:
        return chromadb.EphemeralClient()
    except ValueError:  # the user's own has other settings
        settings = SharedSystemClient._identifier_to_system["ephemeral"].settings
        return chromadb.EphemeralClient(settings=settings)


class ChromaChildren(ChildStore):
    """The children of one operation.

    Parameters:
        where: Chroma's own filters for queries, `where` and `where_document`.
        similarity: turns a distance into a similarity; None: by the collection's space.
    """

    merges_metadata = True
    scores_any_child = True

    def __init__(
        self,
        collection: chromadb.Collection,
        vectors: Vectors,
        where: Mapping[str, Any],
        similarity: Callable[[float], float] | None = None,
    ) -> None:
        self._collection = collection
        self.vectors: Vectors = vectors
        self._filter_by(where)
        self._similarity = similarity or similarity_of(collection)

    @property
    def is_local(self) -> bool:
        return "fastapi" not in self._collection._client.get_settings().chroma_api_impl

    @property
    def collection_name(self) -> str:
        """The name of the collection; nothing in memory, where every opening makes a new one."""
        is_persistent = self._collection._client.get_settings().is_persistent
        return self._collection.name if is_persistent or not self.is_local else ""

    async def read_labels(self) -> dict[str, Any]:
        """Return the collection's metadata, as they are now."""
        collection = self._collection
        place = {"tenant": collection.tenant, "database": collection.database}
        current = await self._call(collection._client.get_collection, name=collection.name, **place)
        return dict(current.metadata or {})

    async def write_labels(self, labels: Mapping[str, Any]) -> None:
        """Add to the collection's metadata.

        Chroma refuses to write metadata that name the distance, as those of some collections do.
        """
        metadata = await self.read_labels()
        if "hnsw:space" not in metadata and not metadata.items() >= labels.items():
            await self._call(self._collection.modify, metadata={**metadata, **labels})

    async def write(self, drafts: Sequence[Draft], turn: Turn) -> None:
        """Write in batches that Chroma takes; each child says in which turn it was written."""

        def written(draft: Draft, child: Entry) -> dict[str, Any]:
            old_keys = () if draft.old is None else draft.old.child_keys  # which Chroma would keep
            return dict.fromkeys(old_keys) | child.metadata | {EDITION_KEY: turn.number}

        new = [(child, draft) for draft in drafts for child in draft.new_children]
        for pairs in batched(new, self._written_at_once):
            await turn.confirm()
            await self._call(
                self._collection.upsert,
                ids=[child.id for child, _ in pairs],
                embeddings=_fast_rows([draft.vectors[child.id or ""] for child, draft in pairs]),
                documents=[without_surrogates(child.text) for child, _ in pairs],
                metadatas=[written(draft, child) for child, draft in pairs],
            )
        updated = [(child, draft) for draft in drafts for child in draft.updated_children]
        for pairs in batched(updated, self._written_at_once):
            await turn.confirm()
            await self._call(
                self._collection.update,
                ids=[child.id for child, _ in pairs],
                metadatas=[written(draft, child) for child, draft in pairs],
            )

    async def read_vectors(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        import numpy as np

        vectors: dict[str, NDArray[np.float32]] = {}
        for batch in batched(ids, CHILDREN_AT_ONCE):
            rows = await self._call(self._collection.get, ids=batch, include=["embeddings"])
            embeddings = np.asarray(rows["embeddings"], dtype=np.float32)
            vectors.update(zip(rows["ids"], embeddings, strict=True))
        return vectors

    async def remove(self, ids: Sequence[str], up_to: int | None = None) -> None:
        for batch in batched(ids, CHILDREN_AT_ONCE):
            if up_to is None:
                await self._call(self._collection.delete, ids=batch)
                continue
            rows = await self._call(self._collection.get, ids=batch, include=["metadatas"])
            editions = {
                name: metadata[EDITION_KEY]
                for name, metadata in zip(rows["ids"], rows["metadatas"], strict=True)
                if metadata and metadata.get(EDITION_KEY, up_to + 1) <= up_to
            }
            if editions:
                # It names them: of a filter that most children pass, Chroma lists all that do.
                where = {EDITION_KEY: {"$in": sorted(set(editions.values()))}}
                await self._call(self._collection.delete, ids=list(editions), where=where)

    async def adopt(self, turn: Turn) -> None:
        later = await self._list(where={EDITION_KEY: {"$gt": turn.number}})
        for ids in batched(later, self._written_at_once):
            await turn.confirm()
            metadatas = [{EDITION_KEY: turn.number}] * len(ids)
            await self._call(self._collection.update, ids=ids, metadatas=metadatas)

    async def read(self, ids: Sequence[str], detail: Detail = "text") -> list[Entry | None]:
        children: dict[str, Entry] = {}
        for batch in batched(ids, CHILDREN_AT_ONCE):
            rows = await self._call(self._collection.get, ids=batch, include=_INCLUDED[detail])
            children.update((child.id or "", child) for child in _entries(rows))
        return [children.get(name) for name in ids]

    async def list_allowed(self) -> list[str]:
        return await self._list(**self._where)

    def with_filter(self, conditions: Mapping[str, Any]) -> ChromaChildren:
        parts = [{key: value} for key, value in conditions.items()]
        if not all(map(can_evaluate, parts)):
            raise InputError(
                f"unknown filter {dict(conditions)!r}: write {{key: value}} or {{key: {{operator: "
                "value}}, where operator is $eq, $ne, $gt, $gte, $lt, $lte, $in or $nin"
            )
        parts += [self._where["where"]] if "where" in self._where else []
        children = copy.copy(self)
        where = parts[0] if len(parts) == 1 else {"$and": parts}
        children._filter_by({**self._where, "where": where})
        return children

    def _filter_by(self, where: Mapping[str, Any]) -> None:
        self._where = {key: value for key, value in where.items() if value}
        self.filter_keys = filter_keys(self._where.get("where"))
        self.has_filter = bool(self._where)
        is_known = self._where.keys() == {"where"} and can_evaluate(self._where["where"])
        self.where = self._where["where"] if is_known else None

    async def similarities(self, query: str, ids: Sequence[str]) -> dict[str, float]:
        """Calculate the similarities from the vectors."""
        question = await self.vectors.embed_question(query)
        vectors = await self.read_vectors(ids)
        distances = _distances(_space(self._collection), list(vectors.values()), question)
        return dict(zip(vectors, map(self._similarity, distances), strict=True))

    async def read_some(self) -> list[Entry]:
        rows = await self._call(self._collection.get, limit=_SAMPLE, include=["metadatas"])
        return _entries(rows)

    async def count(self) -> int:
        return int(await self._call(self._collection.count))

    async def list_ids(self) -> list[str]:
        return await self._list()

    async def _list(self, **where: Any) -> list[str]:
        """List the ids at once: Chroma walks to an offset, so pages would be quadratic."""
        rows = await self._call(self._collection.get, include=[], **where)
        return list(rows["ids"])

    async def find(self, query: str, n: int, detail: Detail = "text") -> list[Match]:
        """Find the nearest children, with their similarity."""
        include = [*_INCLUDED[detail], "distances"]
        return self._matches(await self._query(query, n, include, self._where))

    async def find_unfiltered(self, query: str, n: int) -> list[Match]:
        return self._matches(await self._query(query, n, ["distances"], {}))

    async def find_diverse(self, query: str, n: int, pool: int, balance: float) -> list[Match]:
        """Find the nearest children that are unlike each other."""
        import numpy as np

        include = ["metadatas", "documents", "distances", "embeddings"]
        # Twice as many, with those that tie with the last one.
        rows = await self._query(query, 2 * pool, include, self._where)
        matches, vectors = self._matches(rows), np.asarray(rows["embeddings"], dtype=np.float32)
        question = await self.vectors.embed_question(query)
        # Of equal ones the first is selected, and Chroma returns them in any order.
        order = sorted(
            range(len(matches)), key=lambda i: (-(matches[i].score or 0), matches[i].child.id)
        )[:pool]
        selection = select_diverse(question, vectors[order], n, balance)
        return [matches[order[number]] for number in selection]

    async def _query(
        self, query: str, n: int, include: list[str], where: Mapping[str, Any]
    ) -> dict[str, list[Any]]:
        vector = await self.vectors.embed_question(query)
        results = await self._query_again(
            query_embeddings=[vector], n_results=n, include=include, **where
        )
        rows = {key: list(results[key][0]) for key in ("ids", *include)}
        if len(rows["ids"]) < n:
            await self._add_missing(rows, vector, where)
        return rows

    async def _query_again(self, **kwargs: Any) -> Any:
        """Query, and repeat that if a child that was found is deleted before Chroma has read it."""
        for _ in range(_QUERIES):
            try:
                return await self._call(self._collection.query, **kwargs)
            except Exception as error:
                if "Error finding id" not in str(error):
                    raise
                reason = error
        raise StoreError(
            f"Chroma found children in the collection {self._collection.name!r} that it does not "
            f"have, {_QUERIES} times in a row: ask again; if nobody is deleting children, the "
            "collection is damaged: index the documents into another one"
        ) from reason

    async def _add_missing(
        self, rows: dict[str, list[Any]], vector: NDArray[np.float32], where: Mapping[str, Any]
    ) -> None:
        """Add the children that Chroma's graph does not lead to: now and then, some of hundreds."""
        if not where and await self._call(self._collection.count) == len(rows["ids"]):
            return
        all_ids = await self._list(**where)
        for batch in batched(sorted(set(all_ids) - set(rows["ids"])), CHILDREN_AT_ONCE):
            include = ["metadatas", "documents", "embeddings"]
            missing: Any = await self._call(self._collection.get, ids=batch, include=include)
            missing["distances"] = _distances(
                _space(self._collection), missing["embeddings"], vector
            )
            for key, values in rows.items():
                values.extend(missing[key])
        order = sorted(range(len(rows["ids"])), key=rows["distances"].__getitem__)
        rows.update({key: [values[row] for row in order] for key, values in rows.items()})

    def _matches(self, rows: Any) -> list[Match]:
        pairs = zip(_entries(rows), rows["distances"], strict=True)
        return [Match(child, self._similarity(distance)) for child, distance in pairs]

    async def _call(self, function: Callable[..., Any], **kwargs: Any) -> Any:
        try:
            return await call(function, **kwargs)
        except Exception as error:
            name = self._collection.name
            if type(error).__name__ == "NotFoundError":
                raise OperationError(
                    f"the collection {name!r} is not in Chroma any more, and was deleted while "
                    "this retriever had it open: open the retriever again, and call "
                    "verify(repair=True) to make the children anew"
                ) from error
            if "dimension" in str(error):
                raise InputError(
                    f"the embedding model does not fit the collection {name!r}: {error}. Use the "
                    "model that wrote it, or index into another collection"
                ) from error
            if not type(error).__module__.startswith(("httpx", "httpcore")):
                raise
            raise UnreachableStoreError(
                f"Chroma's server did not answer for the collection {name!r} "
                f"({str(error) or type(error).__name__}): run the same again when it does"
            ) from error

    @property
    def _written_at_once(self) -> int:
        return min(self.batch_size, CHILDREN_AT_ONCE)  # Chroma stops all threads while it writes

    @property
    def batch_size(self) -> int:
        limit = self._collection._client.get_max_batch_size()
        size = self.requested_batch_size or min(_EMBEDDED_AT_ONCE, limit)
        if size > limit:
            raise InputError(
                f"batch_size must not exceed what this Chroma takes ({limit}), got {size}"
            )
        return size


def _fast_rows(vectors: Sequence[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    """Return rows over which Chroma iterates in a quarter of the time."""
    import numpy as np

    class Row(np.ndarray):
        def __iter__(self) -> Iterator[Any]:
            return iter(self.tolist())

    return [row.view(Row) for row in vectors]


def _entries(rows: Any) -> list[Entry]:
    nothing = [None] * len(rows["ids"])
    texts, metadatas = rows.get("documents") or nothing, rows.get("metadatas") or nothing
    triples = zip(rows["ids"], texts, metadatas, strict=True)
    return [
        Entry(text or "", {k: v for k, v in (metadata or {}).items() if k != EDITION_KEY}, name)
        for name, text, metadata in triples
    ]


def similarity_of(collection: chromadb.Collection) -> Callable[[float], float]:
    """Return the function that turns a distance of this collection into a similarity."""
    if _space(collection) == "l2":
        return lambda distance: 1.0 - distance / math.sqrt(2)  # as LangChain does it
    return lambda distance: 1.0 - distance


def _space(collection: chromadb.Collection) -> str:
    configuration: Any = collection.configuration_json or {}
    index = configuration.get("hnsw") or configuration.get("spann") or {}
    return str(index.get("space", "l2"))


def _distances(space: str, vectors: Any, question: NDArray[np.float32]) -> list[float]:
    """Calculate Chroma's distances."""
    import numpy as np

    rows = np.asarray(vectors, dtype=np.float32).reshape(-1, len(question))  # there may be none
    if space == "l2":
        return [float(distance) for distance in ((rows - question) ** 2).sum(axis=1)]
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(question)
    scale = lengths if space == "cosine" else 1.0
    return [float(distance) for distance in 1.0 - rows @ question / scale]
