"""The blocks of an HTML text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rag_splitters.structure.blocks.block import Block, Kind
from rag_splitters.structure.blocks.tags import Tag, attribute, scan_tags, without_tags
from rag_splitters.text.boundaries import skip_space, trim_space

BLOCK_TAGS = frozenset(
    "address article aside blockquote body caption center col colgroup dd details dialog dir div "
    "dl dt fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html "
    "legend li main menu nav noscript ol optgroup option p pre search section summary table tbody "
    "td tfoot th thead title tr ul".split()
)
"""Elements that end a paragraph."""

_HEADING = re.compile(r"h[1-6]\Z")
_VISIBLE = re.compile(r"\S")
_IMAGE = re.compile(r"<img\b[^>]{0,2000}", re.IGNORECASE)
_CAPTION = re.compile(
    r"<(caption|figcaption)\b[^>]{0,500}>(.{0,2000}?)</\1", re.IGNORECASE | re.DOTALL
)
_LANGUAGE = re.compile(r"\blang(?:uage)?-([\w+#.-]{1,40})")
_OPENING = 5000  # characters of an element to search for its title
_DROPPED_INLINE = frozenset(("a", "button", "comment", "declaration", "span", "svg"))


def html_blocks(
    text: str, tags: Sequence[Tag] | None = None, *, layout_tables: bool = False
) -> list[Block]:
    """Find the blocks of an HTML text.

    Opening tags belong to the text after them, closing tags to the text before them. The text
    between two block tags is a paragraph, a heading, a list item or a quote. Each outermost table,
    `pre` and figure is one block. The head, scripts, styles, declarations, the comments between
    blocks, and everything that the tags mark so are "dropped". Broken HTML never raises.

    Parameters:
        text: any text.
        tags: its tags, if some parts of it have to be dropped; see `content_tags`.
        layout_tables: whether to look for blocks inside tables that hold other tables, headings,
            code, or a single column without a header, because these do not hold data.

    >>> text = "<h1>Tea</h1><script>x</script><p>Hot."
    >>> [(block.kind, block.title) for block in html_blocks(text)]
    [('heading', 'Tea'), ('dropped', ''), ('paragraph', '')]
    """
    tags = list(scan_tags(text)) if tags is None else tags
    reader = _Reader(text)
    whole = _closed_elements(text, tags, layout_tables)
    position = index = 0
    while index < len(tags):
        tag = tags[index]
        reader.text(position, tag.start)
        if index in whole:
            last = whole[index]
            tag = Tag("open", tag.start, tags[last].end, tag.name)
            reader.element(tag, {each.name for each in tags[index:last]})
            index = last
        else:
            reader.tag(tag)
        position = tag.end
        index += 1
    reader.text(position, len(text))
    return reader.finished()


class _Reader:
    """Builds blocks from tags and the text between them."""

    def __init__(self, text: str) -> None:
        self._source = text
        self._blocks: list[Block] = []
        self._nesting = _Nesting()
        self._begin = -1  # start of pending tags and text
        self._filled: Kind | None = None  # their kind, unless they are only tags
        self._heading = 0
        self._title = ""
        self._marks: list[Tag] = []  # dropped parts inside the pending text

    def text(self, start: int, end: int) -> None:
        """Process the text between two tags."""
        if match := _VISIBLE.search(self._source, start, end):
            self._start(match.start())
            self._filled = "paragraph"

    def tag(self, tag: Tag) -> None:
        """Process a tag."""
        if tag.kind == "dropped":
            self._dropped(tag)
        elif tag.name not in BLOCK_TAGS:
            self._start(tag.start)
            if tag.name == "img" and not self._filled:
                self._filled = "image"
                self._title = attribute(self._source[tag.start : tag.end], "alt")
        elif tag.kind == "open":
            self._opened(tag)
        else:
            self._closed(tag)

    def element(self, tag: Tag, names: set[str]) -> None:
        """Process an element that is a single block: a head, table, pre or figure."""
        if tag.name == "head":
            self._dropped(tag)
            return
        self._flush(tag.start)
        self._start(tag.start)
        kind: Kind = "table" if "table" in names else "code" if "pre" in names else "image"
        opening = self._source[tag.start : min(tag.end, tag.start + _OPENING)]
        self._put(kind, self._begin, tag.end, _element_title(kind, opening))

    def finished(self) -> list[Block]:
        """Return all blocks. Tags at the end belong to the last one."""
        end = trim_space(self._source, 0, len(self._source))
        if self._filled:
            self._flush(end)
        elif self._begin >= 0 and self._blocks and self._blocks[-1].kind != "dropped":
            self._blocks[-1] = _extended(self._blocks[-1], end)
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
        self._nesting.open(tag.name)
        if _HEADING.match(tag.name):
            self._heading = int(tag.name[1])
        elif tag.name == "hr":
            self._put("rule", self._begin, tag.end)

    def _closed(self, tag: Tag) -> None:
        if self._filled:
            self._flush(tag.end)
        elif self._begin < 0 and self._blocks and self._blocks[-1].kind != "dropped":
            self._blocks[-1] = _extended(self._blocks[-1], tag.end)
        else:
            self._start(tag.start)
        self._nesting.close(tag.name)
        if _HEADING.match(tag.name):
            self._heading = 0

    def _dropped(self, tag: Tag) -> None:
        if tag.name in _DROPPED_INLINE and (self._filled or self._heading):
            self._start(tag.start)
            self._marks.append(tag)
            return
        if self._filled:
            self._flush(tag.start)
        self._put("dropped", tag.start if self._begin < 0 else self._begin, tag.end)

    def _plain(self, end: int) -> str:
        """Return the pending text in one line, without the dropped parts inside it."""
        parts, position = [], self._begin
        for mark in self._marks:
            parts.append(self._source[position : mark.start])
            position = mark.end
        return without_tags("".join((*parts, self._source[position:end])))

    def _flush(self, end: int) -> None:
        """Make a block of the pending text, if it is not only tags."""
        if not self._filled:
            return
        kind, level, title = self._filled, 0, self._title
        inner = self._nesting.innermost()
        if self._heading and kind == "paragraph" and inner != "quote":
            kind, level = "heading", self._heading
            title = self._plain(end)
        elif inner and kind == "paragraph":
            kind, level = inner, self._nesting.depth(inner)
            title = self._plain(end) if self._nesting.is_term else title
        self._put(kind, self._begin, end, title, level)

    def _put(self, kind: Kind, start: int, end: int, title: str = "", level: int = 0) -> None:
        start = skip_space(self._source, start)
        end = trim_space(self._source, start, end)
        group = 0 if kind in ("dropped", "heading") else self._nesting.group
        if end > start:
            self._blocks.append(Block(kind, start, end, level, title, group))
        self._begin, self._filled, self._title = -1, None, ""
        self._marks.clear()


def _extended(block: Block, end: int) -> Block:
    inner = end if block.content_end == block.end else block.content_end
    return replace(block, end=end, content_end=inner)


def _element_title(kind: Kind, opening: str) -> str:
    """Return the language of code, the text or caption of an image, or a table's caption."""
    if kind == "code":
        match = _LANGUAGE.search(opening[:500])
        return match.group(1) if match else ""
    image = _IMAGE.search(opening) if kind == "image" else None
    if image and (alt := attribute(image.group(), "alt")):
        return alt
    caption = _CAPTION.search(opening)
    return without_tags(caption.group(2)) if caption else ""


_LISTS = frozenset(("ul", "ol", "dl", "menu", "dir"))
_ITEMS = frozenset(("li", "dt", "dd"))
_WHOLE = frozenset(("head", "table", "pre", "figure"))


class _Nesting:
    """The open lists, items and quotes. An item that is never closed ends with its list."""

    def __init__(self) -> None:
        self._lists = 0
        self._items: list[tuple[int, int, bool]] = []  # number, lists around it, is it a term?
        self._quotes: list[int] = []
        self._count = 0
        self._groups = 0

    @property
    def group(self) -> int:
        """The number of the outermost open list or quote, or 0 if there is none."""
        return self._groups if self._lists or self._quotes or self._items else 0

    @property
    def is_term(self) -> bool:
        """Whether the innermost open item is the term of a list of descriptions."""
        return bool(self._items) and self._items[-1][2]

    def innermost(self) -> Kind | None:
        """The innermost open element, an item or a quote; None if there is neither."""
        item = self._items[-1][0] if self._items else -1
        quote = self._quotes[-1] if self._quotes else -1
        if item == quote:
            return None
        return "list_item" if item > quote else "quote"

    def depth(self, kind: Kind) -> int:
        """The number of open elements of this kind."""
        return max(self._lists, 1) if kind == "list_item" else len(self._quotes)

    def open(self, name: str) -> None:
        """Process an opening tag."""
        self._count += 1
        if not self.group and name in _LISTS | _ITEMS | {"blockquote"}:
            self._groups += 1
        if name in _LISTS:
            self._lists += 1
        elif name in _ITEMS:
            self._leave_items(self._lists)
            self._items.append((self._count, self._lists, name == "dt"))
        elif name == "blockquote":
            self._quotes.append(self._count)

    def close(self, name: str) -> None:
        """Process a closing tag. One that closes nothing has no effect."""
        if name in _LISTS and self._lists:
            self._leave_items(self._lists)
            self._lists -= 1
        elif name in _ITEMS and self._items:
            self._leave_items(self._lists)
        elif name == "blockquote" and self._quotes:
            self._quotes.pop()

    def _leave_items(self, lists: int) -> None:
        while self._items and self._items[-1][1] >= lists:
            self._items.pop()


def _closed_elements(text: str, tags: Sequence[Tag], layout_tables: bool) -> dict[int, int]:
    """Return the outermost elements that are one block: opening tag -> closing tag, by index.

    Only closed elements count. A figure counts only if it contains an image, a table or code and,
    if there may be layout tables, a table counts only if it holds data.
    """
    pairs: dict[int, int] = {}
    open_elements: dict[str, list[int]] = {name: [] for name in _WHOLE}
    special: list[int] = []  # indices of the tags that make a figure one block
    tables = _TableCounts(text) if layout_tables else None
    for index, tag in enumerate(tags):
        name = tag.name
        if name in ("img", "table", "pre"):
            special.append(index)
        if tables:
            tables.take(tag)
        if name not in _WHOLE or tag.kind == "dropped":
            continue
        if tag.kind == "open":
            open_elements[name].append(index)
        elif open_elements[name]:
            start = open_elements[name].pop()
            is_data = name != "table" or not tables or tables.is_data
            if is_data and (name != "figure" or (special and special[-1] > start)):
                pairs[start] = index
    outermost: dict[int, int] = {}
    last = -1
    for start in sorted(pairs):
        if start > last:
            last = pairs[start]
            outermost[start] = last
    return outermost


_NOT_IN_DATA = frozenset(("table", "pre", "h1", "h2", "h3", "h4", "h5", "h6"))


class _TableCounts:
    """Counts the contents of open tables, to distinguish data tables from layout tables."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._rows = self._cells = self._others = 0  # header cells count twice
        self._open: list[tuple[int, int, int]] = []
        self.is_data = False
        """Whether the table that was closed last is a data table."""

    def take(self, tag: Tag) -> None:
        """Process the next tag."""
        if tag.name == "table" and tag.kind == "close" and self._open:
            rows, cells, others = self._open.pop()
            self.is_data = self._others == others and self._cells - cells > self._rows - rows
        if tag.kind == "open":
            self._rows += tag.name == "tr"
            self._cells += 1 if tag.name == "td" else 2 * (tag.name == "th")
            self._others += tag.name in _NOT_IN_DATA
        if tag.name == "table" and tag.kind == "open":
            markup = self._text[tag.start : tag.end]
            is_layout = attribute(markup, "role").lower() in ("presentation", "none")
            self._open.append((self._rows, self._cells, self._others - is_layout))
