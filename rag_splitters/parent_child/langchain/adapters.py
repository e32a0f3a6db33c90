"""LangChain's splitters, vector stores and docstores as parent-child retrieval asks for them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any

from langchain_core.documents import Document
from langchain_core.load import dumps, loads
from langchain_core.runnables import run_in_executor
from langchain_core.stores import BaseStore, ByteStore
from langchain_core.vectorstores import VectorStore
from langchain_text_splitters import TextSplitter

from rag_splitters.parent_child.chroma_children import ChromaChildren
from rag_splitters.parent_child.passages import Passage, copied, storable_text
from rag_splitters.parent_child.stores import Children, Found, Level, Split, parts
from rag_splitters.parent_child.vectors import Vectors

__all__ = [
    "ByteDocuments",
    "DocumentRows",
    "VectorStoreChildren",
    "caller",
    "children_in",
    "chroma_collection",
    "named_passages",
    "splitting",
    "to_document",
    "to_passage",
]

_BATCH = 1000
_MARK = "_rag_splitters_passage"

Call = Callable[..., Awaitable[Any]]


def caller(asynchronous: bool) -> Call:
    """Calls a method of LangChain's or, for an asynchronous operation, its twin named with an a."""

    async def call(target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if not asynchronous:
            return getattr(target, name)(*args, **kwargs)
        method = getattr(target, f"a{name}", None)
        if method is None or not inspect.iscoroutinefunction(method):
            return await run_in_executor(None, getattr(target, name), *args, **kwargs)
        return await method(*args, **kwargs)

    return call


def splitting(splitters: Mapping[Level, TextSplitter | None], call: Call) -> Split:
    """Cuts passages with LangChain's splitters; a model that one asks is asked for all at once."""

    async def split(level: Level, passages: list[Passage]) -> list[list[Passage]] | None:
        splitter = splitters.get(level)
        if splitter is None:
            return None
        marked = [
            Document(page_content=p.text, metadata={**copied(p.metadata), _MARK: number})
            for number, p in enumerate(passages)
        ]
        chunks: list[list[Passage]] = [[] for _ in passages]
        for document in await call(splitter, "transform_documents", marked):
            metadata = dict(document.metadata)
            chunks[metadata.pop(_MARK)].append(Passage(document.page_content, metadata))
        return chunks

    return split


class DocumentRows:
    """Rows of a LangChain docstore; see `rag_splitters.parent_child.stores.Rows`."""

    def __init__(self, docstore: BaseStore[str, Document], call: Call, asynchronous: bool) -> None:
        self._docstore = docstore
        self._call = call
        self._asynchronous = asynchronous

    async def read(self, keys: Sequence[str]) -> list[Passage | None]:
        """Rows of the docstore."""
        found: list[Passage | None] = []
        for part in parts(keys, _BATCH):
            documents = await self._call(self._docstore, "mget", list(part))
            found += [None if each is None else to_passage(each) for each in documents]
        return found

    async def write(self, rows: Sequence[tuple[str, Passage]]) -> None:
        """Write rows of the docstore."""
        for part in parts(rows, _BATCH):
            await self._call(self._docstore, "mset", [(key, to_document(p)) for key, p in part])

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove rows of the docstore."""
        for part in parts(keys, _BATCH):
            await self._call(self._docstore, "mdelete", list(part))

    async def keys(self, prefix: str) -> AsyncIterator[str]:
        """The docstore's keys."""
        if self._asynchronous:
            async for key in self._docstore.ayield_keys(prefix=prefix or None):
                yield key
        else:
            for key in self._docstore.yield_keys(prefix=prefix or None):
                yield key


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

    async def read(self, ids: Sequence[str], *, filtered: bool) -> list[Passage | None]:
        """Children by their ids, for stores that give them."""
        if filtered and self._search_kwargs:
            raise ValueError(
                "search_type='hybrid' with a filter needs Chroma: another vector store cannot "
                f"tell which children {sorted(self._search_kwargs)} lets through"
            )
        found: dict[str | None, Passage] = {}
        for part in parts(ids, self._batch):
            for document in await self._call(self._vectorstore, "get_by_ids", list(part)):
                found[document.id] = to_passage(document)
        return [found.get(name) for name in ids]

    async def of_parents(self, id_key: str, ids: Sequence[str]) -> list[Passage]:
        """LangChain has no way to ask."""
        raise NotImplementedError

    async def all(self) -> AsyncIterator[Passage]:
        """LangChain has no way to list a vector store."""
        raise NotImplementedError
        yield  # makes this a generator

    async def find(self, query: str, n: int) -> list[Found]:
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


class ByteDocuments(BaseStore[str, Document]):
    """Documents in a store of bytes, written as `langchain_classic`'s `create_kv_docstore` does."""

    def __init__(self, byte_store: ByteStore) -> None:
        self._store = byte_store

    def mget(self, keys: Sequence[str]) -> list[Document | None]:
        """The documents of the keys."""
        return [_loaded(value) for value in self._store.mget(keys)]

    async def amget(self, keys: Sequence[str]) -> list[Document | None]:
        """Asynchronous `mget`."""
        return [_loaded(value) for value in await self._store.amget(keys)]

    def mset(self, key_value_pairs: Sequence[tuple[str, Document]]) -> None:
        """Write documents."""
        self._store.mset([(key, dumps(each).encode()) for key, each in key_value_pairs])

    async def amset(self, key_value_pairs: Sequence[tuple[str, Document]]) -> None:
        """Asynchronous `mset`."""
        await self._store.amset([(key, dumps(each).encode()) for key, each in key_value_pairs])

    def mdelete(self, keys: Sequence[str]) -> None:
        """Remove documents."""
        self._store.mdelete(keys)

    async def amdelete(self, keys: Sequence[str]) -> None:
        """Asynchronous `mdelete`."""
        await self._store.amdelete(keys)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys that begin with `prefix`."""
        yield from self._store.yield_keys(prefix=prefix)

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Asynchronous `yield_keys`."""
        async for key in self._store.ayield_keys(prefix=prefix):
            yield key


def _loaded(value: bytes | None) -> Document | None:
    if value is None:
        return None
    document = loads(value.decode(), allowed_objects=[Document])
    if not isinstance(document, Document):
        raise TypeError(f"the byte store holds a {type(document).__name__} and not a document")
    return document


def to_passage(document: Document) -> Passage:
    """A document of LangChain as a passage; the metadata is shared."""
    return Passage(document.page_content, document.metadata, document.id)


def to_document(passage: Passage) -> Document:
    """A passage as a document of LangChain that shares nothing with it."""
    return Document(page_content=passage.text, metadata=copied(passage.metadata), id=passage.id)


def named_passages(documents: Iterable[Document], ids: Sequence[str] | None) -> Iterable[Passage]:
    """Documents of LangChain as passages, under the ids if there are any."""
    if ids is None:
        return map(to_passage, documents)
    documents = list(documents)
    if len(ids) != len(documents):
        raise ValueError(f"ids must be one for each of {len(documents)} documents, got {len(ids)}")
    pairs = zip(documents, ids, strict=True)
    return [Passage(document.page_content, document.metadata, i) for document, i in pairs]


def _relevance(vectorstore: VectorStore) -> Callable[[float], float] | None:
    """The store's own way from its raw score to a similarity, if it has one."""
    try:
        return vectorstore._select_relevance_score_fn()
    except (NotImplementedError, ValueError):
        return None
