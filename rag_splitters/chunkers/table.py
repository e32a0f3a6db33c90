"""TableChunker: cuts tables by rows and repeats their headers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from rag_splitters.chunkers.parts import Part, Parts, plan_parts
from rag_splitters.chunkers.recursive import RecursiveChunker
from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.registry import Nested
from rag_splitters.contract.sized import SIZES, SizedChunker
from rag_splitters.span import Source, Span
from rag_splitters.structure.block import Block, clipped, without_dropped
from rag_splitters.structure.blocks import Format, detect_format, read_blocks
from rag_splitters.structure.tables.cutting import Cutter
from rag_splitters.structure.tables.model import Table
from rag_splitters.structure.tables.writers import Render
from rag_splitters.structure.text_tables import find_tables
from rag_splitters.text.excerpt import Excerpt


class TableChunker(SizedChunker):
    """Makes every table a chunk, and cuts a long table by rows with its header in every chunk.

    Use it for reports, price lists and data sheets, where a row means nothing without its header.
    It reads Markdown pipe tables, HTML tables (with several header rows, and cells that span rows
    and columns), and lines of CSV or TSV (with line breaks in quotes). The chunker in `text` cuts
    the text between tables.

    The header counts towards `chunk_size`. A row that does not fit together with it is cut between
    cells, each under its own label. A cell that does not fit is cut as text. If a label leaves no
    room, the row is cut as text without the header. A header that never fits is a chunk of its own.
    `chunk_overlap` repeats whole rows of the same table, as many as fit. A cell that spans several
    rows is repeated in each of them.

    Rewrites: an HTML table that has to be cut is written in Markdown. `start` and `end` bound the
    rows of a chunk and, in the first chunk of a table, also the header. A repeated header has no
    position.

    Metadata: `modality` ("table" or "text"); for tables `row_start` and `row_end` (the first and
    last body row, counted from 1), `columns` (the labels above the chunk), and `caption`.

    Dropped: the base64 data of data URIs in tables; in HTML, the head, and the scripts, styles,
    declarations and comments between blocks; in an HTML table that is cut or rendered, everything
    outside of its cells, its caption (which is in the metadata) and its attributes; in a cell that
    is cut or rendered, the tags.

    Raises ValueError if the format or the rendering is unknown, if `rows_per_chunk` is below 1, or
    if the sizes are inconsistent.

    >>> text = "Prices:\\n\\n| tea | price |\\n|---|---|\\n| green | 4 |\\n| black | 3 |\\n"
    >>> for chunk in TableChunker(render="json", rows_per_chunk=1).chunk(text):
    ...     print(chunk.text)
    Prices:
    [{"tea": "green", "price": "4"}]
    [{"tea": "black", "price": "3"}]
    """

    strategy: ClassVar[str] = "table"
    hands_prefix_on: ClassVar[bool] = True

    render: Render = "source"
    """How to write tables: as in the "source" (HTML tables that have to be cut in Markdown), in
    "markdown", or in "json" with an object for each row."""

    rows_per_chunk: int | None = Field(default=None, ge=1)
    """Maximum number of rows in a chunk; None: as many as fit."""

    text: Nested | Literal["default"] | None = "default"
    """Chunker for the text between tables; "default": a `RecursiveChunker` with the same sizes;
    None drops that text."""

    format: Format = "auto"
    """Format of the text; "auto" detects it from the metadata and the text. With "text", CSV and
    TSV are found in prose; with "csv" and "tsv", the whole text is one table."""

    def table_spans(self, table: Table, prefix: str) -> list[Span]:
        """Cut one table, with room for a prefix before each chunk."""
        sizes = self.with_room_for(prefix).sizes if prefix else self.sizes
        return Cutter(table, self.render, sizes, self.rows_per_chunk).spans()

    def fits(self, content: str) -> bool:
        is_own = isinstance(self.text, Chunker) and self.text.fits(content)
        return super().fits(content) or is_own

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        chunker = self.text
        if chunker == "default":
            chunker = RecursiveChunker(**{name: getattr(self, name) for name in SIZES})
        return await plan_parts(sources, [self._parts(source, chunker) for source in sources])

    def _parts(self, source: Source, chunker: Chunker | None) -> Parts:
        """Return the chunks of the tables, and the parts between them, for this chunker."""
        text = source.text
        text_format = detect_format(text, source.metadata, self.format)
        blocks = read_blocks(text, "html") if text_format == "html" else None
        around = blocks or [Block("paragraph", 0, len(text))]
        parts: Parts = []
        position = 0
        for table in find_tables(text, text_format, blocks):
            parts += _between(text, position, table.start, around, chunker)
            parts += self.table_spans(table, source.prefix)
            position = table.end
        return parts + _between(text, position, len(text), around, chunker)


def _between(
    text: str, start: int, end: int, blocks: Sequence[Block], chunker: Chunker | None
) -> Parts:
    """Return the part between two tables for a chunker; none if it is blank or dropped."""
    visible = clipped(text, blocks, start, end)
    if chunker is None or not visible:
        return []
    begin, stop = visible[0].start, visible[-1].end
    excerpt = Excerpt.of(text, begin, stop, without_dropped(text, visible))
    return [Part(chunker, excerpt, Span(begin, stop, modality="text"))]
