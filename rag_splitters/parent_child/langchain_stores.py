"""LangChain's splitters, vector stores and docstores as parent-child retrieval asks for them."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeVar

from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from langchain_text_splitters import TextSplitter

from rag_splitters.parent_child.passages import Passage, copied, storable_text
from rag_splitters.parent_child.search import Found

__all__ = ["LangChainStores", "named_passages", "to_document"]

T = TypeVar("T")

_BATCH = 1000  # also well under what SQLite, on which Chroma is built, takes in one statement
_MARK = "_rag_splitters_passage"


class LangChainStores:
    """One operation's view of the splitters and stores, synchronous or asynchronous.

    LangChain names the asynchronous form of each method by an "a" before it; with `asynchronous`
    those are awaited, and without, nothing here suspends.
    """

    def __init__(
        self,
        vectorstore: VectorStore,
        docstore: BaseStore[str, Document],
        *,
        splitters: dict[str, TextSplitter | None] | None = None,
        batch_size: int | None = None,
        search_kwargs: dict[str, Any] | None = None,
        asynchronous: bool = False,
    ) -> None:
        self._vectorstore = vectorstore
        self._docstore = docstore
        self._splitters = splitters or {}
        self._batch_size = batch_size
        self._search_kwargs = search_kwargs or {}
        self._asynchronous = asynchronous
        self._relevance: Callable[[float], float] | None = None
        self._vectors: dict[str, list[float]] = {}

    @property
    def merges_metadata(self) -> bool:
        """Chroma's upsert does."""
        return _chroma_limit(self._vectorstore) is not None

    async def split(
        self, level: Literal["parents", "children"], passages: list[Passage]
    ) -> list[list[Passage]] | None:
        """The chunks of each passage; a model that a splitter asks is asked for all at once."""
        splitter = self._splitters.get(level)
        if splitter is None:
            return None
        marked = [
            Document(page_content=p.text, metadata={**copied(p.metadata), _MARK: number})
            for number, p in enumerate(passages)
        ]
        chunks: list[list[Passage]] = [[] for _ in passages]
        for document in await self._call(splitter, "transform_documents", marked):
            metadata = dict(document.metadata)
            chunks[metadata.pop(_MARK)].append(Passage(document.page_content, metadata))
        return chunks

    async def read(self, keys: Sequence[str]) -> list[Passage | None]:
        """Rows of the docstore."""
        if not keys:
            return []
        documents = await self._call(self._docstore, "mget", list(keys))
        return [None if document is None else _to_passage(document) for document in documents]

    async def write(self, rows: Sequence[tuple[str, Passage]]) -> None:
        """Write rows of the docstore."""
        for part in _parts(rows, _BATCH):
            await self._call(self._docstore, "mset", [(key, to_document(p)) for key, p in part])

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove rows of the docstore."""
        for part in _parts(keys, _BATCH):
            await self._call(self._docstore, "mdelete", list(part))

    async def keys(self, prefix: str) -> AsyncIterator[str]:
        """The docstore's keys."""
        if self._asynchronous:
            async for key in self._docstore.ayield_keys(prefix=prefix):
                yield key
        else:
            for key in self._docstore.yield_keys(prefix=prefix):
                yield key

    async def index(self, children: Sequence[Passage]) -> None:
        """Embed children and write them, in batches that the vector store takes."""
        for part in _parts(children, self._batch()):
            documents = [
                Document(page_content=storable_text(p.text), metadata=p.metadata, id=p.id)
                for p in part
            ]
            ids = [p.id for p in part]
            await self._call(self._vectorstore, "add_documents", documents, ids=ids)

    async def forget(self, ids: Sequence[str]) -> None:
        """Remove children from the vector store."""
        for part in _parts(ids, min(self._batch(), _BATCH)):
            if await self._call(self._vectorstore, "delete", list(part)) is False:
                raise RuntimeError(f"the vector store did not delete {len(part)} children")

    async def find(self, query: str, n: int) -> list[Found]:
        """The nearest children; scores are made similarities where the store says how."""
        results = await self._search(storable_text(query), n)
        relevance = self._relevance = self._relevance or _relevance(self._vectorstore)
        return [
            Found(_to_passage(d), s if s is None or relevance is None else relevance(s))
            for d, s in results
        ]

    async def _search(self, query: str, n: int) -> Sequence[tuple[Document, float | None]]:
        store, told = self._vectorstore, {**self._search_kwargs, "k": n}
        by_vector = getattr(store, "similarity_search_by_vector_with_relevance_scores", None)
        try:
            if by_vector is None or store.embeddings is None or not self.merges_metadata:
                found = await self._call(store, "similarity_search_with_score", query, **told)
                return list(found)
            # Chroma's, with distances whatever its name says: a query is embedded only once.
            if query not in self._vectors:
                self._vectors[query] = await self._call(store.embeddings, "embed_query", query)
            vector = self._vectors[query]
            if self._asynchronous:
                return list(await run_in_executor(None, by_vector, embedding=vector, **told))
            return list(by_vector(embedding=vector, **told))
        except NotImplementedError:
            plain = await self._call(store, "similarity_search", query, **told)
            return [(document, None) for document in plain]

    async def _call(self, target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if not self._asynchronous:
            return getattr(target, name)(*args, **kwargs)
        method = getattr(target, f"a{name}", None)
        if method is None or not inspect.iscoroutinefunction(method):
            return await run_in_executor(None, getattr(target, name), *args, **kwargs)
        return await method(*args, **kwargs)

    def _batch(self) -> int:
        limit = _chroma_limit(self._vectorstore)
        if limit is not None and self._batch_size is not None and self._batch_size > limit:
            raise ValueError(
                f"batch_size must not exceed what this Chroma takes ({limit}), "
                f"got {self._batch_size}"
            )
        return self._batch_size or min(_BATCH, limit or _BATCH)


def _to_passage(document: Document) -> Passage:
    """A document of LangChain as a passage; the metadata is shared."""
    return Passage(document.page_content, document.metadata, document.id)


def named_passages(documents: Iterable[Document], ids: Sequence[str] | None) -> Iterable[Passage]:
    """Documents of LangChain as passages, under the ids if there are any."""
    if ids is None:
        return map(_to_passage, documents)
    documents = list(documents)
    if len(ids) != len(documents):
        raise ValueError(f"ids must be one for each of {len(documents)} documents, got {len(ids)}")
    pairs = zip(documents, ids, strict=True)
    return [Passage(document.page_content, document.metadata, i) for document, i in pairs]


def to_document(passage: Passage) -> Document:
    """A passage as a document of LangChain that shares nothing with it."""
    return Document(page_content=passage.text, metadata=copied(passage.metadata), id=passage.id)


def _chroma_limit(vectorstore: VectorStore) -> int | None:
    """How many rows a Chroma takes at once; None where the vector store is another."""
    client = getattr(vectorstore, "_client", None)
    ask: Callable[[], int] | None = getattr(client, "get_max_batch_size", None)
    return None if ask is None else ask()


def _relevance(vectorstore: VectorStore) -> Callable[[float], float] | None:
    """The store's own way from its raw score to a similarity, if it has one."""
    try:
        return vectorstore._select_relevance_score_fn()
    except (NotImplementedError, ValueError):
        return None


def _parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
