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
from rag_splitters.text.sizing import Sizes


def pack_with_headers(text: str, blocks: Sequence[Block], sizes: Sizes) -> list[Span]:
    """Pack blocks into spans; a span that begins inside a table has the table's header before it.

    Only Markdown tables outside of lists and quotes, and lines of CSV or TSV, have a header to
    repeat, and only if it takes up at most half of a chunk.

    Parameters:
        text: the text.
        blocks: its blocks, without dropped ones.
        sizes: the sizes of chunks and overlaps.

    >>> from rag_splitters.structure.blocks import read_blocks
    >>> text = "| tea |\\n|---|\\n| green |\\n| black |"
    >>> for span in pack_with_headers(text, read_blocks(text, "markdown"), Sizes(30)):
    ...     print(repr(span.text_of(text)))
    '| tea |\\n|---|\\n| green |'
    '| tea |\\n|---|\\n| black |'
    """
    blocks = list(_with_tables(text, blocks, sizes))
    tables = list(_long_tables(text, blocks, sizes))
    ends = [skip_space(text, table.end) for table in tables]
    spans = pack_blocks(text, blocks, sizes, required=ends, without_overlap_at=ends)
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


def _with_tables(text: str, blocks: Sequence[Block], sizes: Sizes) -> Iterator[Block]:
    """Yield the blocks; lines of CSV or TSV in a long paragraph are tables."""
    for block in blocks:
        start = block.start
        if (
            block.kind == "paragraph"
            and block.end - start > sizes.size
            and _may_be_data(text, block)
        ):
            for table in separated_tables(text, start, block.end):
                if start < table.start:
                    yield Block("paragraph", start, trim_space(text, start, table.start))
                yield Block("table", table.start, table.end)
                start = skip_space(text, table.end)
        if start == block.start:
            yield block
        elif start < block.end:
            yield Block("paragraph", start, block.end)


def _may_be_data(text: str, block: Block) -> bool:
    """Whether hardly any comma or semicolon of a block is followed by a space."""
    inside = text[block.start : block.end]
    marks = inside.count(",") + inside.count(";")
    spaced = sum(map(inside.count, (", ", ",\n", "; ", ";\n")))
    return inside.count("\n") > 2 and ("\t" in inside or 2 * spaced < marks)


def _long_tables(text: str, blocks: Sequence[Block], sizes: Sizes) -> Iterator[Table]:
    """Yield the tables that do not fit into a chunk, and whose header leaves room for rows."""
    measure = None
    for block in blocks:
        if block.kind != "table":
            continue
        measure = measure or sizes.measure(text)
        if measure.length(block.start, block.end) <= sizes.size:
            continue
        table: Table | None = PipeTable.read(text, block.start, block.end)
        table = table or next(iter(separated_tables(text, block.start, block.end)), None)
        if table and table.rows and table.header and table.is_verbatim:
            head = writer(table, "source").head.rstrip()
            if sizes.measure(head).length(0, len(head)) * 2 <= sizes.size:
                yield table


def _rest(table: Table, position: int) -> Table | None:
    """Return the part of a table from a row on; None if no row begins there."""
    first = bisect_left(table.rows, position, key=lambda row: row.start)
    if first == len(table.rows) or table.rows[first].start != position:
        return None
    rest = copy(table)
    rest.start, rest.rows = position, table.rows[first:]
    return rest
