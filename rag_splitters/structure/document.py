"""A document as strategies cut it: its text, its blocks and its outline, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rag_splitters.span import Span
from rag_splitters.structure.blocks import Block, TextFormat, read_blocks
from rag_splitters.structure.html.text import Links, Stripped, plain_page
from rag_splitters.structure.kinds import Format, detect_format
from rag_splitters.structure.outline import Outline
from rag_splitters.structure.xml import xml_page


@dataclass(frozen=True)
class Document:
    """A text to cut, with its blocks and outline.

    Parameters:
        text: the text; that of HTML and XML is written without tags.
        format: the format of the source.
        blocks: the blocks of the text.
        page: the text with its positions in the source, if it was rewritten.
    """

    text: str
    format: TextFormat
    blocks: list[Block]
    page: Stripped | None = None

    @cached_property
    def outline(self) -> Outline:
        """The headings of the text."""
        return Outline.of(self.text, self.format, blocks=self.blocks)

    def holds_text(self, span: Span) -> bool:
        """Whether a span of the text holds more than marks that were added to the source."""
        return self.page is None or self.page.holds_text(span)

    def in_source(self, spans: Sequence[Span]) -> list[Span]:
        """Convert spans of the text to spans of the source."""
        return list(map(self.page.to_source, spans)) if self.page else list(spans)


def read_document(
    text: str,
    format: Format = "auto",
    metadata: Mapping[str, Any] | None = None,
    *,
    keywords: Sequence[str] = (),
    main_content_only: bool = True,
    links: Links = "text",
    drop_contents: bool = False,
) -> Document:
    """Read a document for cutting.

    Parameters: those of `read_blocks`, and
        main_content_only, links: what to drop of HTML, and what becomes of links; see `plain_page`.

    >>> document = read_document("<h1>Tea</h1><p>Milk &amp; sugar</p>")
    >>> document.text, document.outline.title
    ('Tea\\n\\nMilk & sugar', 'Tea')
    """
    text_format = detect_format(text, metadata, format)
    if text_format in ("html", "xml"):
        is_html = text_format == "html"
        page = plain_page(text, main_content_only, links) if is_html else xml_page(text)
        return Document(page.text, text_format, page.blocks, page)
    blocks = read_blocks(
        text, text_format, keywords=keywords, metadata=metadata, drop_contents=drop_contents
    )
    return Document(text, text_format, blocks)
