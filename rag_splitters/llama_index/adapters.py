"""Adapters from LlamaIndex's documents, parsers and stores to parent-child retrieval."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, Document, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import BaseDocumentStore, SimpleDocumentStore
from llama_index.core.storage.kvstore.types import BaseKVStore, MutableMappingKVStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from rag_splitters.calls import Call, call
from rag_splitters.llama_index.nodes import text_of, user_id
from rag_splitters.llama_index.parsers import ChunkerNodeParser
from rag_splitters.parameters.checks import check_kind
from rag_splitters.parent_child.batching import MAX_ROWS, batched
from rag_splitters.parent_child.records import EXCLUDED_KEY, POSITION_KEYS, SOURCE_KEY, Entry
from rag_splitters.parent_child.results import (
    HEADER_KEY,
    MATCHES_KEY,
    PARENT_IDS_KEY,
    own_key,
    read_matches,
    without_matches,
)
from rag_splitters.parent_child.stores.children import ChildStore, Detail, Level, Match, Split
from rag_splitters.parent_child.stores.chroma import ChromaChildren
from rag_splitters.parent_child.stores.keyvalue import (
    KeyValueDocstore,
    KeyValueStore,
    entry_from_value,
    entry_to_value,
)
from rag_splitters.parent_child.vectors import Draft, Vectors
from rag_splitters.parent_child.writing import Docstore, Expected, Keys, Rows, Turn
from rag_splitters.text.origin import PLACES
from rag_splitters.text.sources import copy_metadata

_COLLECTION = "parent_child"
_EXCLUDED = ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys")
_WRITING_METHODS = {"add", "add_documents", "delete", "delete_document", "delete_nodes", "put"}


def call_method(target: Any, name: str, *args: Any, **kwargs: Any) -> Call[Any]:
    """Call a method of LlamaIndex; in asynchronous use, its counterpart "a" or "async_" + name.

    The defaults of LlamaIndex's interfaces block the event loop; a thread is used instead of them.
    """
    twins = [twin for twin in (f"a{name}", f"async_{name}") if _implements(target, twin)]
    return Call(
        partial(getattr(target, name), *args, **kwargs),
        partial(getattr(target, twins[0]), *args, **kwargs) if twins else None,
        is_write=name in _WRITING_METHODS,
    )


def _implements(target: Any, name: str) -> bool:
    """Whether an object's class overrides a method of LlamaIndex's interface."""
    owners = [kind for kind in type(target).__mro__ if name in vars(kind)]
    return bool(owners) and owners[0] not in (BasePydanticVectorStore, NodeParser)


# Documents and parsers


def to_entry(document: BaseNode) -> Entry:
    """Convert a document.

    It is identified by the id that the user set or, if it only has LlamaIndex's random id, by its
    text and metadata.
    """
    text, metadata = text_of(document), document.metadata
    excluded = {name: keys for name in _EXCLUDED if (keys := list(getattr(document, name)))}
    if excluded:
        metadata = {**metadata, EXCLUDED_KEY: excluded}
    return Entry(text, metadata, user_id(document))


def to_document(entry: Entry) -> Document:
    """Convert an entry to a document that shares nothing with it."""
    metadata = copy_metadata(entry.metadata)
    excluded = metadata.pop(EXCLUDED_KEY, {})
    return Document(id_=entry.id or "", text=entry.text, metadata=metadata, **excluded)


class ResultNode(TextNode):
    """A node that a retriever found.

    Its matches are in its metadata, in JSON, as "matches". They are not compared or hashed, so that
    a passage found by two questions counts as the same.
    """

    @property
    def matches(self) -> list[dict[str, Any]]:
        """Positions and scores of its children that match, best first."""
        return read_matches(self.metadata)

    @property
    def hash(self) -> str:
        """Return the hash of its text and metadata."""
        return TextNode(text=self.text, metadata=without_matches(self.metadata)).hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TextNode):
            return NotImplemented
        mine, others = ({**dict(n), "metadata": without_matches(n.metadata)} for n in (self, other))
        return mine == others


def to_node(entry: Entry, id_key: str) -> ResultNode:
    """Convert a result to a node with positions.

    Models see neither the keys that its document excludes, nor positions and what results have.
    """
    metadata = copy_metadata(entry.metadata)
    start, end = metadata.pop("start_index", None), metadata.pop("end_index", None)
    source, excluded = metadata.pop(SOURCE_KEY, None), metadata.pop(EXCLUDED_KEY, {})
    ours = [own_key(metadata, key) for key in (id_key, MATCHES_KEY, PARENT_IDS_KEY, HEADER_KEY)]
    hidden = [key for key in (*POSITION_KEYS, *PLACES, "strategy", *ours) if key in metadata]
    fields: dict[str, Any] = {
        "id_": entry.id or "",
        "text": entry.text,
        "metadata": metadata,
        "start_char_idx": start,
        "end_char_idx": end,
        **{name: list(dict.fromkeys([*excluded.get(name, ()), *hidden])) for name in _EXCLUDED},
        "relationships": _source_relationship(source) if source else {},
    }
    return ResultNode(**fields)


def _source_relationship(source: str) -> dict[NodeRelationship, Any]:
    return {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)}


def make_split(parsers: Mapping[Level, NodeParser | None]) -> Split:
    """Return a function that cuts entries with LlamaIndex's parsers, in one call.

    Only positions from our own parsers are used; other parsers search for them, and may be wrong.
    """

    async def split(level: Level, entries: list[Entry]) -> list[list[Entry]] | None:
        parser = parsers.get(level)
        if parser is None:
            return None
        numbered = [
            Document(
                id_=str(number),
                text=entry.text,
                metadata=copy_metadata(entry.metadata),
                excluded_embed_metadata_keys=list(entry.metadata),  # it needs no room
                excluded_llm_metadata_keys=list(entry.metadata),
            )
            for number, entry in enumerate(entries)
        ]
        chunks: list[list[Entry]] = [[] for _ in entries]
        is_exact = isinstance(parser, ChunkerNodeParser)
        for node in await _parse(parser, numbered):
            chunks[int(node.ref_doc_id or "")].append(_to_chunk(node, is_exact))
        return chunks

    return split


def _parse(parser: NodeParser, documents: list[Document]) -> Call[list[BaseNode]]:
    twin = None
    if _implements(parser, "_aparse_nodes") or _implements(parser, "aget_nodes_from_documents"):
        twin = partial(parser.aget_nodes_from_documents, documents)
    return Call(partial(parser.get_nodes_from_documents, documents), twin)


def _to_chunk(node: BaseNode, is_exact: bool) -> Entry:
    metadata = dict(node.metadata)
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    if is_exact and start is not None and end is not None:
        metadata |= {"start_index": start, "end_index": end}
    text = text_of(node)
    is_shown_to_llm = "context" not in node.excluded_llm_metadata_keys
    if is_exact and not is_shown_to_llm and "context" not in node.excluded_embed_metadata_keys:
        text = f"{metadata['context']}\n\n{text}"  # where our LangChain splitters put it
    return Entry(text, metadata)


# Docstores


def make_docstore(store: KeyValueStore | BaseKVStore | BaseDocumentStore) -> Docstore:
    """Return a docstore over a store of any kind."""
    if isinstance(store, KeyValueStore):
        return KeyValueDocstore(store)
    if isinstance(store, BaseKVStore):
        return _KVDocstore(store)
    check_kind(store, BaseDocumentStore, "docstore")
    return _NodeDocstore(store)


class _KVDocstore(Docstore):
    """A docstore in a collection of a `BaseKVStore`."""

    def __init__(self, store: BaseKVStore) -> None:
        self._store = store
        self.is_in_memory = isinstance(store, MutableMappingKVStore)
        self.is_json = not self.is_in_memory

    async def read(self, keys: Sequence[str]) -> list[Entry | None]:
        values = [
            await self.make(call_method(self._store, "get", key, _COLLECTION)) for key in keys
        ]
        return [None if value is None else entry_from_value(value) for value in values]

    async def write(self, rows: Rows, removed: Keys = (), expected: Expected = None) -> bool:
        """Write rows one by one, because not every store accepts several."""
        for key, entry in rows:
            await self.make(
                call_method(self._store, "put", key, entry_to_value(entry), _COLLECTION)
            )
        for key in removed:
            await self.make(call_method(self._store, "delete", key, _COLLECTION))
        return True

    async def list_keys(self, prefix: str) -> list[str]:
        """List the keys that begin with a prefix; the store can only return all rows."""
        rows = await self.make(call_method(self._store, "get_all", _COLLECTION))
        return [key for key in rows if key.startswith(prefix)]


class _NodeDocstore(Docstore):
    """A docstore over a `BaseDocumentStore`; entries are stored as nodes."""

    def __init__(self, store: BaseDocumentStore) -> None:
        self._store = store
        self.is_in_memory = isinstance(store, SimpleDocumentStore)

    async def read(self, keys: Sequence[str]) -> list[Entry | None]:
        entries: list[Entry | None] = []
        for key in keys:
            node = await self.make(call_method(self._store, "get_document", key, raise_error=False))
            if node is None:
                entries.append(None)
                continue
            row = node.metadata
            is_ours = row.keys() == {"metadata", "id"}
            metadata, row_id = (row["metadata"], row["id"]) if is_ours else (row, key)
            entries.append(Entry(text_of(node), dict(metadata), row_id))
        return entries

    async def write(self, rows: Rows, removed: Keys = (), expected: Expected = None) -> bool:
        for batch in batched(rows, MAX_ROWS):
            nodes = [_row_node(key, entry) for key, entry in batch]
            await self.make(call_method(self._store, "add_documents", nodes, allow_update=True))
        for key in removed:
            await self.make(call_method(self._store, "delete_document", key, raise_error=False))
        return True

    async def list_keys(self, prefix: str) -> list[str]:
        """List the keys that begin with a prefix; the store can only return all documents."""
        return await call(lambda: [key for key in self._store.docs if key.startswith(prefix)])


def _row_node(key: str, entry: Entry) -> TextNode:
    row = {"metadata": copy_metadata(entry.metadata), "id": entry.id}
    return TextNode(id_=key, text=entry.text, metadata=row)


# Vector stores


def make_child_store(
    vector_store: BasePydanticVectorStore, vectors: Vectors, filters: MetadataFilters | None
) -> ChildStore:
    """Return a store of children over a vector store; Chroma is used directly."""
    collection = chroma_collection(vector_store)
    if collection is None:
        return VectorStoreChildren(vector_store, vectors, filters)
    return ChromaChildren(collection, vectors, {"where": _chroma_filter(filters)})


class VectorStoreChildren(ChildStore):
    """A store of children over any LlamaIndex vector store that keeps texts."""

    def __init__(
        self,
        vector_store: BasePydanticVectorStore,
        vectors: Vectors,
        filters: MetadataFilters | None,
    ) -> None:
        self._store = vector_store
        self.vectors: Vectors = vectors
        self._filters = filters
        self.has_filter = filters is not None
        self.filter_keys = frozenset(_filter_keys(filters))

    async def write(self, drafts: Sequence[Draft], turn: Turn) -> None:
        """Write children; old ones are removed first, as not every store replaces them."""
        rows = [
            (child, each.vectors[child.id or ""]) for each in drafts for child in each.new_children
        ]
        for batch in batched(rows, self.batch_size):
            await turn.confirm()
            nodes = [
                TextNode(
                    id_=child.id or "",
                    text=child.text,
                    metadata=child.metadata,
                    embedding=vector.tolist(),
                    relationships=_source_relationship(child.metadata[SOURCE_KEY]),
                )
                for child, vector in batch
            ]
            await call_method(self._store, "delete_nodes", [node.id_ for node in nodes])
            await call_method(self._store, "add", nodes)

    async def remove(self, ids: Sequence[str], up_to: int | None = None) -> None:
        for batch in batched(ids, self.batch_size):
            await call_method(self._store, "delete_nodes", list(batch))

    async def read(self, ids: Sequence[str], detail: Detail = "text") -> list[Entry | None]:
        children: dict[str, Entry] = {}
        for batch in batched(ids, self.batch_size):
            for node in await call_method(self._store, "get_nodes", list(batch)):
                children[node.node_id] = _to_child(node)
        return [children.get(name) for name in ids]

    async def find(self, query: str, n: int, detail: Detail = "text") -> list[Match]:
        """Find the nearest children, with the store's similarity."""
        return await self._query(query, n, VectorStoreQueryMode.DEFAULT)

    async def find_diverse(self, query: str, n: int, pool: int, balance: float) -> list[Match]:
        """Find children by the store's own maximal marginal relevance.

        Some stores read the balance from the query, and most from LlamaIndex's keywords.
        """
        keywords = {"mmr_threshold": balance, "mmr_prefetch_k": pool}
        return await self._query(query, n, VectorStoreQueryMode.MMR, **keywords)

    async def _query(
        self, query: str, n: int, mode: VectorStoreQueryMode, **keywords: float
    ) -> list[Match]:
        vector = await self.vectors.embed_question(query)
        store_query = VectorStoreQuery(
            query_embedding=vector.tolist(),
            query_str=query,
            similarity_top_k=n,
            filters=self._filters,
            mode=mode,
            mmr_threshold=keywords.get("mmr_threshold"),
        )
        result = await call_method(self._store, "query", store_query, **keywords)
        nodes = result.nodes or []
        scores = result.similarities or [None] * len(nodes)
        pairs = zip(nodes, scores, strict=True)
        return [Match(_to_child(node), score) for node, score in pairs]


def chroma_collection(vector_store: BasePydanticVectorStore) -> Any:
    """Return the collection of a `ChromaVectorStore`; None for anything else."""
    chromadb = sys.modules.get("chromadb")
    if chromadb is None or not isinstance(vector_store.client, chromadb.Collection):
        return None
    return vector_store.client


def _chroma_filter(filters: MetadataFilters | None) -> dict[str, Any] | None:
    if filters is None or not filters.filters:
        return None
    from llama_index.vector_stores.chroma.base import _to_chroma_filter

    return _to_chroma_filter(filters)


def _filter_keys(filters: MetadataFilters | None) -> Iterator[str]:
    for each in filters.filters if filters is not None else ():
        if isinstance(each, MetadataFilters):
            yield from _filter_keys(each)
        else:
            yield each.key


def _to_child(node: BaseNode) -> Entry:
    return Entry(text_of(node), dict(node.metadata), node.node_id)
