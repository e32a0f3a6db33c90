"""Ray Data: a dataset of documents in, a dataset of their chunks out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rag_splitters.chunker import Chunker
from rag_splitters.distributed.splitter import TableSplitter, asks_model, unpickled

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset


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
    """The chunks of a Ray Dataset's documents, lazily, as rows with the columns of `TableSplitter`.

    A task takes 16 batches, or a single one if the chunker asks a model: if its worker dies, Ray
    repeats the task, and only that batch is paid for twice. With a cache that all workers share,
    what the batch has got already is not paid for again, either.

    By default, the work runs in tasks, which suit strategies that use only the CPU or call a model
    behind an API. A worker process keeps the chunker for its next task, so it loads a tokenizer
    only once. For a model in memory or on a GPU, use actors, which live until the work is done:
    `compute=ray.data.ActorPoolStrategy(size=2), num_gpus=1`. If an actor dies, Ray repeats the
    whole block.

    With `id_column`, Ray's own checkpoints (`ray.data.checkpoint.CheckpointConfig`) know which
    documents are done, because the column keeps its name.

    Parameters:
        dataset: the documents.
        chunker: any chunker; it is pickled, and its models take their keys from the workers'
            environment.
        text_column, id_column, metadata_columns, page_break, batch_size, on_error: see
            `TableSplitter`.
        options: options of `Dataset.map_batches`: `compute`, `concurrency`, `num_cpus`, `memory`
            and so on.

    Returns: the chunks. Ray drops the columns of a dataset without rows, so the result then has no
    columns either.

    Raises: ImportError if Ray is not installed; TypeError for another kind of dataset. Errors in
    the columns are raised at once if Ray already knows the columns, else when the dataset is
    consumed. So are errors of the strategy, which name the document.
    """
    try:
        import ray
        import ray.cloudpickle
        import ray.data
    except ImportError as error:
        raise ImportError("split_dataset needs Ray: pip install 'rag-splitters[ray]'") from error
    import pyarrow as pa

    if not isinstance(dataset, ray.data.Dataset):
        raise TypeError(f"dataset must be a ray.data.Dataset, got {type(dataset).__name__}")
    splitter = TableSplitter(
        chunker,
        text_column=text_column,
        id_column=id_column,
        metadata_columns=metadata_columns,
        page_break=page_break,
        batch_size=batch_size,
        on_error=on_error,
    )
    schema = dataset.schema(fetch_if_missing=False)
    if schema is not None and isinstance(schema.base_schema, pa.Schema):
        splitter.output_schema(schema.base_schema)
    payload: bytes = ray.cloudpickle.dumps(splitter)  # type: ignore[no-untyped-call]
    in_actors = isinstance(options.get("compute"), ray.data.ActorPoolStrategy)
    work: Any = _Splitting if in_actors else _split
    if not in_actors:  # which may hold all CPUs, so that nothing could divide the blocks
        # Ray reads many small files as one block, and one block is one task, on one core.
        per_task = batch_size if asks_model(chunker) else 16 * batch_size
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

    for chunks in unpickled(payload).split_batches(batch):
        yield pa.Table.from_batches([chunks])


class _Splitting:
    """An actor: the same as a task, in a process that lives on."""

    def __call__(self, batch: pa.Table, payload: bytes) -> Iterator[pa.Table]:
        return _split(batch, payload)
