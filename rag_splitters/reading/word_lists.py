"""The numbers of the items of lists in Word documents, which mammoth counts anew in each list."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from xml.etree import ElementTree

from rag_splitters.reading.archives import attribute, local_name

_MARK = "\U0010f1a5"  # a private character
_TAGS = re.compile(
    rf"<(?P<tag>/?(?:ol|ul|li))>(?:{_MARK}(\d{{1,9}}){_MARK})?|{_MARK}(\d{{1,9}}){_MARK}"
)
_Level = tuple[str, int]
"""The id of a definition of lists, and the depth of a list in it."""


class Numbering:
    """The lists of a document, and how far each of them has been counted.

    A list goes on counting after other text, and so does another list of the same definition,
    unless it has a start of its own.

    Parameters:
        roots: the parts of the document that define its lists: one or none.
    """

    def __init__(self, roots: Iterable[ElementTree.Element]) -> None:
        self._starts: dict[_Level, int] = {}
        self._styles: dict[str, _Level] = {}
        self._definitions: dict[str, str] = {}
        self._own_starts: dict[tuple[str, int], int] = {}
        self._counts: dict[str, dict[int, int]] = defaultdict(dict)
        for root in roots:
            self._read(root)

    def _read(self, root: ElementTree.Element) -> None:
        for definition in _children(root, "abstractNum"):
            for level in _children(definition, "lvl"):
                key = (attribute(definition, "abstractNumId"), _number(level, "ilvl"))
                if _value(level, "numFmt") not in ("bullet", "none"):
                    self._starts[key] = int(_value(level, "start") or 1)
                if style := _value(level, "pStyle"):
                    self._styles.setdefault(style, key)
        for each in _children(root, "num"):
            name = attribute(each, "numId")
            self._definitions[name] = _value(each, "abstractNumId")
            for override in _children(each, "lvlOverride"):
                if start := _value(override, "startOverride"):
                    self._own_starts[name, _number(override, "ilvl")] = int(start)

    def mark_items(self, root: ElementTree.Element) -> None:
        """Put a mark with its number before the text of each item of a numbered list."""
        word = root.tag.rpartition("}")[0] + "}"
        for paragraph in root.iter(f"{word}p"):
            for properties in paragraph.findall(f"{word}pPr"):
                if number := self._count(properties):
                    run = ElementTree.Element(f"{word}r")
                    ElementTree.SubElement(run, f"{word}t").text = f"{_MARK}{number}{_MARK}"
                    paragraph.insert(1, run)

    def _count(self, properties: ElementTree.Element) -> int | None:
        """Count a paragraph, and return its number if it is an item of a numbered list."""
        own = next(iter(_children(properties, "numPr")), properties)
        name, depth = _value(own, "numId"), int(_value(own, "ilvl") or 0)
        level: _Level | None = (self._definitions.get(name, ""), depth)
        if not (name and _value(own, "ilvl")):
            level = self._styles.get(_value(properties, "pStyle"), level if name else None)
        if level not in self._starts:
            return None
        counts = self._counts[level[0]]
        for deeper in [each for each in counts if each > level[1]]:
            del counts[deeper]
        start = self._own_starts.pop((name, level[1]), None)
        counts[level[1]] = counts.get(level[1], self._starts[level] - 1) + 1
        if start is not None:
            counts[level[1]] = start
        return counts[level[1]]


def with_numbers(html: str) -> str:
    """Let the lists of a page begin with the numbers in the marks, which are removed.

    >>> with_numbers(f"<ol><li>{_MARK}3{_MARK}Wait.</li></ol>")
    '<ol></ol><ol start="3"><li>Wait.</li></ol>'
    """
    following: list[int] = []  # the next number of each open list

    def replace(match: re.Match[str]) -> str:
        tag, number = match["tag"], int(match[2] or 0)
        if tag in ("ol", "ul"):
            following.append(1)
        elif tag in ("/ol", "/ul") and following:
            following.pop()
        elif tag == "li" and following:
            is_next = number in (0, following[-1])
            following[-1] = (number or following[-1]) + 1
            return "<li>" if is_next else f'</ol><ol start="{number}"><li>'
        return f"<{tag}>" if tag else ""

    return _TAGS.sub(replace, html)


def _children(element: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [each for each in element if local_name(each) == name]


def _value(element: ElementTree.Element, name: str) -> str:
    """Return the value of a property of an element; "" if it has none."""
    return next((attribute(each, "val") for each in _children(element, name)), "")


def _number(element: ElementTree.Element, name: str) -> int:
    return int(attribute(element, name) or 0)
