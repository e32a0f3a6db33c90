"""Rows of tables: documents that are read from some, chunks that are written to others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_splitters.chunker import Chunker
from rag_splitters.distributed.columns import TYPED, array, arrow
from rag_splitters.models import ModelError
from rag_splitters.models.calling import sendable
from rag_splitters.span import Source, Span
from rag_splitters.text.ids import ChunkIds, source_identity

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ChunkRow",
    "Document",
    "carried_by",
    "chunk_rows",
    "documents_in",
    "record_batch",
    "spans_of",
]

ChunkRow = tuple[Any, ...]
"""A chunk's values for `columns.chunk_fields`, in their order."""

_NOTHING: tuple[Any, ...] = (*([None] * len(TYPED)), "{}")
_NUMBERS = re.compile(r"\bdocuments? (\d+)(?: to (\d+))?")


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it stands in a row.

    Parameters:
        text: its text; of null, none.
        metadata: its metadata.
        id: its id, if it has one.
    """

    text: str
    metadata: Mapping[str, Any]
    id: str | None

    @property
    def name(self) -> str:
        """What an error calls it."""
        return repr(self.id) if self.id is not None else f"(no id) {self.text[:60]!r}"

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Raises: ValueError that names the document, for whatever is raised in here but the lack
        of a package, which is no document's fault."""
        try:
            yield
        except ImportError:
            raise
        except Exception as error:
            raise self.failure(error) from error

    def failure(self, error: Exception) -> ValueError:
        """The error to raise for this document."""
        return ValueError(
            f"document {self.name} could not be split: {type(error).__name__}: {error}"
        )

    def source(self, number: int) -> Source:
        """The document as a text to cut, the `number`-th of a call."""
        return Source(self.text, self.metadata, self.id, number)


def documents_in(
    rows: pa.RecordBatch, text: str, id: str | None, metadata: Sequence[str]
) -> list[Document]:
    """The documents in some rows.

    Parameters:
        rows: the rows.
        text: the name of the column with their texts.
        id: the name of the column with their ids, if there is one.
        metadata: the names of the columns with their metadata.
    """
    texts = rows.column(text).to_pylist()
    ids = [None] * len(texts) if id is None else rows.column(id).to_pylist()
    values = [rows.column(name).to_pylist() for name in metadata]
    metadatas = [dict(zip(metadata, row, strict=True)) for row in zip(*values, strict=True)]
    return [
        Document(text or "", known, None if given is None else str(given))
        for text, known, given in zip(texts, metadatas or [{}] * len(texts), ids, strict=True)
    ]


def spans_of(chunker: Chunker, documents: Sequence[Document]) -> Iterator[list[Span]]:
    """The spans of each document; a strategy that takes all texts at once is asked once.

    Raises: ValueError that names the document.
    """
    results = chunker.split(document.source(number) for number, document in enumerate(documents))
    for document in documents:
        try:
            spans = next(results)
        except ModelError as error:
            raise ValueError(f"{error}{_names(str(error), documents)}") from error
        except ImportError:
            raise
        except Exception as error:
            _blame_one(chunker, documents)
            raise document.failure(error) from error
        yield spans


def _blame_one(chunker: Chunker, documents: Sequence[Document]) -> None:
    """Split one document after another, to find the one that cannot be split."""
    for document in documents:
        with document.blamed():
            next(chunker.split([document.source(0)]))


def _names(message: str, documents: Sequence[Document]) -> str:
    """What the documents are called that a model's error knows by their numbers."""
    numbers = {int(n) for match in _NUMBERS.findall(message) for n in match if n}
    known = sorted(number for number in numbers if number < len(documents))
    known = known or [0, len(documents) - 1]
    named = ", ".join(f"document {number} is {documents[number].name}" for number in known)
    return f" (in this batch of {len(documents)}, {named})"


def chunk_rows(document: Document, spans: Sequence[Span]) -> Iterator[ChunkRow]:
    """The rows of a document's chunks.

    Raises: ValueError that names the document, for metadata that cannot be written as JSON.
    """
    text, new_id = document.text, ChunkIds(document.text, document.metadata, document.id).of
    name = source_identity(text, document.metadata, document.id) if spans else ""
    ids: list[str] = []
    for index, span in enumerate(spans):
        start, end, content = span.start, span.end, span.content
        ids.append(new_id(start, end, content))
        known = _NOTHING
        if details := span.to_metadata():
            with document.blamed():
                known = _known(span, details, ids)
        shown = text[start:end] if content is None else sendable(content)
        yield ids[-1], name, shown, start, end, index, *known


def _known(span: Span, details: dict[str, Any], ids: Sequence[str]) -> tuple[Any, ...]:
    """What a span says: the values of the columns for that, and the rest as JSON."""
    if span.parent is not None:
        details["parent_id"] = ids[span.parent]
    return (*(details.pop(key, None) for key in TYPED), _json(details))


def _json(known: Mapping[str, Any]) -> str:
    """The metadata as JSON; lone surrogates, which Arrow does not hold, as escapes."""
    written = json.dumps(known, ensure_ascii=False, allow_nan=False)
    return written if sendable(written) == written else json.dumps(known)


def carried_by(rows: pa.RecordBatch, fields: Sequence[pa.Field]) -> pa.RecordBatch:
    """The columns of some documents that their chunks carry on, with the types that they get."""
    pa = arrow()
    columns = [rows.column(field.name) for field in fields]
    kept = [  # a view is made anew: Arrow 17 cannot cast it
        column if column.type == field.type else pa.array(column.to_pylist(), field.type)
        for column, field in zip(columns, fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(kept, schema=pa.schema(fields))


def record_batch(
    fields: Sequence[pa.Field],
    chunks: Sequence[ChunkRow],
    carried: pa.RecordBatch,
    numbers: Sequence[int],
) -> pa.RecordBatch:
    """A record batch of chunks.

    Parameters:
        fields: the chunks' own columns.
        chunks: the chunks.
        carried: the columns of the documents that the chunks carry on.
        numbers: for each chunk the number of its document's row in these.
    """
    pa = arrow()
    values = zip(*chunks, strict=True)
    own = [
        array(field.name, column, field.type) for field, column in zip(fields, values, strict=True)
    ]
    places = pa.array(numbers, pa.int64())
    columns = [*own, *(column.take(places) for column in carried.columns)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([*fields, *carried.schema]))
