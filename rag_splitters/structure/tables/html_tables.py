"""HTML tables, with cells that span rows and columns."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from rag_splitters.structure.blocks.tags import Tag, attribute, scan_tags
from rag_splitters.structure.tables.model import Cell, Row, Table
from rag_splitters.text.excerpt import Excerpt, Replacement, boundary_after, boundary_before

__all__ = ["HtmlTable", "html_tables", "plain_html"]

_BREAKS = frozenset("br dd div dt h1 h2 h3 h4 h5 h6 hr li ol p pre tr ul".split())
_PARTS = frozenset("table caption thead tbody tfoot tr td th".split())
_TEXT = re.compile(r"&(?:#\w{1,10}|\w{1,32});?|\s+")


class HtmlTable(Table):
    """A table of `tr` in a `table`, with its sections, and cells that span rows and columns.

    Its header are the rows of the `thead` that comes first, or else the first rows that hold only
    `th`. A table inside a cell belongs to the cell. What stands between cells is left out.
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
    """The outermost tables in a part of a text that are closed and hold a cell."""
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
        """Takes the next tag, with its text; was it the table's last?"""
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
        """The table that ends here; None if it holds no cell."""
        text = self._text
        header, rows = self._grid.finished(end)
        if not header and not rows:
            return None
        caption = " ".join(plain_html(text, *self._caption).text.split())
        start, stop = boundary_before(text, self._start), boundary_after(text, end)
        return HtmlTable(text, start, stop, header, rows, caption)


def plain_html(text: str, start: int, end: int) -> Excerpt:
    """The plain text of a part of an HTML text, with positions."""
    return Excerpt.of(text, start, end, _replacements(text, start, end))


def _replacements(text: str, start: int, end: int) -> Iterator[Replacement]:
    """What to replace in HTML to get its plain text: tags, entities, runs of white space."""
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
        found = match.group()
        instead = html.unescape(found) if found[0] == "&" else " "
        if instead != found:
            yield match.start(), match.end(), instead


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


class _Grid:
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
