"""The tables of a text: where they are, and their headers in each chunk that they are cut into."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rag_splitters.span import Span
from rag_splitters.structure.blocks import Block, Format, detect_format, read_blocks
from rag_splitters.structure.blocks.layout import pack_blocks
from rag_splitters.structure.html.tables import HtmlTable, html_tables
from rag_splitters.structure.html.tags import plain_html
from rag_splitters.structure.html.tree import parse_html
from rag_splitters.structure.tables.cutting import Cutter
from rag_splitters.structure.tables.model import Table
from rag_splitters.structure.tables.pipe import PipeTable
from rag_splitters.structure.tables.separated import (
    SeparatedTable,
    delimiter_of,
    separated_tables,
)
from rag_splitters.structure.tables.writers import writer
from rag_splitters.text.boundaries import boundary_after, boundary_before, skip_space, trim_space
from rag_splitters.text.lines import LINE_BREAK
from rag_splitters.text.sizing import Sizes, text_length

_MARKS = re.compile(r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+[ \t>]*)*")
_CLOSING = re.compile(r"</table\s{0,100}>", re.IGNORECASE)


def find_tables(
    text: str,
    format: Format = "auto",
    blocks: Sequence[Block] | None = None,
) -> list[Table]:
    """Find the tables of a text: pipe tables, HTML tables, and lines of CSV or TSV.

    Tables in code are code. A table inside another one belongs to it.

    Parameters:
        format: the format of the text; "csv" and "tsv" make the whole text one table.
        blocks: its blocks, if they have been read already.

    Returns: the tables in order; they do not overlap.

    Raises ValueError if the format is unknown.

    >>> table = find_tables("| a | b |\\n|---|---|\\n| 1 | 2 |")[0]
    >>> table.labels, table.values(table.rows[0])
    (['a', 'b'], ['1', '2'])
    """
    text_format = detect_format(text, None, format)
    if text_format in ("csv", "tsv"):
        delimiter = delimiter_of(text, ",;" if text_format == "csv" else "\t")
        table = SeparatedTable.read(text, delimiter)
        return [table] if table else []
    if text_format in ("code", "log", "subtitles"):
        return []
    may_have_pipes = text_format == "text" and "|" in text and "---" in text
    if text_format not in ("html", "markdown") and not may_have_pipes:
        return list(separated_tables(text, 0, len(text)))
    if blocks is None:
        blocks = read_blocks(text, text_format)
    if text_format == "html":
        return [table for block in blocks for table in _in_html(text, block)]
    return list(_in_markdown(text, blocks))


def _in_markdown(text: str, blocks: Sequence[Block]) -> Iterator[Table]:
    position = hopeless = 0
    for block in blocks:
        if block.start < position:
            continue
        tables = list(_tables_of(text, block))
        if block.kind in ("table", "html", "image"):
            start = tables[-1].end if tables else block.start
            opening = text[start : block.end].lower().find("<table")
            if opening >= 0 and start + opening >= hopeless:  # a blank line ended the HTML block
                closing = _CLOSING.search(text, block.end)
                hopeless = closing.end() if closing else len(text)
                tables += _tables_in(text, start + opening, hopeless)
        yield from tables
        position = tables[-1].end if tables else position


def _tables_of(text: str, block: Block) -> Sequence[Table]:
    """Return the tables of a block: a pipe table, HTML tables, or lines of CSV or TSV."""
    if block.kind == "table" and (table := _pipe_table(text, block)):
        return [table]
    if tables := _in_html(text, block):
        return tables
    start, end = block.start, block.end
    may_have_rows = block.kind in ("table", "paragraph") and LINE_BREAK.search(text, start, end)
    return separated_tables(text, start, end) if may_have_rows else []


def _pipe_table(text: str, block: Block) -> Table | None:
    """Return the pipe table of a block. List and quote marks may precede its header row."""
    marks = _MARKS.match(text, block.start, block.end)
    if marks is None or not marks[0].strip():
        return PipeTable.read(text, block.start, block.end)
    table = PipeTable.read(text, marks.end(), block.end)
    return table and replace(table, start=block.start, is_verbatim=False)


def _in_html(text: str, block: Block) -> list[Table]:
    """Return the tables of a block. Tags around a table belong to it if there is nothing else."""
    may_have_tables = block.kind in ("table", "html", "image")
    if not may_have_tables or "<table" not in text[block.start : block.end].lower():
        return []
    tables = _tables_in(text, block.start, block.end)
    if tables:
        first, last = tables[0], tables[-1]
        if not plain_html(text, block.start, first.start).text.strip():
            first.start = boundary_before(text, block.start)
        if not plain_html(text, last.end, block.end).text.strip():
            last.end = boundary_after(text, block.end)
    return list(tables)


def _tables_in(text: str, start: int, end: int) -> list[HtmlTable]:
    return list(html_tables(parse_html(text, start, end), start, end))


def pack_with_headers(text: str, blocks: Sequence[Block], sizes: Sizes) -> list[Span]:
    """Pack blocks into spans; a span that begins inside a table has the table's header before it.

    Only Markdown tables outside of lists and quotes, and lines of CSV or TSV, have a header to
    repeat, and only if it takes up at most half of a chunk.

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
        own = _tables_of(text, block) if block.end - block.start > sizes.size else []
        tables += (table for table in own if _repeats_header(table, sizes))
        parts += _around(text, block, own)
    ends = [skip_space(text, table.end) for table in tables]
    spans = pack_blocks(text, parts, sizes, required=ends, without_overlap_at=ends)
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
    return replace(table, start=position, rows=table.rows[first:])
