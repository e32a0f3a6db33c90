"""LlamaIndex's parsers, vector stores and docstores as parent-child retrieval asks for them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import (
    BaseNode,
    Document,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.storage.kvstore.types import BaseKVStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from rag_splitters.llama_index import ChunkerNodeParser
from rag_splitters.nodes import text_of
from rag_splitters.parent_child.keyvalue import KeyValueStore
from rag_splitters.parent_child.passages import POSITION_KEYS, SOURCE_KEY, Passage, copied
from rag_splitters.parent_child.smoothing import smoothed
from rag_splitters.parent_child.stores import Found, Level, Split, parts
from rag_splitters.parent_child.vectors import Vectors

__all__ = [
    "DocumentStoreRows",
    "KVStoreRows",
    "KeyValueRows",
    "VectorStoreChildren",
    "caller",
    "chroma_collection",
    "named_passages",
    "splitting",
    "to_document",
    "to_node",
]

_BATCH = 1000
_COLLECTION = "parent_child"
_ROW_ID = "_row_id"

Call = Callable[..., Awaitable[Any]]


def caller(asynchronous: bool) -> Call:
    """Calls a method or, for an asynchronous operation, its twin named with "a" or "async_"."""

    async def call(target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if asynchronous:
            twin = getattr(target, f"a{name}", None) or getattr(target, f"async_{name}")
            return await twin(*args, **kwargs)
        return getattr(target, name)(*args, **kwargs)

    return call


def splitting(parsers: Mapping[Level, NodeParser | None], call: Call) -> Split:
    """Cuts passages with LlamaIndex's parsers; a model that one asks is asked for all at once.

    Positions are those of our own parsers; the others' are found by a search, and guesses.
    """

    async def split(level: Level, passages: list[Passage]) -> list[list[Passage]] | None:
        parser = parsers.get(level)
        if parser is None:
            return None
        numbered = [
            Document(id_=str(number), text=p.text, metadata=copied(p.metadata))
            for number, p in enumerate(passages)
        ]
        chunks: list[list[Passage]] = [[] for _ in passages]
        is_exact = isinstance(parser, ChunkerNodeParser)
        for node in await call(parser, "get_nodes_from_documents", numbered):
            chunks[int(node.ref_doc_id)].append(_chunk(node, is_exact))
        return chunks

    return split


def _chunk(node: BaseNode, is_exact: bool) -> Passage:
    metadata = dict(node.metadata)
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    if is_exact and start is not None and end is not None:
        metadata |= {"start_index": start, "end_index": end}
    return Passage(text_of(node), metadata)


class KeyValueRows:
    """Rows of one of our own stores, which the LangChain side writes and reads as well."""

    def __init__(self, store: KeyValueStore, call: Call, asynchronous: bool) -> None:
        self._store = store
        self._call = call
        self._asynchronous = asynchronous

    async def read(self, keys: Sequence[str]) -> list[Passage | None]:
        """Rows of the store."""
        values = await self._call(self._store, "mget", list(keys))
        return [None if value is None else _from_value(value) for value in values]

    async def write(self, rows: Sequence[tuple[str, Passage]]) -> None:
        """Write rows."""
        for part in parts(rows, _BATCH):
            await self._call(self._store, "mset", [(key, _to_value(p)) for key, p in part])

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove rows."""
        for part in parts(keys, _BATCH):
            await self._call(self._store, "mdelete", list(part))

    async def keys(self, prefix: str) -> AsyncIterator[str]:
        """The keys that begin so."""
        if self._asynchronous:
            async for key in self._store.ayield_keys(prefix):
                yield key
        else:
            for key in self._store.yield_keys(prefix):
                yield key


class KVStoreRows:
    """Rows of a LlamaIndex key-value store, in a collection of their own."""

    def __init__(self, store: BaseKVStore, call: Call) -> None:
        self._store = store
        self._call = call

    async def read(self, keys: Sequence[str]) -> list[Passage | None]:
        """Rows of the store."""
        values = [await self._call(self._store, "get", key, _COLLECTION) for key in keys]
        return [None if value is None else _from_value(value) for value in values]

    async def write(self, rows: Sequence[tuple[str, Passage]]) -> None:
        """Write rows, one by one: not every store takes several."""
        for key, passage in rows:
            await self._call(self._store, "put", key, _to_value(passage), _COLLECTION)

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove rows."""
        for key in keys:
            await self._call(self._store, "delete", key, _COLLECTION)

    async def keys(self, prefix: str) -> AsyncIterator[str]:
        """The keys that begin so; the store can only give all rows."""
        for key in await self._call(self._store, "get_all", _COLLECTION):
            if key.startswith(prefix):
                yield key


class DocumentStoreRows:
    """Rows of a LlamaIndex docstore, as nodes."""

    def __init__(self, store: BaseDocumentStore, call: Call) -> None:
        self._store = store
        self._call = call

    async def read(self, keys: Sequence[str]) -> list[Passage | None]:
        """Rows of the docstore."""
        found: list[Passage | None] = []
        for key in keys:
            node = await self._call(self._store, "get_document", key, raise_error=False)
            if node is None:
                found.append(None)
                continue
            metadata = dict(node.metadata)
            found.append(Passage(text_of(node), metadata, metadata.pop(_ROW_ID, key)))
        return found

    async def write(self, rows: Sequence[tuple[str, Passage]]) -> None:
        """Write rows."""
        nodes = [
            TextNode(
                id_=key,
                text=passage.text,
                metadata=copied(passage.metadata)
                | ({} if passage.id == key else {_ROW_ID: passage.id}),
            )
            for key, passage in rows
        ]
        for part in parts(nodes, _BATCH):
            await self._call(self._store, "add_documents", list(part), allow_update=True)

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove rows."""
        for key in keys:
            await self._call(self._store, "delete_document", key, raise_error=False)

    async def keys(self, prefix: str) -> AsyncIterator[str]:
        """The keys that begin so; the docstore can only give all documents."""
        for key in self._store.docs:
            if key.startswith(prefix):
                yield key


class VectorStoreChildren:
    """Children in any LlamaIndex vector store that keeps texts; see `Children`."""

    merges_metadata = False

    def __init__(
        self,
        vector_store: BasePydanticVectorStore,
        vectors: Vectors,
        call: Call,
        *,
        batch_size: int | None,
        smoothing: float,
        filters: MetadataFilters | None,
    ) -> None:
        self._store = vector_store
        self._vectors = vectors
        self._call = call
        self._batch = batch_size or _BATCH
        self._filters = filters
        self.smoothing = smoothing

    async def index(self, documents: Sequence[Sequence[Passage]]) -> None:
        """Embed and write; what has the same id is removed first, as not every store replaces."""
        batches = smoothed(documents, self._vectors, self._batch, self.smoothing)
        async for children, vectors in batches:
            nodes = [
                _node(child, vector.tolist())
                for child, vector in zip(children, vectors, strict=True)
            ]
            await self._call(self._store, "delete_nodes", [node.id_ for node in nodes])
            await self._call(self._store, "add", nodes)

    async def forget(self, ids: Sequence[str]) -> None:
        """Remove children."""
        for part in parts(ids, self._batch):
            await self._call(self._store, "delete_nodes", list(part))

    async def read(self, ids: Sequence[str], *, filtered: bool) -> list[Passage | None]:
        """Children by their ids, for stores that give them."""
        if filtered and self._filters is not None:
            raise ValueError(
                "search_type='hybrid' with filters needs Chroma: another vector store cannot tell "
                "which children they let through"
            )
        found: dict[str, Passage] = {}
        for part in parts(ids, self._batch):
            for node in await self._call(self._store, "get_nodes", list(part)):
                found[node.node_id] = _child(node)
        return [found.get(name) for name in ids]

    async def of_parents(self, id_key: str, ids: Sequence[str]) -> list[Passage]:
        """LlamaIndex has no way that every store knows."""
        raise NotImplementedError

    async def all(self) -> AsyncIterator[Passage]:
        """LlamaIndex has no way that every store knows."""
        raise NotImplementedError
        yield  # makes this a generator

    async def find(self, query: str, n: int) -> list[Found]:
        """The nearest children, with the store's similarity."""
        return await self._asked(query, n, VectorStoreQueryMode.DEFAULT)

    async def find_diverse(self, query: str, n: int, pool: int, balance: float) -> list[Found]:
        """The store's own maximal marginal relevance."""
        return await self._asked(query, n, VectorStoreQueryMode.MMR, balance)

    async def _asked(
        self, query: str, n: int, mode: VectorStoreQueryMode, balance: float | None = None
    ) -> list[Found]:
        vector = await self._vectors.of_question(query)
        asked = VectorStoreQuery(
            query_embedding=vector.tolist(),
            query_str=query,
            similarity_top_k=n,
            filters=self._filters,
            mode=mode,
            mmr_threshold=balance,
        )
        result = await self._call(self._store, "query", asked)
        nodes = result.nodes or []
        scores = result.similarities or [None] * len(nodes)
        pairs = zip(nodes, scores, strict=True)
        return [Found(_child(node), score) for node, score in pairs]


def chroma_collection(vector_store: BasePydanticVectorStore) -> Any:
    """The collection of a `ChromaVectorStore`; None for anything else."""
    chromadb = sys.modules.get("chromadb")
    client = None if chromadb is None else vector_store.client
    return client if chromadb is not None and isinstance(client, chromadb.Collection) else None


def named_passages(documents: Iterable[BaseNode], ids: Sequence[str] | None) -> Iterable[Passage]:
    """Documents of LlamaIndex as passages.

    Their names are the ids, if there are any; else the id that a document was given. The random one
    that it has without is none: the document is known by its text and metadata.
    """
    if ids is None:
        return map(_named, documents)
    documents = list(documents)
    if len(ids) != len(documents):
        raise ValueError(f"ids must be one for each of {len(documents)} documents, got {len(ids)}")
    pairs = zip(documents, ids, strict=True)
    return [Passage(text_of(document), document.metadata, i) for document, i in pairs]


def _named(document: BaseNode) -> Passage:
    given = document.node_id if "id_" in document.model_fields_set else None
    return Passage(text_of(document), document.metadata, given)


def to_document(passage: Passage) -> Document:
    """A passage as a document of LlamaIndex that shares nothing with it."""
    return Document(id_=passage.id or "", text=passage.text, metadata=copied(passage.metadata))


def to_node(passage: Passage) -> TextNode:
    """A result as a node: its positions are the node's own, and what we added is for no model."""
    metadata = copied(passage.metadata)
    start, end = metadata.pop("start_index", None), metadata.pop("end_index", None)
    source = metadata.pop(SOURCE_KEY, None)
    metadata.pop("score", None)
    added = [key for key in (*POSITION_KEYS, "matches") if key in metadata]
    tied = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)} if source else {}
    return TextNode(
        id_=passage.id or "",
        text=passage.text,
        metadata=metadata,
        start_char_idx=start,
        end_char_idx=end,
        excluded_embed_metadata_keys=added,
        excluded_llm_metadata_keys=added,
        relationships=tied,
    )


def _node(child: Passage, vector: list[float]) -> TextNode:
    source = RelatedNodeInfo(node_id=child.metadata[SOURCE_KEY])
    return TextNode(
        id_=child.id or "",
        text=child.text,
        metadata=child.metadata,
        embedding=vector,
        relationships={NodeRelationship.SOURCE: source},
    )


def _child(node: BaseNode) -> Passage:
    return Passage(text_of(node), dict(node.metadata), node.node_id)


def _to_value(passage: Passage) -> dict[str, Any]:
    return {"text": passage.text, "metadata": passage.metadata, "id": passage.id}


def _from_value(value: Mapping[str, Any]) -> Passage:
    return Passage(value["text"], dict(value["metadata"]), value["id"])
