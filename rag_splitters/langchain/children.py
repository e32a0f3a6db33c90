"""LangChain's vector stores as parent-child retrieval asks for them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from rag_splitters.langchain.passages import Call, to_passage
from rag_splitters.parent_child.chroma_children import ChromaChildren
from rag_splitters.parent_child.passages import Passage, storable_text
from rag_splitters.parent_child.stores import Children, Detail, Found, parts
from rag_splitters.parent_child.vectors import Vectors

__all__ = ["VectorStoreChildren", "children_in", "chroma_collection"]

_BATCH = 1000


class VectorStoreChildren:
    """Children in any LangChain vector store; see `rag_splitters.parent_child.stores.Children`."""

    merges_metadata = False
    smoothing = 0.0

    def __init__(
        self,
        vectorstore: VectorStore,
        call: Call,
        *,
        batch_size: int | None = None,
        search_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self._vectorstore = vectorstore
        self._call = call
        self._batch = batch_size or _BATCH
        self._search_kwargs = dict(search_kwargs or {})
        self._relevance = _relevance(vectorstore)

    async def index(self, documents: Sequence[Sequence[Passage]]) -> None:
        """Embed children and write them."""
        for part in parts([child for children in documents for child in children], self._batch):
            made = [
                Document(page_content=storable_text(p.text), metadata=p.metadata, id=p.id)
                for p in part
            ]
            ids = [child.id for child in part]
            await self._call(self._vectorstore, "add_documents", made, ids=ids)

    async def forget(self, ids: Sequence[str]) -> None:
        """Remove children from the vector store."""
        for part in parts(ids, self._batch):
            if await self._call(self._vectorstore, "delete", list(part)) is False:
                raise RuntimeError(f"the vector store did not delete {len(part)} children")

    async def read(self, ids: Sequence[str], detail: Detail = "text") -> list[Passage | None]:
        """Children by their ids, for stores that give them."""
        found: dict[str | None, Passage] = {}
        for part in parts(ids, self._batch):
            for document in await self._call(self._vectorstore, "get_by_ids", list(part)):
                found[document.id] = to_passage(document)
        return [found.get(name) for name in ids]

    async def allowed(self, ids: Sequence[str]) -> Collection[str]:
        """All of them: there is no way that every store knows to ask which a filter refuses."""
        if self._search_kwargs:
            raise ValueError(
                "search_type='hybrid' with a filter needs Chroma: another vector store cannot "
                f"tell which children {sorted(self._search_kwargs)} lets through"
            )
        return ids

    async def of_parents(self, id_key: str, ids: Sequence[str]) -> list[Passage]:
        """LangChain has no way to ask."""
        raise NotImplementedError

    async def all(self) -> AsyncIterator[Passage]:
        """LangChain has no way to list a vector store."""
        raise NotImplementedError
        yield  # makes this a generator

    async def find(self, query: str, n: int, detail: Detail = "text") -> list[Found]:
        """The nearest children; scores are made similarities where the store says how."""
        told = {**self._search_kwargs, "k": n}
        text = storable_text(query)
        try:
            found = await self._call(
                self._vectorstore, "similarity_search_with_score", text, **told
            )
        except NotImplementedError:
            plain = await self._call(self._vectorstore, "similarity_search", text, **told)
            return [Found(to_passage(document), None) for document in plain]
        relevance = self._relevance
        return [
            Found(to_passage(d), s if s is None or relevance is None else relevance(s))
            for d, s in found
        ]

    async def find_diverse(self, query: str, n: int, pool: int, balance: float) -> list[Found]:
        """The store's own maximal marginal relevance, which tells no scores."""
        told = {**self._search_kwargs, "k": n, "fetch_k": pool, "lambda_mult": balance}
        text = storable_text(query)
        found = await self._call(self._vectorstore, "max_marginal_relevance_search", text, **told)
        return [Found(to_passage(document), None) for document in found]


def children_in(
    vectorstore: VectorStore,
    call: Call,
    *,
    batch_size: int | None,
    smoothing: float,
    filters: Mapping[str, Any],
    asynchronous: bool,
) -> Children:
    """The children in a vector store: Chroma is written to directly, with vectors of our own."""
    collection = chroma_collection(vectorstore)
    if collection is None:
        return VectorStoreChildren(vectorstore, call, batch_size=batch_size, search_kwargs=filters)
    told = dict(filters)
    where = {"where": told.pop("filter", None), "where_document": told.pop("where_document", None)}
    if told:
        raise ValueError(
            f"search_kwargs {sorted(told)} are unknown: use filter, where_document, "
            "score_threshold, fetch_k or lambda_mult"
        )
    return ChromaChildren(
        collection,
        Vectors(vectorstore.embeddings, asynchronous=asynchronous),
        batch_size=batch_size,
        smoothing=smoothing,
        where=where,
        similarity=_relevance(vectorstore),
        asynchronous=asynchronous,
    )


def chroma_collection(vectorstore: VectorStore) -> Any:
    """The collection of a Chroma that has an embedding model; None for anything else."""
    chromadb = sys.modules.get("chromadb")
    if chromadb is None or vectorstore.embeddings is None:
        return None
    collection = getattr(vectorstore, "_collection", None)
    return collection if isinstance(collection, chromadb.Collection) else None


def _relevance(vectorstore: VectorStore) -> Callable[[float], float] | None:
    """The store's own way from its raw score to a similarity, if it has one."""
    try:
        return vectorstore._select_relevance_score_fn()
    except (NotImplementedError, ValueError):
        return None
