"""Writes a table as in the source, as Markdown, or as JSON records."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import ClassVar, Literal, TypeAlias

from rag_splitters.structure.tables.model import Cell, Table
from rag_splitters.structure.tables.pipe import PipeTable
from rag_splitters.structure.tables.separated import SeparatedTable
from rag_splitters.text.excerpt import without_data
from rag_splitters.text.lines import LINE_BREAK

Render: TypeAlias = Literal["source", "markdown", "json"]
"""How to write tables: as in the source (parts of HTML tables as Markdown), Markdown, or JSON."""

_MOST_PADDED = 100  # columns; in wider tables short rows stay short, so that time stays linear


class Writer(ABC):
    """Writes parts of a table, each with the header before it.

    Parameters:
        labels: the labels of the table's columns.
        head: what to write before rows.
        rows: the rows as they are written.
    """

    joint: ClassVar[str] = "\n"
    foot: ClassVar[str] = ""

    def __init__(self, table: Table, labels: list[str], head: str, rows: Iterable[str]) -> None:
        self.table, self.labels, self.head = table, labels, head
        rows = list(map(without_data, rows))
        self._body = self.joint.join(rows)
        step = len(self.joint)
        self._starts = list(accumulate((len(row) + step for row in rows), initial=0))

    def content(self, first: int, stop: int) -> str:
        """Return the rows from `first` to before `stop`, under the header."""
        low, high = self._starts[first], self._starts[stop] - len(self.joint)
        return self.head + self._body[low : max(low, high)] + self.foot

    def header(self) -> str:
        """Return the header alone."""
        return self.head

    def cell(self, cell: Cell) -> str:
        """Return a cell's content, ready for `part`."""
        return without_data(self.escape(self.table.plain(cell)))

    def escape(self, value: str) -> str:
        """Return a plain text, ready for `part`."""
        return value

    @abstractmethod
    def part(self, labels: Sequence[str], cells: Sequence[str]) -> str:
        """Return a few cells of one row under their columns' labels, which are plain text."""


class MarkdownWriter(Writer):
    """Writes pipe tables."""

    def escape(self, value: str) -> str:
        return _escape(value)

    def part(self, labels: Sequence[str], cells: Sequence[str]) -> str:
        return _pipe_head(labels) + _pipes(cells)


class JsonWriter(Writer):
    """Writes JSON arrays of objects, with the header's labels as keys."""

    joint = ",\n"
    foot = "]"

    def header(self) -> str:
        return json.dumps(self.table.labels, ensure_ascii=False)

    def part(self, labels: Sequence[str], cells: Sequence[str]) -> str:
        return f"[{_record(_unique([label or 'column' for label in labels]), cells)}]"


class SeparatedWriter(Writer):
    """Writes separated values as in the source."""

    table: SeparatedTable

    def escape(self, value: str) -> str:
        marks = (self.table.delimiter, '"', "\n", "\r")
        if any(mark in value for mark in marks) or value != value.strip():
            return '"' + value.replace('"', '""') + '"'
        return value

    def part(self, labels: Sequence[str], cells: Sequence[str]) -> str:
        titles = self.table.delimiter.join(map(self.escape, labels)) + "\n" if any(labels) else ""
        return titles + self.table.delimiter.join(cells)


def writer(table: Table, render: Render) -> Writer:
    """Return the writer for this table and this way of writing."""
    if render == "source" and isinstance(table, PipeTable | SeparatedTable):
        form = MarkdownWriter if isinstance(table, PipeTable) else SeparatedWriter
        head = "".join(f"{table.source(row)}\n" for row in table.head)
        return form(table, table.labels, head, map(table.source, table.rows))
    rows = [table.values(row) for row in table.rows]
    width = max(map(len, rows), default=0)
    labels = table.labels + [""] * (width - len(table.labels))
    missing = min(len(table.labels), _MOST_PADDED)
    rows = [row + [""] * (missing - len(row)) for row in rows]
    if render == "json":
        labels = _unique([label or f"column_{number}" for number, label in enumerate(labels, 1)])
        return JsonWriter(table, labels, "[", [_record(labels, row) for row in rows])
    lines = (_pipes(map(_escape, row)) for row in rows)
    return MarkdownWriter(table, labels, _pipe_head(labels), lines)


def _escape(value: str) -> str:
    """Return a plain text for a cell of a pipe table."""
    line = LINE_BREAK.sub("<br>", value.strip())
    return line.replace("|", "\\|") if "|" in line else line


def _pipes(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _pipe_head(labels: Sequence[str]) -> str:
    return f"{_pipes(map(_escape, labels))}\n{_pipes(['---'] * len(labels))}\n"


def _record(keys: Sequence[str], values: Sequence[str]) -> str:
    return json.dumps(dict(zip(keys, values, strict=False)), ensure_ascii=False)


def _unique(labels: Sequence[str]) -> list[str]:
    """Return the labels, made unique by adding numbers to repeated ones."""
    counts: Counter[str] = Counter()
    unique: dict[str, None] = {}
    for label in labels:
        key = label
        while key in unique:
            counts[label] += 1
            key = f"{label}_{counts[label] + 1}"
        unique[key] = None
    return list(unique)
