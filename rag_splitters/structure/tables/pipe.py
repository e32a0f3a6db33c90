"""Pipe tables, as GitHub's Markdown and Org have them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag_splitters.structure.tables.model import Cell, Row, Table
from rag_splitters.text.lines import LINE_BREAK

_PIPE = re.compile(r"(?<!\\)\|")
_DELIMITERS = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:[|+][ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")


@dataclass(eq=False, kw_only=True)
class PipeTable(Table):
    """A table whose cells are separated by pipes, with a header and an alignment row.

    A pipe after a backslash is text. A pipe without one ends the cell, also in a code span, as on
    GitHub.
    """

    delimiters: Row
    """The alignment row under the header."""

    @classmethod
    def read(cls, text: str, start: int, end: int) -> PipeTable | None:
        """Read the table that begins with this header row; None if it is not a table."""
        opening = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
        depth = text.count(">", opening, start)
        prefix = re.compile(rf"[ \t]*(?:>[ \t]*){{0,{depth}}}")
        rows: list[Row] = []
        verbatim = True
        position = start
        for line in (*LINE_BREAK.finditer(text, start, end), None):
            stop = line.start() if line else end
            first = position
            if match := prefix.match(text, position, stop):
                first = match.end()
                verbatim = verbatim and match.group() in ("", " ", "  ", "   ")
            if text[first:stop].strip():
                rows.append(Row(first, first + len(text[first:stop].rstrip())))
            position = line.end() if line else end
        if len(rows) < 2 or not _DELIMITERS.match(text[rows[1].start : rows[1].end]):
            return None
        header, delimiters, body = rows[:1], rows[1], rows[2:]
        return cls(
            text, start, rows[-1].end, header, body, is_verbatim=verbatim, delimiters=delimiters
        )

    @property
    def head(self) -> Sequence[Row]:
        """The rows to repeat before others: the header and the alignment row."""
        return (*self.header, self.delimiters)

    def cells(self, row: Row) -> Sequence[Cell]:
        text, begin = self.text, row.start
        cells: list[Cell] = []
        for pipe in (*_PIPE.finditer(text, row.start, row.end), None):
            stop = pipe.start() if pipe else row.end
            content = text[begin:stop]
            edge = not content.strip() and (stop == row.start or pipe is None)
            if not edge or (pipe and stop > row.start):
                start = begin + len(content) - len(content.lstrip())
                end = max(begin + len(content.rstrip()), start)
                cells.append(Cell(begin, min(start, end), end, len(cells)))
            begin = pipe.end() if pipe else stop
        return cells

    def escape(self, cell: Cell) -> str:
        return "\\|"
