"""PageChunker: pages, and their numbers."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field, field_validator

from rag_splitters.chunker import SizedChunker
from rag_splitters.chunkers.recursive import recursive_levels
from rag_splitters.packing import pack
from rag_splitters.span import Span

__all__ = ["PageChunker"]


class PageChunker(SizedChunker):
    """Makes each page a chunk; a page that is too big is cut as `RecursiveChunker` does.

    Pages end at form feeds, or where `page_break` matches; or they are the documents themselves,
    when a loader made one of each page and put its number into the metadata (`page`, counted from
    0 as LangChain's loaders do, `page_number` or `page_label`, counted from 1). Use it for PDFs,
    slides and contracts, where an answer must name its page. Metadata `page_start`, `page_end`.
    The page breaks themselves are dropped where they are not white space.

    Raises: ValueError for a page break that is no regular expression, or matches the empty text.

    >>> chunks = PageChunker().chunk("first page\\fsecond page")
    >>> [(chunk.text, chunk.metadata["page_start"]) for chunk in chunks]
    [('first page', 1), ('second page', 2)]
    """

    page_break: str = "\f"
    """A regular expression for what stands between two pages."""

    pages_per_chunk: int = Field(default=1, ge=1)
    """How many pages make a chunk, if they fit."""

    @field_validator("page_break")
    @classmethod
    def _check_page_break(cls, value: str) -> str:
        try:
            matches_nothing = re.compile(value, re.MULTILINE).fullmatch("") is not None
        except re.error as error:
            raise ValueError(f"page_break {value!r} is no regular expression: {error}") from None
        if matches_nothing:
            raise ValueError(f"page_break {value!r} must not match the empty text")
        return value

    def spans(self, text: str) -> list[Span]:
        return self._spans(text, 1)

    def spans_of_documents(
        self, texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]]
    ) -> list[list[Span]]:
        pairs = zip(texts, metadatas, strict=True)
        return [self._spans(text, _first_page(metadata)) for text, metadata in pairs]

    async def aspans_of_documents(
        self, texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]]
    ) -> list[list[Span]]:
        return self.spans_of_documents(texts, metadatas)

    def _spans(self, text: str, first_page: int) -> list[Span]:
        breaks = [match.end() for match in re.finditer(self.page_break, text, re.MULTILINE)]
        stops = breaks[self.pages_per_chunk - 1 :: self.pages_per_chunk]
        spans = pack(text, recursive_levels(text), **self.sizes, breaks=stops)

        def page(position: int) -> int:
            return bisect_right(breaks, position) + first_page

        return [
            Span(s.start, s.end, {"page_start": page(s.start), "page_end": page(s.end - 1)})
            for s in spans
        ]


def _first_page(metadata: Mapping[str, Any]) -> int:
    """The number of a document's first page, by what its loader wrote."""
    for key, base in (("page_number", 0), ("page_label", 0), ("page", 1)):
        value = metadata.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value + base
        if isinstance(value, str) and value.isdecimal():
            return int(value) + base
    return 1
