"""LlamaIndex's vector stores as parent-child retrieval asks for them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from rag_splitters.llama_index.nodes import text_of
from rag_splitters.llama_index.passages import Call
from rag_splitters.parent_child.passages import SOURCE_KEY, Passage
from rag_splitters.parent_child.smoothing import smoothed
from rag_splitters.parent_child.stores import Detail, Found, parts
from rag_splitters.parent_child.vectors import Vectors

__all__ = ["VectorStoreChildren", "chroma_collection"]

_BATCH = 1000


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

    async def read(self, ids: Sequence[str], detail: Detail = "text") -> list[Passage | None]:
        """Children by their ids, for stores that give them."""
        found: dict[str, Passage] = {}
        for part in parts(ids, self._batch):
            for node in await self._call(self._store, "get_nodes", list(part)):
                found[node.node_id] = _child(node)
        return [found.get(name) for name in ids]

    async def allowed(self, ids: Sequence[str]) -> Collection[str]:
        """All of them: there is no way that every store knows to ask which a filter refuses."""
        if self._filters is not None:
            raise ValueError(
                "search_type='hybrid' with filters needs Chroma: another vector store cannot tell "
                "which children they let through"
            )
        return ids

    async def of_parents(self, id_key: str, ids: Sequence[str]) -> list[Passage]:
        """LlamaIndex has no way that every store knows."""
        raise NotImplementedError

    async def all(self) -> AsyncIterator[Passage]:
        """LlamaIndex has no way that every store knows."""
        raise NotImplementedError
        yield  # makes this a generator

    async def find(self, query: str, n: int, detail: Detail = "text") -> list[Found]:
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
