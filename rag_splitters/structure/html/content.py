"""The main content of an HTML page, without menus, sidebars and other surroundings."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from rag_splitters.structure.html.tags import without_tags
from rag_splitters.structure.html.tree import BLOCK_TAGS, HEADINGS, Element, Tag, Tree, parse_html

_BLOCKS = frozenset(
    "article aside blockquote body center details dialog div dl fieldset footer form header main "
    "menu nav ol search section table ul".split()
)
_NEVER_SHOWN = frozenset(("annotation", "annotation-xml", "svg", "template"))
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
_MARK_CLASSES = frozenset(
    "headerlink katex-html linenodiv linenos mw-editsection mwe-math-mathml-a11y".split()
)
"""Links to headings, numbers of lines, "[edit]", and what repeats a formula."""
_MENU_CLASSES = frozenset("footer navfooter navheader related sphinxsidebar".split())
_MARKS = frozenset(("¶", "§", "#", "🔗", "⚓", "∞"))
_OUTSIDE = "outside"
_LONGEST_MARK = 500  # characters of a link to a heading, with its tags
_MENUS = _BLOCKS - {"body", "dialog", "main"} | {"p"}
_LONG_TEXT = 80  # characters without links: such a block is text, no menu
_SHORTEST_PAGE = 500  # characters of text: a shorter page may consist of links
_FEWEST_LINKS = 3  # in a menu
_LINKS_IN_MENU = 0.6  # share of the characters of a menu that are in links
_MOST_AROUND_BUTTON = 8  # elements between a heading and the button in it


class _Part(NamedTuple):
    """A part of a page: an element, or what is between two elements."""

    first: int
    last: int
    start: int
    end: int
    name: str
    role: str = ""
    element: Element | None = None


def read_page(text: str, main_content_only: bool = True) -> Tree:
    """Read the elements of a page; each dropped element is a single tag of the kind "dropped".

    Drawings (`svg`), templates and the source of MathML are always dropped. With
    `main_content_only`, so are:

    - everything outside of `main`, if the page has such an element, except an `h1` before it if it
      has none inside;
    - otherwise every `header`, `footer`, `aside` and element of a class such as "footer" or
      "sphinxsidebar" that is not inside `article`, `section` or `blockquote`, but not a header with
      the page's only `h1`;
    - `nav` and `search` elements, and cookie banners;
    - without `main` and `article`, also lists of links before the first and after the last text of
      some length, up to a heading after it, unless they are most of the page;
    - buttons that are not the whole text of a heading, links that are only a mark (the pilcrow
      after a heading, "[edit]"), line numbers beside code, and formulas beside the same formula.

    Elements with a role of the same meaning, such as `role="navigation"`, count as these elements.
    An element that contains the main content, or that is not closed, is kept. If this would drop
    the whole text, the surroundings are kept.

    >>> [tag.kind for tag in read_page("<nav>Home</nav><p>Tea</p>").tags]
    ['dropped', 'open', 'close']
    """
    tree = parse_html(text)
    parts = [
        _Part(each.first, each.last, each.start, each.end, each.name, role, each)
        for each in tree.elements
        if each.name in _NAMES and each.is_ended and (role := _role(tree, each))
    ]
    hidden = [part for part in parts if part.role in _NEVER_SHOWN]
    if main_content_only:
        around = _around(tree, parts)
        for dropped in (_outside(tree, parts, around), around):
            content = _without(tree, hidden + dropped)
            if _has_text(content):
                has_body = any(part.role in ("main", "article") for part in parts)
                return content if has_body else _without_menus(content)
    return _without(tree, hidden) if hidden else tree


def _role(tree: Tree, element: Element) -> str:
    """Return the role of an element: the name of an HTML5 element, "cookies", "mark" or ""."""
    name = element.name
    has_clue = _CLUE.search(tree.text, element.start, element.inner_start)
    if has_clue and name != "button" and name not in _NEVER_SHOWN:
        role = tree.attribute(element, "role").strip().lower()
        if role in _ROLES or role in ("main", "article"):
            return _ROLES.get(role, role)
        classes = tree.attribute(element, "class")
        if not _MARK_CLASSES.isdisjoint(classes.split()):
            return "mark"
        if name == "a":
            return "link" if tree.attribute(element, "href").startswith("#") else ""
        if name == "div" and not _MENU_CLASSES.isdisjoint(classes.split()):
            return "aside"
        if name in _BLOCKS and _COOKIES.search(f"{classes} {tree.attribute(element, 'id')}"):
            return "cookies"
    return name if name in _WITH_ROLE else ""


def _around(tree: Tree, parts: Sequence[_Part]) -> list[_Part]:
    """Return the elements around the main content of the page."""
    content = _Ranges(each for each in parts if each.role in _INSIDE)
    main = [each for each in parts if each.role == "main"]
    body = _Ranges(main or (each for each in parts if each.role == "article"))
    titles = [each.first for each in tree.named("h1")]
    around: list[_Part] = []
    for each in parts:
        if each.role in ("mark", "link"):
            is_around = _is_mark(tree, each)
        elif each.role in _ALWAYS_AROUND:
            is_around = not body.begins_in(each) and not _is_heading_text(tree, each)
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


def _is_heading_text(tree: Tree, part: _Part) -> bool:
    """Whether it is a button with the whole text of a heading, as in a page that folds."""
    above = part.element.parent if part.element and part.role == "button" else None
    for _ in range(_MOST_AROUND_BUTTON):
        if above is None or above.name in HEADINGS:
            break
        above = above.parent
    if above is None or above.name not in HEADINGS:
        return False
    sides = (above.inner_start, part.start), (part.end, above.inner_end)
    return not any(without_tags(tree.text[low:high]) for low, high in sides)


def _outside(tree: Tree, parts: Sequence[_Part], around: Sequence[_Part]) -> list[_Part]:
    """Return the elements around the main content, and everything outside of `main`."""
    ranges = _Ranges(each for each in parts if each.role == "main")
    main = [each for each in ranges.parts if _shows_text(tree, each)]
    if not main:
        return list(around)
    headings = tree.named("h1")
    titles = [
        _Part(each.first, each.last, each.start, each.end, each.name)
        for each in headings
        if each.first < main[0].first and each.is_closed
    ]
    if any(ranges.holds(each.first) for each in headings):
        titles = []
    outside: list[_Part] = []
    first, position, count = 0, tree.start, len(tree.tags)
    for part in sorted([*titles, *main, _Part(count, count, tree.end, tree.end, "")]):
        if part.start > position:
            gap = _Part(first, part.first - 1, position, part.start, _OUTSIDE)
            outside.append(gap)
        first, position = max(first, part.last + 1), max(position, part.end)
    return [*around, *outside]


class _Ranges:
    """The outermost of some elements, to find out what is inside them."""

    def __init__(self, parts: Iterable[_Part]) -> None:
        self.parts: list[_Part] = []
        for each in parts:
            if not self.parts or each.first > self.parts[-1].last:
                self.parts.append(each)
        self._firsts = [each.first for each in self.parts]
        self._lasts = [each.last for each in self.parts]

    def holds(self, index: int) -> bool:
        """Whether a tag is inside one of the elements."""
        place = bisect_right(self._firsts, index) - 1
        return place >= 0 and self._firsts[place] < index <= self._lasts[place]

    def begins_in(self, part: _Part) -> bool:
        """Whether one of the elements begins inside this one."""
        place = bisect_right(self._firsts, part.first)
        return place < len(self._firsts) and self._firsts[place] <= part.last


def _is_mark(tree: Tree, part: _Part) -> bool:
    """Whether it is a short element that is only a mark, such as the link to a heading."""
    if part.role == "mark" and part.name != "a":
        return True
    if part.end - part.start > _LONGEST_MARK:
        return False
    return part.role == "mark" or without_tags(tree.text[part.start : part.end]) in _MARKS


def _without(tree: Tree, dropped: Iterable[_Part]) -> Tree:
    """Replace each of these parts in the tags of a page by a single tag."""
    merged: list[Tag] = []
    index = position = 0
    for part in sorted(dropped, key=lambda each: (each.start, -each.end)):
        if part.end > position:
            merged += tree.tags[index : part.first]
            last = max(index, part.last + 1)
            inside = tree.tags[last - 1].element if last else tree.elements[0]
            start = max(part.start, position)
            merged.append(Tag("dropped", start, part.end, part.name, inside))
            index, position = last, part.end
    return replace(tree, tags=[*merged, *tree.tags[index:]])


def _without_menus(tree: Tree) -> Tree:
    """Drop the menus around the text of a page: what consists of links, before and after it."""
    links = _Links(tree)
    if links.length < _SHORTEST_PAGE and links.first < 0:
        return tree
    starts = tree.tag_starts
    menus: list[_Part] = []
    for each in tree.elements:
        is_possible = each.name in _MENUS and each.is_ended
        if is_possible and (each.end <= links.first or each.start >= links.last):
            is_inner = bool(menus) and each.start < menus[-1].end
            if not is_inner and links.is_menu(each):
                first, after = bisect_left(starts, each.start), bisect_left(starts, each.end)
                menus.append(_Part(first, after - 1, each.start, each.end, each.name))
    dropped = sum(links.between(menu.start, menu.end)[0] for menu in menus)
    return _without(tree, menus) if dropped <= max(links.length, _SHORTEST_PAGE) else tree


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


def _shows_text(tree: Tree, part: _Part) -> bool:
    """Whether there is any text between the tags of an element."""
    pairs = pairwise(tree.tags[part.first : part.last + 1])
    return any(tree.text[one.end : other.start].strip() for one, other in pairs)


def _has_text(tree: Tree) -> bool:
    """Whether there is any text outside the tags and the page's head."""
    position, is_head = tree.start, False
    for tag in tree.tags:
        if not is_head and tree.text[position : tag.start].strip():
            return True
        if tag.name in ("head", "body"):
            is_head = tag.name == "head" and tag.kind == "open"
        position = tag.end
    return bool(tree.text[position : tree.end].strip())
