"""Cuts a table into chunks: by rows, a row by cells, and a cell as text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from rag_splitters.span import Span
from rag_splitters.structure.tables.model import Cell, Table, joined
from rag_splitters.structure.tables.writers import Render, Writer, writer
from rag_splitters.text.boundaries import (
    boundary_before,
    lines,
    sentences,
    skip_space,
    trim_space,
    words,
)
from rag_splitters.text.excerpt import Excerpt, data_in, without_data
from rag_splitters.text.packing import pack
from rag_splitters.text.sizing import Sizes, sizer
from rag_splitters.text.structure import Structure

_LONGEST_REPEATED = 100  # characters of a cell over several rows in the parts of a row


class Cutter:
    """Cuts one table into chunks, each with the header before it.

    Parameters:
        table: the table.
        render: how to write the chunks.
        sizes: the sizes of chunks, and of the rows that the next chunk repeats.
        rows_per_chunk: maximum number of rows in a chunk; None: as many as fit.
    """

    def __init__(
        self, table: Table, render: Render, sizes: Sizes, rows_per_chunk: int | None = None
    ) -> None:
        self.table, self.render = table, render
        self.text = table.text
        self.size, self.overlap, _, _ = self.sizes = sizes
        self.positions = [boundary_before(self.text, row.start) for row in table.rows]
        self._sizer = sizer(sizes.length_function)
        self.is_limited = rows_per_chunk is not None
        self.limit = rows_per_chunk or max(len(table.rows), 1)

    @cached_property
    def writer(self) -> Writer:
        """The writer of its parts."""
        return writer(self.table, self.render)

    def spans(self) -> list[Span]:
        """Return the chunks in order. Together they span the whole table."""
        table = self.table
        if self.render == "source" and table.is_verbatim and len(table.rows) <= self.limit:
            whole = without_data(self.text[table.start : table.end])
            if self._fits(whole):
                return [self._span(table.start, table.end, 0, len(table.rows), whole)]
        if not table.rows:
            return self._header(table.end)
        if complete := self._labels_fit():
            self.positions[0] = table.start
        spans = [] if complete else self._header(self.positions[0])
        return spans + self.rows()

    def rows(self) -> list[Span]:
        """Return the chunks of whole rows.

        A row that is too big is cut by its cells, or else as text.
        """
        spans: list[Span] = []
        first = start = count = 0
        bare = -1  # the first of the pending rows that can only be cut as text
        while first < len(self.table.rows):
            stop = self._reach(start, first, max(first - start + 1, count))
            if stop == first and start < first:
                start += 1
                continue
            cells = [] if stop > first else self._cut_row(first)
            if bare >= 0 and (stop > first or cells):
                spans += self._as_text(self.positions[bare], self._end(first))
                bare = -1
            if stop > first:
                stop = self._balance(start, first, stop)
                begin, end = self.positions[start], self._end(stop)
                content = self.writer.content(start, stop)
                spans.append(self._span(begin, end, start, stop, content))
                count, first, start = stop - start, stop, self._again(start, stop)
            else:
                spans += cells
                bare = first if bare < 0 and not cells else bare
                first = start = first + 1
        return spans + (self._as_text(self.positions[bare], self._end(first)) if bare >= 0 else [])

    def _reach(self, start: int, first: int, guess: int) -> int:
        """Return the row before which a chunk from `start` ends; `first` if that does not fit."""
        content, fits = self.writer.content, self._fits
        limit = min(self.limit, len(self.table.rows) - start)
        reach = start + _largest(lambda count: fits(content(start, start + count)), limit, guess)
        return max(reach, first)

    def _balance(self, start: int, first: int, stop: int) -> int:
        """Return the row before which to end, so that the last chunk is not much shorter."""
        total = len(self.table.rows)
        if self.overlap or self.is_limited or not 0 < total - stop < (stop - start) // 2:
            return stop
        middle = (start + total + 1) // 2
        is_possible = first < middle < stop
        fits = is_possible and self._fits(self.writer.content(middle, total))
        return middle if fits else stop

    def _again(self, start: int, stop: int) -> int:
        """Return the first row that the chunk after `stop` repeats: as many as the overlap has."""
        if not self.overlap:
            return stop
        begin = stop
        empty = self._length(self.writer.head + self.writer.foot)
        while begin - 1 > start and stop - begin < self.limit - 1:
            content = self.writer.content(begin - 1, stop)
            if self._length(content) - empty > self.overlap:
                break
            begin -= 1
        return begin

    def _header(self, end: int) -> list[Span]:
        """Return chunks of the header alone, up to `end`."""
        start = self.table.start
        content = self.writer.header().strip()
        if content and self._fits(content):
            stop = trim_space(self.text, start, end)
            return [self._span(start, stop, 0, 0, content)]
        return self._as_text(start, end)

    def _cut_row(self, index: int) -> list[Span]:
        """Return one row, cut by cells under their labels; [] if not even that fits.

        Short cells that reach into the row from above are included next to its own cells.
        """
        row = self.table.rows[index]
        short = [cell for cell in row.carried if cell.end - cell.start <= _LONGEST_REPEATED]
        cells = sorted([*self.table.cells(row), *short], key=lambda cell: cell.column)
        contents = [self.writer.cell(cell) for cell in cells]
        labels = list(map(self._label, cells))
        begins = self._begins(index, cells)
        spans: list[Span] = []
        low, count = 0, 1
        while low < len(cells):
            count = _largest(
                lambda n, low=low: self._fits(  # type: ignore[misc]
                    self.writer.part(labels[low : low + n], contents[low : low + n])
                ),
                len(cells) - low,
                count,
            )
            start = begins[low]
            end = trim_space(self.text, start, begins[low + max(count, 1)])
            if count:
                high = low + count
                content = self.writer.part(labels[low:high], contents[low:high])
                content = content if content.strip() else self.text[start:end]
                if end > start:
                    spans.append(
                        self._span(start, end, index, index + 1, content, labels[low:high])
                    )
            elif cells[low].begin >= row.start:
                inner = self._inside(index, cells[low], labels[low], start, end)
                if not inner:
                    return []
                spans += inner
            low += max(count, 1)
        return spans

    def _labels_fit(self) -> bool:
        """Whether the chunks of the first row contain all labels of the header."""
        if self._fits(self.writer.content(0, 1)) or not self.table.header:
            return True
        cells = self.table.cells(self.table.rows[0])
        columns = {cell.column + shift for cell in cells for shift in range(cell.width)}
        return columns.issuperset(range(len(self.table.labels))) and bool(self._cut_row(0))

    def _inside(self, index: int, cell: Cell, label: str, start: int, end: int) -> list[Span]:
        """Return one cell, cut as text under its label; [] if the label leaves no room."""
        excerpt = self.table.excerpt(cell)

        def content(piece: str) -> str:
            return self.writer.part([label], [self.writer.escape(piece)])

        if 4 * self._length(content("")) > 3 * self.size:
            return []
        pieces = pack(
            _cell_structure(excerpt.text),
            Sizes(self.size, self.overlap, lambda p: self._length(content(p)) if p else 0),
        )
        contents = [content(piece.text_of(excerpt.text)) for piece in pieces] or [content("")]
        if not all(map(self._fits, contents)):
            return []
        starts = [start, *(boundary_before(self.text, excerpt.start(p.start)) for p in pieces[1:])]
        ends = [boundary_before(self.text, excerpt.end(p.end)) for p in pieces[:-1]]
        return [
            self._span(begin, stop, index, index + 1, each, [label])
            for begin, stop, each in zip(starts, [*ends, end], contents, strict=True)
        ]

    def _label(self, cell: Cell) -> str:
        return joined(self.writer.labels[cell.column : cell.column + cell.width])

    def _fits(self, content: str) -> bool:
        """Whether a chunk with this content is within the size."""
        return self._length(content) <= self.size

    def _length(self, content: str) -> int:
        """Return the length of this content, in the unit of the sizes."""
        return self._sizer(content).length(0, len(content))

    def _end(self, stop: int) -> int:
        """Return the end of the row before `stop`, with everything between it and the next row."""
        if stop == len(self.positions):
            return self.table.end
        return trim_space(self.text, self.positions[stop - 1], self.positions[stop])

    def _begins(self, index: int, cells: Sequence[Cell]) -> list[int]:
        """Return the start of each cell's part of the row, and the end of the last part.

        The part of a cell that reaches into the row from above is empty.
        """
        begins = [self._end(index + 1)]
        for cell in reversed(cells):
            is_own = cell.begin >= self.table.rows[index].start
            begins.append(boundary_before(self.text, cell.begin) if is_own else begins[-1])
        first = begins[-1]
        return [self.positions[index] if each == first else each for each in reversed(begins)]

    def _as_text(self, start: int, end: int) -> list[Span]:
        """Return the chunks of a part of the table that is cut as text, without the header."""
        excerpt = Excerpt.of(self.text, start, end, data_in(self.text, start, end))
        spans = pack(_cell_structure(excerpt.text), self.sizes)
        chunks = []
        for span in excerpt.spans(spans, self.text):
            first = max(bisect_right(self.positions, span.start) - 1, 0)
            stop = bisect_right(self.positions, span.end - 1)
            metadata = self._metadata(first, stop, [])
            chunks.append(Span(span.start, span.end, metadata, span.content, modality="table"))
        return chunks

    def _span(
        self,
        start: int,
        end: int,
        first: int,
        stop: int,
        content: str,
        labels: Sequence[str] | None = None,
    ) -> Span:
        """Return a chunk of the rows from `first` to before `stop`, with these columns."""
        start = skip_space(self.text, start)
        same = content == self.text[start:end]
        metadata = self._metadata(first, stop, labels)
        return Span(start, end, metadata, None if same else content, modality="table")

    def _metadata(self, first: int, stop: int, labels: Sequence[str] | None) -> dict[str, Any]:
        """Return the metadata of a chunk of these rows, or of the header if there are none."""
        metadata: dict[str, Any] = {}
        if stop > first:
            metadata |= {"row_start": first + 1, "row_end": stop}
        columns = self.table.labels if labels is None else labels
        if any(columns):
            metadata["columns"] = list(columns)
        if self.table.caption:
            metadata["caption"] = self.table.caption
        return metadata


def _cell_structure(text: str) -> Structure:
    """Return the structure of a cell's text."""
    return Structure(text, [lines(text), sentences(text), words(text)])


def _largest(fits: Callable[[int], bool], limit: int, guess: int) -> int:
    """Return the largest number from 0 to `limit` that fits, searching around a guess."""
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
