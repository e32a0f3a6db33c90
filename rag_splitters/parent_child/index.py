"""What the parent-child retrievers of both frameworks share, independent of either."""

from __future__ import annotations

import copy
import logging
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any, ClassVar, Concatenate, Generic, NoReturn, ParamSpec, TypeVar

from typing_extensions import Self

from rag_splitters.calls import call, in_both_forms, run
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.parameters.checks import check_list
from rag_splitters.parent_child.classic import import_classic
from rag_splitters.parent_child.consistency import SyncReport, VerifyReport, sync, verify
from rag_splitters.parent_child.errors import MissingParentsError, RefusedDocumentsError
from rag_splitters.parent_child.filters import check_filter
from rag_splitters.parent_child.identity import check_identity, ensure_identity, is_classic
from rag_splitters.parent_child.indexing import (
    Status,
    add,
    check_refusals,
    find_documents,
    get,
    list_of_ids,
    reembed_documents,
    remove,
    statuses,
)
from rag_splitters.parent_child.losses import check_few_results, check_first_query
from rag_splitters.parent_child.opening import Shared
from rag_splitters.parent_child.options import Query, SearchType
from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.representations import Representations
from rag_splitters.parent_child.revisions import prepare_keyword_index
from rag_splitters.parent_child.search import Rerank, search
from rag_splitters.parent_child.stores.children import ChildStore, Split
from rag_splitters.parent_child.stores.keyvalue import KeyValueDocstore
from rag_splitters.parent_child.stores.stores import Stores
from rag_splitters.parent_child.writing import Docstore, Turn, release_claim

logger = logging.getLogger("rag_splitters")
A = TypeVar("A")
D = TypeVar("D")
P = ParamSpec("P")
T = TypeVar("T")
Index = TypeVar("Index", bound="ParentChildIndex[Any, Any]")
Prepared = tuple[Query, Mapping[str, Any], Rerank | None]
"""A query, the filters for its stores, and the reranker."""


@contextmanager
def turn_for_workers(index: ParentChildIndex[Any, Any]) -> Iterator[int]:
    """Keep all others from writing to an index, except for processes that know the turn's number.

    Only one writer at a time may change a document: the processes must have different ones.

    Raises ValueError if only one process may write to the stores.
    """
    stores, docstore = _shareable_stores(index)
    run(ensure_identity(stores))
    resources = AsyncExitStack()
    try:
        turn = run(resources.enter_async_context(stores.writer.turn(docstore)))
        yield turn.number
    finally:
        run(resources.aclose())


def stores_of_workers(index: ParentChildIndex[Any, Any], turn: int) -> Stores:
    """Return the stores with which one of many processes writes to an index.

    Parameters:
        turn: the number of the turn that another process holds for this one; see
            `turn_for_workers`. Writes fail with a LockLostError when it has ended and another one
            has begun.

    Raises ValueError if only one process may write to the stores.
    """
    stores, docstore = _shareable_stores(index)
    docstore = docstore.in_turn(turn)

    async def release() -> None:
        """Do nothing: the turn is another process's."""

    return replace(stores, docstore=docstore, turn=Turn(docstore, turn, release))


def _shareable_stores(index: ParentChildIndex[Any, Any]) -> tuple[Stores, KeyValueDocstore]:
    """Return the stores of an index to which several processes write, and their docstore.

    A process that searches nothing keeps no keyword index: those that do bring theirs in step.
    """
    stores = replace(index._stores(), keywords=None)
    if not isinstance(stores.docstore, KeyValueDocstore):
        raise InputError(
            "several processes need a docstore to which all of them may write, such as "
            "PostgresStore or RedisStore: pass one as docstore"
        )
    if stores.children.is_local:
        raise InputError(
            "several processes cannot write to a Chroma in memory or in a folder: run "
            "`chroma run --path FOLDER` and pass client=chromadb.HttpClient(...)"
        )
    return stores, stores.docstore


def _operation(
    function: Callable[Concatenate[Index, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Index, P], Coroutine[Any, Any, T]]:
    """Let an operation that fails because the retriever was closed meanwhile say so.

    Otherwise it would raise whatever a closed Chroma does.
    """

    @wraps(function)
    async def checking_function(self: Index, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await function(self, *args, **kwargs)
        except Exception:
            self.shared.check_open()
            raise

    return checking_function


def add_and_report(index: ParentChildIndex[A, Any], documents: Iterable[A]) -> dict[str, Status]:
    """Add documents to an index, and return what became of each, by id.

    Raises what `add_documents` raises.
    """
    outcomes = run(add(index._stores(), index._entries(documents)))
    check_refusals(outcomes, statuses(outcomes))
    return statuses(outcomes)


class ParentChildIndex(Generic[A, D]):
    """The operations of a retriever that accepts documents `A` and returns documents `D`.

    One operation that writes runs at a time; searches never wait. Each operation is one coroutine,
    driven by `run` for synchronous callers and by `arun` for asynchronous ones.
    """

    shared: Shared
    id_key: str
    headings: bool
    search_type: SearchType
    max_tokens: int | None
    smoothing: float
    batch_size: int | None
    write_timeout: float
    child_metadata_fields: Sequence[str] | None
    representations: Representations | None
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
    def _open_stores(self, filters: Mapping[str, Any]) -> tuple[Docstore, ChildStore, Split]:
        """Return the docstore, the vector store with a query's filters, and the splitters."""

    @abstractmethod
    def _prepare(self, text: str, options: Mapping[str, Any]) -> Prepared:
        """Return a query with these options in place of the retriever's own, and what it needs."""

    @abstractmethod
    def _entry(self, document: A) -> Entry:
        """Convert one of the framework's documents; the metadata is shared."""

    @abstractmethod
    def _document(self, entry: Entry) -> D:
        """Convert a source document, or a parent, for the framework."""

    @_operation
    async def _add_documents(
        self, documents: Iterable[A], ids: Sequence[str] | None = None
    ) -> list[str]:
        """Add or replace documents, under `ids` if given, and return the id of each.

        Raises ValueError, before anything of a list is written, if different documents have the
        same id; and RefusedDocumentsError, which names document and key, for documents whose
        metadata the docstore cannot keep; the others are added all the same.
        """
        entries = self._entries(documents)
        if ids is not None:
            ids = list_of_ids(ids, "add_documents", str | None)
            listed = list(entries)
            if len(ids) != len(listed):
                raise InputError(
                    f"ids must be one for each of {len(listed)} documents, got {len(ids)}"
                )
            entries = [replace(entry, id=each) for entry, each in zip(listed, ids, strict=True)]
        outcomes = await add(self._stores(), entries)
        identities = [outcome.identity for outcome in outcomes if not outcome.refusal]
        check_refusals(outcomes, identities)
        return identities

    @_operation
    async def _sync(
        self, documents: Iterable[A], *, scope: Mapping[str, Any] | None = None
    ) -> SyncReport:
        """Make the index hold exactly these documents: add, replace, and remove all others.

        Parameters:
            documents: the documents; each must lie within the scope.
            scope: metadata that a document must have to be removed; None: every document.

        Raises ValueError, before anything is written, for a document outside of the scope, and if
        different documents have the same id; and, when all others are in the index,
        RefusedDocumentsError for documents whose metadata the docstore cannot keep; what was
        there under their ids stays.
        """
        return await sync(self._stores(), self._entries(documents), scope)

    def _entries(self, documents: Iterable[A]) -> Iterable[Entry]:
        check_list(documents, "documents")
        entries = map(self._entry, documents)
        return list(entries) if isinstance(documents, Sequence) else entries

    @_operation
    async def _list_ids(self, *, scope: Mapping[str, Any] | None = None) -> list[str]:
        """List the ids of all documents or, with a scope, of those that have these metadata."""
        return await find_documents(self._stores(), scope, with_unfinished=False)

    @_operation
    async def _verify(self, *, repair: bool = False, remove_most: bool = False) -> VerifyReport:
        """Compare what the docstore lists with what the stores hold.

        Reports what an interrupted operation, or another program, left: documents that are half
        added or half removed, missing parents and children, children and parents of no document.
        With `repair`, interrupted removals are finished, interrupted additions are undone, missing
        children are made again from the text that the docstore keeps, and what belongs to no
        document is removed. Each text is stored once, so a document that has lost a parent is
        reported under `failed`: add it again. The rest is repaired.

        Raises MissingParentsError if the repair would remove more than half of the children, which
        means that the docstore has lost its rows, unless `remove_most` says that it may.
        """
        return await verify(self._stores(), repair=repair, remove_most=remove_most)

    @_operation
    async def _import_classic(self) -> list[str]:
        """Turn the parents that `langchain_classic` wrote into documents, and return their ids.

        Needed once, before anything is written to such an index; it can be searched without. Each
        parent becomes a document with its key as id. Children that are cut as before keep their
        vectors. If the import is interrupted, run it again.
        """
        return await import_classic(self._stores())

    @_operation
    async def _release_claim(self) -> None:
        """Let others write after a process on another machine died while it was writing.

        Needed only for docstores without locks, where the row that names the writing process stays.
        """
        await release_claim(self._stores().docstore)

    add_documents, aadd_documents = in_both_forms(_add_documents)
    sync, async_sync = in_both_forms(_sync)
    list_ids, alist_ids = in_both_forms(_list_ids)
    verify, averify = in_both_forms(_verify)
    import_classic, aimport_classic = in_both_forms(_import_classic)
    release_claim, arelease_claim = in_both_forms(_release_claim)

    def open(self, documents: Iterable[A] | None = None, *, reembed: bool = False) -> Self:
        """Check that the stores belong together, and add documents.

        Parameters:
            documents: documents to add.
            reembed: whether to embed all documents anew first, if that was done with another model.

        A docstore that is empty although the collection is not can be opened for a repair: the log
        says so, and all other operations raise a MissingParentsError.

        Raises IndexMismatchError, which names both sides, if the stores do not belong together, and
        RefusedDocumentsError, whose `result` is the retriever, for documents that cannot be stored.
        """
        if reembed:
            run(reembed_documents(self._stores()))
        try:
            if run(is_classic(self._stores())):
                logger.warning(
                    "langchain_classic wrote this index: it can be searched as it is; call "
                    "import_classic() before you add, change or remove documents"
                )
        except MissingParentsError as error:  # operations raise it; only a repair can go on
            logger.warning("%s", error)
        try:
            if documents is not None:
                run(self._add_documents(documents))
        except RefusedDocumentsError as error:
            raise RefusedDocumentsError(error.refusals, self) from None
        return self

    def close(self) -> None:
        """Close what the factory opened; stores that you passed in stay open."""
        self.shared.close()

    async def aclose(self) -> None:
        """Asynchronous `close`."""
        await call(self.close).result()

    def _stores(self, filters: Mapping[str, Any] | None = None) -> Stores:
        """Return the stores for one operation."""
        self.shared.check_open()
        self.shared.writer.timeout = self.write_timeout
        docstore, children, split = self._open_stores(filters or {})
        children.requested_batch_size, children.smoothing = self.batch_size, self.smoothing
        fields, keywords = self.child_metadata_fields, self.shared.keywords
        return Stores(
            docstore,
            children,
            split,
            self.id_key,
            headings=self.headings,
            keywords=keywords if self.search_type == "hybrid" or keywords.is_open else None,
            inherited_keys=None if fields is None else frozenset(fields),
            representations=self.representations,
            writer=self.shared.writer,
        )

    @_operation
    async def _remove(self, ids: Sequence[str] | None, source: str | None) -> list[str]:
        return await remove(self._stores(), ids, source)

    @_operation
    async def _read(self, ids: Sequence[str]) -> list[D]:
        return [self._document(entry) for entry in await get(self._stores(), ids)]

    def _filtered_stores(self) -> Stores:
        """Return the stores with the retriever's own filter."""
        return self._stores(self._prepare("", {})[1])

    @_operation
    async def _search(
        self,
        query: Query,
        filters: Mapping[str, Any],
        rerank: Rerank | None,
        conditions: Mapping[str, Any] | None = None,
    ) -> list[Entry]:
        """Answer a query that `_prepare` made.

        Parameters:
            conditions: metadata that children must have, besides the retriever's own filter.
        """
        keywords = self.shared.keywords if query.search_type == "hybrid" else None
        stores = replace(self._stores(filters), keywords=keywords)
        if conditions:
            stores = replace(stores, children=stores.children.with_filter(conditions))
        await check_identity(stores)
        await check_filter(stores, self.shared.searchable)
        if keywords is not None:
            await prepare_keyword_index(stores, keywords)
        if not self.shared.is_checked:
            await check_first_query(stores)
            self.shared.is_checked = True
        results, is_full = await search(stores, query, rerank)
        if not is_full and rerank is None:
            await check_few_results(stores, query, results)
        return results
