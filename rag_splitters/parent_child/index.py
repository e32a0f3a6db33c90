"""What the parent-child retrievers of both frameworks share, independent of either."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, NoReturn, TypeVar

from typing_extensions import Self

from rag_splitters.calls import arun, call, run
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.parent_child.consistency import SyncReport, VerifyReport, sync, verify
from rag_splitters.parent_child.errors import StoreError
from rag_splitters.parent_child.filters import check_filter
from rag_splitters.parent_child.guard import Guard
from rag_splitters.parent_child.indexing import add, check_ids, check_refusals, get, remove
from rag_splitters.parent_child.keyword_index import KeywordIndex
from rag_splitters.parent_child.losses import check_few_results, check_first_query
from rag_splitters.parent_child.options import Query
from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.revisions import prepare_keyword_index
from rag_splitters.parent_child.search import Reranker, is_enough, rerank, search
from rag_splitters.parent_child.stores import AtomicDocstore, ClassicParents, Stores

A = TypeVar("A")
D = TypeVar("D")


@dataclass
class Shared:
    """What retrievers over the same stores share, also those that are copied from one another."""

    guard: Guard = field(default_factory=Guard)
    keywords: KeywordIndex = field(default_factory=lambda: KeywordIndex(None))
    classic: ClassicParents | None = field(default_factory=ClassicParents)
    """None if all the stores are our own."""
    is_exclusive: bool = False
    """Can no other process reach the stores, so that nothing has to be locked?"""
    searchable: set[str] = field(default_factory=set)
    """Metadata keys that children are known to store, so that filters can name them."""
    is_checked: bool = False
    """Has the vector store been found to hold the children that it should?"""
    resources: ExitStack = field(default_factory=ExitStack)
    """Closes what the factory opened."""
    is_closed: bool = False
    """Has what the factory opened been closed?"""

    def check_open(self) -> None:
        """Raise a StoreError if the retriever was closed."""
        if self.is_closed:
            raise StoreError(
                "this retriever is closed: open the index again with parent_document_retriever"
            )


def stores_of_workers(index: ParentChildIndex[Any, Any]) -> Stores:
    """Return the stores with which one of many processes writes to an index.

    Parents that `langchain_classic` wrote are not replaced: each process would have to read the
    keys of the whole docstore for them. Nor does a process that searches nothing keep a keyword
    index: those that do apply what it writes to theirs.

    Raises ValueError if only one process may write to the stores.
    """
    stores = index._writing_stores()
    if not isinstance(stores.docstore, AtomicDocstore):
        raise InputError(
            "several processes need a docstore that can compare and write in one step, such as "
            "PostgresStore or RedisStore (LlamaIndex: PostgresKVStore or RedisKVStore): pass one "
            "as docstore"
        )
    if not stores.is_shared or stores.children.is_local:
        raise InputError(
            "several processes cannot write to a Chroma in memory or in a folder: run "
            "`chroma run --path FOLDER` and pass client=chromadb.HttpClient(...)"
        )
    return replace(stores, classic=None, keywords=None)


class ParentChildIndex(Generic[A, D]):
    """The operations of a retriever that accepts documents `A` and returns documents `D`.

    One operation that writes runs at a time; searches never wait. Each operation is one coroutine,
    driven by `run` for synchronous callers and by `arun` for asynchronous ones.
    """

    shared: Shared
    _own_options: ClassVar[tuple[str, ...]]
    """The options that can be changed in place, so that a deep copy needs its own."""

    def __getstate__(self) -> NoReturn:
        """Refuse to be pickled."""
        raise InputTypeError(
            f"a {type(self).__name__} cannot be pickled: it holds open stores. Open the folder or "
            "the stores again with parent_document_retriever where it is needed"
        )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return a copy with options of its own, over the same stores, splitters and models."""
        copied = copy.copy(self)
        for name in self._own_options:
            vars(copied)[name] = copy.deepcopy(vars(self)[name])
        return copied

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    @abstractmethod
    def _stores(self, filters: Mapping[str, Any] | None = None) -> Stores:
        """Return the stores for one operation."""

    @abstractmethod
    def _entry(self, document: A) -> Entry:
        """Convert one of the framework's documents; the metadata is shared."""

    @abstractmethod
    def _document(self, entry: Entry) -> D:
        """Convert a source document, or a parent, for the framework."""

    def add_documents(self, documents: Iterable[A], ids: Sequence[str] | None = None) -> list[str]:
        """Add or replace documents, under `ids` if given, and return the id of each.

        Raises RefusedDocumentsError, which names document and key, for documents whose metadata the
        docstore cannot keep; the others are added all the same.
        """
        return run(self._add(documents, ids))

    async def aadd_documents(
        self, documents: Iterable[A], ids: Sequence[str] | None = None
    ) -> list[str]:
        """Asynchronous `add_documents`."""
        return await arun(self._add(documents, ids))

    def sync(self, documents: Iterable[A], *, scope: Mapping[str, Any] | None = None) -> SyncReport:
        """Make the index hold exactly these documents: add, replace, and remove all others.

        Parameters:
            documents: the documents; each must lie within the scope.
            scope: metadata that a document must have to be removed; None: every document.

        Raises ValueError for a document outside of the scope, and, when all others are in the
        index, RefusedDocumentsError for documents whose metadata the docstore cannot keep; what was
        there under their ids stays.
        """
        return run(self._sync(documents, scope))

    async def async_sync(
        self, documents: Iterable[A], *, scope: Mapping[str, Any] | None = None
    ) -> SyncReport:
        """Asynchronous `sync`."""
        return await arun(self._sync(documents, scope))

    def verify(self, *, repair: bool = False) -> VerifyReport:
        """Compare what the docstore lists with what the stores hold.

        Reports what an interrupted operation, or another program, left: documents that are half
        added or half removed, missing parents and children, children and parents of no document.
        With `repair`, interrupted operations are finished, what is missing is written again from
        the source documents that the docstore keeps, and what belongs to no document is removed. A
        document that cannot be repaired is reported under `failed`, and the rest is repaired.
        """
        return run(self._verify(repair))

    async def averify(self, *, repair: bool = False) -> VerifyReport:
        """Asynchronous `verify`."""
        return await arun(self._verify(repair))

    def close(self) -> None:
        """Close what the factory opened; stores that you passed in stay open."""
        self.shared.resources.close()

    async def aclose(self) -> None:
        """Asynchronous `close`."""
        await call(self.close).result()

    def _writing_stores(self) -> Stores:
        return replace(self._stores(), is_shared=not self.shared.is_exclusive)

    def _entries(self, documents: Iterable[A], ids: Sequence[str] | None) -> Iterable[Entry]:
        entries = map(self._entry, documents)
        if ids is None:
            return entries
        check_ids(ids, "add_documents")
        listed = list(entries)
        if len(ids) != len(listed):
            raise InputError(f"ids must be one for each of {len(listed)} documents, got {len(ids)}")
        return [replace(entry, id=each) for entry, each in zip(listed, ids, strict=True)]

    async def _add(self, documents: Iterable[A], ids: Sequence[str] | None) -> list[str]:
        entries = self._entries(documents, ids)
        async with self.shared.guard.hold():
            outcomes = await add(self._writing_stores(), entries)
        identities = [outcome.identity for outcome in outcomes if not outcome.refusal]
        check_refusals(outcomes, identities)
        return identities

    async def _remove(self, ids: Sequence[str] | None, source: str | None) -> list[str]:
        async with self.shared.guard.hold():
            return await remove(self._writing_stores(), ids, source)

    async def _get(self, ids: Sequence[str]) -> list[D]:
        return [self._document(entry) for entry in await get(self._stores(), ids)]

    async def _sync(self, documents: Iterable[A], scope: Mapping[str, Any] | None) -> SyncReport:
        entries = self._entries(documents, None)
        async with self.shared.guard.hold():
            return await sync(self._writing_stores(), entries, scope)

    async def _verify(self, repair: bool) -> VerifyReport:
        async with self.shared.guard.hold():
            return await verify(self._writing_stores(), repair=repair)

    async def _search(
        self, query: Query, filters: Mapping[str, Any], reranker: Reranker | None
    ) -> list[Entry]:
        stores = self._stores(filters)
        await check_filter(stores, self.shared.searchable)
        if query.search_type == "hybrid" and stores.keywords is not None:
            await prepare_keyword_index(stores, stores.keywords, self.shared.guard)
        if not self.shared.is_checked:
            await check_first_query(stores, query)
            self.shared.is_checked = True
        results = await search(stores, query)
        if not is_enough(query, results):
            await check_few_results(stores, query, results)
        if reranker is not None:
            results = await rerank(reranker, query.text, results)
        return results
