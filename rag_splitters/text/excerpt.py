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
"""Start and end in the source, and the new text for what is there."""

_DATA = re.compile(
    r"(data:[\w.+/-]{0,100}(?:;[\w.+=-]{1,100}){0,4};base64,)[A-Za-z0-9+/=_%-]+", re.IGNORECASE
)
_BASE64 = re.compile("base64,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text made from a part of a source, with the source position of everything in it.

    Parameters:
        text: the text.
        offsets: where its segments begin.
        starts: where each segment begins in the source.
        ends: where each segment ends in the source. A segment of the same length is a copy.

    >>> excerpt = Excerpt.of("a &lt; b", 0, 8, [(2, 6, "<")])
    >>> excerpt.text, excerpt.start(2), excerpt.end(3), excerpt.start(4)
    ('a < b', 2, 6, 7)
    """

    text: str
    offsets: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]

    @classmethod
    def of(
        cls, source: str, start: int, end: int, replacements: Iterable[Replacement] = ()
    ) -> Excerpt:
        """The part of the source from `start` to `end`, with these replacements, which ascend."""
        pieces: list[str] = []
        offsets: list[int] = []
        starts: list[int] = []
        ends: list[int] = []
        length, position = 0, start
        for low, high, new in (*replacements, (end, end, "")):
            for piece, begin, stop in ((source[position:low], position, low), (new, low, high)):
                if piece:
                    offsets.append(length)
                    starts.append(begin)
                    ends.append(stop)
                    pieces.append(piece)
                    length += len(piece)
            position = high
        return cls("".join(pieces), offsets, starts, ends)

    def start(self, offset: int) -> int:
        """Where the character at `offset` begins in the source."""
        index = bisect_right(self.offsets, offset) - 1
        return self.starts[index] + (offset - self.offsets[index] if self._is_copy(index) else 0)

    def end(self, offset: int) -> int:
        """Where the character before `offset` ends in the source."""
        index = bisect_right(self.offsets, offset - 1) - 1
        if not self._is_copy(index):
            return self.ends[index]
        return self.starts[index] + offset - self.offsets[index]

    def _is_copy(self, index: int) -> bool:
        is_last = index + 1 == len(self.offsets)
        length = (len(self.text) if is_last else self.offsets[index + 1]) - self.offsets[index]
        return self.ends[index] - self.starts[index] == length

    def spans(self, spans: Iterable[Span], source: str) -> list[Span]:
        """Spans of this text as spans of the source, with their own text where it differs."""
        results = []
        for span in spans:
            start = boundary_before(source, self.start(span.start))
            end = boundary_after(source, self.end(span.end))
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
        """Mentions in this text as mentions in the source."""
        return [
            {**entity, "start": self.start(entity["start"]), "end": self.end(entity["end"])}
            for entity in entities
        ]


def data_in(text: str, start: int, end: int, least: int = 1) -> list[Replacement]:
    """Replacements that remove the data of the data URIs in a part of a text.

    Parameters:
        text: the text.
        start: where the part begins.
        end: where it ends.
        least: minimum length, in characters, of the data that are removed.
    """
    if not _BASE64.search(text, start, end):
        return []
    matches = _DATA.finditer(text, start, end)
    data = ((match.end(1), match.end()) for match in matches)
    return [(low, high, "") for low, high in data if high - low >= least]


def without_data(text: str) -> str:
    """The text without the data of its data URIs.

    >>> without_data("![a](data:image/png;base64," + 50 * "x" + ")")
    '![a](data:image/png;base64,)'
    """
    return _DATA.sub(r"\1", text) if _BASE64.search(text) else text
