"""Parent-child retrieval for LangChain: the retriever, and a factory that sets one up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any, Literal

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.indexing import UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex
from langchain_core.stores import BaseStore, InMemoryStore
from langchain_core.vectorstores import VectorStore
from langchain_text_splitters import TextSplitter
from pydantic import Field, PrivateAttr, field_validator

from rag_splitters.parent_child.chroma import open_chroma
from rag_splitters.parent_child.langchain_sqlite import SQLiteStore
from rag_splitters.parent_child.langchain_stores import (
    LangChainStores,
    named_passages,
    to_document,
)
from rag_splitters.parent_child.plan import add, get, remove, run
from rag_splitters.parent_child.search import search_children, search_parents

__all__ = ["ParentDocumentRetriever", "SQLiteStore", "parent_document_retriever"]


class ParentDocumentRetriever(DocumentIndex):
    """Finds small chunks and returns the larger chunks that hold them.

    Small chunks are found best, large ones are read best: documents are cut into parents, which go
    to a key-value store, and these into children, which go to a vector store and name their parent.
    `parent_document_retriever` sets one up; construct it yourself for other stores. It is also a
    `DocumentIndex`: `langchain_core.indexing.index` works on it.

    A result has the parent's metadata with `start_index` and `end_index` in the source (where the
    splitters report exact positions), `score` (of its best child: a similarity, higher is better,
    where the vector store says how its numbers are to be read, as Chroma does; else its number as
    it is; None if it has none) and `matches`: position and score of the children, best first.

    Documents are known by their `id` or, without one, by their text and metadata. Adding one again
    unchanged costs nothing (it is split, but not embedded); changed, it replaces what was there. Of
    the children's metadata a vector store gets what it takes, for filters; the results have all.

    >>> from langchain_core.documents import Document
    >>> from langchain_text_splitters import CharacterTextSplitter
    >>> words = CharacterTextSplitter(separator=" ", chunk_size=1, chunk_overlap=0)
    >>> retriever = parent_document_retriever(
    ...     [Document(page_content="red apple", id="a"), Document(page_content="blue sky", id="b")],
    ...     child_splitter=words, parent_splitter=None, k=1)
    >>> [result.page_content for result in retriever.invoke("apple")]
    ['red apple']
    """

    vectorstore: VectorStore
    """Where the children are."""
    docstore: BaseStore[str, Document]
    """Where the parents are, and a record of each source document."""
    child_splitter: TextSplitter
    """Cuts parents into children."""
    parent_splitter: TextSplitter | None = None
    """Cuts documents into parents; None takes each document whole."""
    id_key: str = Field(default="parent_id", min_length=1)
    """The key in a child's metadata that holds its parent's UUID."""
    k: int = Field(default=4, ge=1)
    """How many results: parents, or children with `retrieve="children"`."""
    retrieve: Literal["parents", "children"] = "parents"
    """What a query returns."""
    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of the vector store's search, such as `filter`."""
    batch_size: int | None = Field(default=None, ge=1)
    """How many children are embedded and written at once; None: 1,000, or less for the store."""

    _opened: tuple[Callable[[], None], ...] = PrivateAttr(default=())

    @field_validator("search_kwargs")
    @classmethod
    def _refuse_k(cls, value: dict[str, Any]) -> dict[str, Any]:
        if "k" in value:
            raise ValueError("give k to the retriever and not in search_kwargs: it counts results")
        return value

    def add_documents(
        self, documents: Iterable[Document], ids: Sequence[str] | None = None
    ) -> list[str]:
        """Add or replace documents, under `ids` if given; the id of each is returned."""
        return run(add(self._stores(), named_passages(documents, ids), self.id_key))

    async def aadd_documents(
        self, documents: Iterable[Document], ids: Sequence[str] | None = None
    ) -> list[str]:
        """Asynchronous `add_documents`."""
        stores = self._stores(asynchronous=True)
        return await add(stores, named_passages(documents, ids), self.id_key)

    def upsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """`add_documents`, as a `DocumentIndex` names it."""
        return {"succeeded": self.add_documents(items), "failed": []}

    async def aupsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """Asynchronous `upsert`."""
        return {"succeeded": await self.aadd_documents(items), "failed": []}

    def delete(
        self, ids: list[str] | None = None, *, source: str | None = None, **kwargs: Any
    ) -> DeleteResponse:
        """Remove documents with all their chunks: by id, or by their `metadata["source"]`."""
        return _deleted(run(remove(self._stores(), ids, source)))

    async def adelete(
        self, ids: list[str] | None = None, *, source: str | None = None, **kwargs: Any
    ) -> DeleteResponse:
        """Asynchronous `delete`."""
        return _deleted(await remove(self._stores(asynchronous=True), ids, source))

    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """Source documents as they were added, by their ids, or parents by theirs."""
        return [to_document(passage) for passage in run(get(self._stores(), ids))]

    async def aget(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """Asynchronous `get`."""
        stores = self._stores(asynchronous=True)
        return [to_document(passage) for passage in await get(stores, ids)]

    def close(self) -> None:
        """Close what the factory opened; a store that you handed in stays as it is."""
        for close in self._opened:
            close()
        self._opened = ()

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        return run(self._search(query, k, kwargs, asynchronous=False))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        return await self._search(query, k, kwargs, asynchronous=True)

    async def _search(
        self, query: str, k: int | None, search_kwargs: dict[str, Any], *, asynchronous: bool
    ) -> list[Document]:
        wanted = self.k if k is None else k
        if wanted < 1:
            raise ValueError(f"k must be at least 1, got {wanted}")
        stores = self._stores(asynchronous=asynchronous, search_kwargs=search_kwargs)
        search = search_parents if self.retrieve == "parents" else search_children
        return [to_document(p) for p in await search(stores, query, wanted, self.id_key)]

    def _stores(
        self, *, asynchronous: bool = False, search_kwargs: dict[str, Any] | None = None
    ) -> LangChainStores:
        return LangChainStores(
            self.vectorstore,
            self.docstore,
            splitters={"parents": self.parent_splitter, "children": self.child_splitter},
            batch_size=self.batch_size,
            search_kwargs={**self.search_kwargs, **(search_kwargs or {})},
            asynchronous=asynchronous,
        )


def parent_document_retriever(
    documents: Iterable[Document] | None = None,
    *,
    path: str | Path | None = None,
    embeddings: Any = None,
    vectorstore: VectorStore | None = None,
    docstore: BaseStore[str, Document] | None = None,
    child_splitter: TextSplitter | None = None,
    parent_splitter: TextSplitter | EllipsisType | None = ...,
    k: int = 4,
    retrieve: Literal["parents", "children"] = "parents",
    id_key: str = "parent_id",
    collection_name: str = "rag_splitters",
    search_kwargs: dict[str, Any] | None = None,
) -> ParentDocumentRetriever:
    """Set up a `ParentDocumentRetriever`, and add `documents` to it.

    By default all is in memory. `path` is a folder that keeps it: children in a Chroma in
    `path/chroma`, parents in `path/parents.sqlite`; one process at a time may have it open. Or hand
    in a `vectorstore`, a `docstore`, or both.

    `embeddings` is a LangChain or LlamaIndex embedding model or a callable list[str] ->
    list[list[float]]; without one, `HashingEmbeddings`, which match words and not meaning. A folder
    can only be opened with the model that it was written with. `child_splitter` is by default
    `RecursiveTextSplitter(chunk_size=400)` and `parent_splitter` the same with 2,000 characters;
    `parent_splitter=None` takes documents whole. The other parameters are the retriever's.

    Raises a ValueError for options that contradict each other, and for a folder of another model.
    """
    if path is not None and vectorstore is not None and docstore is not None:
        raise ValueError("path has nothing to keep: both vectorstore and docstore were given")
    if embeddings is not None and vectorstore is not None:
        raise ValueError("embeddings would not be used: the vectorstore brings its own")
    folder = None if path is None else Path(path)
    opened: list[Callable[[], None]] = []
    if vectorstore is None:
        vectorstore, close = open_chroma(folder, embeddings, collection_name)
        opened.append(close)
    if docstore is None and folder is not None:
        docstore = SQLiteStore(folder / "parents.sqlite")
        opened.append(docstore.close)
    retriever = ParentDocumentRetriever(
        vectorstore=vectorstore,
        docstore=InMemoryStore() if docstore is None else docstore,
        child_splitter=child_splitter or _default_splitter()(chunk_size=400),
        parent_splitter=_default_splitter()(chunk_size=2000)
        if isinstance(parent_splitter, EllipsisType)
        else parent_splitter,
        k=k,
        retrieve=retrieve,
        id_key=id_key,
        search_kwargs=search_kwargs or {},
    )
    retriever._opened = tuple(opened)
    if documents is not None:
        retriever.add_documents(documents)
    return retriever


def _default_splitter() -> Callable[..., TextSplitter]:
    from rag_splitters.langchain import RecursiveTextSplitter

    return RecursiveTextSplitter


def _deleted(removed: list[str]) -> DeleteResponse:
    return {"succeeded": removed, "num_deleted": len(removed), "failed": [], "num_failed": 0}
