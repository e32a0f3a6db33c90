"""The columns of tables: those that documents are read from, and those of chunks."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from rag_splitters.errors import InputError, InputTypeError, MissingExtraError
from rag_splitters.extras import install_command
from rag_splitters.parameters.checks import whole_number
from rag_splitters.parameters.messages import describe_value

if TYPE_CHECKING:
    import pyarrow as pa


TEXT = 2
"""The position of the text among the chunks' columns."""

METADATA = 12
"""The position of the metadata without a column of their own."""

ERROR = "error"
"""The column that says why a document could not be split."""

TYPED = ("parent_id", "headings", "level", "modality", "page_start", "page_end")
"""The metadata keys with a column of their own; all others are written as JSON."""


def arrow() -> Any:
    """Import `pyarrow`. Raises ImportError, which names the extras that install it."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError(
            f"tables need pyarrow: {install_command('ray')} (or the extra spark)"
        ) from error
    return pyarrow


@lru_cache(maxsize=4)
def load(payload: bytes) -> Any:
    """Return what the driver pickled, one per process, so that its models load once."""
    return pickle.loads(payload)  # noqa: S301  (our own, from the driver)


def chunk_fields(*, with_error: bool) -> list[pa.Field]:
    """Return the chunks' own columns in order, which are the same for every strategy.

    Parameters:
        with_error: whether there is a last column for the errors of documents.
    """
    pa = arrow()
    text, number = pa.string(), pa.int64()
    fields = [
        pa.field("chunk_id", text),
        pa.field("document_id", text),
        pa.field("text", text),
        pa.field("start_index", number),
        pa.field("end_index", number),
        pa.field("chunk_index", number),
        pa.field("parent_id", text),
        pa.field("headings", pa.list_(text)),
        pa.field("level", number),
        pa.field("modality", text),
        pa.field("page_start", number),
        pa.field("page_end", number),
        pa.field("chunk_metadata", text),
    ]
    return [*fields, pa.field(ERROR, text)] if with_error else fields


@dataclass(frozen=True, kw_only=True)
class DocumentTable:
    """How documents are read from the rows of a table.

    Parameters:
        text_column: the column with the texts: strings of any Arrow type.
        id_column: the column with the documents' ids, if there is one: strings or whole numbers.
        metadata_columns: the columns with the documents' metadata; None: all other columns.
        batch_size: number of documents to read at once.
        on_error: what to do about a document that fails: raise an error, or report it in its row.
    """

    text_column: str = "text"
    id_column: str | None = None
    metadata_columns: Sequence[str] | None = None
    batch_size: int = 256
    on_error: Literal["raise", "row"] = "raise"

    def __post_init__(self) -> None:
        names = self.metadata_columns
        if isinstance(names, str):
            raise InputError(f"metadata_columns must be a list of names, got {names!r}")
        if self.text_column == self.id_column:
            raise InputError(f"text_column and id_column must differ, got {self.id_column!r} twice")
        whole_number(self.batch_size, "batch_size", 1)
        if self.on_error not in ("raise", "row"):
            raise InputError(f"on_error must be 'raise' or 'row', got {self.on_error!r}")

    @property
    def inputs(self) -> list[str]:
        """The columns with the texts and, if there is one, the ids of documents."""
        return [self.text_column] if self.id_column is None else [self.text_column, self.id_column]

    def metadata_names(self, schema: pa.Schema, ignored: Sequence[str] = ()) -> list[str]:
        """Return the names of the metadata columns.

        Raises ValueError if a column is missing or occurs twice, and TypeError if texts or ids have
        the wrong type.
        """
        inputs = self.inputs
        others = [name for name in schema.names if name not in (*inputs, *ignored)]
        names = others if self.metadata_columns is None else list(self.metadata_columns)
        _check_names(schema, [*inputs, *names])
        for name in inputs:
            _check_type(name, schema.field(name).type, is_id=name == self.id_column)
        return names

    def documents(
        self, rows: pa.Table | pa.RecordBatch, metadata: Sequence[str]
    ) -> Iterator[tuple[str, dict[str, Any], str | None]]:
        """Yield text, metadata (from these columns) and id of the document in each row."""
        texts = rows.column(self.text_column).to_pylist()
        ids = [None] * len(texts)
        if self.id_column is not None:
            ids = rows.column(self.id_column).to_pylist()
        details = [_values(name, rows.column(name)) for name in metadata]
        for number, (text, name) in enumerate(zip(texts, ids, strict=True)):
            values = {key: each[number] for key, each in zip(metadata, details, strict=True)}
            yield text or "", values, None if name is None else str(name)


def _values(name: str, column: Any) -> list[Any]:
    """Return a column's values. Raises ValueError if Python lacks one, such as a late date."""
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError) as error:
        raise InputError(
            f"column {name!r} holds a value that Python cannot hold ({error}): cast the column, "
            "for example to strings, or list only other columns in metadata_columns"
        ) from error
    return values


def check_table(value: object, kind: type[DocumentTable], argument: str) -> None:
    """Raise TypeError, which shows how to make one, if the value is not of this kind."""
    if not isinstance(value, kind):
        raise InputTypeError(
            f"expected a {kind.__name__}, got {describe_value(value)}: pass "
            f'{kind.__name__}({argument}, id_column="...")'
        )


def _check_names(schema: pa.Schema, names: Iterable[str]) -> None:
    """Raise ValueError if a column is missing or occurs twice."""
    counts = Counter(schema.names)
    for name in names:
        if counts[name] == 0:
            raise InputError(f"the table has no column {name!r}; it has {schema.names}")
        if counts[name] > 1:
            raise InputError(f"the table has {counts[name]} columns {name!r}: rename all but one")


def metadata_fields(
    schema: pa.Schema, names: Sequence[str], own: Sequence[pa.Field]
) -> list[pa.Field]:
    """Return the documents' columns that their chunks repeat, with the types for chunks.

    Parameters:
        own: the chunks' own columns.

    Raises ValueError if one has the name of one of the chunks' own columns (in any case, because
    Spark ignores the case).
    """
    if clashes := [name for name in names if is_own(name, own)]:
        raise InputError(
            f"chunks have their own columns {clashes}: rename these columns of the documents, or "
            "list in metadata_columns only those that chunks should repeat"
        )
    return [_repeatable(schema.field(name)) for name in names]


def is_own(name: str, own: Sequence[pa.Field]) -> bool:
    """Whether chunks have a column of their own with this name, in any case."""
    return name.casefold() in {field.name for field in own}


def _check_type(name: str, kind: pa.DataType, *, is_id: bool) -> None:
    """Raise TypeError if a column does not hold texts or ids; it may hold only nulls."""
    if "ArrowPythonObjectType" in str(kind):  # Ray's type for strings that Arrow refuses
        raise InputTypeError(
            f"column {name!r} holds Python objects: replace lone surrogates, which Arrow cannot "
            "hold, before you create the dataset: text.encode('utf-8', 'replace').decode()"
        )
    types = arrow().types
    plain = str(kind.value_type if types.is_dictionary(kind) else kind)
    is_text = plain in ("string", "large_string", "string_view") or types.is_null(kind)
    if not is_text and not (is_id and types.is_integer(kind)):
        raise wrong_type(name, "strings or whole numbers" if is_id else "strings", kind)


def wrong_type(name: str, expected: str, kind: object) -> InputTypeError:
    """Return the error for a column of the wrong type."""
    return InputTypeError(
        f"column {name!r} must hold {expected}, but its type is {kind}: cast it first"
    )


def array(name: str, values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return the values of one of the chunks' own columns as an Arrow array.

    Raises: TypeError if a user's own strategy sets a value that does not have the column's type.
    """
    pa = arrow()
    try:
        if pa.types.is_list(kind) and any(isinstance(value, str) for value in values):
            raise pa.ArrowTypeError("got a string")  # Arrow would make a list of its letters
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputTypeError(f"the metadata {name!r} of chunks must be {kind}: {error}") from None


def _repeatable(field: pa.Field) -> pa.Field:
    """Return the field; views become strings or bytes, because Arrow cannot repeat views.

    Raises TypeError for another type that Arrow cannot repeat, such as a list of views.
    """
    pa = arrow()
    plain = {"string_view": pa.string(), "binary_view": pa.binary()}
    field = field.with_type(plain.get(str(field.type), field.type))
    try:
        pa.nulls(0, field.type).take(pa.array([], pa.int64()))
    except pa.ArrowNotImplementedError:
        raise wrong_type(field.name, "values of a type that Arrow can repeat", field.type) from None
    return field
