"""The tree of elements of an HTML text, with exact positions, in linear time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from rag_splitters.structure.html.tags import (
    BLOCK_TAGS,
    EMPTY_TAGS,
    INLINE_TAGS,
    attribute,
    scan_tags,
)

HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
LISTS = frozenset(("ul", "ol", "menu", "dir"))
ITEMS = frozenset(("li", "dt", "dd"))
CELLS = frozenset(("td", "th"))
SECTIONS = frozenset(("thead", "tbody", "tfoot"))
_ROW_ENDS = ("td", "th", "tr", "caption")
_IMPLIED_ENDS: dict[str, tuple[str, ...]] = {
    "li": ("li",),
    "option": ("option",),
    "body": ("head",),
    **dict.fromkeys(("dt", "dd"), ("dt", "dd")),
    **dict.fromkeys(CELLS, ("td", "th", "caption")),
    "tr": _ROW_ENDS,
    **dict.fromkeys(SECTIONS, (*_ROW_ENDS, *SECTIONS)),
}
"""The open elements that end where another element begins."""

_IN_CONTEXT = LISTS | ITEMS | {"dl", "blockquote"}
_TABLE_PARTS = SECTIONS | {*_ROW_ENDS, "table"}

_SCOPES = CELLS | {"table", "caption"}
"""Elements that no closing tag inside them ends, except their own and those of a table's parts."""

_PARAGRAPH_SCOPES = _SCOPES | {"button", "math", "object", "svg", "template"}
"""Elements in which no block ends the paragraph around them."""


class Context(NamedTuple):
    """The lists, items and quotes around the content of an element.

    Parameters:
        kind: the innermost item or quote.
        level: the number of lists or quotes around it.
        group: the number of the outermost list or quote, or 0 if there is none.
        item: the innermost item.
        list: the innermost list, unless it is one of descriptions.
        depth: the number of lists, without those of descriptions.
        lists: the number of all lists.
        quotes: the number of quotes.
    """

    kind: Literal["list_item", "quote"] | None = None
    level: int = 0
    group: int = 0
    item: Element | None = None
    list: Element | None = None
    depth: int = 0
    lists: int = 0
    quotes: int = 0


class Element:
    """An element of an HTML text, by its positions.

    Attributes:
        name: its name in lower case; "" for the root.
        parent: the element around it.
        index: its number in the tree. Those of the elements inside it follow, up to `stop`.
        start, inner_start: where its opening tag begins and ends.
        inner_end, end: where its closing tag begins and ends; the same offset if it has none.
        is_closed: whether it has a closing tag.
        is_ended: whether it is closed, or ends with an element around it, or where another begins.
        context: the lists, items and quotes around its content.
        number: for an item, the number of items before it in its list.
    """

    __slots__ = (
        *("name", "parent", "index", "stop", "start", "inner_start", "inner_end", "end"),
        *("is_closed", "is_ended", "context", "number"),
    )

    def __init__(self, name: str, parent: Element | None, index: int, start: int, end: int) -> None:
        self.name, self.parent, self.index, self.stop = name, parent, index, index + 1
        self.start = start
        self.inner_start = self.inner_end = self.end = end
        self.is_closed = self.is_ended = False
        self.context: Context = parent.context if parent else Context()
        self.number = 0


class Tag(NamedTuple):
    """A tag: its kind, its position, and its name in lower case.

    Comments, declarations, and scripts and styles with their content have the kind "dropped".
    `element` is the innermost element around what follows the tag. `text` stands for a tag of the
    kind "text".
    """

    kind: str
    start: int
    end: int
    name: str
    element: Element
    text: str = ""

    @property
    def opens(self) -> bool:
        """Whether it opens an element that can contain something."""
        return self.kind == "open" and self.element.start == self.start


@dataclass(frozen=True)
class Tree:
    """The elements and tags of an HTML text, or of a part of one.

    Parameters:
        text: the whole text.
        start: start of the part.
        end: end of the part.
        tags: the tags in order, without those in parts to drop, each of which is one tag.
        elements: the root, which is the part itself, and all elements in the order of their starts.
    """

    text: str
    start: int
    end: int
    tags: Sequence[Tag]
    elements: Sequence[Element]

    @cached_property
    def tag_starts(self) -> list[int]:
        """The start of each tag."""
        return [tag.start for tag in self.tags]

    @cached_property
    def _tag_ends(self) -> list[int]:
        return [tag.end for tag in self.tags]

    @cached_property
    def _named(self) -> dict[str, list[Element]]:
        named: dict[str, list[Element]] = defaultdict(list)
        for element in self.elements:
            named[element.name].append(element)
        return named

    def named(self, name: str) -> Sequence[Element]:
        """Return the elements with a name, in the order of their starts."""
        return self._named.get(name, ())

    def inside(self, element: Element) -> Sequence[Element]:
        """Return the elements inside another one, in the order of their starts."""
        return self.elements[element.index + 1 : element.stop]

    def tags_between(self, start: int, end: int) -> Sequence[Tag]:
        """Return the tags that begin in a part of the text."""
        first = bisect_left(self.tag_starts, start)
        return self.tags[first : bisect_left(self.tag_starts, end, first)]

    def element_at(self, position: int) -> Element:
        """Return the innermost element around an offset."""
        before = bisect_right(self._tag_ends, position) - 1
        return self.tags[before].element if before >= 0 else self.elements[0]

    def attribute(self, element: Element, name: str) -> str:
        """Return the decoded value of an element's attribute, or ""."""
        return attribute(self.text[element.start : element.inner_start], name)


def parse_html(text: str, start: int = 0, end: int | None = None, *, is_xml: bool = False) -> Tree:
    """Read the elements of an HTML text, or of a part of it. Broken HTML never raises.

    Missing closing tags are supplied as by a browser: a list item, a cell or a paragraph ends where
    the next one begins, and everything else with the element around it. A closing tag without an
    opening one is ignored. In XML, elements end where they are closed, whatever their names.

    >>> [each.name for each in parse_html("<ul><li>a<li>b</ul></p>").elements]
    ['', 'ul', 'li', 'li']
    """
    end = len(text) if end is None else end
    builder = TreeBuilder(text, start, end, is_xml)
    for tag in scan_tags(text, start, end, is_xml=is_xml):
        builder.take(*tag)
    return builder.tree()


class TreeBuilder:
    """Builds the elements of a text from its tags.

    For each name, and for blocks, scopes and lists together, it records the depths of the open
    elements, so that no tag has to search all open elements.
    """

    def __init__(self, text: str, start: int, end: int, is_xml: bool = False) -> None:
        root = Element("", None, 0, start, start)
        self.elements = [root]
        self._text, self._start, self._end, self._is_xml = text, start, end, is_xml
        self._tags: list[Tag] = []
        self._open = [root]
        self._blocks, self._lists, self._scopes, self._paragraph_scopes = [0], [0], [0], [0]
        self._depths: dict[str, list[int]] = defaultdict(list)
        self._records: dict[str, list[list[int]]] = {}
        self._groups = 0
        self._counts: Counter[int] = Counter()  # of the items in each list

    def take(self, kind: str, start: int, end: int, name: str, text: str = "") -> None:
        """Process the next tag."""
        if kind == "open":
            if name in BLOCK_TAGS and not self._is_xml:
                self._make_room(name, start)
            if name not in EMPTY_TAGS or self._is_xml:
                self._push(name, start, end, self._text[end - 2 : end] == "/>")
        elif kind == "close":
            self._close(name, start, end)
        self._tags.append(Tag(kind, start, end, name, self._open[-1], text))

    def tree(self) -> Tree:
        """End the open elements with the text, and return the tree."""
        while len(self._open) > 1:
            self._pop(self._end).is_ended = False
        root = self.elements[0]
        root.inner_end = root.end = self._end
        root.stop = len(self.elements)
        return Tree(self._text, self._start, self._end, self._tags, self.elements)

    def _make_room(self, name: str, position: int) -> None:
        """End the open elements that end where a block with this name begins."""
        paragraphs = self._depths["p"]
        if paragraphs and paragraphs[-1] > self._paragraph_scopes[-1]:
            self._pop_to(paragraphs[-1], position)
        if name in HEADINGS and self._open[-1].name in HEADINGS:
            self._pop(position)
        limit = self._limit(name) if name in _IMPLIED_ENDS else 0
        for other in _IMPLIED_ENDS.get(name, ()):
            if self._depths[other] and self._depths[other][-1] > limit:
                self._pop_to(self._depths[other][-1], position)

    def _limit(self, name: str) -> int:
        """Return the depth of the innermost element that no tag with this name ends."""
        if self._is_xml:
            return 0
        if name in INLINE_TAGS:
            return self._blocks[-1]
        if name in _TABLE_PARTS:
            return self._depths["table"][-1] if self._depths["table"] else 0
        if name == "li":
            return max(self._lists[-1], self._scopes[-1])
        if name in ("dt", "dd") and self._depths["dl"]:
            return max(self._depths["dl"][-1], self._scopes[-1])
        return self._scopes[-1]

    def _push(self, name: str, start: int, end: int, is_empty: bool) -> None:
        element = Element(name, self._open[-1], len(self.elements), start, end)
        self.elements.append(element)
        if name in _IN_CONTEXT:
            element.context = self._context(element)
        if is_empty:
            element.is_closed = element.is_ended = True
            return
        for depths in self._records.get(name) or self._records_of(name):
            depths.append(len(self._open))
        self._open.append(element)

    def _context(self, element: Element) -> Context:
        """Return the context inside a list, an item or a quote."""
        context, name = element.context, element.name
        if not context.group:
            self._groups += 1
            context = context._replace(group=self._groups)
        if name in LISTS:
            depth, lists = context.depth + 1, context.lists + 1
            return context._replace(list=element, depth=depth, lists=lists)
        if name == "dl":
            return context._replace(lists=context.lists + 1)
        if name == "blockquote":
            quotes = context.quotes + 1
            return context._replace(kind="quote", level=quotes, quotes=quotes)
        if name == "li":
            around = context.list.index if context.list else 0
            element.number = self._counts[around]
            self._counts[around] += 1
            context = context._replace(depth=max(context.depth, 1))
        return context._replace(kind="list_item", level=max(context.lists, 1), item=element)

    def _records_of(self, name: str) -> list[list[int]]:
        """Return the lists with the depths of elements with this name."""
        groups = (
            *((BLOCK_TAGS, self._blocks), (LISTS, self._lists), (_SCOPES, self._scopes)),
            (_PARAGRAPH_SCOPES, self._paragraph_scopes),
        )
        inside = [depths for names, depths in groups if name in names]
        self._records[name] = [self._depths[name], *inside]
        return self._records[name]

    def _pop(self, position: int) -> Element:
        """End the innermost open element at an offset, and return it."""
        element = self._open.pop()
        element.inner_end = element.end = position
        element.stop = len(self.elements)
        element.is_ended = True
        for depths in self._records[element.name]:
            depths.pop()
        return element

    def _pop_to(self, depth: int, position: int) -> Element:
        """End the open elements down to a depth, and return the last of them."""
        while len(self._open) > depth + 1:
            self._pop(position)
        return self._pop(position)

    def _close(self, name: str, start: int, end: int) -> None:
        """End the innermost open element with this name, unless the tag cannot belong to it."""
        depths = self._depths[name]
        if depths and depths[-1] >= self._limit(name):
            element = self._pop_to(depths[-1], start)
            element.end, element.is_closed = end, True
