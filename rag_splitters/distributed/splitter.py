"""TableSplitter: a table of documents in, a table of their chunks out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.each import split_each
from rag_splitters.contract.own_texts import LooseSpan, chunk_key
from rag_splitters.distributed.columns import (
    ERROR,
    METADATA,
    TEXT,
    TYPED,
    DocumentTable,
    array,
    arrow,
    chunk_fields,
    is_own,
    metadata_fields,
)
from rag_splitters.errors import InputError
from rag_splitters.ids import ChunkIds, source_identity
from rag_splitters.models import ModelError
from rag_splitters.parameters.checks import check_has, check_kind
from rag_splitters.span import Source, Span
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import pyarrow as pa


_ChunkRow = tuple[Any, ...]
"""A chunk's values for `columns.chunk_fields`, in that order."""

_NO_DETAILS: tuple[Any, ...] = (*([None] * len(TYPED)), "{}")

_MAX_BYTES = 1 << 25
"""The approximate size of a batch of chunks; only a single chunk may be larger.

A worker holds one batch at a time, and Arrow's strings are limited to 2 GB in each."""


@dataclass(frozen=True)
class TableSplitter(DocumentTable):
    """Cuts the documents in the rows of a table into chunks, which are the rows of another table.

    The chunks, their positions and their ids are those of the front ends for a document with the
    same text, metadata and id, and do not depend on other rows. So many machines give the same
    result as one process. There is one difference: the rows of a table have no order, so two rows
    with the same id and text have chunks with the same ids.

    The columns of the chunks are

    - `chunk_id`, a UUIDv5; `document_id`, the document's id as text, or a UUID of its text and
      metadata if it has none; `text`; `start_index` and `end_index`, code points in the document's
      text, which are null if a subclass's own `split_text` leaves them unknown; `chunk_index`;
    - `parent_id`, `headings`, `level`, `modality`, `page_start` and `page_end`, which are null if
      the strategy does not set them, and `chunk_metadata`, a JSON object with everything else;
    - `error`, only with `on_error="row"`;
    - the id column under its own name, and the documents' metadata columns.

    A null text gives no chunks, like a blank one. Lone surrogates, which a model may return, become
    U+FFFD, because Arrow cannot hold them.

    Parameters:
        chunker: any chunker. From a front end's splitter or parser, only the strategy and its
            `page_break`, the regular expression for the break between pages, are used.
        text_column: the column with the texts: strings of any Arrow type.
        id_column: the column with the documents' ids: strings or whole numbers.
        metadata_columns: the columns with the documents' metadata: strategies may read them, every
            chunk repeats them, and if a document has no id, its chunks' ids depend on them. None:
            all other columns.
        batch_size: number of documents to read, and to pass to a model, at once.
        on_error: what to do about a document that the strategy or its model fails on. "raise":
            raise an error. "row": return one row for the document, in which `error` is the message,
            `document_id` and the document's own columns are as usual, and all else is null; `error`
            is null for chunks. A missing package, and a model that would fail on every document
            because its key is rejected, raise an error in any case.

    Raises: TypeError if `chunker` is not a chunker; ValueError if the options contradict each
    other.

    >>> import pyarrow as pa
    >>> from rag_splitters import SentenceChunker
    >>> table = pa.table({"key": [7], "text": ["One. Two."], "source": ["a.txt"]})
    >>> chunks = TableSplitter(SentenceChunker(chunk_size=5), id_column="key").split_table(table)
    >>> chunks.select(["document_id", "text", "start_index", "source"]).to_pylist()[1]
    {'document_id': '7', 'text': 'Two.', 'start_index': 5, 'source': 'a.txt'}
    """

    chunker: Chunker

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kind(self.chunker, Chunker, "chunker")
        if getattr(self.chunker, "has_own_ids", False):
            raise InputError(
                "id_func cannot be used with tables, because it needs nodes: create the parser "
                "without it"
            )

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of the chunks for a table with these columns.

        Raises: ValueError if a column is missing, occurs twice, or has the name of one of the
        chunks' own columns; TypeError if texts or ids have the wrong type.
        """
        names = self.metadata_names(schema)
        own = self.own_fields()
        keys = [key for key in self.inputs[1:] if not is_own(key, own) and key not in names]
        return arrow().schema([*own, *metadata_fields(schema, [*keys, *names], own)])

    def own_fields(self) -> list[pa.Field]:
        """Return the chunks' own columns, before those of the documents."""
        return chunk_fields(with_error=self.on_error == "row")

    def split_table(self, table: pa.Table) -> pa.Table:
        """Return the chunks of a table's documents, in order.

        Raises: whatever `output_schema` raises; ValueError, which names the document, if the
        strategy fails.
        """
        return arrow().Table.from_batches(list(self.split_batches(table)))

    def split_batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the chunks in batches of limited size; there is at least one, even if empty."""
        check_has(table, "combine_chunks", "a pyarrow.Table, such as Table.from_pandas(dataframe)")
        schema = self.output_schema(table.schema)
        parts = (
            part
            for start in range(0, table.num_rows, self.batch_size)
            for part in table.slice(start, self.batch_size).combine_chunks().to_batches()
        )
        is_empty = True
        for part in parts:
            for batch in self._split(part, schema):
                is_empty = False
                yield batch
        if is_empty:
            yield arrow().RecordBatch.from_pylist([], schema)

    def _split(self, rows: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        own = self.own_fields()
        metadata = _metadata_batch(rows, list(schema)[len(own) :])
        names = [name for name in metadata.schema.names if name != self.id_column]
        documents = enumerate(self.documents(rows, names))
        sources = [Source(*document, number) for number, document in documents]
        chunks: list[_ChunkRow] = []
        numbers: list[int] = []
        size = 0
        for source, document_rows in self._rows(sources):
            metadata_size = metadata.slice(source.number, 1).nbytes
            for chunk in document_rows:
                chunks.append(chunk)
                numbers.append(source.number)
                size += metadata_size + len(chunk[TEXT] or "") + len(chunk[METADATA] or "")
                if size >= _MAX_BYTES:
                    yield _chunk_batch(own, chunks, metadata, numbers)
                    chunks, numbers, size = [], [], 0
        if chunks:
            yield _chunk_batch(own, chunks, metadata, numbers)

    def _rows(self, sources: Sequence[Source]) -> Iterator[tuple[Source, Iterable[_ChunkRow]]]:
        """Yield each document with the rows of its chunks, or with its error row."""
        is_tolerant = self.on_error == "row"
        results = split_each(self.chunker, sources)
        for source, result in zip(sources, results, strict=True):
            try:
                if isinstance(result, Exception):
                    later = () if is_tolerant or not isinstance(result, ModelError) else results
                    others = sum(isinstance(each, ModelError) for each in later)
                    raise _failure(source, result, others)
                rows = _chunk_rows(source, result)
                yield source, [(*row, None) for row in rows] if is_tolerant else rows
            except ValueError as error:
                if not is_tolerant:
                    raise
                yield source, [_error_row(source, error)]


def _error_row(source: Source, error: ValueError) -> _ChunkRow:
    """Return the row of a document that could not be split."""
    values: dict[str, str] = {
        "document_id": source_identity(source.text, source.metadata, source.id),
        ERROR: without_surrogates(str(error)),
    }
    return tuple(values.get(field.name) for field in chunk_fields(with_error=True))


def _chunk_rows(source: Source, spans: Sequence[Span]) -> Iterator[_ChunkRow]:
    """Yield the rows of a document's chunks.

    Raises: ValueError, which names the document, if its metadata cannot be written as JSON.
    """
    text, new_id = source.text, ChunkIds(source.text, source.metadata, source.id).of
    document_id = source_identity(text, source.metadata, source.id) if spans else ""
    ids: list[str] = []
    for index, span in enumerate(spans):
        ids.append(new_id(*chunk_key(span, index)))
        values = _NO_DETAILS
        if details := span.to_metadata():
            if span.parent is not None:
                details["parent_id"] = ids[span.parent]
            try:
                values = (*(details.pop(key, None) for key in TYPED), _json(details))
            except Exception as error:  # metadata may hold anything
                raise _failure(source, error) from error
        content = span.text_of(text)
        if span.content is not None:
            content = without_surrogates(content)
        is_loose = isinstance(span, LooseSpan)
        start, end = (None, None) if is_loose else (span.start, span.end)
        yield ids[-1], document_id, content, start, end, index, *values


def _metadata_batch(rows: pa.RecordBatch, fields: Sequence[pa.Field]) -> pa.RecordBatch:
    """Return the documents' columns that their chunks repeat, with the types of `fields`."""
    pa = arrow()
    columns = [rows.column(field.name) for field in fields]
    converted = [  # via Python objects, because Arrow 17 cannot cast views
        column if column.type == field.type else pa.array(column.to_pylist(), field.type)
        for column, field in zip(columns, fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(converted, schema=pa.schema(fields))


def _chunk_batch(
    fields: Sequence[pa.Field],
    chunks: Sequence[_ChunkRow],
    metadata: pa.RecordBatch,
    numbers: Sequence[int],
) -> pa.RecordBatch:
    """Return a record batch of chunks.

    Parameters:
        metadata: the columns of the documents that the chunks repeat.
        numbers: the row of each chunk's document in `metadata`.
    """
    pa = arrow()
    values = zip(*chunks, strict=True)
    own = [
        array(field.name, column, field.type) for field, column in zip(fields, values, strict=True)
    ]
    rows = pa.array(numbers, pa.int64())
    columns = [*own, *(column.take(rows) for column in metadata.columns)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([*fields, *metadata.schema]))


def _failure(source: Source, error: Exception, others: int = 0) -> InputError:
    """Return the error about a document that could not be split.

    Parameters:
        others: how many other documents the model failed on.
    """
    name = repr(source.id) if source.id is not None else f"(no id) {source.text[:60]!r}"
    more = f" (and {others} more failed)" if others else ""
    kind = type(error).__name__
    failure = InputError(f"document {name} could not be split: {kind}: {error}{more}")
    failure.__cause__ = error
    return failure


def _json(details: Mapping[str, Any]) -> str:
    """Write metadata as JSON; lone surrogates are escaped, because Arrow cannot hold them."""
    text = json.dumps(details, ensure_ascii=False, allow_nan=False)
    return text if without_surrogates(text) == text else json.dumps(details)
