"""Finds the tables of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rag_splitters.structure.blocks import Block, Format, detect_format, read_blocks
from rag_splitters.structure.html.tables import HtmlTable, html_tables
from rag_splitters.structure.html.tags import plain_html
from rag_splitters.structure.html.tree import parse_html
from rag_splitters.structure.tables.model import Table
from rag_splitters.structure.tables.pipe import PipeTable
from rag_splitters.structure.tables.separated import SeparatedTable, separated_tables
from rag_splitters.text.boundaries import boundary_after, boundary_before

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
        text: any text.
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
        first = text.lstrip().partition("\n")[0]
        delimiter = max(",;", key=first.count) if text_format == "csv" else "\t"
        table = SeparatedTable.read(text, 0, len(text), delimiter)
        return [table] if table else []
    if text_format in ("code", "log", "subtitles"):
        return []
    may_have_pipes = text_format == "text" and "\n|" in text and "---" in text
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
        tables: list[Table] = []
        if block.kind == "table" and (table := _pipe_table(text, block)):
            tables.append(table)
        elif block.kind in ("table", "html", "image"):
            tables.extend(_in_html(text, block))
            start = tables[-1].end if tables else block.start
            opening = text[start : block.end].lower().find("<table")
            if opening >= 0 and start + opening >= hopeless:  # a blank line ended the HTML block
                closing = _CLOSING.search(text, block.end)
                hopeless = closing.end() if closing else len(text)
                tables.extend(_tables_in(text, start + opening, hopeless))
        elif block.kind == "paragraph":
            tables.extend(separated_tables(text, block.start, block.end))
        yield from tables
        position = tables[-1].end if tables else position


def _pipe_table(text: str, block: Block) -> Table | None:
    """Return the pipe table of a block. List and quote marks may precede its header row."""
    line = _MARKS.match(text, block.start, block.end)
    marks = line.group() if line else ""
    width = len(marks) if marks.strip() else 0
    table = PipeTable.read(text, block.start + width, block.end)
    if table and width:
        table.start, table.is_verbatim = block.start, False
    return table


def _in_html(text: str, block: Block) -> list[Table]:
    """Return the tables of a block. Tags around a table belong to it if there is nothing else."""
    if block.kind not in ("table", "html", "image"):
        return []
    if "<table" not in text[block.start : block.end].lower():
        return []
    tables = _tables_in(text, block.start, block.end)
    if tables and block.kind == "table":
        first, last = tables[0], tables[-1]
        if not plain_html(text, block.start, first.start).text.strip():
            first.start = boundary_before(text, block.start)
        if not plain_html(text, last.end, block.end).text.strip():
            last.end = boundary_after(text, block.end)
    return list(tables)


def _tables_in(text: str, start: int, end: int) -> list[HtmlTable]:
    return list(html_tables(parse_html(text, start, end), start, end))
