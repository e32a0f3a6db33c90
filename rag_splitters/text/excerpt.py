"""Excerpts: parts of a text with replacements, in which every character keeps its source offset."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from rag_splitters.span import Span
from rag_splitters.text.boundaries import boundary_after, boundary_before

Replacement: TypeAlias = tuple[int, int, str]
"""Start and end in the source, and the new text for that part."""

_DATA = re.compile(
    r"(data:[\w.+/-]{0,100}(?:;[\w.+=-]{1,100}){0,4};base64,)[A-Za-z0-9+/=_%-]+", re.IGNORECASE
)
_BASE64 = re.compile("base64,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text made from a part of a source, with the source position of everything in it.

    Parameters:
        text: the text.
        offsets: the starts of its segments.
        starts: the start of each segment in the source.
        ends: the end of each segment in the source. A segment of the same length is a copy.

    >>> excerpt = Excerpt.of("a &lt; b", 0, 8, [(2, 6, "<")])
    >>> excerpt.text, excerpt.start(2), excerpt.end(3), excerpt.start(4)
    ('a < b', 2, 6, 7)
    """

    text: str
    offsets: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]

    @staticmethod
    def of(source: str, start: int, end: int, replacements: Iterable[Replacement] = ()) -> Excerpt:
        """Make an excerpt from `start` to `end`, with the replacements that do not overlap."""
        writer, position = ExcerptWriter(source), start
        for low, high, new in (*sorted(replacements), (end, end, "")):
            if low >= position:
                writer.copy(position, low)
                writer.add(new, low, high)
                position = high
        return writer.excerpt()

    def start(self, offset: int) -> int:
        """Return the start in the source of the character at `offset`."""
        index = bisect_right(self.offsets, offset) - 1
        is_copied = self._is_copied(index)
        return self.starts[index] + (offset - self.offsets[index] if is_copied else 0)

    def end(self, offset: int) -> int:
        """Return the end in the source of the character before `offset`."""
        index = bisect_right(self.offsets, offset - 1) - 1
        if not self._is_copied(index):
            return self.ends[index]
        return self.starts[index] + offset - self.offsets[index]

    def bounds(self, start: int, end: int) -> tuple[int, int]:
        """Return start and end in the source of a part, whose segments may be in any order.

        >>> excerpt = Excerpt("code output", [0, 5], [20, 0], [25, 6])
        >>> excerpt.bounds(0, 4), excerpt.bounds(2, 8)
        ((20, 24), (0, 25))
        """
        first = bisect_right(self.offsets, start) - 1
        last = bisect_right(self.offsets, end - 1) - 1
        low, high = self.start(start), self.end(end)
        if last > first:
            low = min(low, *self.starts[first + 1 : last + 1])
            high = max(high, *self.ends[first:last])
        return low, high

    def offset(self, place: int) -> int:
        """Return the offset of a position in the source, if the segments are in its order.

        A position before all of them has the offset 0.

        >>> excerpt = Excerpt.of("a &lt; b", 0, 8, [(2, 6, "<")])
        >>> [excerpt.offset(place) for place in (2, 3, 6, 8)]
        [2, 3, 3, 5]
        """
        index = bisect_right(self.starts, place) - 1
        if index < 0:
            return 0
        if self._is_copied(index):
            return self.offsets[index] + min(place, self.ends[index]) - self.starts[index]
        return self.offsets[index] if place == self.starts[index] else self.stop(index)

    def _is_copied(self, index: int) -> bool:
        """Whether a segment is as long as its part of the source, and so a copy of it."""
        return self.ends[index] - self.starts[index] == self.stop(index) - self.offsets[index]

    def stop(self, index: int) -> int:
        """Return the offset after a segment."""
        return len(self.text) if index + 1 == len(self.offsets) else self.offsets[index + 1]

    def spans(self, spans: Iterable[Span], source: str) -> list[Span]:
        """Convert spans of this text to spans of the source, with their own text if it differs."""
        results = []
        for span in spans:
            low, high = self.bounds(span.start, span.end)
            start, end = boundary_before(source, low), boundary_after(source, high)
            content = span.text_of(self.text)
            is_slice = span.content is None and content == source[start:end]
            metadata = span.metadata
            if "entities" in metadata:
                metadata = {**metadata, "entities": self._entities(metadata["entities"])}
            results.append(
                replace(
                    span,
                    start=start,
                    end=end,
                    metadata=metadata,
                    content=None if is_slice else content,
                )
            )
        return results

    def _entities(self, entities: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Convert mentions in this text to mentions in the source."""
        return [
            {**entity, "start": self.start(entity["start"]), "end": self.end(entity["end"])}
            for entity in entities
        ]


class ExcerptWriter:
    """Writes a text that consists of parts of a source, in any order, and of additions.

    >>> writer = ExcerptWriter("say 'hi'")
    >>> writer.copy(5, 7)
    >>> writer.add("!")
    >>> writer.excerpt().text, writer.excerpt().bounds(0, 2)
    ('hi!', (5, 7))
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.length = 0
        self._pieces: list[str] = []
        self._offsets: list[int] = []
        self._starts: list[int] = []
        self._ends: list[int] = []

    @property
    def trailing_space(self) -> int:
        """The length of the white space at the end of the last piece."""
        last = self._pieces[-1] if self._pieces else ""
        return len(last) - len(last.rstrip())

    def copy(self, start: int, end: int) -> None:
        """Add a part of the source unchanged."""
        self.add(self.source[start:end], start, end)

    def add(self, text: str, start: int = -1, end: int = -1) -> None:
        """Add a text that is made from a part of the source.

        Without a part, it belongs to the previous addition, or else to the source's beginning.
        """
        if not text:
            return
        if start < 0:
            start = end = self._ends[-1] if self._ends else 0
        self._offsets.append(self.length)
        self._starts.append(start)
        self._ends.append(end)
        self._pieces.append(text)
        self.length += len(text)

    def extend(self, excerpt: Excerpt, low: int, high: int) -> None:
        """Add the part between two offsets in an excerpt of the same source."""
        index = bisect_right(excerpt.offsets, low) - 1
        while low < high:
            stop = min(excerpt.stop(index), high)
            self.add(excerpt.text[low:stop], excerpt.start(low), excerpt.end(stop))
            low, index = stop, index + 1

    def excerpt(self) -> Excerpt:
        """Return the excerpt."""
        return Excerpt("".join(self._pieces), self._offsets, self._starts, self._ends)


def data_in(text: str, start: int, end: int, least: int = 1) -> list[Replacement]:
    """Return replacements that remove the data of data URIs, from `least` characters on."""
    if not _BASE64.search(text, start, end):
        return []
    matches = _DATA.finditer(text, start, end)
    data = ((match.end(1), match.end()) for match in matches)
    return [(low, high, "") for low, high in data if high - low >= least]


def without_data(text: str) -> str:
    """Remove the data of data URIs from a text.

    >>> without_data("![a](data:image/png;base64," + 50 * "x" + ")")
    '![a](data:image/png;base64,)'
    """
    return _DATA.sub(r"\1", text) if _BASE64.search(text) else text
