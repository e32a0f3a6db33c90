"""Excerpt: what is left of a text when some of it is replaced, and where each character stood."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rag_splitters.span import Span
from rag_splitters.text.boundaries import at_cluster, cluster_end, cluster_floor

__all__ = ["Excerpt", "Replacement", "boundary_after", "boundary_before", "data_in", "without_data"]

Replacement: TypeAlias = tuple[int, int, str]
"""Start and end in the source, and the text that stands there instead."""

_DATA = re.compile(
    r"(data:[\w.+/-]{0,100}(?:;[\w.+=-]{1,100}){0,4};base64,)[A-Za-z0-9+/=_%-]+", re.IGNORECASE
)
_BASE64 = re.compile("base64,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text made from a part of a source, with the position of everything in it.

    Parameters:
        text: the text.
        offsets: where its segments begin.
        starts: where each segment begins in the source.
        ends: where each segment ends in the source. One that is as long as in the text is a copy.

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
        """The part of the source from `start` to `end`, with ascending replacements made."""
        pieces: list[str] = []
        offsets: list[int] = []
        starts: list[int] = []
        ends: list[int] = []
        length, position = 0, start
        for low, high, instead in (*replacements, (end, end, "")):
            for piece, begin, stop in ((source[position:low], position, low), (instead, low, high)):
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
        return self.starts[index] + (offset - self.offsets[index] if self._copied(index) else 0)

    def end(self, offset: int) -> int:
        """Where the character before `offset` ends in the source."""
        index = bisect_right(self.offsets, offset - 1) - 1
        if not self._copied(index):
            return self.ends[index]
        return self.starts[index] + offset - self.offsets[index]

    def _copied(self, index: int) -> bool:
        last = index + 1 == len(self.offsets)
        length = (len(self.text) if last else self.offsets[index + 1]) - self.offsets[index]
        return self.ends[index] - self.starts[index] == length

    def spans(self, spans: Iterable[Span], source: str) -> list[Span]:
        """Spans of this text as spans of the source: with their text where that differs."""
        placed = []
        for span in spans:
            start = boundary_before(source, self.start(span.start))
            end = boundary_after(source, self.end(span.end))
            content = span.text_of(self.text)
            rewritten = span.content is not None or content != source[start:end]
            placed.append(
                replace(span, start=start, end=end, content=content if rewritten else None)
            )
        return placed


def data_in(text: str, start: int, end: int, least: int = 1) -> list[Replacement]:
    """The data of the data URIs in a part of a text, to be replaced by nothing.

    Parameters:
        text: the text.
        start: where the part begins.
        end: where it ends.
        least: shorter data, in characters, are left.
    """
    if not _BASE64.search(text, start, end):
        return []
    found = (match.span() + match.span(1) for match in _DATA.finditer(text, start, end))
    return [(middle, stop, "") for _, stop, _, middle in found if stop - middle >= least]


def without_data(text: str) -> str:
    """The text without the data of its data URIs.

    >>> without_data("![a](data:image/png;base64," + 50 * "x" + ")")
    '![a](data:image/png;base64,)'
    """
    return _DATA.sub(r"\1", text) if _BASE64.search(text) else text


def boundary_before(text: str, position: int) -> int:
    """The last offset up to `position` between two grapheme clusters."""
    low = max(0, position - 64)
    return position if at_cluster(text, low, position) else cluster_floor(text, low, position)


def boundary_after(text: str, position: int) -> int:
    """The first offset from `position` on between two grapheme clusters."""
    floor = boundary_before(text, position)
    return position if floor == position else cluster_end(text, floor)
