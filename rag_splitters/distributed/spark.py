"""Spark: a DataFrame of documents in, a DataFrame of their chunks out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rag_splitters.chunker import Chunker
from rag_splitters.distributed.columns import arrow, chunk_fields, wrong_type
from rag_splitters.distributed.splitter import TableSplitter, unpickled

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def split_dataframe(
    dataframe: DataFrame,
    chunker: Chunker,
    *,
    text_column: str = "text",
    id_column: str | None = None,
    metadata_columns: Sequence[str] | None = None,
    page_break: str | None = None,
    batch_size: int = 256,
    on_error: Literal["raise", "row"] = "raise",
    **options: Any,
) -> DataFrame:
    """The chunks of a DataFrame's documents, lazily, as rows with the columns of `TableSplitter`.

    If a worker dies, Spark repeats its partition. A model is then paid again for the partition's
    documents, unless the chunker has a cache that all workers share.

    The work runs in Spark's Python workers. Each keeps the chunker, and with it a tokenizer or a
    model, for its next partition. The cluster works on as many partitions at once as it has cores;
    if there are fewer partitions, use `dataframe.repartition(n)`. The workers must be able to
    import this package. If their Python is not the driver's, set `PYSPARK_PYTHON`.

    Parameters:
        dataframe: the documents.
        chunker: any chunker; it is pickled, and its models take their keys from the workers'
            environment.
        text_column, id_column, metadata_columns, page_break, batch_size, on_error: see
            `TableSplitter`.
        options: options of `DataFrame.mapInArrow`: `barrier`, `profile`.

    Raises: ImportError if Spark is not installed; TypeError if this is not a DataFrame, or if a
    column has the wrong type; ValueError if a column is missing, occurs twice, or has the name of
    one of the chunks' own columns. Errors of the strategy name the document, and are raised when
    the DataFrame is used.
    """
    try:
        import pyspark.cloudpickle
        from pyspark.sql.pandas.types import from_arrow_schema
        from pyspark.sql.types import StructType
    except ImportError as error:
        raise ImportError(
            "split_dataframe needs Spark: pip install 'rag-splitters[spark]'"
        ) from error
    if not hasattr(dataframe, "mapInArrow"):
        raise TypeError(f"dataframe must be a Spark DataFrame, got {type(dataframe).__name__}")
    splitter = TableSplitter(
        chunker,
        text_column=text_column,
        id_column=id_column,
        metadata_columns=metadata_columns,
        page_break=page_break,
        batch_size=batch_size,
        on_error=on_error,
    )
    columns = {field.name: field for field in dataframe.schema}
    chunks = splitter.output_schema(_arrow_schema(dataframe.schema, text_column, id_column))
    own_fields = chunk_fields(with_error=on_error == "row")
    repeated = chunks.names[len(own_fields) :]
    own = from_arrow_schema(arrow().schema(own_fields))
    read = list(dict.fromkeys([text_column, *([id_column] if id_column else []), *repeated]))
    # Select by number: Spark reads a dot in a column's name as a path.
    numbers = [f"c{number}" for number in range(len(dataframe.columns))]
    numbered = dataframe.toDF(*numbers).select(
        [numbers[dataframe.columns.index(name)] for name in read]
    )
    payload: bytes = pyspark.cloudpickle.dumps(splitter)  # type: ignore[no-untyped-call]

    def split(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            documents = arrow().Table.from_batches([batch]).rename_columns(read)
            yield from unpickled(payload).split_batches(documents)

    schema = StructType([*own, *(columns[name] for name in repeated)])
    return numbered.mapInArrow(split, schema, **options)


def _arrow_schema(schema: StructType, text: str, id: str | None) -> pa.Schema:
    """The columns with the Arrow types of texts and ids; all other columns have the type null."""
    from pyspark.sql.types import IntegralType, NullType, StringType

    pa = arrow()
    kinds = {StringType: pa.string(), IntegralType: pa.int64(), NullType: pa.null()}
    fields = []
    for field in schema:
        types = [kinds[kind] for kind in kinds if isinstance(field.dataType, kind)]
        if not types and field.name in (text, id):
            expected = "strings" if field.name == text else "strings or whole numbers"
            raise wrong_type(field.name, expected, field.dataType.simpleString())
        fields.append(pa.field(field.name, types[0] if types else pa.null()))
    return pa.schema(fields)
