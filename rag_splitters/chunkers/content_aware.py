"""ContentAwareChunker: keeps the blocks of Markdown, HTML and plain text whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from rag_splitters.chunker import SizedChunker
from rag_splitters.span import Source, Span
from rag_splitters.structure.blocks import Block, Format, detect_format, read_blocks
from rag_splitters.structure.blocks.dropped import between_dropped
from rag_splitters.structure.blocks.layout import pack_blocks
from rag_splitters.structure.blocks.stripping import strip_tags
from rag_splitters.structure.outline import Outline
from rag_splitters.text.boundaries import skip_space


class ContentAwareChunker(SizedChunker):
    """Packs the blocks of Markdown, HTML or plain text, and keeps each block whole if it fits.

    Use it for documentation, web pages and notes. A section that fits is one chunk, with its
    subsections. If it does not fit, each subsection is cut on its own, so no chunk crosses a
    heading of its own level or above. A heading stays with the text under it. Code, tables, list
    items and quotes that fit are never cut. A block that is too big is cut at blank lines and lines
    (code), rows and cells (tables), items (lists) or sentences (prose). A chunk that begins inside
    a list or code keeps the indentation of its first line, unless that fills half of the chunk.

    Metadata: `headings`, the headings over the chunk's own text, the outermost first. Overlap does
    not count as its own text.

    In HTML, the head, scripts, styles, declarations and the comments between blocks are dropped.
    No chunk and no overlap crosses them. With `keep_tags=False`, the other tags are dropped too,
    entities are decoded, and white space outside `pre` is collapsed. Such chunks are rewritten;
    their `start` and `end` bound the HTML that they were made from.

    Raises ValueError if `min_chunk_size` is above `chunk_size`, or if the sizes are inconsistent.

    >>> text = "# Tea\\n\\nBoil water. Wait.\\n\\n## Green\\n\\nCool it down."
    >>> [(c.text, c.metadata["headings"]) for c in ContentAwareChunker(chunk_size=30).chunk(text)]
    [('# Tea\\n\\nBoil water. Wait.', ['Tea']), ('## Green\\n\\nCool it down.', ['Tea', 'Green'])]
    """

    format: Format = "auto"
    """Format of the text, such as "markdown", "html", "rst" or "text"; "auto" detects it from the
    metadata and the text."""

    min_chunk_size: int = Field(default=0, ge=0)
    """Chunks smaller than this are merged with a neighbour, even across headings, if they fit."""

    keep_tags: bool = True
    """Whether to keep the tags of HTML; without them, chunks are plain text."""

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.min_chunk_size > self.chunk_size:
            raise ValueError(
                f"min_chunk_size must not be larger than chunk_size ({self.chunk_size}), "
                f"got {self.min_chunk_size}"
            )

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        return [self._spans(source.text, source.metadata) for source in sources]

    def _spans(self, text: str, metadata: Mapping[str, Any]) -> list[Span]:
        text_format = detect_format(text, metadata) if self.format == "auto" else self.format
        blocks = read_blocks(text, text_format)
        if text_format == "html" and not self.keep_tags:
            stripped = strip_tags(text, blocks)
            outline = Outline.of(stripped.text, text_format, blocks=stripped.blocks)
            spans = self._pack(stripped.text, stripped.blocks, outline)
            return [stripped.to_source(span) for span in spans]
        outline = Outline.of(text, text_format, blocks=blocks)
        if text_format != "html":
            return self._pack(text, blocks, outline)
        return [
            span.moved(offset)
            for offset, part, inner in between_dropped(text, blocks)
            for span in self._pack(part, inner, outline, offset, is_html=True)
        ]

    def _pack(
        self,
        text: str,
        blocks: list[Block],
        outline: Outline,
        offset: int = 0,
        is_html: bool = False,
    ) -> list[Span]:
        """The chunks of the part of the text that begins at `offset`."""
        least = self.min_chunk_size
        spans = pack_blocks(text, blocks, **self.sizes, min_size=least, is_html=is_html)
        chunks: list[Span] = []
        end = 0
        for span in spans:
            own = skip_space(text, end) if span.start < end else span.start
            end = span.end
            above = outline.above(offset + own, offset + end)
            chunks.append(replace(span, headings=above))
        return chunks
