"""The main content of an HTML page, without menus, sidebars and other surroundings."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rag_splitters.structure.blocks.tags import Tag, attribute, scan_tags, without_tags

_BLOCKS = frozenset(
    "article aside blockquote body center details dialog div dl fieldset footer form header main "
    "menu nav ol search section table ul".split()
)
"""Elements that close the elements inside them."""

_INLINE = frozenset(("a", "button", "span", "svg", "td", "template"))
_NAMES = _BLOCKS | _INLINE
_NEVER_SHOWN = frozenset(("svg", "template"))
_ALWAYS_AROUND = frozenset(("nav", "search", "button"))
_ROLES = {"banner": "header", "contentinfo": "footer", "complementary": "aside"} | dict.fromkeys(
    ("navigation", "search"), "nav"
)
_AROUND = frozenset(("header", "footer", "aside"))
_INSIDE = frozenset(("main", "article", "section", "blockquote"))
_WITH_ROLE = _NEVER_SHOWN | _ALWAYS_AROUND | _AROUND | _INSIDE
_CLUE = re.compile(r"\b(?:role|class|id|href)\b", re.IGNORECASE)
_COOKIES = re.compile(
    r"\b(?:cookies?|gdpr)[-_]?(?:banner|bar|box|consent|dialog|info|law|message|modal|notice|"
    r"notification|popup|prompt|wall|warning)|\bconsent[-_]?(?:banner|dialog|modal|popup)|"
    r"\bonetrust|\bcybotcookiebot",
    re.IGNORECASE,
)
_MARK_CLASSES = frozenset(("headerlink", "linenos", "linenodiv"))
_MENU_CLASSES = frozenset(("footer", "related", "sphinxsidebar"))
_MARKS = frozenset(("¶", "§", "#", "🔗", "⚓", "∞"))
_OUTSIDE = "outside"
_LONGEST_MARK = 500  # characters of a link to a heading, with its tags


class _Element(NamedTuple):
    """A closed element: the indices of its first and last tag, its position, and its role.

    An element that ends with its parent has no closing tag of its own: `last` is the tag before.
    """

    first: int
    last: int
    start: int
    end: int
    role: str


def content_tags(text: str, main_content_only: bool = True) -> list[Tag]:
    """Return the tags of a page; each dropped element is a single tag of the kind "dropped".

    Drawings (`svg`) and templates are always dropped. With `main_content_only`, so are:

    - everything outside of `main`, if the page has such an element, except an `h1` before it if it
      has none inside;
    - otherwise every `header`, `footer`, `aside` and element of the class "footer", "related" or
      "sphinxsidebar" that is not inside `article`, `section` or `blockquote`, but not a header with
      the page's only `h1`;
    - `nav` and `search` elements, and cookie banners;
    - buttons, links that are only a mark (the pilcrow after a heading), and line numbers beside
      code.

    Elements with a role of the same meaning, such as `role="navigation"`, count as these elements.
    An element that contains the main content, or that is not closed, is kept. If this would drop
    the whole text, the surroundings are kept.

    >>> [tag.kind for tag in content_tags("<nav>Home</nav><p>Tea</p>")]
    ['dropped', 'open', 'close']
    """
    tags = list(scan_tags(text))
    elements = _elements(text, tags)
    hidden = [each for each in elements if each.role in _NEVER_SHOWN]
    if main_content_only:
        around = _around(text, tags, elements)
        for dropped in (_outside(text, tags, elements, around), around):
            content = _merged(tags, hidden + dropped)
            if _has_text(text, content):
                return content
    return _merged(tags, hidden)


def _elements(text: str, tags: Sequence[Tag]) -> list[_Element]:
    """Return the closed elements of a page that have a role, sorted by their starts."""
    elements: list[_Element] = []
    open_blocks: list[tuple[str, int, str]] = []
    open_inline: dict[str, list[tuple[int, str]]] = {name: [] for name in _INLINE}
    open_names: dict[str, int] = dict.fromkeys(_BLOCKS, 0)
    for index, tag in enumerate(tags):
        name = tag.name
        if name not in _NAMES or tag.kind == "dropped":
            continue
        if tag.kind == "open":
            if text[tag.end - 2] == "/":
                continue
            role = _role(text, tag)
            if name in _INLINE:
                open_inline[name].append((index, role))
            else:
                open_blocks.append((name, index, role))
                open_names[name] += 1
        elif name in _INLINE:
            if open_inline[name]:
                first, role = open_inline[name].pop()
                if role:
                    elements.append(_Element(first, index, tags[first].start, tag.end, role))
        elif open_names[name]:
            inner = ""
            while inner != name:
                inner, first, role = open_blocks.pop()
                open_names[inner] -= 1
                is_own = inner == name
                last, end = (index, tag.end) if is_own else (index - 1, tag.start)
                if role:
                    elements.append(_Element(first, last, tags[first].start, end, role))
    return sorted(elements)


def _role(text: str, tag: Tag) -> str:
    """Return the role of an element: the name of an HTML5 element, "cookies", "mark" or ""."""
    name = tag.name
    markup = text[tag.start : tag.end] if _CLUE.search(text, tag.start, tag.end) else ""
    if markup and name != "button" and name not in _NEVER_SHOWN:
        role = attribute(markup, "role").strip().lower()
        if role in _ROLES or role in ("main", "article"):
            return _ROLES.get(role, role)
        classes = attribute(markup, "class")
        if not _MARK_CLASSES.isdisjoint(classes.split()):
            return "mark"
        if name == "a":
            return "link" if attribute(markup, "href").startswith("#") else ""
        if name == "div" and not _MENU_CLASSES.isdisjoint(classes.split()):
            return "aside"
        if name in _BLOCKS and _COOKIES.search(f"{classes} {attribute(markup, 'id')}"):
            return "cookies"
    return name if name in _WITH_ROLE else ""


def _around(text: str, tags: Sequence[Tag], elements: Sequence[_Element]) -> list[_Element]:
    """Return the elements around the main content of the page."""
    content = _Ranges(each for each in elements if each.role in _INSIDE)
    main = [each for each in elements if each.role == "main"]
    body = _Ranges(main or (each for each in elements if each.role == "article"))
    titles = [index for index, tag in enumerate(tags) if tag.name == "h1" and tag.kind == "open"]
    around: list[_Element] = []
    for each in elements:
        if each.role in ("mark", "link"):
            is_around = _is_mark(text, tags, each)
        elif each.role in _ALWAYS_AROUND:
            is_around = not body.begins_in(each)
        elif each.role in _AROUND or each.role == "cookies":
            inside = body if each.role == "cookies" else content
            is_around = not inside.holds(each.first) and not body.begins_in(each)
        else:
            is_around = False
        if is_around and each.role == "header" and titles:
            count = bisect_right(titles, each.last) - bisect_right(titles, each.first)
            is_around = count < len(titles)
        if is_around:
            around.append(each)
    return around


def _outside(
    text: str, tags: Sequence[Tag], elements: Sequence[_Element], around: Sequence[_Element]
) -> list[_Element]:
    """Return the elements around the main content, and everything outside of `main`."""
    ranges = _Ranges(each for each in elements if each.role == "main")
    main = [each for each in ranges.elements if _shows_text(text, tags, each)]
    if not main:
        return list(around)
    titles = [each for each in _titles(tags) if each.first < main[0].first]
    if any(ranges.holds(index) for index, tag in enumerate(tags) if tag.name == "h1"):
        titles = []
    outside: list[_Element] = []
    first = position = 0
    end = _Element(len(tags), len(tags), len(text), len(text), "")
    for element in sorted([*titles, *main, end]):
        if element.start > position:
            outside.append(_Element(first, element.first - 1, position, element.start, _OUTSIDE))
        first, position = max(first, element.last + 1), max(position, element.end)
    return [*around, *outside]


def _titles(tags: Sequence[Tag]) -> Iterator[_Element]:
    """The `h1` elements of a page."""
    first = -1
    for index, tag in enumerate(tags):
        if tag.name == "h1" and tag.kind == "open":
            first = index
        elif tag.name == "h1" and tag.kind == "close" and first >= 0:
            yield _Element(first, index, tags[first].start, tag.end, "h1")
            first = -1


class _Ranges:
    """The outermost of some elements, to find out what is inside them."""

    def __init__(self, elements: Iterable[_Element]) -> None:
        self.elements: list[_Element] = []
        for each in elements:
            if not self.elements or each.first > self.elements[-1].last:
                self.elements.append(each)
        self._firsts = [each.first for each in self.elements]
        self._lasts = [each.last for each in self.elements]

    def holds(self, index: int) -> bool:
        """Whether a tag is inside one of the elements."""
        place = bisect_right(self._firsts, index) - 1
        return place >= 0 and self._firsts[place] < index <= self._lasts[place]

    def begins_in(self, element: _Element) -> bool:
        """Whether one of the elements begins inside this one."""
        place = bisect_right(self._firsts, element.first)
        return place < len(self._firsts) and self._firsts[place] <= element.last


def _is_mark(text: str, tags: Sequence[Tag], element: _Element) -> bool:
    """Whether it is a short element that is only a mark, such as the link to a heading."""
    if element.role == "mark" and tags[element.first].name != "a":
        return True
    if element.end - element.start > _LONGEST_MARK:
        return False
    return element.role == "mark" or without_tags(text[element.start : element.end]) in _MARKS


def _merged(tags: Sequence[Tag], dropped: Iterable[_Element]) -> list[Tag]:
    """Replace each of these elements in the tags by a single tag."""
    merged: list[Tag] = []
    index = position = 0
    for element in sorted(dropped, key=lambda each: (each.start, -each.end)):
        if element.end > position:
            merged += tags[index : element.first]
            name = _OUTSIDE if element.role == _OUTSIDE else tags[element.first].name
            merged.append(Tag("dropped", max(element.start, position), element.end, name))
            index, position = max(index, element.last + 1), element.end
    return merged + list(tags[index:])


def _shows_text(text: str, tags: Sequence[Tag], element: _Element) -> bool:
    """Whether there is any text between the tags of an element."""
    pairs = pairwise(tags[element.first : element.last + 1])
    return any(text[one.end : other.start].strip() for one, other in pairs)


def _has_text(text: str, tags: Sequence[Tag]) -> bool:
    """Whether there is any text outside the tags and the page's head."""
    return any(text[start:end].strip() for start, end in _between(text, tags))


def _between(text: str, tags: Sequence[Tag]) -> Iterator[tuple[int, int]]:
    """The parts of the text between the tags, without those of the head."""
    position, is_head = 0, False
    for tag in tags:
        if not is_head:
            yield position, tag.start
        if tag.name in ("head", "body"):
            is_head = tag.name == "head" and tag.kind == "open"
        position = tag.end
    yield position, len(text)
