"""Pages: their starts in a text, and the pages of spans."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from rag_splitters.errors import InputError
from rag_splitters.parameters.checks import compile_pattern, stored_number
from rag_splitters.span import Span

P = TypeVar("P", bound="str | None")


def check_page_break(pattern: P) -> P:
    """Return the pattern, or None. Raises ValueError if it is invalid or matches the empty text."""
    if pattern is None:
        return pattern
    if compile_pattern(pattern, "page_break", re.MULTILINE).fullmatch(""):
        raise InputError(f"page_break {pattern!r} must not match the empty text")
    return pattern


def page_breaks(text: str, pattern: str) -> list[int]:
    """Return the offsets at which the pages of a text begin, except the first.

    >>> page_breaks("one\\ftwo", "\\f")
    [4]
    >>> page_breaks("Page 1 Page 2", r"(?=Page \\d)")
    [7]
    """
    matches = re.finditer(pattern, text, re.MULTILINE)
    return [match.end() for match in matches if match.end()]  # a page may begin at the start


def with_pages(spans: Sequence[Span], breaks: Sequence[int], first: int) -> list[Span]:
    """Add to spans the pages on which they begin and end; `breaks` is sorted, see `page_breaks`.

    >>> with_pages([Span(0, 6)], [4], 1)[0].pages
    (1, 2)
    """

    def page_at(position: int) -> int:
        return bisect_right(breaks, position) + first

    return [replace(span, pages=(page_at(span.start), page_at(span.end - 1))) for span in spans]


def first_page(metadata: Mapping[str, Any]) -> int:
    """Return the number of a document's first page in the metadata of its loader, or 1."""
    number = known_page(metadata)
    return 1 if number is None else number


def known_page(metadata: Mapping[str, Any]) -> int | None:
    """Return the number of a document's first page in the metadata of its loader, or None.

    `page_start`, `page_number` and `page_label` count from 1. `page` counts from 0, as in
    LangChain's loaders.

    >>> known_page({"page": 4})
    5
    """
    for key, base in (("page_start", 0), ("page_number", 0), ("page_label", 0), ("page", 1)):
        value = metadata.get(key)
        if (number := stored_number(value)) is not None:
            return number + base
        if isinstance(value, str) and value.isdecimal():
            return int(value) + base
    return None
