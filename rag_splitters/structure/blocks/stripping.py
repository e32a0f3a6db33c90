"""HTML as text: tags removed, entities decoded, every position mapped to the source."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rag_splitters.span import Span
from rag_splitters.structure.blocks.block import Block
from rag_splitters.structure.blocks.tags import Tag, attribute, scan_tags
from rag_splitters.text.boundaries import cluster_end, cluster_floor, skip_space, trim_space

__all__ = ["Stripped", "strip_tags"]

_SPACE = " \t\n\f\r"
_ENTITY = r"&(?:#\d{1,8}|#[xX][\da-fA-F]{1,7}|[A-Za-z]\w{1,32});?"
_PIECE = re.compile(rf"[{_SPACE}]+|{_ENTITY}|[^&{_SPACE}]+|&")
_PLACED = {"br": "\n", "tr": "\n", "td": "\t", "th": "\t"}
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark nobr q "
    "rp rt ruby s samp small span strike strong sub sup time tt u var wbr".split()
)


@dataclass
class Stripped:
    """The text of an HTML source, with the position of everything in the source.

    Parameters:
        source: the HTML.
        text: its text.
        blocks: its blocks, by their positions in `text`.
    """

    source: str
    text: str = ""
    blocks: list[Block] = field(default_factory=list)
    begin: int = 0
    """The start of the first block in `source`."""
    end: int = 0
    """The end of the last block in `source`."""
    places: list[int] = field(default_factory=list)
    """The start of each piece in `text`."""
    origins: list[tuple[int, int]] = field(default_factory=list)
    """The start and end of each piece in `source`."""

    def _origin(self, position: int) -> tuple[int, int]:
        """The start and end in the source of the character at `position`."""
        index = bisect_right(self.places, position) - 1
        start, end = self.origins[index]
        following = self.places[index + 1] if index + 1 < len(self.places) else len(self.text)
        if end - start == following - self.places[index]:
            place = start + position - self.places[index]
            return place, place + 1
        return start, end

    def to_source(self, span: Span) -> Span:
        """The span of the source for a span of `text`, with its text as content."""
        source, content = self.source, self.text[span.start : span.end]
        start = self._origin(span.start - 1)[1] if span.start else self.begin
        start = skip_space(source, min(start, self._origin(span.start)[0]))
        end = self._origin(span.end)[0] if span.end < len(self.text) else self.end
        end = trim_space(source, start, max(end, self._origin(span.end - 1)[1]))
        start = cluster_floor(source, max(0, start - 64), start)
        floor = cluster_floor(source, max(start, end - 64), end)
        end = end if floor == end else cluster_end(source, floor)
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
    writer.stripped.text = "".join(writer.parts)
    return writer.stripped


class _Writer:
    """Writes the stripped text, piece by piece."""

    def __init__(self, source: str) -> None:
        self.stripped = Stripped(source)
        self.parts: list[str] = []
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
            self.stripped.blocks.append(moved)
            self.stripped.end = block.end
            self._last = block

    def tag(self, tag: Tag) -> None:
        """Write what a tag stands for: a break, a gap between cells, an image's text."""
        if tag.name == "img" and tag.kind == "open":
            alt = " ".join(attribute(self.stripped.source[tag.start : tag.end], "alt").split())
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
        source = self.stripped.source
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
            self.stripped.begin = block.start
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
        self.stripped.places.append(self._length)
        self.stripped.origins.append((start, max(start, end)))
        self.parts.append(piece)
        self._length += len(piece)
