"""From the tags of an HTML table to its rows, with every cell in its column."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rag_splitters.structure.blocks.tags import Tag, attribute
from rag_splitters.structure.tables.model import Cell, Row

__all__ = ["Grid"]

_WIDEST = 100  # columns of a cell; a browser allows 1,000
_SECTIONS = ("thead", "tbody", "tfoot")


@dataclass(slots=True)
class _Open:
    """A row while it is read."""

    start: int
    end: int
    section: str
    opens_section: bool
    cells: list[Cell] = field(default_factory=list)
    headings: int = 0


class Grid:
    """Takes the tags of one table in their order, and gives its rows.

    Tags that are missing are added as a browser would: a row ends where the next one begins. Once
    cells that span rows or columns have filled ten times as many places as the table has cells,
    further ones fill one place each, so that time stays linear.
    """

    def __init__(self) -> None:
        self._rows: list[_Open] = []
        self._section, self._opens = "", True
        self._row: _Open | None = None
        self._cell: Cell | None = None

    def take(self, tag: Tag, markup: str) -> None:
        """The next tag, with its text."""
        closing = tag.kind == "close"
        if tag.name in _SECTIONS:
            self.close(tag.start)
            self._section, self._opens = ("" if closing else tag.name), True
        elif tag.name == "tr":
            self._close_cell(tag.start)
            if closing and self._row:
                self._row.end = tag.end
            self._row = None if closing else self._opened(tag.start)
        elif tag.name in ("td", "th"):
            self._close_cell(tag.start)
            if closing:
                if self._row:
                    self._row.end = max(self._row.end, tag.end)
                return
            self._row = self._row or self._opened(tag.start)
            self._row.headings += tag.name == "th"
            width = min(max(_number(markup, "colspan"), 1), _WIDEST)
            height = _number(markup, "rowspan")
            height = 65_534 if height == 0 else height
            self._cell = Cell(tag.start, tag.end, tag.end, -1, width, height)

    def close(self, position: int) -> None:
        """Ends the open cell and the open row at this offset."""
        self._close_cell(position)
        self._row = None

    def _opened(self, start: int) -> _Open:
        row = _Open(start, start, self._section, self._opens)
        self._opens = False
        self._rows.append(row)
        return row

    def _close_cell(self, position: int) -> None:
        if self._cell and self._row:
            self._row.cells.append(replace(self._cell, end=max(position, self._cell.start)))
            self._row.end = position
        self._cell = None

    def finished(self, position: int) -> tuple[list[Row], list[Row]]:
        """Header rows and other rows, when the table ends at this offset."""
        self.close(position)
        found = [row for row in self._rows if row.cells]
        count = 0
        if found and found[0].section == "thead":
            while count < len(found) and found[count].section == "thead":
                count += 1
        else:
            while count < len(found) and found[count].headings == len(found[count].cells):
                count += 1
            count = count if count < len(found) else min(count, 1)
        rows = _placed(found)
        return rows[:count], rows[count:]


def _placed(found: list[_Open]) -> list[Row]:
    """The rows with their cells in columns, beside the cells that reach down from above."""
    rows: list[Row] = []
    above: list[Cell] = []
    budget = 10 * sum(len(row.cells) for row in found) + 1000
    for each in found:
        if each.opens_section:
            above = []
        budget -= sum(cell.width for cell in above)
        above = above if budget > 0 else []
        taken = {cell.column + shift for cell in above for shift in range(cell.width)}
        cells: list[Cell] = []
        column = 0
        for cell in each.cells:
            while column in taken:
                column += 1
            width = cell.width if budget > 0 else 1
            budget -= width - 1
            cells.append(replace(cell, column=column, width=width))
            column += width
        rows.append(Row(each.start, each.end, cells, above))
        lower = [replace(c, height=c.height - 1) for c in (*above, *cells) if c.height > 1]
        above = sorted(lower, key=lambda cell: cell.column)
    return rows


def _number(markup: str, name: str) -> int:
    value = attribute(markup, name) if name in markup.lower() else ""
    return min(int(value), 65_534) if value.isdecimal() and len(value) < 6 else 1
