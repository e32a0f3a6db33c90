"""Where the headings of a text are."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

__all__ = ["Heading", "Outline", "find_headings"]


class Heading(NamedTuple):
    """A heading: where its line begins (code points), its level (1 is outermost), its text."""

    start: int
    level: int
    text: str


_LINE = re.compile(r"[^\r\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*\Z")
_HTML = re.compile(r"<h([1-6])(?:\s[^<>]{0,500})?>(.{1,500}?)</h\1\s*>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_WIKI = re.compile(r"=(?: ?=){0,5}")


def find_headings(text: str) -> list[Heading]:
    """The headings of a Markdown, HTML or wiki text, in order; `#` inside a code fence is none.

    >>> [heading.text for heading in find_headings("# One\\n\\ntext\\n\\nTwo\\n---\\n")]
    ['One', 'Two']
    >>> find_headings("== Three ==\\ntext")
    [Heading(start=0, level=2, text='Three')]
    """
    found: list[Heading] = []
    fence, previous = "", None
    for line in _LINE.finditer(text):
        content = line.group()
        if mark := _FENCE.match(content):
            if not fence:
                fence = mark.group(1)
            elif content.strip().startswith(fence) and not content.strip(" `~\t"):
                fence = ""
            previous = None
            continue
        if fence:
            continue
        underline = _UNDERLINE.match(content)
        wiki = None
        if atx := _ATX.match(content):
            found.append(Heading(line.start(), len(atx.group(1)), _plain(atx.group(2))))
        elif wiki := _wiki_heading(content):
            found.append(Heading(line.start(), *wiki))
        elif underline and previous and _adjacent(text, previous.end(), line.start()):
            level = 1 if "=" in underline.group(1) else 2
            found.append(Heading(previous.start(), level, previous.group().strip()))
        previous = None if atx or wiki or underline or not content.strip() else line
    found += [
        Heading(match.start(), int(match.group(1)), _plain(match.group(2)))
        for match in _HTML.finditer(text)
    ]
    return sorted(heading for heading in found if heading.text)


class Outline:
    """The headings of a text, to be asked what a position stands under.

    >>> Outline("# A\\n\\n## B\\n\\ntext").above(12)
    ['A', 'B']
    """

    def __init__(self, text: str) -> None:
        self.headings = find_headings(text)
        self._starts = [heading.start for heading in self.headings]
        self.paths: list[list[str]] = []
        path: list[Heading] = []
        for heading in self.headings:
            while path and path[-1].level >= heading.level:
                path.pop()
            path.append(heading)
            self.paths.append([each.text for each in path])

    def above(self, position: int) -> list[str]:
        """The texts of the headings that `position` stands under, the outermost first."""
        index = bisect_right(self._starts, position) - 1
        return self.paths[index] if index >= 0 else []


def _wiki_heading(line: str) -> tuple[int, str] | None:
    """Level and text of a heading between equals signs, as MediaWiki and WikiText write it."""
    content = line.strip(" \t")
    mark = _WIKI.match(content)
    if mark is None or not content.endswith(mark.group()):
        return None
    text = content[mark.end() : -mark.end()].strip()
    is_heading = bool(text) and text[0] != "=" and text[-1] != "="
    return (mark.group().count("="), text) if is_heading else None


def _plain(text: str) -> str:
    """A heading's text without tags, closing marks and line breaks."""
    return " ".join(re.sub(r"[ \t]#+[ \t]*\Z", "", _TAG.sub("", text)).split())


def _adjacent(text: str, end: int, start: int) -> bool:
    """Is there just one line break between the two offsets?"""
    return text[end:start] in ("\n", "\r\n", "\r")
