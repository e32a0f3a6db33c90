"""Writes a table as in the source, as Markdown, or as JSON records."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar, Literal, TypeAlias

from rag_splitters.structure.tables.model import Cell, Row, Table
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
        table: the table.
    """

    joint: ClassVar[str] = "\n"
    foot: ClassVar[str] = ""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.text = table.text
        self.labels = self._labels()
        self.head = self._head()
        rows = [without_data(self._row(row)) for row in table.rows]
        self._body = self.joint.join(rows)
        step = len(self.joint)
        self._starts = list(accumulate((len(row) + step for row in rows), initial=0))

    def content(self, first: int, stop: int) -> str:
        """Return the rows from `first` to before `stop`, under the header."""
        low, high = self._starts[first], self._starts[stop] - len(self.joint)
        return self.head + self._body[low : max(low, high)] + self.foot

    def header(self) -> str:
        """Return the header alone."""
        return self.head + self.foot

    def cell(self, cell: Cell) -> str:
        """Return a cell's content, ready for `part`."""
        return without_data(self.escape(self.table.plain(cell)))

    def escape(self, value: str) -> str:
        """Return a plain text, ready for `part`."""
        return value

    @abstractmethod
    def part(self, labels: Sequence[str], cells: Sequence[str]) -> str:
        """Return a few cells of one row under their columns' labels, which are plain text."""

    def _pad(self, values: list[str]) -> list[str]:
        """Fill up a row with empty values to the length of the header."""
        missing = min(len(self.table.labels), _MOST_PADDED) - len(values)
        return values + [""] * missing

    def _labels(self) -> list[str]:
        return self.table.labels

    @abstractmethod
    def _head(self) -> str:
        """Return the header, which is written before the rows."""

    def _row(self, row: Row) -> str:
        return self.text[row.start : row.end]


class MarkdownWriter(Writer):
    """Writes any table as a pipe table."""

    def escape(self, value: str) -> str:
        joined = LINE_BREAK.sub("<br>", value.strip())
        return joined.replace("|", "\\|") if "|" in joined else joined

    def part(self, labels: Sequence[str], cells: Sequence[str]) -> str:
        return self._frame(labels) + _write_pipes(cells)

    def _labels(self) -> list[str]:
        return _widened(self.table)

    def _head(self) -> str:
        return self._frame(self.labels)

    def _frame(self, labels: Sequence[str]) -> str:
        titles = [self.escape(label) for label in labels]
        return f"{_write_pipes(titles)}\n{_write_pipes(['---'] * len(titles))}\n"

    def _row(self, row: Row) -> str:
        values = [self.escape(value) for value in self.table.values(row)]
        return _write_pipes(self._pad(values))


class PipeWriter(MarkdownWriter):
    """Writes a pipe table as in the source."""

    table: PipeTable

    def _labels(self) -> list[str]:
        return self.table.labels

    def _head(self) -> str:
        return f"{self.table.head}\n"

    def _row(self, row: Row) -> str:
        return self.text[row.start : row.end]


class JsonWriter(Writer):
    """Writes any table as a JSON array of objects, with the header's labels as keys."""

    joint = ",\n"
    foot = "]"

    def header(self) -> str:
        return json.dumps(self.table.labels, ensure_ascii=False)

    def part(self, labels: Sequence[str], cells: Sequence[str]) -> str:
        keys = _unique([label or "column" for label in labels])
        return f"[{_json(dict(zip(keys, cells, strict=True)))}]"

    def _labels(self) -> list[str]:
        labels = enumerate(_widened(self.table), 1)
        return _unique([label or f"column_{number}" for number, label in labels])

    def _head(self) -> str:
        return "["

    def _row(self, row: Row) -> str:
        return _json(dict(zip(self.labels, self._pad(self.table.values(row)), strict=False)))


class SeparatedWriter(Writer):
    """Writes a table of separated values as in the source."""

    table: SeparatedTable

    def escape(self, value: str) -> str:
        marks = (self.table.delimiter, '"', "\n", "\r")
        if any(mark in value for mark in marks) or value != value.strip():
            return '"' + value.replace('"', '""') + '"'
        return value

    def part(self, labels: Sequence[str], cells: Sequence[str]) -> str:
        titles = self.table.delimiter.join(map(self.escape, labels)) + "\n" if any(labels) else ""
        return titles + self.table.delimiter.join(cells)

    def _head(self) -> str:
        rows = [self._row(row) for row in self.table.header]
        return "".join(f"{row}\n" for row in rows)


def writer(table: Table, render: Render) -> Writer:
    """Return the writer for this table and this way of writing."""
    if render == "json":
        return JsonWriter(table)
    if render == "markdown":
        return MarkdownWriter(table)
    if isinstance(table, PipeTable):
        return PipeWriter(table)
    return SeparatedWriter(table) if isinstance(table, SeparatedTable) else MarkdownWriter(table)


def _write_pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _json(record: dict[str, str]) -> str:
    return json.dumps(record, ensure_ascii=False)


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


def _widened(table: Table) -> list[str]:
    """Return the labels, with an empty one for each column beyond the header."""
    widest = max((len(table.values(row)) for row in table.rows), default=0)
    return table.labels + [""] * (widest - len(table.labels))
