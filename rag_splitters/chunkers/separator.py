"""SeparatorChunker: cuts at every separator."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

from typing_extensions import Self

from rag_splitters.contract.sized import SizedChunker
from rag_splitters.contract.streams import check_streams
from rag_splitters.errors import InputError
from rag_splitters.parameters.fields import Size, SomeTexts
from rag_splitters.span import Span
from rag_splitters.text.boundaries import skip_space, trim_space
from rag_splitters.text.packing import pack
from rag_splitters.text.separators import (
    KeepSeparator,
    check_separators,
    pieces,
    separator_gaps,
)
from rag_splitters.text.structure import recursive_levels


class SeparatorChunker(SizedChunker):
    """Cuts at every separator and drops empty pieces, or merges pieces up to `chunk_size`.

    Use it for texts with explicit boundaries, such as records, log entries and lines. With
    `keep_separator="none"`, the separators between chunks are dropped. With a `chunk_size`, it
    corresponds to LangChain's `CharacterTextSplitter`, but a piece that is too big is cut at its
    paragraphs, lines, sentences and words, or between any characters if "" is a separator.

    Raises ValueError if there are no separators, if one is not a valid regular expression, if one
    is empty and there is no size, or if the sizes are inconsistent.

    >>> [chunk.text for chunk in SeparatorChunker(separators=[";"]).chunk("a;b;;c")]
    ['a', 'b', 'c']
    >>> [chunk.text for chunk in SeparatorChunker(separators=[";"], chunk_size=3).chunk("a;b;;c")]
    ['a;b', 'c']
    """

    strategy: ClassVar[str] = "separator"

    chunk_size: Size | None = None  # type: ignore[assignment]
    """Maximum chunk size, overlap included, in units of `length_function`; None: each piece is a
    chunk of its own, however large."""

    separators: SomeTexts = ("\n\n", "\n")
    r"""Separators, tried in this order at each position. "\n" matches any kind of line break."""

    is_regex: bool = False
    """Whether the separators are regular expressions."""

    keep_separator: KeepSeparator = "none"
    """Whether to drop separators ("none" or False), or to keep each at the "start" of the piece
    after it (True) or at the "end" of the piece before it. "auto": punctuation at the end, anything
    else at the start."""

    strip_whitespace: bool = False
    """Whether to remove white space at the edges of chunks."""

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.chunk_size is None and self.chunk_overlap:
            raise InputError(
                f"chunk_overlap ({self.chunk_overlap}) needs a chunk_size: without one, each piece "
                "is a chunk of its own"
            )
        literals = self.separators if self.chunk_size is None else filter(None, self.separators)
        check_separators(tuple(literals), self.is_regex)

    @property
    def overlap(self) -> int:
        return 0 if self.chunk_size is None else super().overlap

    def fits(self, content: str) -> bool:
        return self.chunk_size is None or super().fits(content)

    def with_room_for(self, prefix: str) -> Self:
        return self if self.chunk_size is None else super().with_room_for(prefix)

    def spans(self, text: str) -> list[Span]:
        if self.chunk_size is None:
            return self._pieces(text)
        separators = [each for each in self.separators if each]
        structure = pieces(
            text,
            [separators] if separators else [],
            recursive_levels(text) if len(separators) == len(self.separators) else (),
            is_regex=self.is_regex,
            keep=self.keep_separator,
            strip=self.strip_whitespace,
        )
        return pack(structure, self.sizes, trim=self.strip_whitespace)

    def spans_after(self, text: str, last: Span | None) -> list[Span]:
        check_streams(self, "with chunk_size" if self.chunk_size is not None else None)
        check_streams(self, "with is_regex=True" if self.is_regex else None)
        begin = last.end if last else 0
        return [span.moved(begin) for span in self._pieces(text[begin:])]

    def _pieces(self, text: str) -> list[Span]:
        keep, strip = self.keep_separator, self.strip_whitespace
        gaps = separator_gaps(text, self.separators, self.is_regex, keep, strip)
        edges = [(0, 0), *gaps, (len(text), len(text))]
        parts = [(start, end) for (_, start), (end, _) in pairwise(edges)]
        if self.strip_whitespace:
            parts = [
                (skip_space(text, start), trim_space(text, start, end)) for start, end in parts
            ]
        return [Span(start, end) for start, end in parts if text[start:end].strip()]
