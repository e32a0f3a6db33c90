"""A run that indexes a dataset, from the side of the driver: its stages, progress and summary."""

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
from rag_splitters.parent_child.indexing import settings_of
from rag_splitters.parent_child.stores import Docstore

_LOG = logging.getLogger(__name__)
_SHARD_DOCUMENTS = 2_000_000  # whose keys a worker holds in memory at once, in about 200 MB
_MAX_SHARDS = 256
_SECONDS_PER_REPORT = 2.0

Progress = Callable[[int, int], None]
"""Takes the number of documents that have been written, and of those that are to be."""


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """What indexing a dataset did. Every count is of documents unless it says otherwise.

    `documents` is the sum of `added`, `changed`, `unchanged` and `failed`.
    """

    documents: int
    """Documents in the dataset; equal ones with the same id count once."""
    added: int
    """Documents that the index did not have."""
    changed: int
    """Documents that were replaced because they, the splitters or the settings have changed, or
    because parts of them were missing."""
    unchanged: int
    """Documents that were there already; nothing was embedded or written for them."""
    failed: int
    """Documents that could not be cut or stored; what the index had of them stays."""
    deleted: int
    """Documents that were removed because they are in the scope, but not in the dataset."""
    parents: int
    """Parents that the dataset's documents have in the index."""
    children: int
    """Children that the dataset's documents have in the index."""
    errors: tuple[str, ...] = ()
    """Why the first of the failed documents failed; the checkpoint has all of them in `error`."""


class Engine(Protocol):
    """What runs the stages on many machines."""

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
    """Make a job with a name of its own."""
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
        _LOG.info("the documents are cut: %s", counts)
        if counts["repeated"]:
            raise ValueError(repeated_message(counts["repeated"]))
        total = counts["added"] + counts["changed"]
        if total:
            with _reported(worker.stores.docstore, job, total, progress or _log_progress):
                engine.work(job, "write", [[file] for file in files])
        _LOG.info("everything is written; comparing it with the docstore")
        settled = _merge(engine.work(job, "settle", shards))
        if settled["missing"]:
            raise RuntimeError(
                "documents were written, and then the docstore did not have them: "
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
    """Divide all documents, by how their keys begin, into shards that fit into memory.

    >>> len(make_shards(5_000)), len(make_shards(100_000_000))
    (1, 50)
    """
    count = min(_MAX_SHARDS, max(1, -(-documents // _SHARD_DOCUMENTS)))
    prefixes = [f"{number:02x}" for number in range(256)]
    return [prefixes[number::count] for number in range(count)]


def _prepare(job: Job, engine: Engine, settings: str, resume: bool) -> None:
    """Cut the dataset's documents, unless an interrupted run has done so."""
    state = job.checkpoint.read_state() if resume else None
    if state is None or not state["is_prepared"]:
        job.checkpoint.clear()
        job.checkpoint.write_state({"is_prepared": False, "settings": settings})
        engine.prepare(job)
        job.checkpoint.write_state({"is_prepared": True, "settings": settings})
    elif state["settings"] != settings:
        raise ValueError(
            "smoothing, headings or the version of rag_splitters have changed since the "
            f"checkpoint {job.checkpoint.path!r} was written: leave out resume=True"
        )


def _merge(results: Iterable[Row]) -> Row:
    """Add up what shards counted, and join their examples."""
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
        raise RuntimeError(
            f"the vector store has {stored:,} children, and the documents have {expected:,}: "
            "open_index must open the same server in every worker as here"
        )


def _log_progress(written: int, total: int) -> None:
    _LOG.info("%s of %s documents written", f"{written:,}", f"{total:,}")


@contextmanager
def _reported(docstore: Docstore, job: Job, total: int, progress: Progress) -> Iterator[None]:
    """Report, from a thread, what the workers say in the docstore that they have written."""
    ended = threading.Event()

    def watch() -> None:
        last = -1
        while not ended.wait(_SECONDS_PER_REPORT):
            with suppress(OSError):  # the next look may succeed, and the workers notice it too
                keys = run(docstore.list_keys(job.progress_prefix))
                rows = run(docstore.read(keys))
                # A batch that was repeated counts twice.
                written = min(total, sum(int(row.text) for row in rows if row is not None))
                if written != last:
                    progress(written, total)
                    last = written

    run(docstore.remove(run(docstore.list_keys(job.progress_prefix))))
    thread = threading.Thread(target=watch, name="rag_splitters progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(OSError):
            run(docstore.remove(run(docstore.list_keys(job.progress_prefix))))
    progress(total, total)
