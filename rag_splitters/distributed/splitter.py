"""TableSplitter: a table of documents in, a table of their chunks out."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from rag_splitters.chunker import Chunker
from rag_splitters.distributed.batches import (
    ChunkRow,
    chunk_batch,
    chunk_rows,
    metadata_batch,
    read_sources,
    split_sources,
)
from rag_splitters.distributed.columns import (
    TEXT,
    arrow,
    check_id_type,
    check_names,
    check_text_type,
    chunk_fields,
    metadata_fields,
)
from rag_splitters.fields import whole_number
from rag_splitters.span import Source, Span
from rag_splitters.text.pages import first_page, optional_page_break, page_breaks, with_pages

if TYPE_CHECKING:
    import pyarrow as pa


_MAX_BYTES = 1 << 25
"""The approximate size of a batch of chunks; only a single chunk may be larger.

A worker holds one batch at a time, and Arrow's strings are limited to 2 GB in each."""


@dataclass(frozen=True)
class TableSplitter:
    """Cuts the documents in the rows of a table into chunks, which are the rows of another table.

    The chunks, their positions and their ids are those of the front ends for a document with the
    same text, metadata and id, whatever is in the rows around it. So many machines give the same
    result as one process. There is one difference: the rows of a table have no order, so two rows
    with the same id and text have chunks with the same ids.

    The columns of the chunks are

    - `chunk_id`, a UUIDv5; `document_id`, the document's id as text, or a UUID of its text and
      metadata where it has none or null; `text`; `start_index` and `end_index`, code points in the
      document's text; `chunk_index`;
    - `parent_id`, `headings`, `level`, `modality`, `page_start` and `page_end`, null where the
      strategy does not know them, and `chunk_metadata`, a JSON object with everything else;
    - the documents' metadata columns.

    A null text gives no chunks, like a blank one. Lone surrogates become U+FFFD, because Arrow
    cannot hold them; a model may answer with them.

    Parameters:
        chunker: any chunker; of a front end's splitter or parser, the strategy and its `page_break`
            are used.
        text_column: the column with the texts: strings of any Arrow type.
        id_column: the column with the documents' ids: strings or whole numbers.
        metadata_columns: the columns that are the documents' metadata: strategies may read them,
            every chunk repeats them, and if a document has no id, its chunks' ids depend on them.
            None: all other columns.
        page_break: a regular expression for the separator of pages; None: the chunker's own.
        batch_size: number of documents that are read, and passed to a model, at once.

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
    _: KW_ONLY
    text_column: str = "text"
    id_column: str | None = None
    metadata_columns: Sequence[str] | None = None
    page_break: str | None = None
    batch_size: int = 256

    def __post_init__(self) -> None:
        if not isinstance(self.chunker, Chunker):
            raise TypeError(f"chunker must be a Chunker, got {self.chunker!r}")
        if getattr(self.chunker, "id_func", None) is not None:
            raise ValueError(
                "id_func cannot be used with tables: it needs nodes. Use the parser without it"
            )
        if isinstance(self.metadata_columns, str):
            raise ValueError(
                f"metadata_columns must be a list of names, got {self.metadata_columns!r}"
            )
        if self.text_column == self.id_column:
            raise ValueError(f"text_column and id_column must differ, got {self.id_column!r} twice")
        whole_number(self.batch_size, "batch_size", 1)
        optional_page_break(self.page_break)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of the chunks of a table with these columns.

        Raises: ValueError if a column is missing, occurs twice, or has the name of one of the
        chunks' own columns; TypeError if texts or ids have the wrong type.
        """
        read = [self.text_column, *([] if self.id_column is None else [self.id_column])]
        check_names(schema, read)
        check_text_type(self.text_column, schema.field(self.text_column).type)
        if self.id_column is not None:
            check_id_type(self.id_column, schema.field(self.id_column).type)
        others = [name for name in schema.names if name not in read]
        names = others if self.metadata_columns is None else self.metadata_columns
        return arrow().schema([*chunk_fields(), *metadata_fields(schema, names)])

    def split_table(self, table: pa.Table) -> pa.Table:
        """The chunks of a table's documents, in order.

        Raises: whatever `output_schema` raises; ValueError that names the document if the strategy
        fails.
        """
        return arrow().Table.from_batches(list(self.split_batches(table)))

    def split_batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """`split_table` in bounded batches; at least one, which has the columns if nothing else."""
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
        own = chunk_fields()
        metadata = metadata_batch(rows, list(schema)[len(own) :])
        names = metadata.schema.names
        sources = read_sources(rows, self.text_column, self.id_column, names)
        chunks: list[ChunkRow] = []
        numbers: list[int] = []
        size = 0
        for source, spans in zip(sources, split_sources(self.chunker, sources), strict=True):
            metadata_size = metadata.slice(source.number, 1).nbytes
            for chunk in chunk_rows(source, self._with_pages(source, spans)):
                chunks.append(chunk)
                numbers.append(source.number)
                size += metadata_size + len(chunk[TEXT]) + len(chunk[-1])
                if size >= _MAX_BYTES:
                    yield chunk_batch(own, chunks, metadata, numbers)
                    chunks, numbers, size = [], [], 0
        if chunks:
            yield chunk_batch(own, chunks, metadata, numbers)

    def _with_pages(self, source: Source, spans: list[Span]) -> list[Span]:
        pattern = self.page_break or getattr(self.chunker, "page_break", None)
        if pattern is None:
            return spans
        breaks = page_breaks(source.text, pattern)
        return with_pages(spans, breaks, first_page(source.metadata))


@lru_cache(maxsize=4)
def unpickled(payload: bytes) -> TableSplitter:
    """The pickled splitter: one object for all work of a process, so that models load once."""
    splitter: TableSplitter = pickle.loads(payload)  # noqa: S301  (our own, from the driver)
    return splitter
