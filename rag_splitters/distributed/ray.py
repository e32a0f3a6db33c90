"""Ray Data: a dataset of documents in, a dataset of their chunks or an index of them out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rag_splitters.contract.chunker import Chunker
from rag_splitters.distributed.runs import IndexSummary, Progress, make_job, run_job
from rag_splitters.distributed.splitter import TableSplitter, asks_model, load_splitter
from rag_splitters.distributed.stages import (
    Job,
    OpenIndex,
    Row,
    WorkStage,
    prepare,
    work,
)
from rag_splitters.errors import InputTypeError, MissingExtraError
from rag_splitters.extras import install_command
from rag_splitters.parameters.checks import whole_number

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

_BATCHES_PER_TASK = 16


def split_dataset(
    dataset: Dataset,
    chunker: Chunker,
    *,
    text_column: str = "text",
    id_column: str | None = None,
    metadata_columns: Sequence[str] | None = None,
    page_break: str | None = None,
    batch_size: int = 256,
    on_error: Literal["raise", "row"] = "raise",
    **options: Any,
) -> Dataset:
    """Split a Ray Dataset's documents lazily, into rows with the columns of `TableSplitter`.

    A task splits 16 batches, or a single one if the chunker uses a model: if its worker dies, Ray
    repeats the task, and you pay twice for that batch only. With a cache that all workers share,
    you do not even pay for the answers that the batch has already received.

    By default, the work runs in tasks, which suit strategies that use only the CPU or call a model
    behind an API. A worker process keeps the chunker for its next task, so it loads a tokenizer
    only once. For a model in memory or on a GPU, use actors, which run until the work is done:
    `compute=ray.data.ActorPoolStrategy(size=2), num_gpus=1`. If an actor dies, Ray repeats the
    whole block.

    With `id_column`, Ray's own checkpoints (`ray.data.checkpoint.CheckpointConfig`) know which
    documents are done, because the column keeps its name.

    Parameters:
        dataset: the documents.
        chunker: any chunker; it is pickled, and its models read their keys from the environment of
            the workers.
        text_column, id_column, metadata_columns, page_break, batch_size, on_error: see
            `TableSplitter`.
        options: options of `Dataset.map_batches`: `compute`, `concurrency`, `num_cpus`, `memory`
            and so on.

    Returns: the chunks. Ray drops the columns of a dataset without rows, so the result then has no
    columns either.

    Raises: ImportError if Ray is not installed; TypeError for another kind of dataset. Errors in
    the columns are raised at once if Ray already knows the columns, else when the dataset is
    consumed. Errors of the strategy, which name the document, are raised then, too.
    """
    ray = _ray("split_dataset", dataset)
    splitter = TableSplitter(
        chunker,
        text_column=text_column,
        id_column=id_column,
        metadata_columns=metadata_columns,
        page_break=page_break,
        batch_size=batch_size,
        on_error=on_error,
    )
    schema = _known_schema(dataset)
    if schema is not None:
        splitter.output_schema(schema)
    payload: bytes = ray.cloudpickle.dumps(splitter)
    in_actors = isinstance(options.get("compute"), ray.data.ActorPoolStrategy)
    work: Any = _Splitting if in_actors else _split
    if not in_actors:  # actors may hold all CPUs, and then no task could divide the blocks
        # Ray reads many small files as one block, and one block is one task, on one core.
        per_task = batch_size if asks_model(chunker) else _BATCHES_PER_TASK * batch_size
        dataset = dataset.repartition(target_num_rows_per_block=per_task)
    return dataset.map_batches(
        work,
        batch_size=batch_size,
        batch_format="pyarrow",
        fn_kwargs={"payload": payload},
        **options,
    )


def _split(batch: pa.Table, payload: bytes) -> Iterator[pa.Table]:
    """A task: split a batch."""
    import pyarrow as pa

    for chunks in load_splitter(payload).split_batches(batch):
        yield pa.Table.from_batches([chunks])


class _Splitting:
    """An actor that splits batches, in a process that keeps running."""

    def __call__(self, batch: pa.Table, payload: bytes) -> Iterator[pa.Table]:
        return _split(batch, payload)


def index_dataset(
    dataset: Dataset,
    open_index: OpenIndex,
    *,
    checkpoint: str | Path,
    text_column: str = "text",
    id_column: str | None = None,
    metadata_columns: Sequence[str] | None = None,
    scope: Mapping[str, Any] | None = None,
    writers: int = 2,
    batch_size: int = 256,
    on_error: Literal["raise", "row"] = "raise",
    resume: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> IndexSummary:
    """Write a Ray Dataset's documents into a parent-child index on servers.

    The result is the index that one process would have written with `add_documents`: the same
    records, parents, children, vectors and keywords, which every retriever can read. Documents that
    have not changed since they were last indexed are skipped, changed ones are replaced, and with
    `scope` those that are no longer in the dataset are removed.

    Tasks cut the documents and write parents and children to Parquet files. Actors read these,
    embed the children, and write them to the index. If a worker dies, Ray repeats its work, without
    embedding again what has been written. If the run ends early, run it again, or with
    `resume=True` to continue from the Parquet files.

    Parameters:
        dataset: the documents.
        open_index: a function without parameters that opens the index and returns the retriever:
            `parent_document_retriever` of either framework with a `client` of a Chroma server and a
            `docstore` on a server. It is pickled and called once in every process; let it read
            passwords and keys from the environment.
        checkpoint: a new folder, or that of an earlier run, which all machines see under the same
            path: a network drive or a URI such as `s3://bucket/run`. The run overwrites it.
        text_column: the column with the texts: strings of any Arrow type.
        id_column: the column with the documents' ids: strings or whole numbers, without duplicates.
            Without ids, text and metadata identify a document, so a changed document is a new one.
        metadata_columns: the columns with the documents' metadata; None: all other columns.
        scope: which documents to remove if they are not in the dataset: those with this metadata,
            which every document in the dataset must have, too. None removes no documents; {}
            removes all that are not in the dataset.
        writers: number of actors that embed and write concurrently; each has a model of its own.
        batch_size: number of documents to cut, or to embed and write, at once. The number of texts
            that go to the model and to Chroma at once is set by the retriever's `batch_size` and by
            `Embedder`.
        on_error: what to do about a document that cannot be cut or stored. "raise": raise an error.
            "row": leave it out and count it as failed; its row in the checkpoint says why.
        resume: whether to continue with the documents that an interrupted run has already cut,
            without reading the dataset again.
        progress: a function (written, total) that is called from a thread every few seconds with
            numbers of documents; None: progress is logged.
        options: options of `Dataset.map_batches` for the actors: `num_gpus`, `num_cpus`, `memory`.

    Returns: how many documents were added, changed, unchanged, failed and deleted. All documents
    that were written have been checked in the stores.

    Raises: ImportError if Ray is not installed; TypeError for another kind of dataset; ValueError
    for stores to which only one process may write, for documents outside of the scope, for ids that
    several documents share, and for a document that fails; RuntimeError if documents that were
    written are missing in a store afterwards.
    """
    ray = _ray("index_dataset", dataset)
    whole_number(writers, "writers", 1)
    job = make_job(
        open_index,
        checkpoint,
        text_column,
        id_column,
        metadata_columns,
        scope,
        batch_size,
        on_error,
    )
    schema = _known_schema(dataset)
    if schema is not None:
        job.check_columns(schema)
    engine = _Engine(ray, dataset, writers, options)
    return run_job(job, engine, resume=resume, progress=progress)


class _Engine:
    """Runs the stages of indexing; see `rag_splitters.distributed.runs.Engine`."""

    def __init__(self, ray: Any, dataset: Dataset, writers: int, options: Mapping[str, Any]):
        self._ray, self._dataset = ray, dataset
        self._writers, self._options = writers, options

    def prepare(self, job: Job) -> None:
        blocks = self._dataset.repartition(
            target_num_rows_per_block=_BATCHES_PER_TASK * job.batch_size
        )
        task: Any = _prepare
        rows = blocks.map_batches(
            task,
            batch_size=job.batch_size,
            batch_format="pyarrow",
            fn_kwargs={"payload": self._pickle(job)},
        )
        rows.write_parquet(job.checkpoint.chunks)

    def work(self, job: Job, stage: WorkStage, items: Sequence[Sequence[str]]) -> list[Row]:
        # The items are in memory: tasks that read them would wait for the actors' CPUs.
        table = [{"item": json.dumps(item)} for item in items]
        worker: Any = _work
        size = min(self._writers, len(items))
        options: dict[str, Any] = {"compute": self._ray.data.TaskPoolStrategy(size)}
        if stage == "write":
            pool = self._ray.data.ActorPoolStrategy(min_size=1, max_size=size)
            worker, options = _Writing, {**self._options, "compute": pool}
        results = self._ray.data.from_items(table, override_num_blocks=len(table)).map_batches(
            worker,
            batch_size=1,
            batch_format="pyarrow",
            fn_kwargs={"payload": self._pickle(job), "stage": stage},
            **options,
        )
        return [json.loads(row["result"]) for row in results.take_all()]

    def _pickle(self, job: Job) -> bytes:
        payload: bytes = self._ray.cloudpickle.dumps(job)
        return payload


def _prepare(batch: pa.Table, payload: bytes) -> Iterator[pa.Table]:
    """A task: cut a batch of documents."""
    import pyarrow as pa

    for rows in prepare(payload, batch):
        yield pa.Table.from_batches([rows])


def _work(batch: pa.Table, payload: bytes, stage: WorkStage) -> pa.Table:
    """A task: run the stage "count" or "settle"."""
    import pyarrow as pa

    return pa.Table.from_batches([work(payload, stage, batch)])


class _Writing:
    """An actor that embeds and writes."""

    def __call__(self, batch: pa.Table, payload: bytes, stage: WorkStage) -> pa.Table:
        return _work(batch, payload, stage)


def _ray(function: str, dataset: object) -> Any:
    """Import `ray`. Raises ImportError without Ray, and TypeError for another dataset."""
    try:
        import ray
        import ray.cloudpickle
        import ray.data
    except ImportError as error:
        raise MissingExtraError(f"{function} needs Ray: {install_command('ray')}") from error
    if not isinstance(dataset, ray.data.Dataset):
        raise InputTypeError(f"dataset must be a ray.data.Dataset, got {type(dataset).__name__}")
    return ray


def _known_schema(dataset: Dataset) -> pa.Schema | None:
    """Return the columns, if Ray knows them without reading the dataset."""
    import pyarrow as pa

    schema = dataset.schema(fetch_if_missing=False)
    is_arrow = schema is not None and isinstance(schema.base_schema, pa.Schema)
    return schema.base_schema if is_arrow else None
