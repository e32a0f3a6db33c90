"""Indexing a dataset: `add` over its batches in workers, under the one turn that the driver holds.

The framework does the rest: it drops duplicates, so that every document is in one batch, and it
repeats the work of a worker that dies. The index skips what has been written before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from rag_splitters.calls import run
from rag_splitters.distributed.columns import DocumentTable, arrow, load
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.ids import source_identity
from rag_splitters.parent_child.consistency import check_scope
from rag_splitters.parent_child.index import ParentChildIndex, stores_of_workers, turn_for_workers
from rag_splitters.parent_child.indexing import add, find_documents, remove_documents
from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.stores.stores import Stores
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import pyarrow as pa

OpenIndex = Callable[[], ParentChildIndex[Any, Any]]

IDENTITY, VERSION = "rag_splitters_id", "rag_splitters_version"
"""The columns that are added to documents, to find those that occur several times."""

RESULT = ("document_id", "status", "error")
"""The columns in which a worker says what became of each document."""

MAX_EXAMPLES = 5
"""Maximum number of documents that a message names."""


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """The result of indexing a dataset, in numbers of documents.

    `documents` is the sum of `added`, `changed`, `unchanged` and `failed`.
    """

    documents: int
    """Documents in the dataset; equal ones with the same id count once."""
    added: int
    """Documents that were not in the index before."""
    changed: int
    """Documents that were replaced because they, the splitters or the settings have changed, or
    because parts of them were missing."""
    unchanged: int
    """Documents that were already in the index; nothing was embedded or written for them. If a
    worker died, what it had written is among them or, if it was half written, among `changed`."""
    failed: int
    """Documents that could not be cut or stored; earlier versions stay in the index."""
    deleted: int
    """Documents that were removed because they were in the scope, but not in the dataset."""
    errors: tuple[str, ...] = ()
    """Messages for the first documents that failed."""


Finish = Callable[[Iterable[Mapping[str, Any]]], IndexSummary]
"""Takes what became of all documents, in rows with the columns of `RESULT`."""


@dataclass(frozen=True)
class TableIndexer(DocumentTable):
    """Writes the documents in the rows of a table into a parent-child index on servers.

    Pass it to `index_dataset` of Ray Data or `index_dataframe` of Spark.

    Parameters:
        open_index: a function without parameters that opens the index and returns the retriever:
            `parent_document_retriever` of either framework with a `client` of a Chroma server and a
            `docstore` on a server. It is pickled and called once in every process; let it read
            passwords and keys from the environment.
        text_column: the column with the texts: strings of any Arrow type.
        id_column: the column with the documents' ids: strings or whole numbers, without duplicates.
            Without ids, text and metadata identify a document, so a changed document is a new one.
        metadata_columns: the columns with the documents' metadata; None: all other columns.
        scope: which documents to remove if they are not in the dataset: those with this metadata,
            which every document in the dataset must have, too. None removes no documents; {}
            removes all that are not in the dataset.
        batch_size: number of documents to cut, embed and write at once. The number of texts that go
            to the model and to Chroma at once is set by the retriever's `batch_size` and by
            `Embedder`.
        on_error: what to do about a document that cannot be cut or stored. "raise": raise an error.
            "row": leave it out and count it as failed.

    Raises: TypeError if `open_index` is not a function; ValueError if the options contradict each
    other.
    """

    open_index: OpenIndex
    _: KW_ONLY
    scope: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.open_index):
            raise InputTypeError(
                "open_index must be a function without parameters that opens the index, got "
                f"{type(self.open_index).__name__}: open stores cannot be sent to workers"
            )


def read_documents(indexer: TableIndexer, table: pa.Table) -> list[Entry]:
    """Return the documents in the rows of a table."""
    names = indexer.metadata_names(table.schema, (IDENTITY, VERSION))
    return [Entry(*document) for document in indexer.documents(table, names)]


def identify(indexer: TableIndexer, table: pa.Table) -> pa.Table:
    """Return a table with the ids of the documents, and of their versions, in two columns."""
    documents = read_documents(indexer, table)
    ids = [source_identity(each.text, each.metadata, each.id) for each in documents]
    versions = [source_identity(each.text, each.metadata) for each in documents]
    string = arrow().string()
    table = table.append_column(IDENTITY, arrow().array(ids, string))
    return table.append_column(VERSION, arrow().array(versions, string))


class Worker:
    """A process that adds documents, with the index open."""

    def __init__(self, indexer: TableIndexer, turn: int) -> None:
        self._indexer = indexer
        self._index = _open(indexer)
        self._stores = stores_of_workers(self._index, turn)

    def add(self, table: pa.Table) -> pa.Table:
        """Add the documents of a table, and return the id of each, its status, and its error."""
        documents = list(check_scope(read_documents(self._indexer, table), self._indexer.scope))
        outcomes = run(add(self._stores, documents, tolerant=True))
        errors = [outcome.refusal for outcome in outcomes if outcome.refusal]
        if errors and self._indexer.on_error == "raise":
            raise InputError(errors[0])
        rows = [
            (source_identity(each.text, each.metadata, each.id), outcome.status, outcome.refusal)
            for each, outcome in zip(documents, outcomes, strict=True)
        ]
        pa = arrow()
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        arrays = [pa.array(map(_plain, column), pa.string()) for column in columns]
        return pa.Table.from_arrays(arrays, names=list(RESULT))


@lru_cache(maxsize=1)
def load_worker(payload: bytes) -> Worker:
    """Return the worker for a pickled indexer and its turn to write, one per process, so that its
    model loads once.
    """
    return Worker(*load(payload))


@contextmanager
def turn_to_index(indexer: TableIndexer) -> Iterator[tuple[int, Finish]]:
    """Keep other writers out of the index while workers add documents.

    Yields the number of the turn to write, which the workers share, and a function that reads their
    results, removes the documents in the scope that are not among them, and returns the summary.
    """
    index = _open(indexer)
    with closing(index), turn_for_workers(index) as turn:
        stores = stores_of_workers(index, turn)
        yield turn, partial(_finish, stores, indexer.scope)


def _finish(
    stores: Stores, scope: Mapping[str, Any] | None, results: Iterable[Mapping[str, Any]]
) -> IndexSummary:
    others = set[str]() if scope is None else set(run(find_documents(stores, scope)))
    counts = dict.fromkeys(("added", "changed", "unchanged", "failed"), 0)
    errors: list[str] = []
    for row in results:
        counts[row["status"]] += 1
        others.discard(row["document_id"])
        if row["error"] and len(errors) < MAX_EXAMPLES:
            errors.append(row["error"])
    deleted = run(remove_documents(stores, sorted(others), scope)) if others else []
    documents = sum(counts.values())
    return IndexSummary(documents, **counts, deleted=len(deleted), errors=tuple(errors))


def check_repeated(ids: Sequence[str]) -> None:
    """Raise ValueError if there are ids that several different documents share."""
    if ids:
        raise InputError(
            f"different documents have the same id, such as {', '.join(map(repr, ids))}, so one "
            "would replace the other: give each document an id of its own"
        )


def _open(indexer: TableIndexer) -> ParentChildIndex[Any, Any]:
    """Open the index."""
    index = indexer.open_index()
    if not isinstance(index, ParentChildIndex):
        raise InputTypeError(
            "open_index must return what parent_document_retriever returns, got "
            f"{type(index).__name__}"
        )
    return index


def _plain(text: str) -> str | None:
    return without_surrogates(text) or None
