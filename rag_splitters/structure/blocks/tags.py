"""Finds the tags of an HTML text with their positions, in linear time even in broken HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

_TAG_START = re.compile(r"<(?:(!--)|([!?])(?!\[)|(/?)([A-Za-z][^\s/>\x00<]{0,100}))")
_IN_TAG = re.compile(r"[\"'>]")
_USUAL_REST = re.compile(  # of a tag whose quotes are all closed
    r"""[^"'>]*(?:(?<==)(?:"[^"]{0,500}"|'[^']{0,500}')[^"'>]*)*>"""
)
_QUOTED_AFTER = re.compile(r"=\s*\Z")
_COMMENT_END = re.compile(r"--!?>")  # "<!-->" is a whole comment
_ANY_TAG = re.compile(r"<[^<>]*>")
_ATTRIBUTE = r"""(?<![^\s"'/])%s\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
_RAW = ("script", "style")


class Tag(NamedTuple):
    """A tag: its kind, its position, and its name in lower case.

    Comments, declarations, and scripts and styles with their content have the kind "dropped".
    """

    kind: Literal["open", "close", "dropped"]
    start: int
    end: int
    name: str


def scan_tags(text: str) -> Iterator[Tag]:
    """Find the tags of an HTML text, in order. Everything between them is text.

    A comment, a script or a tag that is never closed is text, so that nothing after it is lost.

    >>> [tag.name for tag in scan_tags("<p title='a>b'>1 < 2</p><!-- -->")]
    ['p', 'p', 'comment']
    """
    missing: set[str] = set()  # closing marks that do not occur again
    plain_until = 0  # ignore quotes before this offset, because one of them is never closed
    position = 0
    while match := _TAG_START.search(text, position):
        start, position = match.start(), match.end()
        comment, declaration, slash, name = match.groups()
        if comment:
            end = _closing(text, _COMMENT_END, position - 2, "-->", missing)
            if end >= 0:
                yield Tag("dropped", start, end, "comment")
                position = end
            continue
        end, plain_until = _tag_end(text, position, plain_until, missing)
        if end < 0:
            continue
        position = end
        if declaration:
            yield Tag("dropped", start, end, "declaration")
            continue
        name = name.lower()
        if name in _RAW and not slash and text[end - 2] != "/":
            pattern = _RAW_ENDS[name]
            if (stop := _closing(text, pattern, end, name, missing)) >= 0:
                position = stop
                yield Tag("dropped", start, stop, name)
                continue
        yield Tag("close" if slash else "open", start, end, name)


_RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])[^<>]*>", re.IGNORECASE) for name in _RAW}


def _closing(text: str, pattern: re.Pattern[str], start: int, key: str, missing: set[str]) -> int:
    """Return the end of the next match, or -1. A missing mark is not searched for again."""
    if key in missing:
        return -1
    if match := pattern.search(text, start):
        return match.end()
    missing.add(key)
    return -1


def _tag_end(text: str, start: int, plain_until: int, missing: set[str]) -> tuple[int, int]:
    """Return the end of the tag whose name ends at `start`, or -1, and the new `plain_until`."""
    if ">" in missing:
        return -1, plain_until
    if start >= plain_until and (usual := _USUAL_REST.match(text, start)):
        return usual.end(), plain_until
    position = start
    while start >= plain_until:
        match = _IN_TAG.search(text, position)
        if not match:  # every ">" is in quotes, so one of them is not closed where it should be
            plain_until = len(text)
            break
        mark = match.group()
        if mark == ">":
            return match.end(), plain_until
        position = match.end()
        if _QUOTED_AFTER.search(text, max(start, match.start() - 20), match.start()):
            closing = text.find(mark, position)
            if closing < 0:
                plain_until = position
                break
            position = closing + 1
    end = text.find(">", start)
    if end < 0:
        missing.add(">")
    return end + 1 if end >= 0 else -1, plain_until


def attribute(tag: str, name: str) -> str:
    """Return the decoded value of a tag's attribute, or "" if there is none.

    >>> attribute('<img alt="A &amp; B" src=x>', "alt")
    'A & B'
    """
    match = _attribute_pattern(name).search(tag) if name in tag.lower() else None
    return html.unescape(next(filter(None, match.groups()), "")) if match else ""


@cache
def _attribute_pattern(name: str) -> re.Pattern[str]:
    return re.compile(_ATTRIBUTE % name, re.IGNORECASE)


def without_tags(part: str, longest: int = 500) -> str:
    """Return the text of a short part without tags, decoded, in one line.

    >>> without_tags("<h1>Q<i>&amp;</i>A</h1>")
    'Q&A'
    """
    plain = html.unescape(_ANY_TAG.sub("", part[: 20 * longest]))
    return " ".join(plain.split())[:longest]
