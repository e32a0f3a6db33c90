"""Ray Data: a dataset of documents in, a dataset of their chunks or an index of them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rag_splitters.contract.chunker import Chunker
from rag_splitters.distributed.columns import DocumentColumns, load
from rag_splitters.distributed.indexing import (
    IDENTITY,
    VERSION,
    IndexSummary,
    IndexTask,
    OpenIndex,
    check_repeated,
    index_for_workers,
    load_worker,
)
from rag_splitters.distributed.splitter import TableSplitter
from rag_splitters.errors import InputTypeError
from rag_splitters.extras import needs
from rag_splitters.models.pickling import models_of
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
        per_task = batch_size if any(models_of(chunker)) else _BATCHES_PER_TASK * batch_size
        dataset = dataset.repartition(target_num_rows_per_block=per_task)
    return dataset.map_batches(
        work,
        batch_size=batch_size,
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
    dataset: Dataset,
    open_index: OpenIndex,
    *,
    text_column: str = "text",
    id_column: str | None = None,
    metadata_columns: Sequence[str] | None = None,
    scope: Mapping[str, Any] | None = None,
    writers: int = 2,
    batch_size: int = 256,
    on_error: Literal["raise", "row"] = "raise",
    **options: Any,
) -> IndexSummary:
    """Write a Ray Dataset's documents into a parent-child index on servers.

    The result is the index that one process would have written with `add_documents`. Documents that
    have not changed since they were last indexed are skipped, changed ones are replaced, and with
    `scope` those that are no longer in the dataset are removed.

    This process keeps other writers out while actors cut, embed and write the documents, each of
    which goes to one of them. If an actor dies, Ray repeats its batch. If the run ends early, call
    the function again: what has been written is not embedded again. The dataset is read twice, and
    this process holds the ids of its documents in memory.

    Parameters:
        dataset: the documents.
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
        writers: number of actors that work concurrently; each has a model of its own.
        batch_size: number of documents to cut, embed and write at once. The number of texts that go
            to the model and to Chroma at once is set by the retriever's `batch_size` and by
            `Embedder`.
        on_error: what to do about a document that cannot be cut or stored. "raise": raise an error.
            "row": leave it out and count it as failed.
        options: options of `Dataset.map_batches` for the actors: `num_gpus`, `num_cpus`, `memory`.

    Returns: how many documents were added, changed, unchanged, failed and deleted.

    Raises: ImportError if Ray is not installed; TypeError for another kind of dataset; ValueError
    for stores to which only one process may write, for documents outside of the scope, for ids that
    several documents share, and for a document that fails.
    """
    ray = _ray("index_dataset", dataset)
    whole_number(writers, "writers", 1)
    columns = DocumentColumns(text_column, id_column, metadata_columns)
    own_task = IndexTask(open_index, columns, scope, batch_size, on_error)
    schema = _known_schema(dataset)
    if schema is not None:
        own_task.metadata_names(schema)
    with index_for_workers(own_task) as (task, finish):
        if not dataset.limit(1).count():  # Ray has no columns then
            return finish([])
        options = {
            "batch_format": "pyarrow",
            "batch_size": batch_size,
            "fn_kwargs": {"payload": ray.cloudpickle.dumps(task)},
            "compute": ray.data.ActorPoolStrategy(min_size=1, max_size=writers),
            **options,
        }
        documents = dataset.map_batches(task.identify, batch_format="pyarrow")
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
