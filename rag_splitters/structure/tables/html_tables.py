"""HTML tables, with cells that span rows and columns."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from rag_splitters.structure.blocks.tags import Tag, attribute, scan_tags
from rag_splitters.structure.tables.model import Cell, Row, Table
from rag_splitters.text.boundaries import boundary_after, boundary_before
from rag_splitters.text.excerpt import Excerpt, Replacement

_BREAKS = frozenset("br dd div dt h1 h2 h3 h4 h5 h6 hr li ol p pre tr ul".split())
_PARTS = frozenset("table caption thead tbody tfoot tr td th".split())
_TEXT = re.compile(r"&(?:#\w{1,10}|\w{1,32});?|\s+")


class HtmlTable(Table):
    """A `table` element, with its sections, and cells that span rows and columns.

    The header is the `thead` if that comes first, or else the first rows that contain only `th`. A
    table inside a cell belongs to the cell. Text between the cells is left out.
    """

    kind = "html"

    def cells(self, row: Row) -> Sequence[Cell]:
        return row.cells

    def replacements(self, cell: Cell) -> Iterable[Replacement]:
        return _replacements(self.text, cell.start, cell.end)

    def plain(self, cell: Cell) -> str:
        markup = self.text[cell.start : cell.end]
        return super().plain(cell) if "<" in markup or "&" in markup else " ".join(markup.split())


def html_tables(text: str, start: int, end: int) -> Iterator[HtmlTable]:
    """The outermost tables in a part of a text that are closed and have a cell."""
    part = text[start:end]
    reader: _Reader | None = None
    for tag in scan_tags(part):
        if reader is None:
            if tag.name == "table" and tag.kind == "open":
                reader = _Reader(text, start + tag.start)
        elif tag.name in _PARTS:
            moved = Tag(tag.kind, start + tag.start, start + tag.end, tag.name)
            if reader.take(moved, part[tag.start : tag.end]):
                if table := reader.table(moved.end):
                    yield table
                reader = None


class _Reader:
    """Reads one table from its tags."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = start
        self._depth = 1
        self._grid = _Grid()
        self._caption = (0, 0)

    def take(self, tag: Tag, markup: str) -> bool:
        """Process the next tag with its markup. Returns whether it closes the table."""
        if tag.name == "table":
            self._depth += 1 if tag.kind == "open" else -1
            if self._depth == 0:
                self._grid.close(tag.start)
        elif self._depth == 1 and tag.name == "caption":
            self._grid.close(tag.start)
            first = tag.end if tag.kind == "open" else self._caption[0]
            self._caption = (first, max(first, tag.end if tag.kind == "open" else tag.start))
        elif self._depth == 1:
            self._grid.take(tag, markup)
        return self._depth == 0

    def table(self, end: int) -> HtmlTable | None:
        """The table that ends here; None if it has no cell."""
        text = self._text
        header, rows = self._grid.finished(end)
        if not header and not rows:
            return None
        caption = " ".join(plain_html(text, *self._caption).text.split())
        start, stop = boundary_before(text, self._start), boundary_after(text, end)
        return HtmlTable(text, start, stop, header, rows, caption)


def plain_html(text: str, start: int, end: int) -> Excerpt:
    """The plain text of a part of an HTML text, with its positions."""
    return Excerpt.of(text, start, end, _replacements(text, start, end))


def _replacements(text: str, start: int, end: int) -> Iterator[Replacement]:
    """The replacements that turn HTML into plain text: of tags, entities and white space."""
    position = start
    part = text[start:end]
    for kind, low, high, name in scan_tags(part):
        yield from _decoded(text, position, start + low)
        instead = "\n" if name in _BREAKS else " " if name in ("td", "th") else ""
        if name == "img" and kind == "open":
            instead = attribute(part[low:high], "alt")
        yield start + low, start + high, instead
        position = start + high
    yield from _decoded(text, position, end)


def _decoded(text: str, start: int, end: int) -> Iterator[Replacement]:
    for match in _TEXT.finditer(text, start, end):
        piece = match.group()
        instead = html.unescape(piece) if piece[0] == "&" else " "
        if instead != piece:
            yield match.start(), match.end(), instead


_WIDEST = 100  # columns of a cell; a browser allows 1,000
_SECTIONS = ("thead", "tbody", "tfoot")


@dataclass(slots=True)
class _OpenRow:
    """A row that is being read."""

    start: int
    end: int
    section: str
    opens_section: bool
    cells: list[Cell] = field(default_factory=list)
    headings: int = 0


class _Grid:
    """Builds the rows of a table from its tags, with every cell in its column.

    Missing tags are supplied as in a browser: a row ends where the next one begins. Once cells that
    span rows or columns have filled ten times as many places as the table has cells, further cells
    fill one place each, so that time stays linear.
    """

    def __init__(self) -> None:
        self._rows: list[_OpenRow] = []
        self._section, self._opens = "", True
        self._row: _OpenRow | None = None
        self._cell: Cell | None = None

    def take(self, tag: Tag, markup: str) -> None:
        """Process the next tag with its markup."""
        closing = tag.kind == "close"
        if tag.name in _SECTIONS:
            self.close(tag.start)
            self._section, self._opens = ("" if closing else tag.name), True
        elif tag.name == "tr":
            self._close_cell(tag.start)
            if closing and self._row:
                self._row.end = tag.end
            self._row = None if closing else self._open_row(tag.start)
        elif tag.name in ("td", "th"):
            self._close_cell(tag.start)
            if closing:
                if self._row:
                    self._row.end = max(self._row.end, tag.end)
                return
            self._row = self._row or self._open_row(tag.start)
            self._row.headings += tag.name == "th"
            width = min(max(_number(markup, "colspan"), 1), _WIDEST)
            height = _number(markup, "rowspan")
            height = 65_534 if height == 0 else height
            self._cell = Cell(tag.start, tag.end, tag.end, -1, width, height)

    def close(self, position: int) -> None:
        """End the open cell and the open row at this offset."""
        self._close_cell(position)
        self._row = None

    def _open_row(self, start: int) -> _OpenRow:
        row = _OpenRow(start, start, self._section, self._opens)
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
        open_rows = [row for row in self._rows if row.cells]
        count = _header_length(open_rows)
        rows = _place(open_rows)
        return rows[:count], rows[count:]


def _header_length(rows: list[_OpenRow]) -> int:
    """Return the number of header rows: a `thead`, or else the first rows of only `th`."""
    if rows and rows[0].section == "thead":
        return sum(1 for _ in takewhile(lambda row: row.section == "thead", rows))
    count = sum(1 for _ in takewhile(lambda row: row.headings == len(row.cells), rows))
    return count if count < len(rows) else min(count, 1)


def _place(open_rows: list[_OpenRow]) -> list[Row]:
    """The rows, with their cells in columns and the cells that reach into them from above."""
    rows: list[Row] = []
    above: list[Cell] = []
    budget = 10 * sum(len(row.cells) for row in open_rows) + 1000
    for each in open_rows:
        if each.opens_section:
            above = []
        budget -= sum(cell.width for cell in above)
        above = above if budget > 0 else []
        occupied = {cell.column + shift for cell in above for shift in range(cell.width)}
        cells: list[Cell] = []
        column = 0
        for cell in each.cells:
            while column in occupied:
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
