"""Converts HTML to text without tags, with every position mapped to the source."""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from rag_splitters.span import Span
from rag_splitters.structure.block import Block
from rag_splitters.structure.html.blocks import html_blocks
from rag_splitters.structure.html.content import read_page
from rag_splitters.structure.html.tables import HtmlTable, html_tables
from rag_splitters.structure.html.tags import BLOCK_TAGS, INLINE_TAGS, attribute, number_in
from rag_splitters.structure.html.tree import Element, Tag, Tree
from rag_splitters.structure.tables.model import Row
from rag_splitters.text.boundaries import boundary_after, boundary_before, skip_space, trim_space
from rag_splitters.text.excerpt import Excerpt, ExcerptWriter

_SPACE = " \t\n\f\r"
_ENTITY = r"&(?:#\d{1,8}|#[xX][\da-fA-F]{1,7}|[A-Za-z]\w{1,32});?"
_PIECE = re.compile(rf"[{_SPACE}]+|{_ENTITY}|[^&{_SPACE}]+(?: [^&{_SPACE}]+)*|&")
_BARS = re.compile(r"\||[^|]+")
Links: TypeAlias = Literal["text", "markdown"]
"""What becomes of a link: its text, or a link of Markdown."""

_UNSAFE = re.compile(r"[\s()|<>]")  # characters that would end the address of a link
_DEEPEST = 8  # levels of a list that are indented
_WIDEST = 100  # columns of a table that every row is filled up to
_LONGEST_REPEATED = 100  # characters of a cell that is repeated in each row that it spans


@dataclass(frozen=True)
class Stripped:
    """The text of an HTML source, with the position of everything in the source.

    Parameters:
        source: the HTML.
        excerpt: its text, with positions.
        blocks: its blocks, by their positions in the text.
        start: the start of the first block in `source`.
        end: the end of the last block in `source`.
    """

    source: str
    excerpt: Excerpt
    blocks: list[Block]
    start: int
    end: int

    @property
    def text(self) -> str:
        """The text."""
        return self.excerpt.text

    def holds_text(self, span: Span) -> bool:
        """Whether a span of `text` holds more than list and table marks that were added."""
        excerpt = self.excerpt
        index = bisect_right(excerpt.offsets, span.start) - 1
        for number in range(index, bisect_left(excerpt.offsets, span.end)):
            low = max(excerpt.offsets[number], span.start)
            high = min(excerpt.stop(number), span.end)
            if excerpt.starts[number] < excerpt.ends[number] and self.text[low:high].strip():
                return True
        return False

    def to_source(self, span: Span) -> Span:
        """Convert a span of `text` to a span of the source, with its text as content."""
        source, excerpt = self.source, self.excerpt
        start = excerpt.end(span.start) if span.start else self.start
        low, high = excerpt.bounds(span.start, span.end)
        start = skip_space(source, min(start, low))
        end = excerpt.start(span.end) if span.end < len(self.text) else self.end
        end = trim_space(source, start, max(end, high))
        content = span.text_of(self.text)
        start = boundary_before(source, start)
        # A mark after a tag, whose last cluster it belongs to, is the next span's.
        end = max(boundary_after(source, min(high, end)), boundary_before(source, end))
        return replace(span, start=start, end=end, content=content)


def plain_page(text: str, main_content_only: bool = True, links: Links = "text") -> Stripped:
    """Convert an HTML page to text.

    Parameters:
        main_content_only: whether to leave out the menus and other parts around the main content;
            see `read_page`.
        links: whether a link becomes its text, or a link of Markdown with its address.

    >>> plain_page('<p>Read <a href="tea.html">on</a>.', links="markdown").text
    'Read [on](tea.html).'
    >>> plain_page("<nav>Home</nav><h1>Tea</h1><ul><li>green<li>black</ul>").text
    'Tea\\n\\n- green\\n- black'
    """
    page = read_page(text, main_content_only)
    return strip_tags(page, html_blocks(page), links)


def strip_tags(page: Tree, blocks: Sequence[Block], links: Links = "text") -> Stripped:
    """Convert HTML blocks to text, without tags and dropped parts, with entities decoded.

    White space is collapsed, except in code. There is a blank line between blocks, but not between
    the items of a list, which begin with "- " or their number. A table is written in Markdown. An
    image is replaced by its alternative text.

    >>> from rag_splitters.structure.html.tree import parse_html
    >>> text = "<p>Q&amp;A  <b>one</b></p><p>two</p>"
    >>> blocks = [Block("paragraph", 0, 26), Block("paragraph", 26, 36)]
    >>> strip_tags(parse_html(text), blocks).text
    'Q&A one\\n\\ntwo'
    """
    writer = _Writer(page, links == "markdown")
    for block in blocks:
        writer.block(block)
    return Stripped(page.text, writer.out.excerpt(), writer.blocks, writer.first, writer.last)


class _Writer:
    """Writes the stripped text, piece by piece."""

    def __init__(self, page: Tree, has_links: bool) -> None:
        self._page, self._source = page, page.text
        self._has_links = has_links
        self._address = ""  # of the link around the text
        self._in_link = False  # whether any text of it has been written
        self.out = ExcerptWriter(page.text)
        self.blocks: list[Block] = []
        self.first = self.last = 0  # the start of the first block, the end of the last one
        self._begin = 0  # the start of the block
        self._block = Block("paragraph", 0, 0)
        self._pending = ""  # white space to write before the next text
        self._pending_at = 0
        self._last: Block | None = None
        self._verbatim = False
        self._lists = _Lists(page)
        self._lead = ""  # marks of a table row to write before the next text
        self._in_row = False

    def block(self, block: Block) -> None:
        """Write a block. It is left out if nothing in it is visible."""
        if block.kind == "dropped":
            return
        self._block, self._verbatim = block, block.kind == "code"
        self._begin = self.out.length
        self._pending = ""
        position = block.start
        is_table = block.kind == "table"
        for table in html_tables(self._page, block.start, block.end) if is_table else ():
            end = min(table.end, block.end)  # the last cluster of a table may hold later text
            self._write_table(table, position, end)
            position = end
        self._write_part(position, block.end)
        self._end_link(block.end)
        if self.out.length > self._begin:
            span = (self._begin, self.out.length - self.out.trailing_space)
            self.blocks.append(Block(block.kind, *span, block.level, block.title, block.group))
            self.last = block.end
            self._last = block

    def _write_part(self, start: int, end: int) -> None:
        """Write the text of a part of the source, and the text that replaces its tags."""
        position = start
        for tag in self._page.tags_between(start, end):
            if position < tag.start:
                self._characters(position, tag.start)
            self._tag(tag)
            position = tag.end
        if position < end:
            self._characters(position, end)

    def _tag(self, tag: Tag) -> None:
        """Write the text that replaces a tag: a break, a list mark, the text of an image."""
        if tag.kind == "text":
            self._write(tag.text, tag.start, tag.end)
        elif tag.name == "img" and tag.kind == "open":
            alt = " ".join(attribute(self._source[tag.start : tag.end], "alt").split())
            if alt:
                self._write(alt, tag.start, tag.end)
        elif tag.name == "a" and self._has_links:
            self._link(tag)
        elif tag.name in INLINE_TAGS or tag.kind == "dropped":
            return
        elif self.out.length == self._begin:
            self._pending = ""
        else:
            is_break = tag.name in BLOCK_TAGS or tag.name == "br"
            self._space("\n" if is_break else " ", tag.start)

    def _end_link(self, position: int) -> None:
        if self._in_link:
            self.out.add(f"]({self._address})", position, position)
        self._address, self._in_link = "", False

    def _link(self, tag: Tag) -> None:
        """Begin a link, or write the address of the one that ends here."""
        self._end_link(tag.start)
        if tag.opens and (address := self._page.attribute(tag.element, "href").strip()):
            is_outside = not address.startswith(("#", "javascript:", "data:"))
            self._address = _UNSAFE.sub(lambda sign: f"%{ord(sign[0]):02X}", address) * is_outside

    def _characters(self, start: int, end: int) -> None:
        """Write the text between two tags."""
        for match in _PIECE.finditer(self._source, start, end):
            piece = match.group()
            if piece[0] == "&":
                self._write(html.unescape(piece), *match.span())
            elif piece[0] in _SPACE:
                self._space(piece if self._verbatim else " ", match.start())
            elif self._in_row:
                for part in _BARS.finditer(self._source, *match.span()):
                    self._write(part.group(), *part.span())
            else:
                self._write(piece, *match.span())

    def _space(self, space: str, position: int) -> None:
        if not self._pending:
            self._pending_at = position
        if self._in_row:
            self._pending = " "
        elif self._verbatim:
            self._pending += space
        elif space == "\n" or not self._pending.strip(" "):
            self._pending = "\n" if self._pending == "\n" else space

    def _write(self, piece: str, start: int, end: int) -> None:
        is_first = self.out.length == self._begin
        if is_first and piece[:1].isspace():
            piece, start = self._without_space(piece, start, end)
            if not piece:
                return
        if is_first:
            self._lists.begin_block(self._page.element_at(start))
            self._between()
            self._indent(start)
        elif self._pending and not self._lead:
            self.out.add(self._pending, self._pending_at, start)
        self._pending = ""
        if self._lead:
            self.out.add(self._lead.lstrip("\n") if is_first else self._lead, start, start)
            self._lead = ""
        if self._address and not self._in_link:
            self.out.add("[", start, start)
            self._in_link = True
        self.out.add(piece.replace("|", "\\|") if self._in_row else piece, start, end)

    def _without_space(self, piece: str, start: int, end: int) -> tuple[str, int]:
        """Remove white space, such as no-break spaces, at the beginning of a block."""
        visible = piece.lstrip()
        space = piece[: len(piece) - len(visible)]
        if self._verbatim:
            self._space(space, start)
        return visible, start + len(space) if end - start == len(piece) else start

    def _between(self) -> None:
        """Write the line breaks between two blocks."""
        last, block = self._last, self._block
        if last is None:
            self.first = block.start
            return
        is_list = last.kind == block.kind == "list_item" and last.group == block.group
        is_tight = is_list and self._lists.is_tight
        self.out.add("\n" if is_tight else "\n\n", last.end, block.start)
        self._begin = self.out.length

    def _indent(self, start: int) -> None:
        """Write the indentation of the first line, which is not part of the block, and its mark."""
        indentation, begin, mark = "", start, ""
        if self._block.kind == "list_item":
            indentation, mark = self._lists.indentation, self._lists.mark
        elif self._verbatim:
            indentation = re.split(r"[\n\r\f]", self._pending)[-1]
            begin = max(self._pending_at, start - len(indentation))
        if indentation:
            self.out.add(indentation, begin, start)
            self._begin = self.out.length
        if mark:
            self.out.add(mark, start, start)

    def _write_table(self, table: HtmlTable, position: int, end: int) -> None:
        """Write a part of the source with a table: the table in Markdown, and other text."""
        rows = [*table.header, *table.rows]
        width = min(max(map(table.width, rows)), _WIDEST)
        for number, row in enumerate(rows):
            self._write_part(position, row.start)
            position = self._write_row(table, row, width)
            if number + 1 == len(table.header) and self.out.length > self._begin:
                self.out.add("\n|" + " --- |" * width, position, position)
        self._write_part(position, end)

    def _write_row(self, table: HtmlTable, row: Row, width: int) -> int:
        """Write a row, unless nothing in it is visible. Returns its end in the source."""
        self._lead, self._in_row, begin = "\n| ", True, self.out.length
        position, column = row.start, 0
        for cell in sorted(table.all_cells(row), key=lambda cell: cell.column):
            is_own = cell.begin >= row.start
            if is_own:
                self._write_part(position, cell.begin)
                position = cell.end
            marks = (cell.column - column) * "| "
            self._lead += (
                f" {marks}" if marks and self.out.length > begin and not self._lead else marks
            )
            self._pending, column = "", cell.column
            if is_own:
                self._write_part(cell.start, cell.end)
            elif len(plain := " ".join(table.plain(cell).split())) <= _LONGEST_REPEATED and plain:
                self._write(plain, position, position)
        self._write_part(position, row.end)
        position = max(position, row.end)
        if self.out.length > begin:
            self.out.add(" |" * (self._lead.count("|") + width - column), position, position)
        self._lead, self._in_row = "", False
        self._pending, self._pending_at = "\n", position
        return position


class _Lists:
    """The mark and the indentation of each block in a list."""

    def __init__(self, page: Tree) -> None:
        self._page = page
        self._begun: set[int] = set()  # the items that have a block
        self.mark = self.indentation = ""
        self.is_tight = False
        """Whether the block follows the previous one without a blank line."""

    def begin_block(self, element: Element) -> None:
        """Find the mark and the indentation of a block whose first text is in this element."""
        context, item = element.context, element.context.item
        self.mark, self.is_tight = "", False
        if item and item.index not in self._begun:
            is_later = item.number > 0 or context.depth > 1
            self.mark = self._mark(item)
            self.is_tight = is_later if item.name == "li" else item.name == "dd"
        depth = context.depth - bool(self.mark)
        self.indentation = "  " * min(max(depth, 0), _DEEPEST)
        while item is not None and item.index not in self._begun:
            self._begun.add(item.index)
            item = item.parent.context.item if item.parent else None

    def _mark(self, item: Element) -> str:
        around = item.context.list
        if item.name != "li":
            return ""
        if around is None or around.name != "ol":
            return "- "
        first = number_in(self._page.attribute(around, "start"))
        return f"{first + item.number}. "
