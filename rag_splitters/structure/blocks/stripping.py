"""HTML as text: tags removed, entities decoded, every position mapped to the source."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_splitters.span import Span
from rag_splitters.structure.blocks.block import Block
from rag_splitters.structure.blocks.tags import Tag, attribute, scan_tags
from rag_splitters.text.boundaries import boundary_after, boundary_before, skip_space, trim_space
from rag_splitters.text.excerpt import Excerpt

_SPACE = " \t\n\f\r"
_ENTITY = r"&(?:#\d{1,8}|#[xX][\da-fA-F]{1,7}|[A-Za-z]\w{1,32});?"
_PIECE = re.compile(rf"[{_SPACE}]+|{_ENTITY}|[^&{_SPACE}]+|&")
_PLACED = {"br": "\n", "tr": "\n", "td": "\t", "th": "\t"}
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark nobr q "
    "rp rt ruby s samp small span strike strong sub sup time tt u var wbr".split()
)


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

    def to_source(self, span: Span) -> Span:
        """The span of the source for a span of `text`, with its text as content."""
        source, excerpt = self.source, self.excerpt
        start = excerpt.end(span.start) if span.start else self.start
        start = skip_space(source, min(start, excerpt.start(span.start)))
        end = excerpt.start(span.end) if span.end < len(self.text) else self.end
        end = trim_space(source, start, max(end, excerpt.end(span.end)))
        content = span.text_of(self.text)
        start, end = boundary_before(source, start), boundary_after(source, end)
        return replace(span, start=start, end=end, content=content)


def strip_tags(text: str, blocks: Sequence[Block]) -> Stripped:
    """The text of HTML blocks, without tags and dropped parts, and with entities decoded.

    White space is collapsed, except in code. There are two line breaks between blocks, but one
    within a group. Rows end with a line break and cells with a tab. An image is replaced by its
    alternative text.

    >>> text = "<p>Q&amp;A  <b>one</b></p><p>two</p>"
    >>> strip_tags(text, [Block("paragraph", 0, 26), Block("paragraph", 26, 36)]).text
    'Q&A one\\n\\ntwo'
    """
    writer = _Writer(text)
    tags = iter(scan_tags(text))
    tag = next(tags, None)
    for block in blocks:
        position = block.start
        writer.begin(block)
        while tag and tag.start < block.end:
            if block.kind != "dropped" and tag.start >= position:
                writer.characters(position, tag.start)
                writer.tag(tag)
                position = tag.end
            tag = next(tags, None)
        if block.kind != "dropped":
            writer.characters(position, block.end)
            writer.finish(block)
    excerpt = Excerpt("".join(writer.parts), writer.offsets, writer.starts, writer.ends)
    return Stripped(text, excerpt, writer.blocks, writer.first, writer.last)


class _Writer:
    """Writes the stripped text, piece by piece."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.parts: list[str] = []
        self.offsets: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.blocks: list[Block] = []
        self.first = self.last = 0  # the start of the first block, the end of the last one
        self._length = 0
        self._begin = 0  # where the block begins
        self._block = Block("paragraph", 0, 0)
        self._pending = ""  # white space that is written before what comes next
        self._pending_at = 0
        self._last: Block | None = None
        self._verbatim = False

    def begin(self, block: Block) -> None:
        """Begin a block. Nothing is written before its first visible character."""
        self._block, self._verbatim = block, block.kind == "code"
        self._begin = self._length
        self._pending = ""

    def finish(self, block: Block) -> None:
        """End a block. It is left out if nothing in it is visible."""
        if self._length > self._begin:
            span = (self._begin, self._length)
            moved = Block(block.kind, *span, block.level, block.title, block.group)
            self.blocks.append(moved)
            self.last = block.end
            self._last = block

    def tag(self, tag: Tag) -> None:
        """Write what a tag stands for: a break, a gap between cells, an image's text."""
        if tag.name == "img" and tag.kind == "open":
            alt = " ".join(attribute(self._source[tag.start : tag.end], "alt").split())
            if alt:
                self._write(alt, tag.start, tag.end)
        elif tag.name in _INLINE or tag.kind == "dropped":
            return
        elif self._length == self._begin:
            self._pending = ""
        else:
            is_placed = tag.name in _PLACED and tag.kind == "open"
            self._space(_PLACED[tag.name] if is_placed else " ", tag.start)

    def characters(self, start: int, end: int) -> None:
        """Write the text between two tags."""
        source = self._source
        for match in _PIECE.finditer(source, start, end):
            piece = match.group()
            if piece[0] == "&":
                self._write(html.unescape(piece), *match.span())
            elif piece[0] not in _SPACE:
                self._write(piece, *match.span())
            else:
                self._space(piece if self._verbatim else " ", match.start())

    def _space(self, space: str, position: int) -> None:
        if not self._pending:
            self._pending_at = position
        if self._verbatim:
            self._pending += space
        elif space == "\n" or not self._pending.strip(" "):
            self._pending = "\n" if self._pending == "\n" else space

    def _write(self, piece: str, start: int, end: int) -> None:
        if self._length == self._begin:
            self._between()
            self._indent(start)
        elif self._pending:
            self._put(self._pending, self._pending_at, start)
        self._pending = ""
        self._put(piece, start, end)

    def _between(self) -> None:
        """Write the line breaks between two blocks."""
        last, block = self._last, self._block
        if last is None:
            self.first = block.start
            return
        line_break = "\n" if last.group == block.group and block.group else "\n\n"
        self._put(line_break, last.end, block.start)
        self._begin = self._length

    def _indent(self, start: int) -> None:
        """Write the indentation of the first line of code, which is not part of the block."""
        indentation = re.split(r"[\n\r\f]", self._pending)[-1] if self._verbatim else ""
        if indentation:
            begin = max(self._pending_at, start - len(indentation))
            self._put(indentation, begin, start)
            self._begin = self._length

    def _put(self, piece: str, start: int, end: int) -> None:
        self.offsets.append(self._length)
        self.starts.append(start)
        self.ends.append(max(start, end))
        self.parts.append(piece)
        self._length += len(piece)
