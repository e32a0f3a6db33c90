"""HTML tables."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence

from rag_splitters.structure.blocks.tags import Tag, attribute, scan_tags
from rag_splitters.structure.tables.grid import Grid
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
        self._grid = Grid()
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
