"""SeparatorChunker: cuts at every separator."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from rag_splitters.chunker import Chunker
from rag_splitters.fields import Texts
from rag_splitters.span import Span
from rag_splitters.text.boundaries import at_cluster, separator_pattern

__all__ = ["SeparatorChunker"]


class SeparatorChunker(Chunker):
    """Cuts at every separator and drops empty pieces. There is no size limit.

    Use it for texts with explicit boundaries, such as records, log entries and lines. With
    `keep_separator="none"`, the separators are dropped.

    Raises ValueError if there are no separators, or if one is empty or not a valid regular
    expression.

    >>> [chunk.text for chunk in SeparatorChunker(separators=[";"]).chunk("a;b;;c")]
    ['a', 'b', 'c']
    """

    separators: Texts = ("\n\n", "\n")
    """Separators, tried in this order at each position; "\n" matches any kind of line break."""

    is_regex: bool = False
    """Whether the separators are regular expressions."""

    keep_separator: Literal["none", "start", "end"] = "none"
    """Whether to drop each separator, or to keep it at the "start" or the "end" of a piece."""

    @field_validator("separators", mode="after")
    @classmethod
    def _check_separators(cls, value: Texts) -> Texts:
        if not value:
            raise ValueError("separators must hold at least one separator")
        return value

    def model_post_init(self, context: object, /) -> None:
        separator_pattern(self.separators, self.is_regex)

    def spans(self, text: str) -> list[Span]:
        spans: list[Span] = []
        start = 0
        for match in separator_pattern(self.separators, self.is_regex).finditer(text):
            first, last = match.span()
            if not (at_cluster(text, start, first) and at_cluster(text, start, last)):
                continue  # part of a longer grapheme cluster
            end = last if self.keep_separator == "end" else first
            self._add(spans, text, start, end)
            start = first if self.keep_separator == "start" else last
        self._add(spans, text, start, len(text))
        return spans

    @staticmethod
    def _add(spans: list[Span], text: str, start: int, end: int) -> None:
        if text[start:end].strip():
            spans.append(Span(start, end))
