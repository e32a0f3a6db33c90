"""XML as HTML: the elements of a document, under the names of those of HTML that mean the same."""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections import defaultdict
from itertools import groupby

from rag_splitters.structure.html.blocks import html_blocks
from rag_splitters.structure.html.tags import scan_tags
from rag_splitters.structure.html.text import Stripped, strip_tags
from rag_splitters.structure.html.tree import Element, Tag, Tree, TreeBuilder, parse_html

_TITLES = frozenset(("title", "article-title", "head", "heading"))
_TITLE_PARENTS = frozenset(("info", "title-group", "article-meta", "front", "prolog", "teiHeader"))
_TABLES = frozenset(("table", "tgroup", "simpletable"))
_ROWS = frozenset(("tr", "row", "strow", "sthead"))
_VERBATIM = "code codeblock literallayout pre preformat programlisting screen"
_ROLES = {
    **dict.fromkeys(("li", "listitem", "list-item"), "li"),
    **dict.fromkeys(_VERBATIM.split(), "pre"),
    **dict.fromkeys(("ol", "orderedlist"), "ol"),
    **dict.fromkeys(("p", "para", "simpara"), "p"),
}
_MARKED = frozenset("content description encoded summary".split())
"""Elements whose text may be escaped HTML, as in RSS and Atom."""
_UNLABELLED = {*_ROLES, *_TITLES, *_MARKED, *"abstract body note quote seg shortdesc text".split()}
_KEYS = ("name", "id", "key")
_LONGEST_VALUE = 200  # characters of a value in a record; longer values are paragraphs
_ESCAPED = re.compile(
    r"&lt;(/?)([a-zA-Z]\w{0,20})(?:\s(?:(?!&[gl]t;).){0,1000})?/?&gt;|&amp;#?\w{1,32};", re.DOTALL
)


def parse_xml(text: str) -> Tree:
    """Read the elements of XML as those of HTML. Broken XML never raises.

    An element with a title, such as a section of DocBook, DITA or JATS, or an item of RSS or Atom,
    becomes a section under that heading. If nothing has a title, elements that contain records
    become sections under their names. Values beside each other become lines such as "price: 4".
    Escaped HTML, as in RSS, is HTML.

    Comments, processing instructions and the document type are dropped, and so are the attributes
    of elements with text in documents that have titles. Entities that the document declares itself
    stay as they are; nothing is opened.

    >>> [each.name for each in parse_xml("<a><title>Tea</title><para>Hot.</para></a>").elements]
    ['', 'div', 'h1', 'p']
    """
    roles = _Roles(parse_html(text, is_xml=True))
    roles.find()
    return roles.tree()


class _Roles:
    """The names of HTML for the elements of XML, and the marks to write around them."""

    def __init__(self, source: Tree) -> None:
        self._source, self._text = source, source.text
        self._children: dict[int, list[Element]] = defaultdict(list)
        for each in source.elements[1:]:
            self._children[each.parent.index if each.parent else 0].append(each)
        self._with_text: set[int] = set()
        self._texts: list[int] = []  # where there is text behind a tag
        for tag, end in zip(source.tags, [*source.tag_starts[1:], source.end], strict=False):
            if self._text[tag.end : end].strip():
                self._texts.append(tag.end)
                self._with_text.add(tag.element.index)
        self._has_titles = any(self._title(each) for each in source.elements)
        self._names: dict[int, str] = {}
        self._labels: dict[int, str] = {}
        self._first: set[int] = set()  # the first and the last values beside each other
        self._last: set[int] = set()

    def find(self) -> None:
        """Decide what each element is, from the outside."""
        stack = [(each, 0) for each in self._children[0]]
        while stack:
            element, level = stack.pop()
            children = self._children[element.index]
            if element.name in _TABLES and self._find_table(element):
                continue
            if not children or element.index in self._with_text:
                self._find_paragraph(element)
                continue
            is_list = any(_ROLES.get(each.name) == "li" for each in children)
            self._names[element.index] = _ROLES.get(element.name, "ul" if is_list else "div")
            is_record = not self._has_titles and not any(self._children[e.index] for e in children)
            if title := self._title(element):
                level += 1
                self._names[title.index] = f"h{min(level, 6)}"
            elif is_record:
                self._name(element, "dl", self._label(element))
            elif not self._has_titles:
                level += 1
                key = next(filter(None, (self._attribute(element, each) for each in _KEYS)), "")
                self._name(element, f"h{min(level, 6)}", f"{element.name} {key}".strip())
            rest = [each for each in children if self._names.get(each.index, "")[:1] != "h"]
            groups = [(is_value, list(each)) for is_value, each in groupby(rest, self._is_value)]
            for is_value, elements in [(True, children)] if is_record else groups:
                if not is_value:
                    stack += [(each, level) for each in elements]
                    continue
                for each in elements:
                    if label := self._value_label(each):
                        self._name(each, "dd", label)
                if not is_record:
                    self._first.add(elements[0].index)
                    self._last.add(elements[-1].index)

    def _name(self, element: Element, name: str, label: str) -> None:
        self._names[element.index], self._labels[element.index] = name, label

    def _find_table(self, table: Element) -> bool:
        """Decide what the parts of a table are; False if it has no rows."""
        inside = self._source.inside(table)
        rows = [each for each in inside if each.name in _ROWS and self._children[each.index]]
        if not rows or table.index in self._names:
            self._names.update({each.index: "div" for each in inside if each.name in _TABLES})
            return False
        self._names[table.index] = "table"
        for row in rows:
            self._names[row.index] = "tr"
            cell = "th" if row is rows[0] else "td"
            self._names.update({each.index: cell for each in self._children[row.index]})
        titles = (each for each in inside if each.name in _TITLES)
        self._names.update({each.index: "caption" for each in titles})
        return True

    def _find_paragraph(self, element: Element) -> None:
        """Decide what an element with text is: code, an item or a paragraph."""
        name = "div" if element.name in _MARKED else _ROLES.get(element.name, "p")
        is_data = not self._has_titles and element.name not in _UNLABELLED
        if is_data and (label := self._value_label(element)):
            self._name(element, name, label)
        else:
            self._names[element.index] = name

    def _is_value(self, element: Element) -> bool:
        """Whether an element is one line of a record."""
        is_short = element.inner_end - element.inner_start <= _LONGEST_VALUE
        is_named = element.name not in _UNLABELLED and not self._children[element.index]
        return is_named and is_short and self._shows(element)

    def _shows(self, element: Element) -> bool:
        """Whether an element has text."""
        index = bisect_left(self._texts, element.inner_start)
        return index < len(self._texts) and self._texts[index] < element.inner_end

    def _title(self, element: Element) -> Element | None:
        """Return the title of a section, which may stand in the section's description."""
        if element.name in _TITLE_PARENTS or element.name in _TABLES:
            return None
        parents = [element]
        for _ in range(4):
            inside = [each for parent in parents for each in self._children[parent.index]]
            titles = (each for each in inside if each.name in _TITLES and self._shows(each))
            if title := next(titles, None):
                return title
            parents = [each for each in inside[:3] if each.name in _TITLE_PARENTS]
        return None

    def _attribute(self, element: Element, name: str) -> str:
        return " ".join(self._source.attribute(element, name).split())[:100]

    def _label(self, element: Element) -> str:
        """Return the name of an element with its attributes."""
        tag = self._text[element.start : element.inner_start].strip("</> \t\r\n")
        attributes = " ".join(html.unescape(tag).split()[1:])
        return element.name if "xmlns" in attributes else f"{element.name} {attributes}".strip()

    def _value_label(self, element: Element) -> str:
        """Return what to write before a value, or for one without text; "" if it shows nothing."""
        label = self._label(element)
        inner = self._text[element.inner_start : element.inner_end]
        if element.name in _MARKED and ("&lt;" in inner or "<![CDATA[" in inner):
            return ""  # its blocks stand for themselves
        if self._shows(element):
            return f"{label}: "
        return label if label != element.name else ""

    def tree(self) -> Tree:
        """Return the tree of HTML."""
        source = self._source
        builder = TreeBuilder(source.text, source.start, source.end)
        openings = {each.start: each for each in source.elements[1:]}
        closings = {e.inner_end: e for e in source.elements[1:] if e.inner_end < e.end}
        for tag, stop in zip(source.tags, [*source.tag_starts[1:], source.end], strict=False):
            element = {"open": openings, "close": closings}.get(tag.kind, {}).get(tag.start)
            if element is None or tag.kind == "dropped":
                builder.take("dropped", tag.start, tag.end, tag.name)
            elif tag.kind == "open":
                self._open(builder, element, tag)
            if tag.kind == "close" and element is not None:
                self._close(builder, element, tag.start, tag.end)
            elif element is not None and element.end == tag.end:
                self._close(builder, element, tag.end, tag.end)
            if tag.element.name not in _MARKED:
                continue
            if tag.name == "cdata":
                for kind, low, high, name in scan_tags(source.text, tag.end, stop):
                    builder.take(kind, low, high, name)
                continue
            for each in _ESCAPED.finditer(source.text, tag.end, stop):
                kind = "text" if not each[2] else "close" if each[1] else "open"
                plain = "" if each[2] else html.unescape(html.unescape(each[0]))
                builder.take(kind, *each.span(), (each[2] or "").lower(), text=plain)
        return builder.tree()

    def _open(self, builder: TreeBuilder, element: Element, tag: Tag) -> None:
        """Add an opening tag, and the text that stands for it."""
        low, high = tag.start, tag.end
        name, label = self._names.get(element.index, ""), self._labels.get(element.index, "")
        if element.index in self._first or name == "dl":
            builder.take("open", low, low, "dl")
        inner = "dt" if name == "dl" else name or _ROLES.get(element.name, "span")
        builder.take("open", low, low if label else high, inner)
        if label:
            builder.take("text", low, high, "", text=label)
            if inner[0] == "h" or inner == "dt":
                builder.take("close", high, high, inner)

    def _close(self, builder: TreeBuilder, element: Element, start: int, end: int) -> None:
        name = self._names.get(element.index, "") or _ROLES.get(element.name, "span")
        is_named = name[0] == "h" and element.index in self._labels
        builder.take("close", start, end, "div" if is_named else name)
        if element.index in self._last:
            builder.take("close", end, end, "dl")


def xml_page(text: str) -> Stripped:
    """Convert XML to text; see `parse_xml`.

    >>> xml_page("<menu><tea><name>Sencha</name><price>4</price></tea></menu>").text
    'menu\\n\\ntea\\nname: Sencha\\nprice: 4'
    """
    tree = parse_xml(text)
    return strip_tags(tree, html_blocks(tree))
