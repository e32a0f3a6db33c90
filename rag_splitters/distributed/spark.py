"""Spark: a DataFrame of documents in, a DataFrame of their chunks or an index of them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rag_splitters.distributed.columns import DocumentTable, arrow, check_table, load, wrong_type
from rag_splitters.distributed.indexing import (
    IDENTITY,
    MAX_EXAMPLES,
    RESULT,
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
from rag_splitters.parameters.checks import whole_number

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def split_dataframe(dataframe: DataFrame, splitter: TableSplitter, **options: Any) -> DataFrame:
    """Split a DataFrame's documents lazily, into rows with the columns of `TableSplitter`.

    If a worker dies, Spark repeats its partition. You then pay a model again for the partition's
    documents, unless the chunker has a cache that all workers share.

    The work runs in Spark's Python workers. Each keeps the chunker, and with it a tokenizer or a
    model, for its next partition. The cluster works on as many partitions at once as it has cores;
    if there are fewer partitions, use `dataframe.repartition(n)`. The workers must be able to
    import this package. If they use another Python than the driver, set `PYSPARK_PYTHON`.

    Parameters:
        dataframe: the documents.
        splitter: how to cut the documents; it is pickled, and its models read their keys from the
            environment of the workers.
        options: options of `DataFrame.mapInArrow`: `barrier`, `profile`.

    Raises: ImportError if Spark is not installed; TypeError if this is not a DataFrame, or if a
    column has the wrong type; ValueError if a column is missing, occurs twice, or has the name of
    one of the chunks' own columns. Errors of the strategy name the document, and are raised when
    the DataFrame is used.
    """
    pyspark = _pyspark("split_dataframe", dataframe)
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    check_table(splitter, TableSplitter, "chunker")
    columns = {field.name: field for field in dataframe.schema}
    chunks = splitter.output_schema(_arrow_schema(dataframe.schema, splitter))
    own_fields = splitter.own_fields()
    repeated = chunks.names[len(own_fields) :]
    own = from_arrow_schema(arrow().schema(own_fields))
    inputs = list(dict.fromkeys([*splitter.inputs, *repeated]))
    payload: bytes = pyspark.cloudpickle.dumps(splitter)

    def split(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for documents in _tables(batches, inputs):
            yield from load(payload).split_batches(documents)

    schema = StructType([*own, *(columns[name] for name in repeated)])
    return _select_by_number(dataframe, inputs).mapInArrow(split, schema, **options)


def index_dataframe(
    dataframe: DataFrame, indexer: TableIndexer, *, writers: int = 2
) -> IndexSummary:
    """Write a DataFrame's documents into a parent-child index on servers.

    It does what `rag_splitters.distributed.ray.index_dataset` does. Spark's Python workers do the
    work; each opens the index once and keeps it, with the model, for its next task.

    If a worker dies, Spark repeats its task as often as `spark.task.maxFailures` allows, which is
    not at all with `local[n]`. What has been written is not embedded again.

    Parameters:
        dataframe: the documents.
        indexer: the index, and how documents are read from the DataFrame.
        writers: number of tasks that cut, embed and write; Spark runs as many of them at once as
            the cluster has cores.

    Raises: ImportError if Spark is not installed; TypeError if this is not a DataFrame; and what
    `index_dataset` raises; Spark wraps an error that a worker raised in one of its own.
    """
    pyspark = _pyspark("index_dataframe", dataframe)
    from pyspark.sql.types import StringType, StructField, StructType

    check_table(indexer, TableIndexer, "open_index")
    whole_number(writers, "writers", 1)
    names = indexer.metadata_names(_arrow_schema(dataframe.schema, indexer))
    inputs = list(dict.fromkeys([*indexer.inputs, *names]))
    columns = _select_by_number(dataframe, inputs)
    numbers = columns.columns
    identities = [StructField(name, StringType()) for name in (IDENTITY, VERSION)]
    with turn_to_index(indexer) as (turn, finish):
        payload: bytes = pyspark.cloudpickle.dumps((indexer, turn))

        def add_identities(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for documents in _tables(batches, inputs):
                named = identify(load(payload)[0], documents)
                yield from named.rename_columns([*numbers, IDENTITY, VERSION]).to_batches()

        def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for documents in _tables(batches, [*inputs, IDENTITY, VERSION], indexer.batch_size):
                yield from load_worker(payload).add(documents).to_batches()

        documents = columns.mapInArrow(add_identities, StructType([*columns.schema, *identities]))
        distinct = documents.dropDuplicates([IDENTITY, VERSION])
        counts = distinct.groupBy(IDENTITY).count().where("count > 1").limit(MAX_EXAMPLES)
        check_repeated([row[IDENTITY] for row in counts.collect()])
        schema = StructType([StructField(name, StringType()) for name in RESULT])
        results = distinct.repartition(writers, IDENTITY).mapInArrow(add, schema).persist()
        try:
            results.count()  # in parallel, which the iterator is not
            return finish(row.asDict() for row in results.toLocalIterator())
        finally:
            results.unpersist()


def _tables(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], size: int | None = None
) -> Iterator[pa.Table]:
    """Yield the rows of Spark's batches in tables of at most `size` rows, under these names."""
    for batch in batches:
        table = arrow().Table.from_batches([batch]).rename_columns(list(names))
        for start in range(0, table.num_rows, size or table.num_rows or 1):
            yield table.slice(start, size)


def _pyspark(function: str, dataframe: object) -> Any:
    """Import `pyspark`. Raises ImportError without it, and TypeError for another dataframe."""
    with needs(f"{function} needs Spark", "spark"):
        import pyspark.cloudpickle
        import pyspark.sql.pandas.types
    if not hasattr(dataframe, "mapInArrow"):
        raise InputTypeError(f"dataframe must be a Spark DataFrame, got {type(dataframe).__name__}")
    return pyspark


def _select_by_number(dataframe: DataFrame, names: Sequence[str]) -> DataFrame:
    """Select columns under other names, because Spark reads a dot in a name as a path."""
    numbers = [f"c{number}" for number in range(len(dataframe.columns))]
    return dataframe.toDF(*numbers).select(
        [numbers[dataframe.columns.index(name)] for name in names]
    )


def _arrow_schema(schema: StructType, table: DocumentTable) -> pa.Schema:
    """Return the columns with the Arrow types of texts and ids; others have the type null."""
    from pyspark.sql.types import IntegralType, NullType, StringType

    pa = arrow()
    kinds = {StringType: pa.string(), IntegralType: pa.int64(), NullType: pa.null()}
    fields = []
    for field in schema:
        types = [kinds[kind] for kind in kinds if isinstance(field.dataType, kind)]
        if not types and field.name in table.inputs:
            is_text = field.name == table.text_column
            expected = "strings" if is_text else "strings or whole numbers"
            raise wrong_type(field.name, expected, field.dataType.simpleString())
        fields.append(pa.field(field.name, types[0] if types else pa.null()))
    return pa.schema(fields)
