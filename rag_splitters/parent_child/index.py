"""What the parent-child retrievers of both frameworks do, in the terms of neither."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar

from rag_splitters.parent_child.consistency import Synced, Verified, sync, verify
from rag_splitters.parent_child.guard import Guard
from rag_splitters.parent_child.keywords import KeywordIndex
from rag_splitters.parent_child.passages import Passage
from rag_splitters.parent_child.plan import add, get, remove
from rag_splitters.parent_child.reranking import Reranker, reranked
from rag_splitters.parent_child.search import Crowding, Query, search
from rag_splitters.parent_child.state import ready
from rag_splitters.parent_child.stores import Stores, run

__all__ = ["ParentChildIndex", "Shared"]

A = TypeVar("A")
D = TypeVar("D")
R = TypeVar("R")


@dataclass
class Shared:
    """What retrievers over the same stores share, also those that are made of one another."""

    guard: Guard = field(default_factory=Guard)
    keywords: KeywordIndex = field(default_factory=lambda: KeywordIndex(None))
    crowding: Crowding = field(default_factory=Crowding)
    opened: ExitStack = field(default_factory=ExitStack)
    """Closes what the factory opened."""


class ParentChildIndex(Generic[A, D, R]):
    """What a retriever is made of: takes documents of type `A`, gives them as `D`, finds `R`.

    One operation that writes runs at a time; searches wait for none. Every method has an
    asynchronous twin.
    """

    shared: Shared

    @property
    def _guard(self) -> Guard:
        return self.shared.guard

    @property
    def _keywords(self) -> KeywordIndex:
        return self.shared.keywords

    def __getstate__(self) -> NoReturn:
        """Refuse to be pickled."""
        raise TypeError(
            f"a {type(self).__name__} cannot be pickled: it holds open stores. Open the folder or "
            "the stores again with parent_document_retriever where it is needed"
        )

    @abstractmethod
    def _stores(self, *, asynchronous: bool, filters: Mapping[str, Any] | None = None) -> Stores:
        """The stores for one operation."""

    @abstractmethod
    def _passages(self, documents: Iterable[A], ids: Sequence[str] | None) -> Iterable[Passage]:
        """The framework's documents as passages."""

    @abstractmethod
    def _document(self, passage: Passage) -> D:
        """A source document, or a parent, for the framework."""

    @abstractmethod
    def _result(self, passage: Passage) -> R:
        """What a search found, for the framework."""

    def add_documents(self, documents: Iterable[A], ids: Sequence[str] | None = None) -> list[str]:
        """Add or replace documents, under `ids` if given; the id of each is returned."""
        return run(self._add(documents, ids, asynchronous=False))

    async def aadd_documents(
        self, documents: Iterable[A], ids: Sequence[str] | None = None
    ) -> list[str]:
        """Asynchronous `add_documents`."""
        return await self._add(documents, ids, asynchronous=True)

    def sync(self, documents: Iterable[A], *, scope: Mapping[str, Any] | None = None) -> Synced:
        """Make the index hold exactly these documents: add, replace, and remove all others.

        Parameters:
            documents: the documents; each must lie within the scope.
            scope: metadata that a document must have to be removed; None: every document.

        Raises: ValueError for a document outside of the scope.
        """
        return run(self._sync(documents, scope, asynchronous=False))

    async def async_sync(
        self, documents: Iterable[A], *, scope: Mapping[str, Any] | None = None
    ) -> Synced:
        """Asynchronous `sync`."""
        return await self._sync(documents, scope, asynchronous=True)

    def verify(self, *, repair: bool = False) -> Verified:
        """Compare what the docstore lists with what the stores hold.

        Tells what an interrupted operation, or another program, left: documents half added or half
        removed, missing parents and children, children and parents of no document. With `repair`,
        it is mended: interrupted operations are finished, what is missing is written anew from the
        source documents that the docstore keeps, and what belongs to none is removed.
        """
        return run(self._verify(repair, asynchronous=False))

    async def averify(self, *, repair: bool = False) -> Verified:
        """Asynchronous `verify`."""
        return await self._verify(repair, asynchronous=True)

    async def _add(
        self, documents: Iterable[A], ids: Sequence[str] | None, *, asynchronous: bool
    ) -> list[str]:
        passages = self._passages(documents, ids)
        async with self._guard.held(asynchronous=asynchronous):
            added = await add(self._stores(asynchronous=asynchronous), passages)
        return [outcome.identity for outcome in added]

    async def _remove(
        self, ids: Sequence[str] | None, source: str | None, *, asynchronous: bool
    ) -> list[str]:
        async with self._guard.held(asynchronous=asynchronous):
            return await remove(self._stores(asynchronous=asynchronous), ids, source)

    async def _get(self, ids: Sequence[str], *, asynchronous: bool) -> list[D]:
        found = await get(self._stores(asynchronous=asynchronous), ids)
        return [self._document(passage) for passage in found]

    async def _sync(
        self, documents: Iterable[A], scope: Mapping[str, Any] | None, *, asynchronous: bool
    ) -> Synced:
        passages = self._passages(documents, None)
        async with self._guard.held(asynchronous=asynchronous):
            return await sync(self._stores(asynchronous=asynchronous), passages, scope)

    async def _verify(self, repair: bool, *, asynchronous: bool) -> Verified:
        async with self._guard.held(asynchronous=asynchronous):
            return await verify(self._stores(asynchronous=asynchronous), repair=repair)

    def close(self) -> None:
        """Close what the factory opened; a store that you handed in stays as it is."""
        self.shared.opened.close()

    async def _search(
        self,
        query: Query,
        filters: Mapping[str, Any],
        reranker: Reranker | None,
        *,
        asynchronous: bool,
    ) -> list[R]:
        stores = self._stores(asynchronous=asynchronous, filters=filters)
        if query.search_type == "hybrid" and stores.keywords is not None:
            await ready(stores, stores.keywords, self._guard, asynchronous=asynchronous)
        passages = await search(stores, query, self.shared.crowding)
        if reranker is not None:
            passages = await reranked(reranker, query.text, passages, asynchronous=asynchronous)
        return [self._result(passage) for passage in passages]
