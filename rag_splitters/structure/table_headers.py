"""Packs blocks, and repeats the header of a table that is cut."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from copy import copy

from rag_splitters.span import Span
from rag_splitters.structure.block import Block
from rag_splitters.structure.blocks.layout import pack_blocks
from rag_splitters.structure.tables.cutting import Cutter
from rag_splitters.structure.tables.model import Table
from rag_splitters.structure.tables.pipe import PipeTable
from rag_splitters.structure.tables.separated import separated_tables
from rag_splitters.structure.tables.writers import writer
from rag_splitters.text.boundaries import skip_space, trim_space
from rag_splitters.text.sizing import Sizes, text_length


def pack_with_headers(text: str, blocks: Sequence[Block], sizes: Sizes) -> list[Span]:
    """Pack blocks into spans; a span that begins inside a table has the table's header before it.

    Only Markdown tables outside of lists and quotes, and lines of CSV or TSV, have a header to
    repeat, and only if it takes up at most half of a chunk.

    Parameters:
        text: the text.
        blocks: its blocks.
        sizes: the sizes of chunks and overlaps.

    >>> from rag_splitters.structure.blocks import read_blocks
    >>> text = "| tea |\\n|---|\\n| green |\\n| black |"
    >>> for span in pack_with_headers(text, read_blocks(text, "markdown"), Sizes(30)):
    ...     print(repr(span.text_of(text)))
    '| tea |\\n|---|\\n| green |'
    '| tea |\\n|---|\\n| black |'
    """
    parts: list[Block] = []
    tables: list[Table] = []
    for block in blocks:
        own = list(_tables(text, block)) if block.end - block.start > sizes.size else []
        tables += (table for table in own if _repeats_header(table, sizes))
        parts += _around(text, block, own)
    ends = [skip_space(text, table.end) for table in tables]
    spans = pack_blocks(text, parts, sizes, required=ends, without_overlap_at=ends)
    if not tables:
        return spans
    results: list[Span] = []
    number = position = 0
    for span in spans:
        while number < len(tables) and tables[number].end <= span.own:
            number += 1
        if span.own < position:
            continue
        table = tables[number] if number < len(tables) else None
        if table is not None and (rest := _rest(table, span.own)):
            cut = Cutter(rest, "source", sizes).rows()
            results += [Span(each.start, each.end, content=each.content) for each in cut]
            position = table.end
        else:
            results.append(span)
    return results


def _tables(text: str, block: Block) -> Sequence[Table]:
    """Return the pipe table of a block, or the lines of CSV or TSV in it."""
    start, end = block.start, block.end
    if block.kind == "table" and (table := PipeTable.read(text, start, end)):
        return [table]
    has_lines = block.kind in ("table", "paragraph") and text.count("\n", start, end) > 1
    return separated_tables(text, start, end) if has_lines else []


def _around(text: str, block: Block, tables: Sequence[Table]) -> Iterator[Block]:
    """Yield a block, or, of a paragraph, the tables in it and the paragraphs between them."""
    if block.kind == "table" or not tables:
        yield block
        return
    start = block.start
    for table in tables:
        if start < table.start:
            yield Block("paragraph", start, trim_space(text, start, table.start))
        yield Block("table", table.start, table.end)
        start = skip_space(text, table.end)
    if start < block.end:
        yield Block("paragraph", start, block.end)


def _repeats_header(table: Table, sizes: Sizes) -> bool:
    """Whether a table has to be cut, and its header takes up at most half of a chunk."""
    if not (table.rows and table.header and table.is_verbatim):
        return False
    if text_length(table.text[table.start : table.end], sizes.length_function) <= sizes.size:
        return False
    head = writer(table, "source").head.rstrip()
    return text_length(head, sizes.length_function) * 2 <= sizes.size


def _rest(table: Table, position: int) -> Table | None:
    """Return the part of a table from a row on; None if no row begins there."""
    first = bisect_left(table.rows, position, key=lambda row: row.start)
    if first == len(table.rows) or table.rows[first].start != position:
        return None
    rest = copy(table)
    rest.start, rest.rows = position, table.rows[first:]
    return rest
