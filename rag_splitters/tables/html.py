"""HTML tables."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence

from rag_splitters.blocks.tags import attribute, scan_tags
from rag_splitters.tables.excerpt import Excerpt, Replacement, boundary_after, boundary_before
from rag_splitters.tables.grid import Grid
from rag_splitters.tables.model import Cell, Row, Table

__all__ = ["HtmlTable", "html_tables", "plain_html"]

_BREAKS = frozenset("br dd div dt h1 h2 h3 h4 h5 h6 hr li ol p pre tr ul".split())
_TEXT = re.compile(r"&(?:#\w{1,10}|\w{1,32});?|\s+")


class HtmlTable(Table):
    """A table of `tr` in a `table`, with its sections, and cells that span rows and columns.

    Its header are the rows of the `thead` that comes first, or else the first rows that hold only
    `th`. A table inside a cell belongs to the cell. What stands between cells is left out.
    """

    kind = "html"

    @classmethod
    def read(cls, text: str, start: int, end: int) -> HtmlTable | None:
        """Reads the table whose opening tag is at `start`; None if it holds no cell."""
        grid = Grid()
        part = text[start:end]
        depth, caption, stop = 0, (0, 0), len(part)
        for tag in scan_tags(part):
            opening = tag.kind == "open"
            if tag.name == "table":
                depth += 1 if opening else -1
                if depth == 0:
                    stop = tag.end
                    grid.close(tag.start + start)
                    break
            elif depth == 1 and tag.name == "caption":
                grid.close(tag.start + start)
                caption = (tag.end, tag.end) if opening else (caption[0], tag.start)
            elif depth == 1:
                moved = tag._replace(start=tag.start + start, end=tag.end + start)
                grid.take(moved, part[tag.start : tag.end])
        header, rows = grid.finished(start + stop)
        if not header and not rows:
            return None
        last = boundary_after(text, start + stop)
        known = " ".join(plain_html(part, *caption).text.split())
        return cls(text, boundary_before(text, start), last, header, rows, known)

    def cells(self, row: Row) -> Sequence[Cell]:
        return row.cells

    def replacements(self, cell: Cell) -> Iterable[Replacement]:
        return _replacements(self.text, cell.start, cell.end)


def html_tables(text: str, start: int, end: int) -> Iterator[HtmlTable]:
    """The outermost tables in a part of a text."""
    depth, first = 0, 0
    for tag in scan_tags(text[start:end]):
        if tag.name != "table":
            continue
        if tag.kind == "open":
            depth, first = depth + 1, first if depth else start + tag.start
        elif depth:
            depth -= 1
            if depth == 0 and (table := HtmlTable.read(text, first, start + tag.end)):
                yield table


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
