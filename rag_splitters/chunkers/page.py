"""PageChunker: one chunk per page, with page numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from rag_splitters.contract.sized import SizedChunker
from rag_splitters.span import Source, Span
from rag_splitters.text.packing import pack
from rag_splitters.text.pages import check_page_break, first_page, page_breaks, with_pages
from rag_splitters.text.structure import recursive_structure


class PageChunker(SizedChunker):
    """Makes each page a chunk. A page that is too big is cut as in `RecursiveChunker`.

    Use it for PDFs, slides and contracts, if an answer has to name its page. Pages end at form
    feeds, or where `page_break` matches. If a loader made each page a document, the page number is
    read from the metadata: `page`, counted from 0 as LangChain's loaders do, or `page_number` or
    `page_label`, counted from 1.

    Metadata: `page_start` and `page_end`, counted from 1.

    Raises ValueError if `page_break` is not a valid regular expression, or matches the empty text.

    >>> chunks = PageChunker().chunk("first page\\fsecond page")
    >>> [(chunk.text, chunk.metadata["page_start"]) for chunk in chunks]
    [('first page', 1), ('second page', 2)]
    """

    strategy: ClassVar[str] = "page"

    page_break: Annotated[str, AfterValidator(check_page_break)] = "\f"
    """Regular expression for the break between two pages; by default, a form feed."""

    pages_per_chunk: int = Field(default=1, ge=1)
    """Maximum number of pages in a chunk; fewer if they do not fit into `chunk_size`."""

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        return [self._spans(source.text, first_page(source.metadata)) for source in sources]

    def _spans(self, text: str, first: int) -> list[Span]:
        breaks = page_breaks(text, self.page_break)
        stops = breaks[self.pages_per_chunk - 1 :: self.pages_per_chunk]
        spans = pack(recursive_structure(text, stops), self.sizes)
        return with_pages(spans, breaks, first)
