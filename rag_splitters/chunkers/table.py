"""TableChunker: tables by rows, with their headers."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from rag_splitters.chunker import Nested, SizedChunker
from rag_splitters.chunkers.parts import Part, Parts, plan_parts
from rag_splitters.chunkers.recursive import RecursiveChunker
from rag_splitters.span import Source, Span
from rag_splitters.structure.blocks import detect_format, read_blocks
from rag_splitters.structure.blocks.dropped import Dropped
from rag_splitters.structure.tables import Cutter, Excerpt, Render, Table, TableFormat, find_tables

__all__ = ["TableChunker"]

_SIZES = ("chunk_size", "chunk_overlap", "length_function")


class TableChunker(SizedChunker):
    """Makes every table a chunk; cuts a long one by rows, and repeats its header in every chunk.

    Reads Markdown pipe tables, HTML tables (several header rows, cells over rows and columns), and
    lines of CSV or TSV, quoted line breaks included. What stands between tables goes to `text`.
    Use it for reports, price lists and data sheets, where a row says nothing without its header.

    The header counts towards `chunk_size`. A row that does not fit beside it is cut by cells, each
    under its own label; such a cell as text; and where a label leaves no room, the row as text
    without header. A header that fits nowhere is a chunk of its own. `chunk_overlap` repeats whole
    rows inside a table, as many as fit in it, and does not reach over a table's edges. A cell over
    several rows stands in the chunks of each, where it fits beside the row's own cells.

    Rewrites: `start` and `end` bound the rows of a chunk, in the first one also the header; in the
    others the header is content without position. Metadata: `modality` ("table" or "text"), and of
    tables `row_start` and `row_end` (body rows, counted from 1, both included), `columns` (the
    labels that stand over the chunk; none where a row is cut as text), `caption`.

    Dropped: the base64 data of data URIs in tables; of HTML the head, and between its blocks
    scripts, styles, declarations and comments; of an HTML table that is cut or rendered, what
    stands outside of its cells, its caption (which is in the metadata) and its own attributes; of
    a cell that is cut inside or rendered, its tags.

    Raises: ValueError for an unknown format or rendering, fewer rows than 1, or sizes that make no
    sense.

    >>> text = "Prices:\\n\\n| tea | price |\\n|---|---|\\n| green | 4 |\\n| black | 3 |\\n"
    >>> for chunk in TableChunker(render="json", rows_per_chunk=1).chunk(text):
    ...     print(chunk.text)
    Prices:
    [{"tea": "green", "price": "4"}]
    [{"tea": "black", "price": "3"}]
    """

    render: Render = "source"
    """Tables as they stand, as Markdown, or as a JSON array of one object for each row."""

    rows_per_chunk: int | None = Field(default=None, ge=1)
    """The most rows in a chunk; None: as many as fit."""

    text: Nested | None = Field(
        default_factory=lambda data: RecursiveChunker(**{name: data[name] for name in _SIZES})
    )
    """What cuts the text between tables, by its own size; None drops that text. If it is not given,
    `RecursiveChunker` with the sizes of this chunker."""

    format: TableFormat = "auto"
    """"markdown", "html" or "text" (CSV and TSV among prose); "csv" or "tsv": one table."""

    def table_spans(self, table: Table) -> list[Span]:
        """The chunks of one table."""
        return Cutter(table, self.render, **self.sizes, rows_per_chunk=self.rows_per_chunk).spans()

    def fits(self, content: str) -> bool:
        return super().fits(content) or (self.text is not None and self.text.fits(content))

    def narrowed(self, prefix: str) -> TableChunker:
        narrow = super().narrowed(prefix)
        text = None if self.text is None else self.text.narrowed(prefix)
        return narrow.model_copy(update={"text": text})

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        return await plan_parts(sources, [self._parts(source.text) for source in sources])

    def _parts(self, text: str) -> Parts:
        """The chunks of the tables, and the text between them."""
        written = detect_format(text) if self.format == "auto" else self.format
        blocks = read_blocks(text, "html") if written == "html" else None
        dropped = Dropped(text, blocks or ())
        parts: Parts = []
        position = 0
        for table in find_tables(text, written, blocks):
            parts += self._between(text, position, table.start, dropped)
            parts += self.table_spans(table)
            position = table.end
        return parts + self._between(text, position, len(text), dropped)

    def _between(self, text: str, start: int, end: int, dropped: Dropped) -> Parts:
        begin, stop = dropped.around(start, end)
        if self.text is None or begin >= stop:
            return []
        excerpt = Excerpt.of(text, begin, stop, dropped.within(begin, stop))
        return [Part(self.text, excerpt, Span(begin, stop, modality="text"))]
