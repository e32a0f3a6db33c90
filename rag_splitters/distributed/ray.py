"""Ray Data: a dataset of documents in, a dataset of their chunks or an index of them out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from rag_splitters.contract.sized import chunkers_in
from rag_splitters.distributed.columns import check_table, load
from rag_splitters.distributed.indexing import (
    IDENTITY,
    VERSION,
    IndexSummary,
    TableIndexer,
    check_repeated,
    identify,
    load_worker,
    turn_to_index,
)
from rag_splitters.distributed.splitter import TableSplitter
from rag_splitters.errors import InputTypeError
from rag_splitters.extras import needs
from rag_splitters.models.pickling import ModelHolder
from rag_splitters.parameters.checks import whole_number

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

_BATCHES_PER_TASK = 16


def split_dataset(dataset: Dataset, splitter: TableSplitter, **options: Any) -> Dataset:
    """Split a Ray Dataset's documents lazily, into rows with the columns of `TableSplitter`.

    A task splits 16 batches, or a single one if the chunker uses a model: if its worker dies, Ray
    repeats the task, and you pay twice for that batch only. With a cache that all workers share,
    you do not even pay for the answers that the batch has already received.

    By default, the work runs in tasks, which suit strategies that use only the CPU or call a model
    behind an API. A worker process keeps the chunker for its next task, so it loads a tokenizer
    only once. For a model in memory or on a GPU, use actors, which run until the work is done:
    `compute=ray.data.ActorPoolStrategy(size=2), num_gpus=1`. If an actor dies, Ray repeats the
    whole block.

    If the splitter has an `id_column`, Ray's own checkpoints
    (`ray.data.checkpoint.CheckpointConfig`) know which documents are done, because the column keeps
    its name.

    Parameters:
        dataset: the documents.
        splitter: how to cut the documents; it is pickled, and its models read their keys from the
            environment of the workers.
        options: options of `Dataset.map_batches`: `compute`, `concurrency`, `num_cpus`, `memory`
            and so on.

    Returns: the chunks. Ray drops the columns of a dataset without rows, so the result then has no
    columns either.

    Raises: ImportError if Ray is not installed; TypeError for another kind of dataset. Errors in
    the columns are raised at once if Ray already knows the columns, else when the dataset is
    consumed. Errors of the strategy, which name the document, are raised then, too.
    """
    ray = _ray("split_dataset", dataset)
    check_table(splitter, TableSplitter, "chunker")
    schema = _known_schema(dataset)
    if schema is not None:
        splitter.output_schema(schema)
    payload: bytes = ray.cloudpickle.dumps(splitter)
    in_actors = isinstance(options.get("compute"), ray.data.ActorPoolStrategy)
    work: Any = _Splitting if in_actors else _split
    if not in_actors:  # actors may hold all CPUs, and then no task could divide the blocks
        # Ray reads many small files as one block, and one block is one task, on one core.
        values = (value for chunker in chunkers_in(splitter.chunker) for _, value in chunker)
        has_model = any(isinstance(value, ModelHolder) for value in values)
        batches = 1 if has_model else _BATCHES_PER_TASK
        per_task = batches * splitter.batch_size
        dataset = dataset.repartition(target_num_rows_per_block=per_task)
    return dataset.map_batches(
        work,
        batch_size=splitter.batch_size,
        batch_format="pyarrow",
        fn_kwargs={"payload": payload},
        **options,
    )


def _split(batch: pa.Table, payload: bytes) -> Iterator[pa.Table]:
    """Split a batch, in a task."""
    import pyarrow as pa

    for chunks in load(payload).split_batches(batch):
        yield pa.Table.from_batches([chunks])


class _Splitting:
    """An actor that splits batches, in a process that keeps running."""

    def __call__(self, batch: pa.Table, payload: bytes) -> Iterator[pa.Table]:
        return _split(batch, payload)


def index_dataset(
    dataset: Dataset, indexer: TableIndexer, *, writers: int = 2, **options: Any
) -> IndexSummary:
    """Write a Ray Dataset's documents into a parent-child index on servers.

    The result is the index that one process would have written with `add_documents`. Documents that
    have not changed since they were last indexed are skipped, changed ones are replaced, and if the
    indexer has a `scope`, those that are no longer in the dataset are removed.

    This process keeps other writers out while actors cut, embed and write the documents, each of
    which goes to one of them. If an actor dies, Ray repeats its batch. If the run ends early, call
    the function again: what has been written is not embedded again. The dataset is read twice, and
    this process holds the ids of its documents in memory.

    Parameters:
        dataset: the documents.
        indexer: the index, and how documents are read from the dataset.
        writers: number of actors that work concurrently; each has a model of its own.
        options: options of `Dataset.map_batches` for the actors: `num_gpus`, `num_cpus`, `memory`.

    Returns: how many documents were added, changed, unchanged, failed and deleted.

    Raises: ImportError if Ray is not installed; TypeError for another kind of dataset; ValueError
    for stores to which only one process may write, for documents outside of the scope, for ids that
    several documents share, and for a document that fails.
    """
    ray = _ray("index_dataset", dataset)
    check_table(indexer, TableIndexer, "open_index")
    whole_number(writers, "writers", 1)
    schema = _known_schema(dataset)
    if schema is not None:
        indexer.metadata_names(schema)
    with turn_to_index(indexer) as (turn, finish):
        if not dataset.limit(1).count():  # Ray has no columns then
            return finish([])
        options = {
            "batch_format": "pyarrow",
            "batch_size": indexer.batch_size,
            "fn_kwargs": {"payload": ray.cloudpickle.dumps((indexer, turn))},
            "compute": ray.data.ActorPoolStrategy(min_size=1, max_size=writers),
            **options,
        }
        documents = dataset.map_batches(partial(identify, indexer), batch_format="pyarrow")
        if _has_repeated(documents):
            documents = documents.groupby(IDENTITY).map_groups(_first, batch_format="pyarrow")
        adding: Any = _Adding
        return finish(documents.map_batches(adding, **options).iter_rows())


def _has_repeated(documents: Dataset) -> bool:
    """Whether the same document stands in a dataset more than once.

    The ids are compared here, because a shuffle of the whole dataset would cost more than reading
    it twice. Raises ValueError if different documents have the same id.
    """
    versions: dict[str, str] = {}
    has_repeated = False
    names = documents.select_columns([IDENTITY, VERSION])
    for row in names.iter_rows():
        identity, version = row[IDENTITY], row[VERSION]
        has_repeated |= identity in versions
        if versions.setdefault(identity, version) != version:
            check_repeated([identity])
    return has_repeated


def _first(documents: pa.Table) -> pa.Table:
    """Return the first of several equal documents."""
    return documents.slice(0, 1)


class _Adding:
    """An actor that cuts, embeds and writes documents."""

    def __call__(self, batch: pa.Table, payload: bytes) -> pa.Table:
        return load_worker(payload).add(batch)


def _ray(function: str, dataset: object) -> Any:
    """Import `ray`. Raises ImportError without Ray, and TypeError for another dataset."""
    with needs(f"{function} needs Ray", "ray"):
        import ray
        import ray.cloudpickle
        import ray.data
    if not isinstance(dataset, ray.data.Dataset):
        raise InputTypeError(f"dataset must be a ray.data.Dataset, got {type(dataset).__name__}")
    return ray


def _known_schema(dataset: Dataset) -> pa.Schema | None:
    """Return the columns, if Ray knows them without reading the dataset."""
    import pyarrow as pa

    schema = dataset.schema(fetch_if_missing=False)
    is_arrow = schema is not None and isinstance(schema.base_schema, pa.Schema)
    return schema.base_schema if is_arrow else None
