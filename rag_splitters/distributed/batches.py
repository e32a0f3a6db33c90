"""Record batches: sources are read from some, and chunks are written to others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_splitters.chunker import Chunker
from rag_splitters.distributed.columns import TYPED, array, arrow
from rag_splitters.models import ModelError
from rag_splitters.span import Source, Span
from rag_splitters.text.ids import ChunkIds, source_identity
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import pyarrow as pa


ChunkRow = tuple[Any, ...]
"""A chunk's values for `columns.chunk_fields`, in that order."""

_NO_DETAILS: tuple[Any, ...] = (*([None] * len(TYPED)), "{}")
_NUMBERS = re.compile(r"\bdocuments? (\d+)(?: to (\d+))?")


def read_sources(
    rows: pa.RecordBatch, text: str, id: str | None, metadata: Sequence[str]
) -> list[Source]:
    """The documents in some rows as sources.

    Parameters:
        text: the name of the column with their texts; null becomes an empty text.
        id: the name of the column with their ids, if there is one.
        metadata: the names of the columns with their metadata.
    """
    texts = rows.column(text).to_pylist()
    ids = [None] * len(texts) if id is None else rows.column(id).to_pylist()
    columns = [rows.column(name).to_pylist() for name in metadata]
    return [
        Source(
            content or "",
            {name: column[number] for name, column in zip(metadata, columns, strict=True)},
            None if key is None else str(key),
            number,
        )
        for number, (content, key) in enumerate(zip(texts, ids, strict=True))
    ]


def split_sources(chunker: Chunker, sources: Sequence[Source]) -> Iterator[list[Span]]:
    """The spans of each source, with errors that name the document.

    Raises: ValueError that names the document. A missing package is no document's fault: its
    ImportError is raised as it is.
    """
    results = chunker.split(sources)
    for source in sources:
        try:
            spans = next(results)
        except ImportError:
            raise
        except ModelError as error:
            raise ValueError(f"{error}{_names(str(error), sources)}") from error
        except Exception as error:
            # A plan takes many sources at once: split them one by one to find the one that fails.
            for each in sources:
                try:
                    next(chunker.split([each]))
                except Exception as own_error:
                    raise _failure(each, own_error) from own_error
            raise _failure(source, error) from error
        yield spans


def chunk_rows(source: Source, spans: Sequence[Span]) -> Iterator[ChunkRow]:
    """The rows of a document's chunks.

    Raises: ValueError that names the document, if metadata cannot be written as JSON.
    """
    text, new_id = source.text, ChunkIds(source.text, source.metadata, source.id).of
    document_id = source_identity(text, source.metadata, source.id) if spans else ""
    ids: list[str] = []
    for index, span in enumerate(spans):
        start, end, content = span.start, span.end, span.content
        ids.append(new_id(start, end, content))
        values = _NO_DETAILS
        if details := span.to_metadata():
            if span.parent is not None:
                details["parent_id"] = ids[span.parent]
            try:
                values = (*(details.pop(key, None) for key in TYPED), _json(details))
            except Exception as error:  # metadata may hold anything
                raise _failure(source, error) from error
        chunk_text = text[start:end] if content is None else without_surrogates(content)
        yield ids[-1], document_id, chunk_text, start, end, index, *values


def metadata_batch(rows: pa.RecordBatch, fields: Sequence[pa.Field]) -> pa.RecordBatch:
    """The documents' columns that their chunks repeat, with the types of `fields`."""
    pa = arrow()
    columns = [rows.column(field.name) for field in fields]
    converted = [  # through Python objects, because Arrow 17 cannot cast views
        column if column.type == field.type else pa.array(column.to_pylist(), field.type)
        for column, field in zip(columns, fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(converted, schema=pa.schema(fields))


def chunk_batch(
    fields: Sequence[pa.Field],
    chunks: Sequence[ChunkRow],
    metadata: pa.RecordBatch,
    numbers: Sequence[int],
) -> pa.RecordBatch:
    """A record batch of chunks.

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


def _name(source: Source) -> str:
    return repr(source.id) if source.id is not None else f"(no id) {source.text[:60]!r}"


def _failure(source: Source, error: Exception) -> ValueError:
    return ValueError(
        f"document {_name(source)} could not be split: {type(error).__name__}: {error}"
    )


def _names(message: str, sources: Sequence[Source]) -> str:
    """The names of the documents that a model's error refers to by number."""
    mentioned = {int(n) for match in _NUMBERS.findall(message) for n in match if n}
    numbers = sorted(number for number in mentioned if number < len(sources))
    numbers = numbers or [0, len(sources) - 1]
    names = ", ".join(f"document {number} is {_name(sources[number])}" for number in numbers)
    return f" (in this batch of {len(sources)}, {names})"


def _json(details: Mapping[str, Any]) -> str:
    """The metadata as JSON; lone surrogates become escapes, because Arrow cannot hold them."""
    text = json.dumps(details, ensure_ascii=False, allow_nan=False)
    return text if without_surrogates(text) == text else json.dumps(details)
