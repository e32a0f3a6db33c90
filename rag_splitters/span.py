"""Span: a piece of a text, known by its position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["Chunk", "Span", "shifted"]


@dataclass(frozen=True, slots=True, init=False)
class Span:
    """A piece of a text, by its code-point offsets.

    Parameters:
        start: offset of its first code point.
        end: offset after its last code point.
        metadata: what the strategy knows about it.
        content: the text to deliver, where a strategy rewrites; None means `text[start:end]`.

    >>> span = Span(4, 7)
    >>> span.text_of("one two three")
    'two'
    """

    start: int
    end: int
    metadata: Mapping[str, Any]
    content: str | None

    def __init__(
        self,
        start: int,
        end: int,
        metadata: Mapping[str, Any] | None = None,
        content: str | None = None,
    ) -> None:
        # Setting the slots directly takes half the time of a frozen dataclass's own __init__.
        _set_start(self, start)
        _set_end(self, end)
        _set_metadata(self, {} if metadata is None else metadata)
        _set_content(self, content)

    def text_of(self, text: str) -> str:
        """The chunk's text: `content` where the strategy rewrote it, else the slice of `text`."""
        return text[self.start : self.end] if self.content is None else self.content


_set_start, _set_end, _set_metadata, _set_content = (
    getattr(Span, name).__set__ for name in Span.__slots__
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk for use without a framework: its text, where it stands, and what is known of it.

    Parameters:
        text: the chunk as delivered.
        start: code-point offset of its beginning in the source.
        end: code-point offset after its end in the source.
        metadata: `chunk_index` and the strategy's own keys.
        id: UUIDv5, the same for the same source and position in any process.
    """

    text: str
    start: int
    end: int
    metadata: Mapping[str, Any]
    id: str


def shifted(span: Span, offset: int, outer: Mapping[str, Any] | None = None) -> Span:
    """The span of a part as a span of the whole: moved by `offset`, with the outer metadata added.

    >>> shifted(Span(0, 3), 10).start
    10
    """
    metadata = {**outer, **span.metadata} if outer else span.metadata
    return replace(span, start=span.start + offset, end=span.end + offset, metadata=metadata)
