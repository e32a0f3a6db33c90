"""HTML tables, with cells that span rows and columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile

from rag_splitters.structure.block import outermost
from rag_splitters.structure.html.tags import number_in, plain_html, plain_replacements
from rag_splitters.structure.html.tree import CELLS, SECTIONS, Element, Tree
from rag_splitters.structure.tables.model import Cell, Row, Table
from rag_splitters.text.boundaries import boundary_after, boundary_before
from rag_splitters.text.excerpt import Replacement

_WIDEST = 100  # columns of a cell; a browser allows 1,000


class HtmlTable(Table):
    """A `table` element, with its sections, and cells that span rows and columns.

    The header is the `thead` if that comes first, or else the first rows that contain only `th`. A
    table inside a cell belongs to the cell. Text between the cells is left out.
    """

    def cells(self, row: Row) -> Sequence[Cell]:
        return row.cells

    def replacements(self, cell: Cell) -> Iterable[Replacement]:
        return plain_replacements(self.text, cell.start, cell.end)

    def plain(self, cell: Cell) -> str:
        markup = self.text[cell.start : cell.end]
        if "<" in markup or "&" in markup:
            return self.excerpt(cell).text.strip()
        return " ".join(markup.split())


def html_tables(tree: Tree, start: int, end: int) -> Iterator[HtmlTable]:
    """Yield the outermost tables in a part of a text that are closed and have a cell."""
    elements = tree.named("table")
    first = bisect_left(elements, start, key=lambda each: each.start)
    inside = takewhile(lambda each: each.start < end, islice(elements, first, None))
    for each in outermost(each for each in inside if each.is_closed and each.end <= end):
        if table := _read_table(tree, each):
            yield table


def _read_table(tree: Tree, element: Element) -> HtmlTable | None:
    """Read a table; None if it has no cell."""
    text, rows = tree.text, _rows(tree, element)
    if not rows:
        return None
    caption = next((each for each in _parts(tree, element) if each.name == "caption"), None)
    plain = plain_html(text, caption.inner_start, caption.inner_end).text if caption else ""
    count, placed = _header_length(rows), _place(rows)
    start, end = boundary_before(text, element.start), boundary_after(text, element.end)
    return HtmlTable(text, start, end, placed[:count], placed[count:], " ".join(plain.split()))


def _parts(tree: Tree, table: Element) -> Iterator[Element]:
    """Yield the elements inside a table, without those of tables in its cells."""
    index = table.index + 1
    while index < table.stop:
        each = tree.elements[index]
        yield each
        index = each.stop if each.name == "table" else index + 1


@dataclass(slots=True)
class _OpenRow:
    """A row that is being read."""

    start: int
    end: int
    section: str
    opens_section: bool
    cells: list[Cell] = field(default_factory=list)
    headings: int = 0


def _rows(tree: Tree, table: Element) -> list[_OpenRow]:
    """Return the rows of a table that have cells. A cell outside of a row begins one."""
    rows: list[_OpenRow] = []
    section, opens_section = table, True
    around: Element | None = None  # the row element that the next cells are in
    row: _OpenRow | None = None
    for each in _parts(tree, table):
        if each.index >= section.stop:
            section, opens_section = table, True
        if each.name in SECTIONS:
            section, opens_section, row = each, True, None
        elif each.name == "tr":
            around, row = each, None
        elif each.name in CELLS:
            if around is not None and each.index >= around.stop:
                around, row = None, None
            if row is None:
                begin = around.start if around else each.start
                end = around.end if around and around.is_closed else begin
                name = section.name if section is not table else ""
                row = _OpenRow(begin, end, name, opens_section)
                rows.append(row)
                opens_section = False
            row.cells.append(_cell(tree, each))
            row.headings += each.name == "th"
            row.end = max(row.end, each.end)
    return rows


def _cell(tree: Tree, element: Element) -> Cell:
    width = min(max(number_in(tree.attribute(element, "colspan")), 1), _WIDEST)
    height = number_in(tree.attribute(element, "rowspan")) or 65_534
    return Cell(element.start, element.inner_start, element.inner_end, -1, width, height)


def _header_length(rows: list[_OpenRow]) -> int:
    """Return the number of header rows: a `thead`, or else the first rows of only `th`."""
    if rows and rows[0].section == "thead":
        return sum(1 for _ in takewhile(lambda row: row.section == "thead", rows))
    count = sum(1 for _ in takewhile(lambda row: row.headings == len(row.cells), rows))
    return count if count < len(rows) else min(count, 1)


def _place(open_rows: list[_OpenRow]) -> list[Row]:
    """Return the rows, with their cells in columns and the cells that reach into them from above.

    Once cells that span rows or columns have filled ten times as many places as the table has
    cells, further cells fill one place each, so that time stays linear.
    """
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
