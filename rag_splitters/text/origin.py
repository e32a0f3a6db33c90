"""The origin of text that was read from a file: lines, pages, times, cells and positions.

A reader stores it in the document's metadata, and every strategy gives each chunk its own part of
it.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from pydantic import ConfigDict, TypeAdapter

from rag_splitters.errors import InputError
from rag_splitters.parameters.checks import stored_number, whole_number
from rag_splitters.span import Span
from rag_splitters.text.excerpt import Excerpt
from rag_splitters.text.lines import LINE_BREAK
from rag_splitters.text.pages import page_breaks

ORIGIN = "origin"
"""The metadata key. Its value is JSON: the text's `length`, and rows of (offset, first, last) for
each quantity. `file` has the positions in the file of each part of the text."""

_KEYS = {
    "time": ("start_time", "end_time"),
    "cell": ("cell_start", "cell_end"),
    "page": ("page_start", "page_end"),
    "line": ("line_start", "line_end"),
    "file": ("file_start", "file_end"),
}
PLACES = tuple(key for keys in _KEYS.values() for key in keys)
"""The metadata keys for the origin of a chunk."""


Row: TypeAlias = tuple[int, float, float]
"""The offset in the text at which values begin to apply, and the first and last value."""

_ORIGINS: TypeAdapter[dict[str, Any]] = TypeAdapter(
    dict[str, int | list[tuple[int, int | float, int | float]]], config=ConfigDict(strict=True)
)


class ReadingOptions(NamedTuple):
    """What to keep of notebooks and mails.

    Parameters:
        max_output: maximum number of characters to keep of each output in a notebook; a line says
            how many were left out. 0 drops outputs, None keeps them whole.
        quotations: whether to keep quotations in mails: lines after ">", quotations in HTML, and
            the original message below a reply.
        attachments: whether to keep the attachments of mails that are text, each after its name,
            including attached messages.
    """

    max_output: int | None = None
    quotations: bool = True
    attachments: bool = False


READ_ALL = ReadingOptions()


def reading_options(max_output: int | None, quotations: bool, attachments: bool) -> ReadingOptions:
    """Make options. Raises ValueError if `max_output` is not a whole number of at least 0."""
    if max_output is not None:
        max_output = whole_number(max_output, "max_output", 0)
    return ReadingOptions(max_output, quotations, attachments)


class UnreadableError(InputError):
    """A text is not of the expected kind, or takes too long to read; the message says why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text that was read from a part of another one, such as the mails of a mailbox.

    Parameters:
        excerpt: the text, with its positions in the other one.
        rows: the times or cells of its parts.
        metadata: its metadata.
        mimetype: its MIME type, if known.
    """

    excerpt: Excerpt
    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    mimetype: str = ""

    @property
    def text(self) -> str:
        """The text."""
        return self.excerpt.text

    def with_places(self, spans: Iterable[Span]) -> list[Span]:
        """Add the times or cells of their text to spans."""
        tables = {name: _Table(rows) for name, rows in self.rows.items()}
        return _with_places(spans, tables)

    def to_metadata(self) -> dict[str, Any]:
        """Return metadata for a document with this text."""
        file = zip(self.excerpt.offsets, self.excerpt.starts, self.excerpt.ends, strict=True)
        rows = {**self.rows, "file": list(file)}
        types = {"mimetype": self.mimetype} if self.mimetype else {}
        return {**self.metadata, **types, **write_origin(self.text, rows)}


def write_origin(text: str, rows: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    """Return metadata with the origin of the parts of a text.

    >>> write_origin("Hello.", {"time": [(0, 1.5, 2.0)]})
    {'origin': '{"length": 6, "time": [[0, 1.5, 2.0]]}'}
    """
    content = {"length": len(text), **{name: each for name, each in rows.items() if each}}
    return {ORIGIN: json.dumps(content)}


def has_origin(metadata: Mapping[str, Any] | None) -> bool:
    """Whether a reader made this text from a file of another format, by its metadata."""
    value = (metadata or {}).get(ORIGIN)
    return isinstance(value, str) and value.startswith('{"length":')


def add_places(spans: list[Span], text: str, metadata: Mapping[str, Any]) -> list[Span]:
    """Add their origin to spans, if the metadata of the text has it.

    Lines are counted from `line_start`, and pages between form feeds from `page_start`, if the last
    number agrees with the text. Of anything else, the first value of a span is the smallest one of
    its parts, and the last value is the largest. Spans that have pages keep them.

    >>> metadata = write_origin("Hello. Bye.", {"time": [(0, 1.5, 2.0), (7, 4.0, 5.0)]})
    >>> add_places([Span(0, 11)], "Hello. Bye.", metadata)[0].to_metadata()
    {'start_time': 1.5, 'end_time': 5.0}
    """
    tables = _tables_in(metadata, text)
    return _with_places(spans, tables) if tables else spans


def places_of(metadata: Mapping[str, Any], text: str, start: int, end: int) -> dict[str, float]:
    """Return the origin of a chunk from `start` to `end` in a text with this metadata.

    >>> metadata = write_origin("Hello. Bye.", {"time": [(0, 1.5, 2.0), (7, 4.0, 5.0)]})
    >>> places_of(metadata, "Hello. Bye.", 7, 11)
    {'start_time': 4.0, 'end_time': 5.0}
    """
    return add_places([Span(start, end)], text, metadata)[0].to_metadata()


def merged_places(chunks: Sequence[Mapping[str, Any]]) -> dict[str, int | float]:
    """Merge the origins of several chunks, as far as all of them have one.

    >>> merged_places([{"page_start": 3, "page_end": 3}, {"page_start": 2, "page_end": 3}])
    {'page_start': 2, 'page_end': 3}
    """
    places: dict[str, int | float] = {}
    for first, last in _KEYS.values():
        lows: list[Any] = [chunk.get(first) for chunk in chunks]
        highs: list[Any] = [chunk.get(last) for chunk in chunks]
        if chunks and all(type(value) in (int, float) for value in [*lows, *highs]):
            places |= {first: min(lows), last: max(highs)}
    return places


def line_range(text: str, first: int = 1) -> dict[str, int]:
    """Return metadata with the first and last line of a text, so that its chunks get theirs.

    Lines are counted from `first`. Files that this package reads as they are, such as code, have
    this metadata already. Chunks get no lines if the two numbers do not agree with the line breaks
    in the text.

    >>> metadata = line_range("one\\ntwo\\nthree")
    >>> metadata
    {'line_start': 1, 'line_end': 3}
    >>> add_places([Span(4, 7)], "one\\ntwo\\nthree", metadata)[0].to_metadata()
    {'line_start': 2, 'line_end': 2}
    """
    return {"line_start": first, "line_end": first + len(line_breaks(text))}


@lru_cache(maxsize=4)
def line_breaks(text: str) -> list[int]:
    """Return the offsets at which the lines of a text begin, except the first."""
    return [match.end() for match in LINE_BREAK.finditer(text)]


def _with_places(spans: Iterable[Span], tables: Mapping[str, _Table | Excerpt]) -> list[Span]:
    results = []
    for span in spans:
        details: dict[str, Any] = {}
        pages = span.pages
        for name, table in tables.items():
            if span.start >= span.end or not (bounds := table.bounds(span.start, span.end)):
                continue
            if name == "page":
                pages = pages or (int(bounds[0]), int(bounds[1]))
            else:
                details.update(zip(_KEYS[name], bounds, strict=True))
        results.append(replace(span, metadata={**details, **span.metadata}, pages=pages))
    return results


class _Table:
    """The rows of one kind of value."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._offsets = [row[0] for row in rows]
        self._lows, self._highs = [row[1] for row in rows], [row[2] for row in rows]

    def bounds(self, start: int, end: int) -> tuple[float, float] | None:
        """Return the smallest and largest value between two offsets; None before the first row."""
        first = max(bisect_right(self._offsets, start) - 1, 0)
        last = bisect_left(self._offsets, end)
        if first >= last:
            return None
        return min(self._lows[first:last]), max(self._highs[first:last])


def _tables_in(metadata: Mapping[str, Any], text: str) -> dict[str, _Table | Excerpt]:
    """Return the values in the metadata of a text, as far as they agree with the text."""
    tables: dict[str, _Table | Excerpt] = {}
    if has_origin(metadata):
        tables.update(_tables(metadata[ORIGIN], text))
    for name, breaks in (("page", _form_feeds), ("line", line_breaks)):
        key, last_key = _KEYS[name]
        if key not in metadata:
            continue
        first, last = stored_number(metadata[key]), stored_number(metadata.get(last_key))
        if first is not None and last is not None and last - first == len(breaks(text)):
            tables[name] = _counted(text, breaks, first)
    return tables


@lru_cache(maxsize=4)
def _form_feeds(text: str) -> list[int]:
    return page_breaks(text, "\f")


@lru_cache(maxsize=4)
def _counted(text: str, breaks: Callable[[str], list[int]], first: int) -> _Table:
    """Return the lines or pages of a text, counted from a number. Parents ask one by one."""
    return _Table([(at, number, number) for number, at in enumerate([0, *breaks(text)], first)])


@lru_cache(maxsize=8)
def _tables(value: str, text: str) -> Mapping[str, _Table | Excerpt]:
    try:
        content = _ORIGINS.validate_json(value)
    except ValueError:
        return {}
    if content.pop("length", None) != len(text):
        return {}
    tables: dict[str, _Table | Excerpt] = {}
    for name, rows in content.items():
        if name not in _KEYS or not isinstance(rows, list) or not rows:
            return {}
        offsets = [row[0] for row in rows]
        if offsets != sorted(offsets) or (name == "file" and offsets[0]):
            return {}
        tables[name] = Excerpt(text, *zip(*rows, strict=True)) if name == "file" else _Table(rows)
    return tables
