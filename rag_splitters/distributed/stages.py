"""Indexing a table on many machines: what a worker does in each of the stages.

1. Prepare: documents are cut into parents and children, compared with the docstore's records, and
   written to the checkpoint.
2. Count: the checkpoint is counted, and searched for ids that several documents have.
3. Write: what is new or has changed is embedded and written, a batch of documents at a time, by the
   functions that write in one process, under the same locks.
4. Settle: the checkpoint is compared with the docstore's records, and what is gone is removed.

The docstore's record of a document is the ledger. It is written last, and its digest tells whether
the document, what it is cut into, or the settings have changed. So every stage can be repeated.
"""

from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from rag_splitters.calls import run
from rag_splitters.distributed.checkpoint import (
    Checkpoint,
    document_schema,
    draft_from_json,
    draft_to_json,
)
from rag_splitters.distributed.columns import (
    arrow,
    check_id_type,
    check_names,
    check_options,
    check_text_type,
    input_columns,
)
from rag_splitters.errors import InputError, InputTypeError, OperationError
from rag_splitters.ids import source_identity, stable_uuid
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.consistency import check_scope
from rag_splitters.parent_child.drafts import Draft, draft_documents
from rag_splitters.parent_child.index import ParentChildIndex, stores_of_workers
from rag_splitters.parent_child.indexing import (
    add_drafts,
    digest_of,
    find_changed,
    find_refusal,
    has_metadata,
    remove_documents,
)
from rag_splitters.parent_child.records import (
    RECORD_PREFIX,
    STATE_PREFIX,
    Entry,
    Record,
    record_key,
)
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import pyarrow as pa

OpenIndex = Callable[[], ParentChildIndex[Any, Any]]
Row = dict[str, Any]
Shard = Sequence[str]
"""Some of the documents, by the first two characters of their keys."""
MAX_EXAMPLES = 5
"""Maximum number of documents that a message names."""
WorkStage = Literal["write", "count", "settle"]

_MAX_BYTES = 1 << 25  # of a batch of the checkpoint; only a single document may be larger
_GROUP_DOCUMENTS = 256
_ATTEMPTS = 2


@dataclass(frozen=True)
class Job:
    """The documents to index and the index to write, as sent to the workers."""

    open_index: OpenIndex
    checkpoint: Checkpoint
    text_column: str
    id_column: str | None
    metadata_columns: Sequence[str] | None
    scope: Mapping[str, Any] | None
    batch_size: int
    on_error: Literal["raise", "row"]
    name: str
    """A unique name of the run, so that a worker opens the index again for each run."""

    def __post_init__(self) -> None:
        if not callable(self.open_index):
            raise InputTypeError(
                "open_index must be a function without parameters that opens the index, got "
                f"{type(self.open_index).__name__}: open stores cannot be sent to workers"
            )
        check_options(
            self.text_column, self.id_column, self.metadata_columns, self.batch_size, self.on_error
        )

    @property
    def progress_prefix(self) -> str:
        """Prefix of the docstore's keys under which workers record their progress."""
        # Named by the folder, so that a resumed run removes the records of the interrupted one.
        return f"{STATE_PREFIX}run/{stable_uuid(self.checkpoint.path)}/"

    def check_columns(self, schema: pa.Schema) -> list[str]:
        """Return the names of the metadata columns.

        Raises ValueError if a column is missing or occurs twice, and TypeError if texts or ids have
        the wrong type.
        """
        inputs = input_columns(self.text_column, self.id_column)
        others = [name for name in schema.names if name not in inputs]
        names = others if self.metadata_columns is None else list(self.metadata_columns)
        check_names(schema, [*inputs, *names])
        check_text_type(self.text_column, schema.field(self.text_column).type)
        if self.id_column is not None:
            check_id_type(self.id_column, schema.field(self.id_column).type)
        return names


class Worker:
    """A process's part of a job, with the index open."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.index = job.open_index()
        if not isinstance(self.index, ParentChildIndex):
            raise InputTypeError(
                "open_index must return what parent_document_retriever returns, got "
                f"{type(self.index).__name__}"
            )
        try:
            self.stores = stores_of_workers(self.index)
        except ValueError:
            self.index.close()
            raise
        self._progress_key = job.progress_prefix + uuid.uuid4().hex
        self._written = 0

    def prepare(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Cut the documents of a table, and return their rows of the checkpoint."""
        rows: list[Row] = []
        size = 0
        for start in range(0, table.num_rows, self.job.batch_size):
            for row in self._prepare_rows(table.slice(start, self.job.batch_size)):
                rows.append(row)
                size += len(row.get("draft") or "")
                if size >= _MAX_BYTES:
                    yield arrow().RecordBatch.from_pylist(rows, document_schema())
                    rows, size = [], 0
        yield arrow().RecordBatch.from_pylist(rows, document_schema())

    def write(self, files: Sequence[str]) -> Row:
        """Embed and write the new and changed documents in some files of the checkpoint.

        Raises RuntimeError if the documents are not in the stores afterwards.
        """
        rows = self.job.checkpoint.read_rows(["document_id", "draft"], files)
        changed = (row for row in rows if row["draft"])
        written = 0
        while batch := list(islice(changed, self.job.batch_size)):
            drafts = {row["document_id"]: row["draft"] for row in batch}
            self._write_drafts([draft_from_json(*pair) for pair in drafts.items()])
            written += len(batch)
            self._written += len(batch)
            report = Entry(str(self._written), {}, self._progress_key)
            run(self.stores.docstore.write([(self._progress_key, report)]))
        return {"written": written}

    def count(self, shard: Shard) -> Row:
        """Count the documents of a shard by status, with their parents and children.

        "repeated" holds examples of ids that several documents share.
        """
        names = ["document_id", "status", "digest", "parents", "children", "error"]
        digests: dict[str, str] = {}
        repeated: list[str] = []
        errors: list[str] = []
        counts = dict.fromkeys(("added", "changed", "unchanged", "failed"), 0)
        counts |= {"parents": 0, "children": 0}
        for row in self._rows_of(shard, names):
            key, version = row["key"], row["digest"] or row["error"]
            if key in digests:
                repeated += [row["document_id"]] if digests[key] != version else []
                continue
            digests[key] = version
            counts[row["status"]] += 1
            counts["parents"] += row["parents"]
            counts["children"] += row["children"]
            errors += [row["error"]] if row["error"] else []
        return {**counts, "repeated": repeated[:MAX_EXAMPLES], "errors": errors[:MAX_EXAMPLES]}

    def settle(self, shard: Shard) -> Row:
        """Remove the documents in the scope that are not in the dataset, and count them.

        "missing" holds examples of documents that should be in the docstore, but are not.
        """
        names = {
            row["key"]: row["document_id"] if row["digest"] else None
            for row in self._rows_of(shard, ["document_id", "digest"])
        }
        stored: set[str] = set()
        for prefix in shard:
            keys = run(self.stores.docstore.list_keys(RECORD_PREFIX + prefix))
            stored.update(key.removeprefix(RECORD_PREFIX) for key in keys)
        missing = [name for key, name in names.items() if name is not None and key not in stored]
        deleted = 0
        if self.job.scope is not None:
            unlisted = sorted(stored - names.keys())
            deleted = sum(map(self._remove, batched(unlisted, _GROUP_DOCUMENTS)))
        return {"deleted": deleted, "missing": missing[:MAX_EXAMPLES]}

    def _rows_of(self, shard: Shard, columns: Sequence[str]) -> Iterator[Row]:
        """Yield the rows of the checkpoint for the documents of a shard, with their keys."""
        checkpoint, prefixes = self.job.checkpoint, set(shard)
        for row in checkpoint.read_rows(["key", *columns], list(checkpoint.list_files())):
            if row["key"][:2] in prefixes:
                yield row

    def _prepare_rows(self, table: pa.Table) -> Iterator[Row]:
        documents: dict[str, Entry] = {}
        for number, document in enumerate(check_scope(self._documents(table), self.job.scope)):
            refusal = find_refusal(self.stores, document, number)
            if refusal is not None:
                yield self._failed_row(document, refusal)
                continue
            identity = source_identity(document.text, document.metadata, document.id)
            other = documents.setdefault(identity, document)
            if other is not document and _content(other) != _content(document):
                raise InputError(repeated_message([identity]))
        drafts: list[tuple[Draft, str]] = []
        for document, result in self._cut(documents):
            if isinstance(result, Exception):
                yield self._failed_row(document, _failure(document, result))
            else:
                drafts.append(result)
        changed = run(find_changed(self.stores, [draft for draft, _ in drafts]))
        for draft, text in drafts:
            is_changed = draft.identity in changed
            status = "changed" if changed.get(draft.identity) else "added"
            yield {
                "document_id": draft.identity,
                "key": _key(draft.identity),
                "status": status if is_changed else "unchanged",
                "digest": digest_of(self.stores, draft),
                "parents": len(draft.parents),
                "children": len(draft.children),
                "draft": text if is_changed else None,
            }

    def _documents(self, table: pa.Table) -> list[Entry]:
        """Return the documents in the rows of a table."""
        job = self.job
        metadata = job.check_columns(table.schema)
        texts = table.column(job.text_column).to_pylist()
        ids = [None] * len(texts)
        if job.id_column is not None:
            ids = table.column(job.id_column).to_pylist()
        details = table.select(metadata).to_pylist() if metadata else [{} for _ in texts]
        return [
            Entry(text or "", values, None if name is None else str(name))
            for text, values, name in zip(texts, details, ids, strict=True)
        ]

    def _cut(
        self, documents: Mapping[str, Entry]
    ) -> Iterator[tuple[Entry, tuple[Draft, str] | Exception]]:
        """Yield each document with its draft, also as JSON, or with the error that it causes.

        If the documents cannot be cut together, they are cut one by one.
        """
        if not documents:
            return
        try:
            drafts = run(draft_documents(self.stores, documents))
            texts = list(map(draft_to_json, drafts))
        except ImportError:  # not the fault of a document
            raise
        except Exception as error:
            if getattr(error, "fatal", False):
                raise
            if len(documents) == 1:
                yield next(iter(documents.values())), error
                return
            for identity, document in documents.items():
                yield from self._cut({identity: document})
            return
        yield from zip(documents.values(), zip(drafts, texts, strict=True), strict=True)

    def _failed_row(self, document: Entry, reason: str) -> Row:
        """Return the row of a document that cannot be indexed.

        Raises ValueError unless `on_error` is "row".
        """
        if self.job.on_error == "raise":
            raise InputError(reason)
        identity = source_identity(document.text, document.metadata, document.id)
        return {
            "document_id": identity,
            "key": _key(identity),
            "status": "failed",
            "parents": 0,
            "children": 0,
            "error": without_surrogates(reason),
        }

    def _write_drafts(self, drafts: Sequence[Draft]) -> None:
        """Write documents, and check that they are in the stores."""
        remaining = drafts
        for _ in range(_ATTEMPTS):  # another process may write the same documents
            run(add_drafts(self.stores, remaining))
            changed = run(find_changed(self.stores, drafts))
            remaining = [draft for draft in drafts if draft.identity in changed]
            if not remaining:
                return
        raise OperationError(
            f"documents such as {remaining[0].identity!r} were written, but are missing in the "
            "stores: either a store has lost data, or another process writes the same documents. "
            "Run it again with resume=True"
        )

    def _remove(self, keys: Sequence[str]) -> int:
        """Remove the documents with these keys that are in the scope."""
        rows = run(self.stores.docstore.read([RECORD_PREFIX + key for key in keys]))
        records = [record for row in rows if (record := Record.from_row(row)) is not None]
        in_scope = [
            each.identity for each in records if has_metadata(each.document, self.job.scope)
        ]
        return len(run(remove_documents(self.stores, in_scope, self.job.scope)))


@lru_cache(maxsize=1)
def open_worker(payload: bytes) -> Worker:
    """Return the worker for a pickled job, one per process, so that its model loads once."""
    job: Job = pickle.loads(payload)  # noqa: S301  (our own, from the driver)
    return Worker(job)


def prepare(payload: bytes, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Run the stage "prepare" in a worker's process."""
    return open_worker(payload).prepare(table)


def work(payload: bytes, stage: WorkStage, table: pa.Table) -> pa.RecordBatch:
    """Run another stage in a worker's process; items and results are lists in JSON."""
    worker = open_worker(payload)
    do = {"write": worker.write, "count": worker.count, "settle": worker.settle}[stage]
    results = [json.dumps(do(json.loads(item))) for item in table.column("item").to_pylist()]
    return arrow().RecordBatch.from_pydict({"result": results})


def repeated_message(identities: Sequence[str]) -> str:
    """Return the error message for ids that several documents share."""
    names = ", ".join(map(repr, identities))
    return (
        f"different documents have the same id, such as {names}: ids must be unique, because the "
        "rows of a dataset have no order, so none of them is the last one"
    )


def _key(identity: str) -> str:
    return record_key(identity).removeprefix(RECORD_PREFIX)


def _content(document: Entry) -> str:
    return source_identity(document.text, document.metadata)


def _failure(document: Entry, error: Exception) -> str:
    name = repr(document.id) if document.id is not None else f"(no id) {document.text[:60]!r}"
    return f"document {name} could not be split: {type(error).__name__}: {error}"
