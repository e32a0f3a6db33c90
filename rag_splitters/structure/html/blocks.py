"""The blocks of an HTML text."""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, takewhile, zip_longest

from rag_splitters.structure.block import Block, Kind
from rag_splitters.structure.html.tags import BLOCK_TAGS, attribute, without_tags
from rag_splitters.structure.html.tree import HEADINGS, ITEMS, LISTS, Element, Tag, Tree
from rag_splitters.text.boundaries import skip_space, trim_space
from rag_splitters.text.excerpt import Excerpt
from rag_splitters.text.lines import VISIBLE

_WHOLE = frozenset(("head", "table", "pre", "figure")) | HEADINGS
_LANGUAGE = re.compile(r"\blang(?:uage)?-([\w+#.-]{1,40})")
_LONGEST_TAG, _LONGEST_CAPTION = 500, 2000  # characters
_DROPPED_INLINE = frozenset(
    "a annotation annotation-xml button cdata comment declaration span svg".split()
)
_NOT_IN_HEADING = frozenset("blockquote dl figure hr pre table".split()) | HEADINGS | LISTS | ITEMS
_KINDS: dict[str, Kind] = {"table": "table", "pre": "code", "img": "image"}
_NOT_IN_DATA = HEADINGS | {"pre"}


def html_blocks(tree: Tree) -> list[Block]:
    """Find the blocks of an HTML text.

    Opening tags belong to the text after them, closing tags to the text before them. The text
    between two block tags is a paragraph, a list item or a quote. Each heading and each outermost
    table, `pre` and figure is one block, whatever is inside. Tables that hold other tables,
    headings, code, or a single column without a header do not hold data: their cells hold blocks.
    The head, scripts, styles, declarations, the comments between blocks, and everything that the
    tags mark so are "dropped".

    >>> from rag_splitters.structure.html.tree import parse_html
    >>> tree = parse_html("<h1>Tea</h1><script>x</script><p>Hot.")
    >>> [(block.kind, block.title) for block in html_blocks(tree)]
    [('heading', 'Tea'), ('dropped', ''), ('paragraph', '')]
    """
    reader = _Reader(tree)
    data_tables = _data_tables(tree)
    position, index, tags = tree.start, 0, tree.tags
    while index < len(tags):
        tag = tags[index]
        reader.text(position, tag.start)
        position, index = tag.end, index + 1
        may_be_one = tag.opens and _may_be_one_block(tag.element, data_tables)
        if may_be_one and reader.element(tag.element, index):
            position = tag.element.end
            index = bisect_left(tree.tag_starts, position, index)
        else:
            reader.tag(tag)
    reader.text(position, tree.end)
    return reader.finished()


def _may_be_one_block(element: Element, data_tables: set[int]) -> bool:
    """Whether a heading, table, code, figure or head is closed, and a table holds data."""
    if element.name not in _WHOLE or not element.is_closed:
        return False
    return element.name != "table" or element.index in data_tables


class _Reader:
    """Builds blocks from tags and the text between them."""

    def __init__(self, tree: Tree) -> None:
        self._tree, self._source = tree, tree.text
        self._named = {name: [tag for tag in tree.tags if tag.name == name] for name in _KINDS}
        self._blocks: list[Block] = []
        self._context = tree.elements[0].context
        self._begin = -1  # start of pending tags and text
        self._filled: Kind | None = None  # their kind, unless they are only tags
        self._heading = 0
        self._title = ""
        self._marks: list[Tag] = []  # dropped parts inside the pending text

    def text(self, start: int, end: int) -> None:
        """Process the text between two tags."""
        if match := VISIBLE.search(self._source, start, end):
            self._start(match.start())
            self._filled = "paragraph"

    def tag(self, tag: Tag) -> None:
        """Process a tag."""
        if tag.kind == "dropped":
            self._dropped(tag)
        elif tag.kind == "text":
            self._start(tag.start)
            self._marks.append(tag)
            self._filled = "paragraph"
        elif tag.name not in BLOCK_TAGS:
            self._start(tag.start)
            if tag.name == "img" and not self._filled:
                self._filled = "image"
                self._title = attribute(self._source[tag.start : tag.end], "alt")
        elif tag.kind == "open":
            self._opened(tag)
        else:
            self._closed(tag)

    def element(self, element: Element, index: int) -> bool:
        """Process an element, unless it is not a block; `index` is that of the tag after it."""
        if element.name in HEADINGS:
            return self._whole_heading(element, index)
        if element.name == "head":
            self._dropped(Tag("dropped", element.start, element.end, "head", element))
            return True
        kind = self._kind(element)
        if not kind:
            return False
        self._flush(element.start)
        self._start(element.start)
        self._put(kind, self._begin, element.end, self._element_title(kind, element))
        return True

    def _kind(self, element: Element) -> Kind | None:
        """Return the kind of a table, code or a figure; None for a figure with none of these."""
        return next((kind for name, kind in _KINDS.items() if self._first(name, element)), None)

    def _first(self, name: str, element: Element) -> Tag | None:
        """Return the first tag with this name in an element, its own included."""
        tags = self._named[name]
        first = bisect_left(tags, element.start, key=lambda tag: tag.start)
        return tags[first] if first < len(tags) and tags[first].start < element.end else None

    def _element_title(self, kind: Kind, element: Element) -> str:
        """Return the language of code, the text or caption of an image, or a table's caption."""
        if kind == "code":
            end = min(element.end, element.start + _LONGEST_TAG)
            match = _LANGUAGE.search(self._source, element.start, end)
            return match.group(1) if match else ""
        image = self._first("img", element) if kind == "image" else None
        if image and (alt := attribute(self._source[image.start : image.end], "alt")):
            return alt
        captions = (each for each in self._tree.inside(element) if each.name.endswith("caption"))
        caption = next(captions, element)
        end = min(caption.inner_end, caption.inner_start + _LONGEST_CAPTION)
        return self._plain(caption.inner_start, end, ()) if caption is not element else ""

    def _whole_heading(self, heading: Element, index: int) -> bool:
        """Make one block of a heading, unless it holds other blocks or no text."""
        dropped, paragraphs = list[Tag](), 0
        rest = islice(self._tree.tags, index, None)
        for tag in takewhile(lambda tag: tag.start < heading.end, rest):
            paragraphs += tag.name == "p" and tag.kind == "open"
            if tag.kind in ("dropped", "text"):
                dropped.append(tag)
            elif tag.name in _NOT_IN_HEADING and tag.start < heading.inner_end:
                return False
        title = self._plain(heading.start, heading.end, dropped)
        if paragraphs > 1 or not title or self._context.kind == "quote":
            return False
        self._flush(heading.start)
        self._start(heading.start)
        self._put("heading", self._begin, heading.end, title, int(heading.name[1]))
        return True

    def finished(self) -> list[Block]:
        """Return all blocks. Tags at the end belong to the last one."""
        end = trim_space(self._source, self._tree.start, self._tree.end)
        if self._filled:
            self._flush(end)
        elif self._begin >= 0 and self._blocks and self._blocks[-1].kind != "dropped":
            self._blocks[-1] = replace(self._blocks[-1], end=end)
        elif self._begin >= 0:
            self._put("html", self._begin, end)
        return self._blocks

    def _start(self, position: int) -> None:
        if self._begin < 0:
            self._begin = position

    def _opened(self, tag: Tag) -> None:
        if self._filled:
            self._heading = 0 if self._filled == "paragraph" else self._heading
            self._flush(tag.start)
        self._start(tag.start)
        self._context = tag.element.context
        if tag.name in HEADINGS and tag.opens:
            self._heading = int(tag.name[1])
        elif tag.name == "hr":
            self._put("rule", self._begin, tag.end)

    def _closed(self, tag: Tag) -> None:
        if self._filled:
            self._flush(tag.end)
        elif self._begin < 0 and self._blocks and self._blocks[-1].kind != "dropped":
            self._blocks[-1] = replace(self._blocks[-1], end=tag.end)
        else:
            self._start(tag.start)
        self._context = tag.element.context
        if tag.name in HEADINGS:
            self._heading = 0

    def _dropped(self, tag: Tag) -> None:
        if tag.name in _DROPPED_INLINE and (self._filled or self._heading):
            self._start(tag.start)
            self._marks.append(tag)
            return
        if self._filled:
            self._flush(tag.start)
        self._put("dropped", tag.start if self._begin < 0 else self._begin, tag.end)

    def _plain(self, start: int, end: int, dropped: Sequence[Tag]) -> str:
        """Return a part of the text in one line, without tags and these dropped parts of it."""
        instead = [(mark.start, mark.end, html.escape(mark.text)) for mark in dropped]
        return without_tags(Excerpt.of(self._source, start, end, instead).text)

    def _flush(self, end: int) -> None:
        """Make a block of the pending text, if it is not only tags."""
        if not self._filled:
            return
        kind, level, title = self._filled, 0, self._title
        context = self._context
        if self._heading and kind == "paragraph" and context.kind != "quote":
            kind, level = "heading", self._heading
            title = self._plain(self._begin, end, self._marks)
        elif context.kind and kind == "paragraph":
            kind, level = context.kind, context.level
            if context.item is not None and context.item.name == "dt":
                title = self._plain(self._begin, end, self._marks)
        self._put(kind, self._begin, end, title, level)

    def _put(self, kind: Kind, start: int, end: int, title: str = "", level: int = 0) -> None:
        start = skip_space(self._source, start)
        end = trim_space(self._source, start, end)
        group = 0 if kind in ("dropped", "heading") else self._context.group
        if end > start:
            self._blocks.append(Block(kind, start, end, level, title, group))
        self._begin, self._filled, self._title = -1, None, ""
        self._marks.clear()


def _data_tables(tree: Tree) -> set[int]:
    """Return the numbers of the tables that hold data, and do not only arrange a page.

    These have more cells than rows, where a header cell counts twice, and hold no other table, no
    heading and no code.
    """
    tables = tree.named("table")
    innermost = (
        table
        for table, following in zip_longest(tables, tables[1:])
        if following is None or following.index >= table.stop
    )
    return {table.index for table in innermost if _holds_data(tree, table)}


def _holds_data(tree: Tree, table: Element) -> bool:
    counts = Counter(element.name for element in tree.inside(table))
    has_columns = counts["td"] + 2 * counts["th"] > counts["tr"]
    is_layout = tree.attribute(table, "role").lower() in ("presentation", "none")
    return has_columns and not is_layout and _NOT_IN_DATA.isdisjoint(counts)
