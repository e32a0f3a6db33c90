"""The main content of an HTML page, without menus, sidebars and other surroundings."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from rag_splitters.structure.block import outermost
from rag_splitters.structure.html.tags import BLOCK_TAGS, without_tags
from rag_splitters.structure.html.tree import HEADINGS, Element, Tag, Tree, parse_html

_BLOCKS = frozenset(
    "article aside blockquote body center details dialog div dl fieldset footer form header main "
    "menu nav ol search section table ul".split()
)
_NEVER_SHOWN = frozenset(("annotation", "annotation-xml", "ix:header", "svg", "template"))
_NAMES = _BLOCKS | _NEVER_SHOWN | {"a", "button", "span", "td"}
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
_CLASSES = {
    **dict.fromkeys("headerlink mw-editsection".split(), "mark"),  # links to headings, "[edit]"
    **dict.fromkeys("katex-html mwe-math-mathml-a11y".split(), "mark"),  # repeat a formula
    **dict.fromkeys("linenodiv linenos".split(), "mark"),  # numbers of lines
    **dict.fromkeys("footer navfooter navheader related sphinxsidebar".split(), "aside"),
    **dict.fromkeys("catlinks mw-portlet vector-dropdown".split(), "nav"),  # of wikis
}
"""What the class of an element says about its role; all but marks only in a `div`."""
_MARKS = frozenset(("¶", "§", "#", "🔗", "⚓", "∞"))
_OUTSIDE = "outside"
_LONGEST_MARK = 500  # characters of a link to a heading, with its tags
_MENUS = _BLOCKS - {"body", "dialog", "main"} | {"p"}
_LONG_TEXT = 80  # characters without links: such a block is text, no menu
_SHORTEST_PAGE = 500  # characters of text: a shorter page may consist of links
_FEWEST_LINKS = 3  # in a menu
_LINKS_IN_MENU = 0.6  # share of the characters of a menu that are in links
_MOST_AROUND_BUTTON = 8  # elements between a heading and the button in it


_Part: TypeAlias = tuple[str, Element]
"""An element with its role."""

_Gap: TypeAlias = tuple[int, int, str]
"""The start, the end and the name of a part of a page that is dropped."""


def read_page(text: str, main_content_only: bool = True) -> Tree:
    """Read the elements of a page; each dropped element is a single tag of the kind "dropped".

    `ContentAwareChunker` says what is dropped, always or with `main_content_only`. An element that
    contains the main content, or that is not closed, is kept. If nothing would be left of the text,
    the surroundings are kept.

    >>> [tag.kind for tag in read_page("<nav>Home</nav><p>Tea</p>").tags]
    ['dropped', 'open', 'close']
    """
    tree = parse_html(text)
    parts = [
        (role, each)
        for each in tree.elements
        if each.name in _NAMES and each.is_ended and (role := _role(tree, each))
    ]
    hidden = [_gap(each) for role, each in parts if role in _NEVER_SHOWN]
    if main_content_only:
        around = hidden + [_gap(each) for each in _around(tree, parts)]
        for outside in (_outside(tree, parts), []):
            content = _without(tree, around + outside)
            if _has_text(content, tree.start, tree.end):
                has_body = any(role in ("main", "article") for role, _ in parts)
                return content if has_body else _without_menus(content)
    return _without(tree, hidden)


def _role(tree: Tree, element: Element) -> str:
    """Return the role of an element: the name of an HTML5 element, "cookies", "mark" or ""."""
    name = element.name
    has_clue = _CLUE.search(tree.text, element.start, element.inner_start)
    if has_clue and name != "button" and name not in _NEVER_SHOWN:
        role = tree.attribute(element, "role").strip().lower()
        if role in _ROLES or role in ("main", "article"):
            return _ROLES.get(role, role)
        classes = tree.attribute(element, "class")
        role = next(filter(None, map(_CLASSES.get, classes.split())), "")
        if role == "mark" or (role and name == "div"):
            return role
        if name == "a":
            return "link" if tree.attribute(element, "href").startswith("#") else ""
        if name in _BLOCKS and _COOKIES.search(f"{classes} {tree.attribute(element, 'id')}"):
            return "cookies"
    return name if name in _WITH_ROLE else ""


def _gap(element: Element) -> _Gap:
    return element.start, element.end, element.name


def _around(tree: Tree, parts: Sequence[_Part]) -> Iterator[Element]:
    """Yield the elements around the main content of the page."""
    content = _Ranges(each for role, each in parts if role in _INSIDE)
    main = [each for role, each in parts if role == "main"]
    body = _Ranges(main or (each for role, each in parts if role == "article"))
    titles = [each.start for each in tree.named("h1")]
    for role, each in parts:
        if role in ("mark", "link"):
            is_around = _is_mark(tree, role, each)
        elif role in _ALWAYS_AROUND:
            is_around = not body.begins_in(each) and not _is_heading_text(tree, each)
        elif role in _AROUND or role == "cookies":
            inside = body if role == "cookies" else content
            is_around = not inside.holds(each.start) and not body.begins_in(each)
        else:
            is_around = False
        if is_around and role == "header" and titles:
            is_around = titles[0] < each.start or titles[-1] >= each.end
        if is_around:
            yield each


def _is_heading_text(tree: Tree, element: Element) -> bool:
    """Whether it is a button with the whole text of a heading, as in a page that folds."""
    above = element.parent if element.name == "button" else None
    for _ in range(_MOST_AROUND_BUTTON):
        if above is None or above.name in HEADINGS:
            break
        above = above.parent
    if above is None or above.name not in HEADINGS:
        return False
    sides = (above.inner_start, element.start), (element.end, above.inner_end)
    return not any(without_tags(tree.text[low:high]) for low, high in sides)


def _outside(tree: Tree, parts: Sequence[_Part]) -> list[_Gap]:
    """Return everything outside of `main`, if there is such an element."""
    ranges = _Ranges(each for role, each in parts if role == "main")
    main = [each for each in ranges.outermost if _has_text(tree, each.start, each.end)]
    if not main:
        return []
    titles = [each for each in tree.named("h1") if each.start < main[0].start and each.is_closed]
    if any(ranges.holds(each.start) for each in tree.named("h1")):
        titles = []
    outside: list[_Gap] = []
    position = tree.start
    for start, end in [*sorted((each.start, each.end) for each in titles + main), (tree.end,) * 2]:
        if start > position:
            outside.append((position, start, _OUTSIDE))
        position = max(position, end)
    return outside


class _Ranges:
    """The outermost of some elements, to find out what is inside them."""

    def __init__(self, elements: Iterable[Element]) -> None:
        self.outermost = list(outermost(elements))
        self._starts = [each.start for each in self.outermost]

    def holds(self, position: int) -> bool:
        """Whether a tag that begins at this offset is inside one of the elements."""
        place = bisect_left(self._starts, position) - 1
        return place >= 0 and position < self.outermost[place].end

    def begins_in(self, element: Element) -> bool:
        """Whether one of the elements begins inside this one."""
        place = bisect_right(self._starts, element.start)
        return place < len(self._starts) and self._starts[place] < element.end


def _is_mark(tree: Tree, role: str, element: Element) -> bool:
    """Whether it is a short element that is only a mark, such as the link to a heading."""
    if role == "mark" and element.name != "a":
        return True
    if element.end - element.start > _LONGEST_MARK:
        return False
    return role == "mark" or without_tags(tree.text[element.start : element.end]) in _MARKS


def _without(tree: Tree, gaps: Iterable[_Gap]) -> Tree:
    """Replace the tags in each of these parts of a page by a single tag."""
    merged: list[Tag] = []
    position = tree.start
    for start, end, name in sorted(gaps, key=lambda gap: (gap[0], -gap[1])):
        if end > position:
            merged += tree.tags_between(position, start)
            element = tree.element_at(end)
            merged.append(Tag("dropped", max(start, position), end, name, element))
            position = end
    return replace(tree, tags=[*merged, *tree.tags_between(position, tree.end)])


def _without_menus(tree: Tree) -> Tree:
    """Drop the menus around the text of a page: what consists of links, before and after it."""
    links = _Links(tree)
    if links.length < _SHORTEST_PAGE and links.first < 0:
        return tree
    around = (e for e in tree.elements if e.end <= links.first or e.start >= links.last)
    possible = (each for each in around if each.name in _MENUS and each.is_ended)
    menus = list(outermost(filter(links.is_menu, possible)))
    dropped = sum(links.between(menu.start, menu.end)[0] for menu in menus)
    is_more = dropped > max(links.length, _SHORTEST_PAGE)
    return tree if is_more else _without(tree, map(_gap, menus))


class _Links:
    """How much of the text of a page is links, and where its first and last long text are.

    Attributes:
        first: the start of the first block with a long text that is not mostly links; -1 if there
            is none.
        last: the end of the last one, or of the text under a heading after it.
        length: the number of characters in these blocks.
    """

    def __init__(self, tree: Tree) -> None:
        self.first, self.last, self.length = -1, tree.end, 0
        self._ends: list[int] = []
        self._counts = [(0, 0, 0)]  # characters of text and of links, and links, up to each tag
        text = in_link = links = 0
        is_link = is_head = False
        begin, before = tree.start, (0, 0)
        position = tree.start
        for tag in tree.tags:
            if tag.start > position and not is_head:
                count = len(tree.text[position : tag.start].strip())
                text += count
                in_link += count * is_link
            if tag.name == "a":
                is_link = tag.opens and "href" in tree.text[tag.start : tag.end].lower()
                links += is_link
            elif tag.name in BLOCK_TAGS:
                self._end_block(begin, tag.start, text - before[0], in_link - before[1])
                begin, before = tag.start, (text, in_link)
                if tag.name in HEADINGS and tag.opens and self.first >= 0:
                    self.last = tree.end
            if tag.name in ("head", "body"):
                is_head = tag.name == "head" and tag.kind == "open"
            position = tag.end
            self._ends.append(tag.end)
            self._counts.append((text, in_link, links))

    def _end_block(self, begin: int, end: int, text: int, in_link: int) -> None:
        if text - in_link >= max(_LONG_TEXT, in_link):
            self.first = begin if self.first < 0 else self.first
            self.last, self.length = end, self.length + text

    def between(self, start: int, end: int) -> tuple[int, int, int]:
        """Return the characters of text and of links, and the links, between two tags."""
        low = self._counts[bisect_right(self._ends, start)]
        high = self._counts[bisect_right(self._ends, end)]
        return high[0] - low[0], high[1] - low[1], high[2] - low[2]

    def is_menu(self, element: Element) -> bool:
        """Whether an element consists of several links, and little else."""
        text, in_link, links = self.between(element.start, element.end)
        return links >= _FEWEST_LINKS and in_link >= _LINKS_IN_MENU * text


def _has_text(tree: Tree, start: int, end: int) -> bool:
    """Whether there is any text in a part of a page, outside the tags and the head."""
    position, is_head = start, False
    for tag in tree.tags_between(start, end):
        if not is_head and tree.text[position : tag.start].strip():
            return True
        if tag.name in ("head", "body"):
            is_head = tag.name == "head" and tag.kind == "open"
        position = tag.end
    return bool(tree.text[position:end].strip())
