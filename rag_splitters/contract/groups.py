"""Groups of texts that are cut together, so that memory use does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol, TypeVar

from rag_splitters.parameters.checks import check_has, check_list
from rag_splitters.span import Source

_GROUP_SOURCES, _GROUP_CHARACTERS = 512, 2_000_000


class _WithText(Protocol):
    @property
    def text(self) -> str: ...


T = TypeVar("T", bound=_WithText)


def grouped(sources: Iterable[T]) -> Iterator[list[T]]:
    """Yield sources in groups that end after 512 sources or two million characters."""
    group: list[T] = []
    characters = 0
    for source in sources:
        group.append(source)
        characters += len(source.text)
        if len(group) == _GROUP_SOURCES or characters >= _GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _check_sources(sources: Iterable[Source]) -> Iterator[Source]:
    """Yield sources. Raises TypeError for anything else, such as a bare text."""
    check_list(sources, "sources (for one text, call chunk)")
    for source in sources:
        check_has(source, "prefix", "a Source (for one text, call chunk)")
        yield source


def numbered_groups(sources: Iterable[Source]) -> Iterator[list[Source]]:
    """Yield groups of sources, numbered in their order if they have no numbers yet."""
    first = 0
    for group in grouped(_check_sources(sources)):
        has_numbers = any(source.number for source in group)
        yield (
            group
            if has_numbers or first + len(group) == 1
            else [replace(source, number=number) for number, source in enumerate(group, first)]
        )
        first += len(group)
