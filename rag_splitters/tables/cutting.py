"""Cuts a table: by rows, a row by cells, a cell inside."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from rag_splitters.boundaries import lines, sentences, skip_space, trim_space, words
from rag_splitters.packing import pack
from rag_splitters.sizing import LengthFunction, sizer
from rag_splitters.span import Span
from rag_splitters.tables.excerpt import Excerpt, boundary_before, data_in, without_data
from rag_splitters.tables.model import Cell, Table
from rag_splitters.tables.writers import Render, writer

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
        self.size = size
        self.overlap = overlap
        self.length_function = length_function
        self.limit = rows_per_chunk or max(len(table.rows), 1)
        self._sizer = sizer(length_function)

    def spans(self) -> list[Span]:
        """The chunks, in order; together they bound the whole table."""
        table = self.table
        if self.render == "source" and table.is_verbatim and len(table.rows) <= self.limit:
            whole = without_data(self.text[table.start : table.end])
            if self._fits(whole):
                return [self._span(table.start, table.end, 0, len(table.rows), whole)]
        self.writer = writer(table, self.render)
        self.positions = [boundary_before(self.text, row.start) for row in table.rows]
        if not table.rows:
            return self._header(table.end)
        if complete := self._labels_fit():
            self.positions[0] = table.start
        spans = [] if complete else self._header(self.positions[0])
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
            cells = [] if stop > first else self._cells(first)
            if bare >= 0 and (stop > first or cells):
                spans += self._bare(bare, first)
                bare = -1
            if stop > first:
                end, content = self._end(stop), self.writer.content(start, stop)
                spans.append(self._span(self.positions[start], end, start, stop, content))
                count, first, start = stop - start, stop, self._again(start, stop)
            else:
                spans += cells
                bare = first if bare < 0 and not cells else bare
                first = start = first + 1
        return spans + (self._bare(bare, first) if bare >= 0 else [])

    def _reach(self, start: int, first: int, guess: int) -> int:
        """The row before which a chunk from `start` ends; `first` if that row does not fit."""
        least, most = first - start, min(self.limit, len(self.table.rows) - start)
        found = _most(
            lambda count: self._fits(self.writer.content(start, start + count)), most, guess
        )
        return start + found if found > least else first

    def _again(self, start: int, stop: int) -> int:
        """The first row that the chunk behind `stop` repeats: as many as fit in the overlap."""
        if not self.overlap:
            return stop
        known = 0
        begin = stop
        empty = self._length(self.writer.head + self.writer.foot)
        while begin - 1 > start and stop - begin < self.limit - 1:
            known = self._length(self.writer.content(begin - 1, stop)) - empty
            if known > self.overlap:
                break
            begin -= 1
        return begin

    def _cells(self, index: int) -> list[Span]:
        """One row, cut by cells under their labels; [] where not even that fits."""
        row = self.table.rows[index]
        cells = self.table.cells(row)
        written = [self.writer.cell(cell) for cell in cells]
        labels = [self._label(cell, each) for cell, each in zip(cells, written, strict=True)]
        begins = self._begins(index, cells)
        spans: list[Span] = []
        low, count = 0, 1
        while low < len(cells):
            rest, titles = written[low:], labels[low:]
            count = _most(
                lambda n, t=titles, r=rest: self._fits(self.writer.part(t[:n], r[:n])),  # type: ignore[misc]
                len(rest),
                count,
            )
            start, end = begins[low], trim_space(self.text, begins[low], begins[low + max(count, 1)])
            if count:
                high = low + count
                content = self.writer.part(labels[low:high], written[low:high])
                content = content if content.strip() else self.text[start:end]
                if end > start:
                    spans.append(self._span(start, end, index, index + 1, content, labels[low:high]))
            else:
                inner = self._inside(index, cells[low], labels[low], start, end)
                if not inner:
                    return []
                spans += inner
            low += max(count, 1)
        return spans

    def _inside(self, index: int, cell: Cell, label: str, start: int, end: int) -> list[Span]:
        """One cell, cut as text under its label; [] where the label leaves no room."""
        excerpt = self.table.excerpt(cell)

        def content(piece: str) -> str:
            return self.writer.part([label], [self.writer.escape(piece)])

        if not self._fits(2 * content("")):
            return []
        pieces = pack(
            excerpt.text,
            [lines(excerpt.text), sentences(excerpt.text), words(excerpt.text)],
            size=self.size,
            overlap=self.overlap,
            length_function=lambda piece: self._length(content(piece)) if piece else 0,
        )
        contents = [content(piece.text_of(excerpt.text)) for piece in pieces]
        if not all(map(self._fits, contents)):
            return []
        starts = [start, *(boundary_before(self.text, excerpt.start(p.start)) for p in pieces[1:])]
        ends = [boundary_before(self.text, excerpt.end(p.end)) for p in pieces[:-1]]
        return [
            self._span(begin, stop, index, index + 1, each, [label])
            for begin, stop, each in zip(starts, [*ends, end], contents, strict=True)
        ]

    def _bare(self, first: int, stop: int) -> list[Span]:
        """Rows cut as text, without header."""
        spans = self._as_text(self.positions[first], self._end(stop))
        placed = []
        for span in spans:
            low = max(bisect_right(self.positions, span.start) - 1, first)
            high = max(bisect_right(self.positions, span.end - 1), low + 1)
            placed.append(Span(span.start, span.end, self._metadata(low, high), span.content))
        return placed

    def _header(self, end: int) -> list[Span]:
        """The header as chunks of its own, up to `end`."""
        start = self.table.start
        content = self.writer.header().strip()
        if content and self._fits(content):
            stop = trim_space(self.text, start, end)
            return [Span(start, stop, self._metadata(0, 0), content)]
        spans = self._as_text(start, end)
        return [Span(s.start, s.end, self._metadata(0, 0), s.content) for s in spans]

    def _as_text(self, start: int, end: int) -> list[Span]:
        excerpt = Excerpt.of(self.text, start, end, data_in(self.text, start, end))
        text = excerpt.text
        spans = pack(
            text,
            [lines(text), sentences(text), words(text)],
            size=self.size,
            overlap=self.overlap,
            length_function=self.length_function,
        )
        return excerpt.spans(spans, self.text)

    def _labels_fit(self) -> bool:
        """Do all of the header's labels stand in the chunks of the first row?"""
        if self._fits(self.writer.content(0, 1)):
            return True
        cells = self.table.cells(self.table.rows[0])
        columns = {cell.column + shift for cell in cells for shift in range(cell.width)}
        if not self.table.header:
            return True
        if not set(range(len(self.table.labels))) <= columns:
            return False
        whole = all(self._label(c, self.writer.cell(c)) == self._names(c) for c in cells)
        return whole and bool(self._cells(0))

    def _label(self, cell: Cell, written: str) -> str:
        """The label above a cell, shortened to half of the room where they do not fit together."""
        label = self._names(cell)
        if self._fits(self.writer.part([label], [written])):
            return label
        parts = label.split(" ")
        frame = self._length(self.writer.part([""], [""]))
        most = (self.size - frame) // 2 + frame

        def fits(count: int) -> bool:
            return self._length(self.writer.part([" ".join(parts[:count])], [""])) <= most

        return " ".join(parts[: _most(fits, len(parts), 4)])

    def _names(self, cell: Cell) -> str:
        labels = self.writer.labels[cell.column : cell.column + cell.width]
        return " / ".join(dict.fromkeys(filter(None, labels)))

    def _begins(self, index: int, cells: Sequence[Cell]) -> list[int]:
        """Where each cell's part of the row begins, and where the last one's ends."""
        inner = [boundary_before(self.text, cell.begin) for cell in cells[1:]]
        return [self.positions[index], *inner, self._end(index + 1)]

    def _end(self, stop: int) -> int:
        """Where the row before `stop` ends, with all that stands between it and the next."""
        if stop == len(self.positions):
            return self.table.end
        return trim_space(self.text, self.positions[stop - 1], self.positions[stop])

    def _span(
        self,
        start: int,
        end: int,
        first: int,
        stop: int,
        content: str,
        labels: Sequence[str] | None = None,
    ) -> Span:
        start = skip_space(self.text, start)
        same = content == self.text[start:end]
        metadata = self._metadata(first, stop, labels)
        return Span(start, end, metadata, None if same else content)

    def _metadata(
        self, first: int, stop: int, labels: Sequence[str] | None = None
    ) -> dict[str, Any]:
        metadata: dict[str, Any] = {"modality": "table"}
        if stop > first:
            metadata |= {"row_start": first + 1, "row_end": stop}
        columns = self.table.labels if labels is None else labels
        if any(columns):
            metadata["columns"] = list(columns)
        if self.table.caption:
            metadata["caption"] = self.table.caption
        return metadata

    def _fits(self, content: str) -> bool:
        return self._length(content) <= self.size

    def _length(self, content: str) -> int:
        return self._sizer(content).length(0, len(content))


def _most(fits: Callable[[int], bool], limit: int, guess: int) -> int:
    """The most, from 0 to `limit`, that fits; looked for around a guess."""
    low, high, step = 0, limit + 1, 1
    probe = min(max(guess, 1), limit)
    while high - low > 1:
        if fits(probe):
            low, probe = probe, probe + step
        else:
            high, probe = probe, probe - step
        step *= 2
        if not low < probe < high:
            probe = (low + high) // 2
    return low

