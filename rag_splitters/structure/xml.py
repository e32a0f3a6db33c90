"""XML as text: titles as headings, paragraphs, records and tables, with positions in the source."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from rag_splitters.structure.block import Block, Kind
from rag_splitters.structure.html.tags import plain_html
from rag_splitters.structure.html.text import Stripped
from rag_splitters.text.excerpt import ExcerptWriter

_TAG = re.compile(
    r"<(/?)([^\W\d][\w:.-]{0,200})((?:\s+[\w:.-]+\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'))*)\s*(/?)>"
)
_SPECIAL = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_SUBSET = re.compile(r"<!DOCTYPE[^<>\[\]]{0,2000}\[")
_END = re.compile(">")
_SUBSET_END = re.compile(r"\]\s*>")
_PIECE = re.compile(r"\s+|&[#\w]{1,40};|[^\s&]+(?: [^\s&]+)*|&")
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>")
_TITLES = frozenset(("title", "article-title", "head", "heading"))
_TITLE_PARENTS = frozenset(("info", "title-group", "article-meta", "front", "prolog", "teiHeader"))
_ITEMS = frozenset(("li", "listitem", "list-item"))
_TABLES = frozenset(("table", "tgroup", "simpletable"))
_ROWS = frozenset(("tr", "row", "strow", "sthead"))
_VERBATIM = frozenset("code codeblock literallayout pre preformat programlisting screen".split())
_UNLABELLED = (
    _VERBATIM
    | _ITEMS
    | frozenset(
        "abstract body content description encoded note p para quote seg shortdesc simpara summary "
        "text".split()
    )
)
_INLINE_LIMIT = 200  # characters of a value in a record; longer values are paragraphs
_NAMES = ("name", "id", "key")


@dataclass(slots=True, eq=False)
class _Node:
    """An element, or a part of its text, whose name is ""."""

    name: str
    start: int
    inner_start: int
    inner_end: int
    end: int
    depth: int
    attributes: tuple[int, int] = (0, 0)
    nodes: list[_Node] = field(default_factory=list)
    is_data: bool = False

    @property
    def elements(self) -> list[_Node]:
        """The elements directly inside it."""
        return [node for node in self.nodes if node.name]


def xml_page(text: str) -> Stripped:
    """Convert XML to text.

    An element with a title, such as a section of DocBook, DITA or JATS, or an item of RSS or Atom,
    becomes a section under that heading. If nothing has a title, elements that contain records
    become sections under their names. Values beside each other become lines such as "price: 4".
    Markup inside a value, as in RSS, is removed.

    Comments, processing instructions and the document type are dropped, and so are the attributes
    of elements with text in documents that have titles. Entities that the document declares itself
    stay as they are; nothing is opened.

    >>> xml_page("<menu><tea><name>Sencha</name><price>4</price></tea></menu>").text
    'menu\\n\\ntea\\nname: Sencha\\nprice: 4'
    """
    writer = _Writer(text, _read(text))
    writer.write()
    return Stripped(text, writer.out.excerpt(), writer.blocks, writer.first, writer.last)


def xml_blocks(text: str) -> list[Block]:
    """Return the blocks of `xml_page`, by their positions in the XML."""
    page = xml_page(text)
    blocks: list[Block] = []
    for block in page.blocks:
        start, end = page.excerpt.bounds(block.start, block.end)
        start = max(start, blocks[-1].end if blocks else 0)
        if end > start:
            blocks.append(Block(block.kind, start, end, block.level, block.title))
    return blocks


def _read(text: str) -> _Node:
    """Read the elements of an XML text. Broken XML never raises."""
    root = _Node("", 0, 0, len(text), len(text), 0)
    path, open_names = [root], Counter[str]()
    position = 0
    for start, end, match in _marks(text):
        if start > position:
            path[-1].nodes.append(_Node("", position, position, start, start, len(path)))
        position = end
        if match is None:
            if text.startswith("<![CDATA[", start):
                low, high = start + 9, end - 3
                path[-1].nodes.append(_Node("", start, low, high, end, len(path), is_data=True))
            continue
        name = match[2].rpartition(":")[2]
        if not match[1]:
            node = _Node(name, start, end, end, end, len(path), match.span(3))
            path[-1].nodes.append(node)
            if not match[4]:
                path.append(node)
                open_names[name] += 1
        elif open_names[name]:
            while path[-1].name != name:
                _close(path, open_names, start, start)
            _close(path, open_names, start, end)
    if position < len(text):
        path[-1].nodes.append(_Node("", position, position, len(text), len(text), len(path)))
    while len(path) > 1:
        _close(path, open_names, len(text), len(text))
    return root


def _close(path: list[_Node], open_names: Counter[str], inner_end: int, end: int) -> None:
    node = path.pop()
    node.inner_end, node.end = inner_end, end
    open_names[node.name] -= 1


def _marks(text: str) -> Iterator[tuple[int, int, re.Match[str] | None]]:
    """Yield the tags, and the comments and other marks without a match."""
    missing: set[str] = set()
    position = text.find("<")
    while position >= 0:
        end, match = -1, None
        special = next((mark for mark in _SPECIAL if text.startswith(mark, position)), "")
        if special and special not in missing:
            end = text.find(_SPECIAL[special], position + len(special))
            end = end + len(_SPECIAL[special]) if end >= 0 else -1
            if end < 0:
                missing.add(special)
        elif text.startswith("<!DOCTYPE", position) and "<!DOCTYPE" not in missing:
            subset = _SUBSET.match(text, position)
            closing = (_SUBSET_END if subset else _END).search(text, position)
            end = closing.end() if closing else -1
            if end < 0:
                missing.add("<!DOCTYPE")
        elif match := _TAG.match(text, position):
            end = match.end()
        if end >= 0:
            yield position, end, match
        position = text.find("<", max(end, position + 1))


class _Writer:
    """Writes the text of XML, block by block."""

    def __init__(self, text: str, root: _Node) -> None:
        self.text, self.out, self._root = text, ExcerptWriter(text), root
        self.blocks: list[Block] = []
        self.first = self.last = 0
        self._titles: set[int] = set()  # those that are written
        self._rowless: set[int] = set()  # tables in tables without rows
        self._has_titles = any(self._title(node) for node in _walk(root))

    def write(self) -> None:
        """Write all blocks, from a stack of elements and the levels of headings over them."""
        stack = [(node, 0, False) for node in reversed(self._root.nodes)]
        while stack:
            node, level, is_item = stack.pop()
            is_item = is_item or node.name in _ITEMS
            if node.name in _TABLES and self._table(node):
                continue
            if not node.name or not node.elements or self._has_text(node):
                self._paragraph(node, is_item)
                continue
            title = self._title(node)
            if title:
                level += 1
                self._heading(title, level)
            elif not self._has_titles and any(each.elements for each in node.elements):
                level += 1
                self._name_heading(node, level)
            elif not self._has_titles:
                self._record(node, node.elements)
                continue
            rest = [each for each in node.elements if id(each) not in self._titles]
            groups: list[tuple[bool, list[_Node]]] = [
                (is_value, list(group)) for is_value, group in groupby(rest, self._is_value)
            ]
            for is_value, group in reversed(groups):
                if is_value:
                    stack.append((_Node("", 0, 0, 0, 0, 0, nodes=group), level, is_item))
                else:
                    stack += [(each, level, is_item) for each in reversed(group)]

    def _is_value(self, node: _Node) -> bool:
        """Whether an element is one line of a record."""
        is_short = node.inner_end - node.inner_start <= _INLINE_LIMIT
        is_plain = not node.elements and node.name not in _UNLABELLED | _TITLES
        return is_plain and is_short and not _has_markup(self.text, node)

    def _has_text(self, node: _Node) -> bool:
        """Whether there is text between the elements in an element."""
        parts = (each for each in node.nodes if not each.name)
        return any(self.text[each.inner_start : each.inner_end].strip() for each in parts)

    def _title(self, node: _Node) -> _Node | None:
        """Return the title of a section, which may stand in the section's description."""
        candidates = [each for each in node.elements if each.name in _TITLES]
        if not candidates and node.name not in _TITLE_PARENTS:
            inner = [each for each in node.elements[:3] if each.name in _TITLE_PARENTS]
            inner += [e for each in inner for e in each.elements if e.name in _TITLE_PARENTS]
            inner += [e for each in inner for e in each.elements if e.name in _TITLE_PARENTS]
            candidates = [e for each in inner for e in each.elements if e.name in _TITLES]
        elif node.name in _TITLE_PARENTS:
            return None
        titles = (e for e in candidates if self.text[e.inner_start : e.inner_end].strip())
        return next(titles, None) if node.name not in _TABLES else None

    # Blocks

    def _begin(self, node: _Node) -> int:
        """Begin a block, and return its start in the text."""
        if self.blocks:
            self.out.add("\n\n", self.last, max(self.last, node.start))
        else:
            self.first = node.start
        return self.out.length

    def _end(self, kind: Kind, start: int, node: _Node, level: int = 0, title: str = "") -> None:
        self.last = max(self.last, node.end)
        self.blocks.append(Block(kind, start, self.out.length, level, title))

    def _heading(self, node: _Node, level: int) -> None:
        start = self._begin(node)
        self._inline(node)
        self._titles.add(id(node))
        self._end("heading", start, node, min(level, 6), self._plain(node))

    def _name_heading(self, node: _Node, level: int) -> None:
        name = self._attribute(node)
        start = self._begin(node)
        self.out.add(f"{node.name} {name}".strip(), node.start, node.inner_start)
        end = _Node("", node.start, 0, 0, node.inner_start, 0)
        self._end("heading", start, end, min(level, 6), f"{node.name} {name}".strip())

    def _attribute(self, node: _Node) -> str:
        part = self.text[slice(*node.attributes)]
        for name in _NAMES:
            if match := re.search(rf"(?<!\S){name}\s*=\s*[\"']([^\"']{{1,100}})", part):
                return html.unescape(match[1])
        return ""

    def _paragraph(self, node: _Node, is_item: bool) -> None:
        """Write a text, an element with text, or the lines of a record without a name."""
        if node.nodes and not node.name:
            self._record(None, node.nodes)
            return
        if not self._shows(node):
            return
        start = self._begin(node)
        kind: Kind = "code" if node.name in _VERBATIM else "list_item" if is_item else "paragraph"
        if kind == "list_item":
            self.out.add("- ", node.start, node.start)
        elif node.name and node.name not in _UNLABELLED and not self._has_titles:
            self.out.add(f"{node.name}: ", node.start, node.start)
        self._inline(node, verbatim=kind == "code")
        self._end(kind, start, node)

    def _record(self, node: _Node | None, values: list[_Node]) -> None:
        """Write values as lines, under the name of the element around them."""
        values = [each for each in values if self._shows(each)]
        if not values and (node is None or not self._shows(node)):
            return
        start = self._begin(node or values[0])
        if node is not None:
            self.out.add(node.name, node.start, node.start)
            self._attributes(node)
        for each in values:
            if self.out.length > start:
                self.out.add("\n", self.last, max(self.last, each.start))
            self.out.add(each.name, each.start, each.start)
            self._attributes(each)
            if any(self.text[e.inner_start : e.inner_end].strip() for e in each.nodes):
                self.out.add(": ", each.inner_start, each.inner_start)
                self._inline(each)
            self.last = each.end
        self._end("paragraph", start, node or values[-1])

    def _attributes(self, node: _Node) -> None:
        low, high = node.attributes
        part = self.text[low:high]
        if part.strip() and "xmlns" not in part:
            plain = " ".join(html.unescape(part).split())
            self.out.add(f" {plain}", low, high)

    def _table(self, table: _Node) -> bool:
        """Write a table in Markdown; False if it has no rows."""
        if id(table) in self._rowless:
            return False
        inside = list(_walk(table))
        rows = [node for node in inside if node.name in _ROWS and node.elements]
        if not rows:
            self._rowless.update(id(node) for node in inside if node.name in _TABLES)
            return False
        start = self._begin(table)
        for number, row in enumerate(rows):
            self.out.add("\n| " if number else "| ", row.start, row.start)
            for cell in row.elements:
                self._inline(cell, in_row=True)
                self.out.add(" | " if cell is not row.elements[-1] else " |", cell.end, cell.end)
            if number == 0:
                delimiters = "\n|" + " --- |" * len(row.elements)
                self.out.add(delimiters, row.end, row.end)
        self._end("table", start, table)
        return True

    # Text

    def _plain(self, node: _Node) -> str:
        """Return the text of an element in one line."""
        parts = (each for each in _walk(node) if not each.name)
        text = "".join(self.text[each.inner_start : each.inner_end] for each in parts)
        return " ".join(html.unescape(text).split())

    def _shows(self, node: _Node) -> bool:
        """Whether there is anything to write of an element."""
        if not node.name:
            return bool(self.text[node.inner_start : node.inner_end].strip())
        low, high = node.attributes
        if self.text[low:high].strip() and not self._has_titles:
            return True
        parts = (each for each in _walk(node) if not each.name)
        return any(self.text[each.inner_start : each.inner_end].strip() for each in parts)

    def _inline(self, node: _Node, *, verbatim: bool = False, in_row: bool = False) -> None:
        """Write the text of an element and of the elements in it."""
        if _has_markup(self.text, node):
            part = node.nodes[0]
            if part.is_data:
                excerpt = plain_html(self.text, part.inner_start, part.inner_end)
                low = len(excerpt.text) - len(excerpt.text.lstrip())
                self.out.extend(excerpt, low, len(excerpt.text.rstrip()))
            else:
                decoded = html.unescape(self.text[part.inner_start : part.inner_end])
                plain = plain_html(decoded, 0, len(decoded)).text.strip()
                self.out.add(html.unescape(plain), part.inner_start, part.inner_end)
            return
        begin, space = self.out.length, ""
        for each in _walk(node) if node.name else [node]:
            if each.name:
                space = space or ("\n" if each.name in _ITEMS | {"p", "para"} else "")
                continue
            for match in _PIECE.finditer(self.text, each.inner_start, each.inner_end):
                piece = match[0]
                if piece.isspace():
                    space = space + piece if verbatim else space or " "
                    continue
                if space and self.out.length > begin:
                    self.out.add(" " if in_row else space, match.start(), match.start())
                space = ""
                plain = html.unescape(piece) if piece[0] == "&" and not each.is_data else piece
                plain = plain.replace("|", "\\|") if in_row else plain
                self.out.add(plain, *match.span())


def _has_markup(text: str, node: _Node) -> bool:
    """Whether the text of an element is HTML, escaped or in a CDATA section."""
    parts = [each for each in node.nodes if text[each.inner_start : each.inner_end].strip()]
    if len(parts) != 1 or parts[0].name or node.name in _VERBATIM:
        return False
    content = text[parts[0].inner_start : parts[0].inner_end]
    if not parts[0].is_data and "&lt;" not in content:
        return False
    content = content if parts[0].is_data else html.unescape(content)
    return _MARKUP.search(content) is not None


def _walk(node: _Node) -> Iterator[_Node]:
    """Yield the nodes inside a node in order, without recursion."""
    stack = node.nodes[::-1]
    while stack:
        each = stack.pop()
        yield each
        stack += each.nodes[::-1]
