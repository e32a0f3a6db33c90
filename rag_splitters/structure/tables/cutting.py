"""Cuts a table: by rows, a row by cells, a cell inside."""

from __future__ import annotations

from bisect import bisect_right

from rag_splitters.span import Span
from rag_splitters.structure.tables.cells import cut_row, labels_fit
from rag_splitters.structure.tables.frame import Frame, largest
from rag_splitters.structure.tables.model import Table
from rag_splitters.structure.tables.writers import Render
from rag_splitters.text.boundaries import trim_space
from rag_splitters.text.excerpt import without_data
from rag_splitters.text.sizing import LengthFunction

__all__ = ["Cutter"]


class Cutter:
    """Cuts one table into chunks of a size, each with the header before it.

    Parameters:
        table: the table.
        render: how the chunks are written.
        size: the most that one measures.
        overlap: how much of a chunk's last rows the next one repeats.
        length_function: the unit of both.
        rows_per_chunk: the most rows in a chunk; None for as many as fit.
    """

    def __init__(
        self,
        table: Table,
        render: Render,
        *,
        size: int,
        overlap: int,
        length_function: LengthFunction,
        rows_per_chunk: int | None = None,
    ) -> None:
        self.table = table
        self.text = table.text
        self.render = render
        self.frame = Frame(table, size=size, overlap=overlap, length_function=length_function)
        self.limit = rows_per_chunk or max(len(table.rows), 1)

    def spans(self) -> list[Span]:
        """The chunks, in order; together they bound the whole table."""
        table = self.table
        if self.render == "source" and table.is_verbatim and len(table.rows) <= self.limit:
            whole = without_data(self.text[table.start : table.end])
            if self.frame.fits(whole):
                return [self.frame.span(table.start, table.end, 0, len(table.rows), whole)]
        self.frame.write(self.render)
        if not table.rows:
            return self._header(table.end)
        if complete := labels_fit(self.frame):
            self.frame.positions[0] = table.start
        spans = [] if complete else self._header(self.frame.positions[0])
        return spans + self._rows()

    def _rows(self) -> list[Span]:
        """Chunks of whole rows; a row that is too big by its cells, or else as text."""
        spans: list[Span] = []
        first = start = count = 0
        bare = -1  # the first of the rows that can only be cut as text
        while first < len(self.table.rows):
            stop = self._reach(start, first, max(first - start + 1, count))
            if stop == first and start < first:
                start += 1
                continue
            cells = [] if stop > first else cut_row(self.frame, first)
            if bare >= 0 and (stop > first or cells):
                spans += self._bare(bare, first)
                bare = -1
            if stop > first:
                begin, end = self.frame.positions[start], self.frame.end(stop)
                content = self.frame.writer.content(start, stop)
                spans.append(self.frame.span(begin, end, start, stop, content))
                count, first, start = stop - start, stop, self._again(start, stop)
            else:
                spans += cells
                bare = first if bare < 0 and not cells else bare
                first = start = first + 1
        return spans + (self._bare(bare, first) if bare >= 0 else [])

    def _reach(self, start: int, first: int, guess: int) -> int:
        """The row before which a chunk from `start` ends; `first` if that row does not fit."""
        content, fits = self.frame.writer.content, self.frame.fits
        limit = min(self.limit, len(self.table.rows) - start)
        found = largest(lambda count: fits(content(start, start + count)), limit, guess)
        return start + found if start + found > first else first

    def _again(self, start: int, stop: int) -> int:
        """The first row that the chunk behind `stop` repeats: as many as fit in the overlap."""
        if not self.frame.overlap:
            return stop
        known = 0
        begin = stop
        empty = self.frame.length(self.frame.writer.head + self.frame.writer.foot)
        while begin - 1 > start and stop - begin < self.limit - 1:
            known = self.frame.length(self.frame.writer.content(begin - 1, stop)) - empty
            if known > self.frame.overlap:
                break
            begin -= 1
        return begin

    def _bare(self, first: int, stop: int) -> list[Span]:
        """Rows cut as text, without header."""
        spans = self.frame.as_text(self.frame.positions[first], self.frame.end(stop))
        placed = []
        for span in spans:
            low = max(bisect_right(self.frame.positions, span.start) - 1, first)
            high = max(bisect_right(self.frame.positions, span.end - 1), low + 1)
            metadata = self.frame.metadata(low, high, [])
            placed.append(Span(span.start, span.end, metadata, span.content, modality="table"))
        return placed

    def _header(self, end: int) -> list[Span]:
        """The header as chunks of its own, up to `end`."""
        start = self.table.start
        content = self.frame.writer.header().strip()
        if content and self.frame.fits(content):
            stop = trim_space(self.text, start, end)
            return [Span(start, stop, self.frame.metadata(0, 0), content, modality="table")]
        spans = self.frame.as_text(start, end)
        metadata = self.frame.metadata(0, 0, [])
        return [
            Span(span.start, span.end, metadata, span.content, modality="table") for span in spans
        ]
