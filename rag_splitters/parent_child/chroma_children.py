"""Children in a Chroma collection, for either framework."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_splitters.parent_child.passages import Passage, storable_text
from rag_splitters.parent_child.smoothing import smoothed
from rag_splitters.parent_child.stores import Detail, Found, parts, threaded
from rag_splitters.parent_child.vectors import Vectors, most_diverse

if TYPE_CHECKING:
    import chromadb
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ChromaChildren", "similarity_of"]

_WRITE_BATCH = 4000  # Chroma writes its index anew at each call
_INCLUDED: dict[Detail, list[str]] = {
    "id": [],
    "metadata": ["metadatas"],
    "text": ["metadatas", "documents"],
}
_BATCH = 1000  # also well under what SQLite, on which Chroma is built, takes in one statement


class ChromaChildren:
    """The children of one operation; see `rag_splitters.parent_child.stores.Children`.

    Parameters:
        collection: the collection.
        vectors: the model that embeds.
        batch_size: how many are embedded and written at once; None: 4,000, or less for Chroma.
        smoothing: the width by which neighbours' vectors are mixed, in children.
        where: Chroma's own filters for queries, `where` and `where_document`.
        similarity: makes a similarity of a distance; None: by the collection's space.
        asynchronous: is the operation?
    """

    merges_metadata = True  # its upsert does

    def __init__(
        self,
        collection: chromadb.Collection,
        vectors: Vectors,
        *,
        batch_size: int | None = None,
        smoothing: float = 0.0,
        where: Mapping[str, Any] | None = None,
        similarity: Callable[[float], float] | None = None,
        asynchronous: bool = False,
    ) -> None:
        self._collection = collection
        self._vectors = vectors
        self._batch_size = batch_size
        self._where = {key: value for key, value in (where or {}).items() if value}
        self._similarity = similarity or similarity_of(collection)
        self._threaded = threaded(asynchronous)
        self.smoothing = smoothing

    async def index(self, documents: Sequence[Sequence[Passage]]) -> None:
        """Embed and write, in batches that Chroma takes."""
        batches = smoothed(documents, self._vectors, self._batch(_WRITE_BATCH), self.smoothing)
        async for children, vectors in batches:
            await self._call(
                self._collection.upsert,
                ids=[child.id for child in children],
                embeddings=_quick(vectors),
                documents=[storable_text(child.text) for child in children],
                metadatas=[child.metadata for child in children],
            )

    async def forget(self, ids: Sequence[str]) -> None:
        """Remove children."""
        for part in parts(ids, self._batch()):
            await self._call(self._collection.delete, ids=list(part))

    async def read(self, ids: Sequence[str], detail: Detail = "text") -> list[Passage | None]:
        """Children by their ids."""
        include = _INCLUDED[detail]
        found: dict[str, Passage] = {}
        for part in parts(ids, self._batch()):
            rows = await self._call(self._collection.get, ids=list(part), include=include)
            found.update((passage.id or "", passage) for passage in _passages(rows))
        return [found.get(name) for name in ids]

    async def allowed(self, ids: Sequence[str]) -> Collection[str]:
        """Those that the filters let through; without filters, all, and Chroma is not asked."""
        if not self._where:
            return ids
        found: set[str] = set()
        for part in parts(ids, self._batch()):
            rows = await self._call(self._collection.get, ids=list(part), include=[], **self._where)
            found.update(rows["ids"])
        return found

    async def of_parents(self, id_key: str, ids: Sequence[str]) -> list[Passage]:
        """The children of some parents, without their text."""
        found: list[Passage] = []
        for part in parts(ids, self._batch()):
            where = {id_key: {"$in": list(part)}}
            rows = await self._call(self._collection.get, where=where, include=["metadatas"])
            found += _passages(rows)
        return found

    async def all(self) -> AsyncIterator[Passage]:
        """Every child, without its text."""
        start = 0
        while True:
            rows = await self._call(
                self._collection.get, include=["metadatas"], limit=_BATCH, offset=start
            )
            for passage in _passages(rows):
                yield passage
            if len(rows["ids"]) < _BATCH:
                return
            start += _BATCH

    async def find(self, query: str, n: int, detail: Detail = "text") -> list[Found]:
        """The nearest children, with their similarity."""
        return self._found(await self._nearest(query, n, [*_INCLUDED[detail], "distances"]))

    async def find_diverse(self, query: str, n: int, pool: int, balance: float) -> list[Found]:
        """The nearest children that are unlike each other."""
        import numpy as np

        include = ["metadatas", "documents", "distances", "embeddings"]
        rows = await self._nearest(query, 2 * pool, include)  # with those equal to the pool's last
        found, vectors = self._found(rows), np.asarray(rows["embeddings"], dtype=np.float32)
        question = await self._vectors.of_question(query)
        # Of equals the first is chosen, and Chroma gives them in any order.
        order = sorted(range(len(found)), key=lambda i: (-(found[i].score or 0), found[i].child.id))
        order = order[:pool]
        chosen = most_diverse(question, vectors[order], n, balance)
        return [found[order[number]] for number in chosen]

    async def _nearest(self, query: str, n: int, include: list[str]) -> dict[str, list[Any]]:
        vector = await self._vectors.of_question(query)
        rows = await self._call(
            self._collection.query,
            query_embeddings=[vector],
            n_results=n,
            include=include,
            **self._where,
        )
        found = {key: list(rows[key][0]) for key in ("ids", *include)}
        if len(found["ids"]) < n:
            await self._add_missed(found, vector)
        return found

    async def _add_missed(self, found: dict[str, list[Any]], vector: NDArray[np.float32]) -> None:
        """Add the children that Chroma's graph does not lead to: some of hundreds, now and then."""
        if not self._where and await self._call(self._collection.count) == len(found["ids"]):
            return
        there = await self._call(self._collection.get, include=[], **self._where)
        for part in parts(sorted(set(there["ids"]) - set(found["ids"])), self._batch()):
            include = ["metadatas", "documents", "embeddings"]
            rows: Any = await self._call(self._collection.get, ids=list(part), include=include)
            rows["distances"] = _distances(_space(self._collection), rows["embeddings"], vector)
            for key, values in found.items():
                values.extend(rows[key])
        order = sorted(range(len(found["ids"])), key=found["distances"].__getitem__)
        found.update({key: [values[row] for row in order] for key, values in found.items()})

    def _found(self, rows: Any) -> list[Found]:
        pairs = zip(_passages(rows), rows["distances"], strict=True)
        return [Found(passage, self._similarity(distance)) for passage, distance in pairs]

    async def _call(self, function: Callable[..., Any], **asked: Any) -> Any:
        try:
            return await self._threaded(function, **asked)
        except Exception as error:
            if not type(error).__module__.startswith(("httpx", "httpcore")):
                raise
            raise ConnectionError(
                f"Chroma's server did not answer for the collection {self._collection.name!r} "
                f"({str(error) or type(error).__name__}): run the same again when it does"
            ) from error

    def _batch(self, most: int = _BATCH) -> int:
        limit = self._collection._client.get_max_batch_size()
        if self._batch_size is not None and self._batch_size > limit:
            raise ValueError(
                f"batch_size must not exceed what this Chroma takes ({limit}), "
                f"got {self._batch_size}"
            )
        return self._batch_size or min(most, limit)


def _quick(vectors: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """The rows, made so that Chroma, which takes number for number, has them in a quarter of the
    time."""
    import numpy as np

    class Row(np.ndarray):
        def __iter__(self) -> Iterator[Any]:
            return iter(self.tolist())

    return [row.view(Row) for row in vectors]


def _passages(rows: Any) -> list[Passage]:
    nothing = [None] * len(rows["ids"])
    texts, metadatas = rows.get("documents") or nothing, rows.get("metadatas") or nothing
    triples = zip(rows["ids"], texts, metadatas, strict=True)
    return [Passage(text or "", dict(metadata or {}), name) for name, text, metadata in triples]


def similarity_of(collection: chromadb.Collection) -> Callable[[float], float]:
    """How a distance of this collection is made a similarity, as LangChain does it."""
    if _space(collection) == "l2":
        return lambda distance: 1.0 - distance / math.sqrt(2)
    return lambda distance: 1.0 - distance


def _space(collection: chromadb.Collection) -> str:
    configuration: Any = collection.configuration_json or {}
    index = configuration.get("hnsw") or configuration.get("spann") or {}
    return str(index.get("space", "l2"))


def _distances(space: str, vectors: Any, question: NDArray[np.float32]) -> list[float]:
    """Chroma's distances."""
    import numpy as np

    rows = np.asarray(vectors, dtype=np.float32)
    if space == "l2":
        return [float(distance) for distance in ((rows - question) ** 2).sum(axis=1)]
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(question)
    scale = lengths if space == "cosine" else 1.0
    return [float(distance) for distance in 1.0 - rows @ question / scale]
