"""Outlines that are stored in a document's metadata, such as that of a PDF."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from rag_splitters.structure.block import Block
from rag_splitters.text.boundaries import skip_space
from rag_splitters.text.origin import ORIGIN, has_origin

OUTLINE = "outline"
"""The metadata key. Its value is a JSON list of (level, start, text) for each heading."""

_Row = tuple[int, int, str]


def write_outline(text: str, headings: Iterable[Block]) -> dict[str, str]:
    """Return metadata with the outline of a text; empty if it has no headings.

    >>> write_outline("Tea\\nHot.", [Block("heading", 0, 3, 1, "Tea")])
    {'outline': '[[1, 0, "Tea"]]'}
    """
    rows = [(each.level, each.start, _line(text[each.start : each.end])) for each in headings]
    return {OUTLINE: json.dumps(rows, ensure_ascii=False)} if rows else {}


def stored_headings(text: str, metadata: Mapping[str, Any] | None) -> list[Block]:
    """Return the headings in the metadata; none if the text has other words there.

    >>> stored_headings("Tea\\nHot.", {"outline": '[[1, 0, "Tea"]]'})[0].title
    'Tea'
    >>> stored_headings("Milk\\nCold.", {"outline": '[[1, 0, "Tea"]]'})
    []
    """
    headings: list[Block] = []
    for level, start, title in _rows_in(metadata):
        end = start + len(title)
        if _line(text[start:end]) != title:
            return []
        headings.append(Block("heading", start, end, level, " ".join(title.split())))
    return headings


def uncut_headings(text: str, metadata: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return (start, end) of the parts to keep whole so that no chunk ends with such a heading.

    Headings directly below each other are one part, which ends with the first character after
    them.

    >>> [uncut_headings(text, {"outline": '[[1, 0, "Tea"]]'}) for text in ("Tea\\nI", "Tea\\n")]
    [[(0, 5)], []]
    """
    parts: list[tuple[int, int]] = []
    for heading in stored_headings(text, metadata):
        following = skip_space(text, heading.end)
        start = parts.pop()[0] if parts and heading.start < parts[-1][1] else heading.start
        parts.append((start, following + 1))
    return [part for part in parts if part[1] <= len(text)]


def repeated_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata for a document's chunks, without what is about the whole document.

    >>> repeated_metadata({"outline": '[[1, 0, "Tea"]]', "source": "tea.pdf"})
    {'source': 'tea.pdf'}
    """
    dropped = {OUTLINE} if _rows_in(metadata) else set()
    if has_origin(metadata):
        dropped |= {ORIGIN}
    return {k: v for k, v in metadata.items() if k not in dropped} if dropped else metadata


def outline_of_part(metadata: Mapping[str, Any], start: int, end: int) -> Mapping[str, Any]:
    """Return metadata for a part of a text, with the headings inside that part."""
    rows = _rows_in(metadata)
    if not rows:
        return metadata
    low, high = (bisect_left(rows, place, key=lambda row: row[1]) for place in (start, end))
    inside = [(level, at - start, title) for level, at, title in rows[low:high]]
    return {**metadata, OUTLINE: json.dumps(inside, ensure_ascii=False)}


def _rows_in(metadata: Mapping[str, Any] | None) -> tuple[_Row, ...]:
    """Return the headings in the metadata, in order; none if the value is not an outline."""
    value = metadata.get(OUTLINE) if metadata else None
    return _rows(value) if isinstance(value, str) and value.startswith("[[") else ()


@lru_cache(maxsize=8)
def _rows(value: str) -> tuple[_Row, ...]:
    try:
        rows = json.loads(value)
    except (ValueError, RecursionError):
        return ()
    if not all(map(_is_row, rows)):
        return ()
    if any(start + len(title) > after for (_, start, title), (_, after, _) in pairwise(rows)):
        return ()
    return tuple((level, start, title) for level, start, title in rows)


def _is_row(row: Any) -> bool:
    is_typed = isinstance(row, list) and list(map(type, row)) == [int, int, str]
    return is_typed and row[0] > 0 and row[1] >= 0 and bool(row[2].strip())


def _line(heading: str) -> str:
    """Join the lines of a heading to one of the same length."""
    return heading.replace("\n", " ")
