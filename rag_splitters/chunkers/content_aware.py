"""ContentAwareChunker: blocks of Markdown, HTML or plain text, kept whole."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field, model_validator
from typing_extensions import Self

from rag_splitters.chunker import SizedChunker
from rag_splitters.span import Span
from rag_splitters.structure.blocks import Block, Format, detect_format, read_blocks
from rag_splitters.structure.blocks.dropped import between_dropped
from rag_splitters.structure.blocks.layout import pack_blocks
from rag_splitters.structure.blocks.stripping import strip_tags
from rag_splitters.structure.outline import Outline
from rag_splitters.text.boundaries import skip_space

__all__ = ["ContentAwareChunker"]


class ContentAwareChunker(SizedChunker):
    """Packs the blocks of Markdown, HTML or plain text, each kept whole where it fits.

    A section that fits is a chunk, with its subsections; of one that does not, each subsection is
    cut by itself, so that no chunk runs over a heading of its own level or above. A heading stays
    with what it heads. Code, tables, list items and quotes that fit (beside their heading) are
    never cut; what is too big is cut by blank lines and lines (code), rows and cells (tables),
    items (lists) or sentences (prose). A chunk that begins inside a list or in code keeps the
    indentation of its first line, where that takes no more than half of it. Use it for
    documentation, web pages and notes. Metadata `headings`: those over the first text that the
    chunk before does not hold, the outermost first.

    Chunks are slices of the source. Of HTML it drops the head, scripts, styles, declarations and
    the comments between blocks; a chunk ends where they begin, and nothing is repeated behind
    them. With `keep_tags=False` the other tags are dropped too, entities are decoded and white
    space outside `pre` is collapsed: then chunks are rewritten, and `start` and `end` bound what
    they were made of.

    Raises: ValueError for a `min_chunk_size` above `chunk_size`, or sizes that make no sense.

    >>> text = "# Tea\\n\\nBoil water. Wait.\\n\\n## Green\\n\\nCool it down."
    >>> [(c.text, c.metadata["headings"]) for c in ContentAwareChunker(chunk_size=30).chunk(text)]
    [('# Tea\\n\\nBoil water. Wait.', ['Tea']), ('## Green\\n\\nCool it down.', ['Tea', 'Green'])]
    """

    format: Format = "auto"
    """"markdown", "html", "text", or "auto": by the text's beginning."""

    min_chunk_size: int = Field(default=0, ge=0)
    """Chunks that measure less are merged with a neighbour where that fits, over headings too."""

    keep_tags: bool = True
    """Leave HTML as it is? False: chunks are text, without tags and entities."""

    @model_validator(mode="after")
    def _check_minimum(self) -> Self:
        if self.min_chunk_size > self.chunk_size:
            raise ValueError(
                f"min_chunk_size must not be larger than chunk_size ({self.chunk_size}), "
                f"got {self.min_chunk_size}"
            )
        return self

    def spans(self, text: str) -> list[Span]:
        known = detect_format(text) if self.format == "auto" else self.format
        blocks = read_blocks(text, known)
        if known == "html" and not self.keep_tags:
            stripped = strip_tags(text, blocks)
            spans = self._packed(
                stripped.text,
                stripped.blocks,
                Outline.of(stripped.text, known, blocks=stripped.blocks),
            )
            return [stripped.to_source(span) for span in spans]
        outline = Outline.of(text, known, blocks=blocks)
        if known != "html":
            return self._packed(text, blocks, outline)
        return [
            span.moved(offset)
            for offset, part, inner in between_dropped(text, blocks)
            for span in self._packed(part, inner, outline, offset, is_html=True)
        ]

    def _packed(
        self,
        text: str,
        blocks: list[Block],
        outline: Outline,
        offset: int = 0,
        is_html: bool = False,
    ) -> list[Span]:
        """The chunks of a part of the text that begins at `offset`."""
        least = self.min_chunk_size
        spans = pack_blocks(text, blocks, **self.sizes, min_size=least, is_html=is_html)
        named: list[Span] = []
        end = 0
        for span in spans:
            own = skip_space(text, end) if span.start < end else span.start
            end = span.end
            above = outline.above(offset + own, offset + end)
            named.append(replace(span, headings=above))
        return named
