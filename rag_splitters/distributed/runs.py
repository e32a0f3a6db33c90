"""The driver's side of a run that indexes a dataset: its stages, progress and summary."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from rag_splitters.calls import run
from rag_splitters.distributed.checkpoint import Checkpoint
from rag_splitters.distributed.stages import (
    MAX_EXAMPLES,
    Job,
    OpenIndex,
    Row,
    Shard,
    Worker,
    WorkStage,
    repeated_message,
)
from rag_splitters.errors import InputError, OperationError
from rag_splitters.parent_child.indexing import settings_of
from rag_splitters.parent_child.turns import Docstore

_LOG = logging.getLogger(__name__)
_SHARD_DOCUMENTS = 2_000_000  # a worker holds their keys in memory, in about 200 MB
_MAX_SHARDS = 256
_SECONDS_PER_REPORT = 2.0

Progress = Callable[[int, int], None]
"""A function (written, total), which gets numbers of documents."""


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """The result of indexing a dataset, in numbers of documents unless it says otherwise.

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
    """Documents that were already in the index; nothing was embedded or written for them."""
    failed: int
    """Documents that could not be cut or stored; earlier versions stay in the index."""
    deleted: int
    """Documents that were removed because they were in the scope, but not in the dataset."""
    parents: int
    """Number of parents of the dataset's documents in the index."""
    children: int
    """Number of children of the dataset's documents in the index."""
    errors: tuple[str, ...] = ()
    """Messages for the first documents that failed; the checkpoint has all, in `error`."""


class Engine(Protocol):
    """The framework that runs the stages on many machines."""

    def prepare(self, job: Job) -> None:
        """Run the first stage on the dataset, and write its rows to the checkpoint."""

    def work(self, job: Job, stage: WorkStage, items: Sequence[Sequence[str]]) -> list[Row]:
        """Run another stage on each of the items, and return the results in any order."""


def make_job(
    open_index: OpenIndex,
    checkpoint: str | Path,
    text_column: str,
    id_column: str | None,
    metadata_columns: Sequence[str] | None,
    scope: Mapping[str, Any] | None,
    batch_size: int,
    on_error: Literal["raise", "row"],
) -> Job:
    """Make a job with a unique name."""
    return Job(
        open_index,
        Checkpoint(checkpoint),
        text_column,
        id_column,
        metadata_columns,
        scope,
        batch_size,
        on_error,
        uuid.uuid4().hex,
    )


def run_job(job: Job, engine: Engine, *, resume: bool, progress: Progress | None) -> IndexSummary:
    """Run the stages one after the other, and compare the counts with the stores."""
    worker = Worker(job)
    with closing(worker.index):
        _prepare(job, engine, settings_of(worker.stores), resume)
        files = job.checkpoint.list_files()
        shards = make_shards(sum(files.values()))
        counts = _merge(engine.work(job, "count", shards))
        _LOG.info("all documents have been cut: %s", counts)
        if counts["repeated"]:
            raise InputError(repeated_message(counts["repeated"]))
        total = counts["added"] + counts["changed"]
        if total:
            with _report(worker.stores.docstore, job, total, progress or _log_progress):
                engine.work(job, "write", [[file] for file in files])
        _LOG.info("all documents have been written; checking them in the docstore")
        settled = _merge(engine.work(job, "settle", shards))
        if settled["missing"]:
            raise OperationError(
                "documents were written, but they are missing in the docstore: "
                f"{', '.join(map(repr, settled['missing']))}. Another process may have deleted them"
            )
        _check_children(run(worker.stores.children.count()), counts["children"])
        documents = total + counts["unchanged"] + counts["failed"]
        return IndexSummary(
            documents=documents,
            added=counts["added"],
            changed=counts["changed"],
            unchanged=counts["unchanged"],
            failed=counts["failed"],
            deleted=settled["deleted"],
            parents=counts["parents"],
            children=counts["children"],
            errors=tuple(counts["errors"]),
        )


def make_shards(documents: int) -> list[Shard]:
    """Divide all documents by the beginnings of their keys into shards that fit into memory.

    >>> len(make_shards(5_000)), len(make_shards(100_000_000))
    (1, 50)
    """
    count = min(_MAX_SHARDS, max(1, -(-documents // _SHARD_DOCUMENTS)))
    prefixes = [f"{number:02x}" for number in range(256)]
    return [prefixes[number::count] for number in range(count)]


def _prepare(job: Job, engine: Engine, settings: str, resume: bool) -> None:
    """Cut the dataset's documents, unless they are resumed from an interrupted run."""
    state = job.checkpoint.read_state() if resume else None
    if state is None or not state["is_prepared"]:
        job.checkpoint.clear()
        job.checkpoint.write_state({"is_prepared": False, "settings": settings})
        engine.prepare(job)
        job.checkpoint.write_state({"is_prepared": True, "settings": settings})
    elif state["settings"] != settings:
        raise InputError(
            "smoothing, headings or the version of rag_splitters have changed since the "
            f"checkpoint {job.checkpoint.path!r} was written: leave out resume=True"
        )


def _merge(results: Iterable[Row]) -> Row:
    """Add up the counts of shards, and join their examples."""
    merged: Row = {}
    for result in results:
        for name, value in result.items():
            merged[name] = merged[name] + value if name in merged else value
    return {
        name: value[:MAX_EXAMPLES] if isinstance(value, list) else value
        for name, value in merged.items()
    }


def _check_children(stored: int | None, expected: int) -> None:
    if stored is not None and stored < expected:
        raise OperationError(
            f"the vector store has {stored:,} children, and the documents have {expected:,}: "
            "open_index must open the same server in every worker and in this process"
        )


def _log_progress(written: int, total: int) -> None:
    _LOG.info("%s of %s documents written", f"{written:,}", f"{total:,}")


@contextmanager
def _report(docstore: Docstore, job: Job, total: int, progress: Progress) -> Iterator[None]:
    """Report the workers' progress, which they record in the docstore, from a thread."""
    ended = threading.Event()

    def watch() -> None:
        last = -1
        while not ended.wait(_SECONDS_PER_REPORT):
            with suppress(OSError):  # the next attempt may succeed, and workers will notice it, too
                keys = run(docstore.list_keys(job.progress_prefix))
                rows = run(docstore.read(keys))
                # A repeated batch counts twice.
                written = min(total, sum(int(row.text) for row in rows if row is not None))
                if written != last:
                    progress(written, total)
                    last = written

    run(docstore.write([], run(docstore.list_keys(job.progress_prefix))))
    thread = threading.Thread(target=watch, name="rag_splitters progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(OSError):
            run(docstore.write([], run(docstore.list_keys(job.progress_prefix))))
    progress(total, total)
