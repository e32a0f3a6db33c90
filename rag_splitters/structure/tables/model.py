"""Table, Row and Cell: a table and its parts, by their positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from rag_splitters.text.excerpt import Excerpt, Replacement, data_in


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell, by code-point offsets.

    Parameters:
        begin: start of its own markup.
        start: start of its content.
        end: end of its content.
        column: index of its first column.
        width: number of columns that it fills.
        height: number of rows that it fills, counted from the row at hand.
    """

    begin: int
    start: int
    end: int
    column: int
    width: int = 1
    height: int = 1


@dataclass(frozen=True, slots=True)
class Row:
    """A row, by code-point offsets.

    Parameters:
        start: start of the row.
        end: end of the row, without the line break.
        cells: its own cells, if the reader of the table has found them already.
        carried: cells of the rows above that reach into it.
    """

    start: int
    end: int
    cells: Sequence[Cell] = ()
    carried: Sequence[Cell] = ()


@dataclass(eq=False)
class Table(ABC):
    """A table of a text.

    Parameters:
        text: the whole text.
        start: start of the table in the text.
        end: end of the table.
        header: its header rows.
        rows: its other rows.
        caption: its caption as plain text.
        is_verbatim: whether this part of the text is still a table on its own, outside a list or a
            quote.
    """

    text: str
    start: int
    end: int
    header: Sequence[Row]
    rows: Sequence[Row]
    caption: str = ""
    is_verbatim: bool = True

    @abstractmethod
    def cells(self, row: Row) -> Sequence[Cell]:
        """Return the row's own cells, from left to right."""

    def escape(self, cell: Cell) -> str:
        """Return the two characters of which the second one is meant in a cell, or ""."""
        return ""

    def replacements(self, cell: Cell) -> Iterable[Replacement]:
        """Return the replacements that turn a cell's markup into its plain text."""
        escape = self.escape(cell)
        position = self.text.find(escape, cell.start, cell.end) if escape else -1
        while position >= 0:
            yield position, position + 2, escape[1]
            position = self.text.find(escape, position + 2, cell.end)

    def plain(self, cell: Cell) -> str:
        """Return a cell's plain text."""
        escape, value = self.escape(cell), self.text[cell.start : cell.end]
        return value.replace(escape, escape[1]) if escape else value

    def excerpt(self, cell: Cell) -> Excerpt:
        """Return a cell's plain text with positions, without the data of data URIs."""
        replacements = list(self.replacements(cell))
        for data in data_in(self.text, cell.start, cell.end):
            if not any(low <= data[0] < high for low, high, _ in replacements):
                insort(replacements, data)
        return Excerpt.of(self.text, cell.start, cell.end, replacements)

    def source(self, row: Row) -> str:
        """Return a row as it stands in the text."""
        return self.text[row.start : row.end]

    def width(self, row: Row) -> int:
        """Return the number of columns of a row."""
        return max((each.column + each.width for each in self.all_cells(row)), default=0)

    def all_cells(self, row: Row) -> Sequence[Cell]:
        """Return the cells in a row: its own, and those that reach into it from above."""
        return (*self.cells(row), *row.carried)

    def values(self, row: Row) -> list[str]:
        """Return the plain text of every column of a row. A wide cell is in each of its columns."""
        values: list[str] = []
        for cell in self.all_cells(row):
            stop = cell.column + cell.width
            values.extend([""] * (stop - len(values)))
            values[cell.column : stop] = [self.plain(cell)] * cell.width
        return values

    @cached_property
    def labels(self) -> list[str]:
        """The label of every column. The labels of several header rows are joined by " / "."""
        return list(map(joined, zip_longest(*map(self.values, self.header), fillvalue="")))


def joined(labels: Iterable[str]) -> str:
    """Return several labels above a cell as one.

    >>> joined(["Tea", "", "Tea", "Price"])
    'Tea / Price'
    """
    return " / ".join(dict.fromkeys(filter(None, labels)))
