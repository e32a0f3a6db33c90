"""Cuts a table into chunks: by rows, a row by cells, and a cell as text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from rag_splitters.span import Span
from rag_splitters.structure.tables.model import Cell, Row, Table
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
        self.table = table
        self.text = table.text
        self.render = render
        self.frame = _Frame(table, sizes)
        self.is_limited = rows_per_chunk is not None
        self.limit = rows_per_chunk or max(len(table.rows), 1)

    def spans(self) -> list[Span]:
        """Return the chunks in order. Together they span the whole table."""
        table = self.table
        if self.render == "source" and table.is_verbatim and len(table.rows) <= self.limit:
            whole = without_data(self.text[table.start : table.end])
            if self.frame.fits(whole):
                return [self.frame.span(table.start, table.end, 0, len(table.rows), whole)]
        self.frame.write(self.render)
        if not table.rows:
            return self._header(table.end)
        if complete := _labels_fit(self.frame):
            self.frame.positions[0] = table.start
        spans = [] if complete else self._header(self.frame.positions[0])
        return spans + self._rows()

    def spans_after_header(self) -> list[Span]:
        """Return the chunks of the rows, if the header stands in an earlier chunk of its own."""
        self.frame.write(self.render)
        return self._rows()

    def _rows(self) -> list[Span]:
        """Chunks of whole rows. A row that is too big is cut by its cells, or else as text."""
        spans: list[Span] = []
        first = start = count = 0
        bare = -1  # the first of the pending rows that can only be cut as text
        while first < len(self.table.rows):
            stop = self._reach(start, first, max(first - start + 1, count))
            if stop == first and start < first:
                start += 1
                continue
            cells = [] if stop > first else _cut_row(self.frame, first)
            if bare >= 0 and (stop > first or cells):
                spans += self._bare(bare, first)
                bare = -1
            if stop > first:
                stop = self._balance(start, first, stop)
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
        """The row before which a chunk from `start` ends, or `first` if that row does not fit."""
        content, fits = self.frame.writer.content, self.frame.fits
        limit = min(self.limit, len(self.table.rows) - start)
        reach = start + _largest(lambda count: fits(content(start, start + count)), limit, guess)
        return max(reach, first)

    def _balance(self, start: int, first: int, stop: int) -> int:
        """The row before which to end, so that the last chunk is not much shorter than this one."""
        total = len(self.table.rows)
        if self.frame.overlap or self.is_limited or not 0 < total - stop < (stop - start) // 2:
            return stop
        middle = (start + total + 1) // 2
        is_possible = first < middle < stop
        fits = is_possible and self.frame.fits(self.frame.writer.content(middle, total))
        return middle if fits else stop

    def _again(self, start: int, stop: int) -> int:
        """The first row that the chunk after `stop` repeats, as many as fit in the overlap."""
        if not self.frame.overlap:
            return stop
        begin = stop
        empty = self.frame.length(self.frame.writer.head + self.frame.writer.foot)
        while begin - 1 > start and stop - begin < self.limit - 1:
            content = self.frame.writer.content(begin - 1, stop)
            if self.frame.length(content) - empty > self.frame.overlap:
                break
            begin -= 1
        return begin

    def _bare(self, first: int, stop: int) -> list[Span]:
        """Rows cut as text, without the header."""
        spans = self.frame.as_text(self.frame.positions[first], self.frame.end(stop))
        chunks = []
        for span in spans:
            low = max(bisect_right(self.frame.positions, span.start) - 1, first)
            high = max(bisect_right(self.frame.positions, span.end - 1), low + 1)
            metadata = self.frame.metadata(low, high, [])
            chunks.append(Span(span.start, span.end, metadata, span.content, modality="table"))
        return chunks

    def _header(self, end: int) -> list[Span]:
        """Chunks of the header alone, up to `end`."""
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


def _cut_row(frame: _Frame, index: int) -> list[Span]:
    """One row, cut by cells under their labels; [] if not even that fits.

    Cells that reach into the row from above are included next to its own cells if they fit.
    """
    row = frame.table.rows[index]
    cells = [*frame.table.cells(row), *frame.carried(row)]
    cells.sort(key=lambda cell: cell.column)
    contents = [frame.writer.cell(cell) for cell in cells]
    labels = [_label(frame, cell, each) for cell, each in zip(cells, contents, strict=True)]
    begins = frame.begins(index, cells)
    spans: list[Span] = []
    low, count = 0, 1
    while low < len(cells):
        count = _largest(
            lambda n, low=low: frame.fits(  # type: ignore[misc]
                frame.writer.part(labels[low : low + n], contents[low : low + n])
            ),
            len(cells) - low,
            count,
        )
        start = begins[low]
        end = trim_space(frame.text, start, begins[low + max(count, 1)])
        if count:
            high = low + count
            content = frame.writer.part(labels[low:high], contents[low:high])
            content = content if content.strip() else frame.text[start:end]
            if end > start:
                spans.append(frame.span(start, end, index, index + 1, content, labels[low:high]))
        elif cells[low].begin >= row.start:
            inner = _inside(frame, index, cells[low], labels[low], start, end)
            if not inner:
                return []
            spans += inner
        low += max(count, 1)
    return spans


def _labels_fit(frame: _Frame) -> bool:
    """Whether the chunks of the first row contain all labels of the header."""
    if frame.fits(frame.writer.content(0, 1)):
        return True
    cells = frame.table.cells(frame.table.rows[0])
    columns = {cell.column + shift for cell in cells for shift in range(cell.width)}
    if not frame.table.header:
        return True
    if not set(range(len(frame.table.labels))) <= columns:
        return False
    whole = all(_label(frame, c, frame.writer.cell(c)) == _names(frame, c) for c in cells)
    return whole and bool(_cut_row(frame, 0))


def _cell_structure(text: str) -> Structure:
    """Return the structure of a cell's text."""
    return Structure(text, [lines(text), sentences(text), words(text)])


def _inside(frame: _Frame, index: int, cell: Cell, label: str, start: int, end: int) -> list[Span]:
    """One cell, cut as text under its label; [] if the label leaves no room."""
    excerpt = frame.table.excerpt(cell)

    def content(piece: str) -> str:
        return frame.writer.part([label], [frame.writer.escape(piece)])

    if 4 * frame.length(content("")) > 3 * frame.size:
        return []
    pieces = pack(
        _cell_structure(excerpt.text),
        Sizes(
            frame.size,
            frame.overlap,
            lambda piece: frame.length(content(piece)) if piece else 0,
        ),
    )
    contents = [content(piece.text_of(excerpt.text)) for piece in pieces] or [content("")]
    if not all(map(frame.fits, contents)):
        return []
    starts = [start, *(boundary_before(frame.text, excerpt.start(p.start)) for p in pieces[1:])]
    ends = [boundary_before(frame.text, excerpt.end(p.end)) for p in pieces[:-1]]
    return [
        frame.span(begin, stop, index, index + 1, each, [label])
        for begin, stop, each in zip(starts, [*ends, end], contents, strict=True)
    ]


def _label(frame: _Frame, cell: Cell, content: str) -> str:
    """The label above a cell, shortened to half of the room if both do not fit."""
    label = _names(frame, cell)
    if frame.fits(frame.writer.part([label], [content])):
        return label
    parts = label.split(" ")
    markup = frame.length(frame.writer.part([""], [""]))
    most = (frame.size - markup) // 2 + markup

    def fits(count: int) -> bool:
        return frame.length(frame.writer.part([" ".join(parts[:count])], [""])) <= most

    return " ".join(parts[: _largest(fits, len(parts), 4)])


def _names(frame: _Frame, cell: Cell) -> str:
    labels = frame.writer.labels[cell.column : cell.column + cell.width]
    return " / ".join(dict.fromkeys(filter(None, labels)))


class _Frame:
    """What all steps of cutting a table share: the table, its writer, the sizes, the positions.

    Parameters: those of `Cutter`, except `rows_per_chunk`.
    """

    writer: Writer

    def __init__(self, table: Table, sizes: Sizes) -> None:
        self.table = table
        self.text = table.text
        self.size, self.overlap, _, _ = self.sizes = sizes
        self.positions = [boundary_before(self.text, row.start) for row in table.rows]
        self._sizer = sizer(sizes.length_function)
        self._fitting: dict[int, bool] = {}  # of cells over several rows, by where they begin

    def write(self, render: Render) -> None:
        """Choose how the table is written."""
        self.writer = writer(self.table, render)

    def fits(self, content: str) -> bool:
        """Whether a chunk with this content is within the size."""
        return self.length(content) <= self.size

    def length(self, content: str) -> int:
        """The length of this content, in the unit of the sizes."""
        return self._sizer(content).length(0, len(content))

    def end(self, stop: int) -> int:
        """The end of the row before `stop`, with everything between it and the next row."""
        if stop == len(self.positions):
            return self.table.end
        return trim_space(self.text, self.positions[stop - 1], self.positions[stop])

    def begins(self, index: int, cells: Sequence[Cell]) -> list[int]:
        """The start of each cell's part of the row, and the end of the last part.

        The part of a cell that reaches into the row from above is empty.
        """
        begins = [self.end(index + 1)]
        for cell in reversed(cells):
            is_own = cell.begin >= self.table.rows[index].start
            begins.append(boundary_before(self.text, cell.begin) if is_own else begins[-1])
        first = begins[-1]
        return [self.positions[index] if each == first else each for each in reversed(begins)]

    def carried(self, row: Row) -> list[Cell]:
        """The cells of rows above that reach into this one, except those too big for a chunk."""
        for cell in row.carried:
            if cell.begin not in self._fitting:
                part = self.writer.part([""], [self.writer.cell(cell)])
                self._fitting[cell.begin] = self.fits(part)
        return [cell for cell in row.carried if self._fitting[cell.begin]]

    def as_text(self, start: int, end: int) -> list[Span]:
        """A part of the table cut as text."""
        excerpt = Excerpt.of(self.text, start, end, data_in(self.text, start, end))
        text = excerpt.text
        return excerpt.spans(pack(_cell_structure(text), self.sizes), self.text)

    def span(
        self,
        start: int,
        end: int,
        first: int,
        stop: int,
        content: str,
        labels: Sequence[str] | None = None,
    ) -> Span:
        """A chunk of the rows from `first` to before `stop`, of the columns with these labels."""
        start = skip_space(self.text, start)
        same = content == self.text[start:end]
        metadata = self.metadata(first, stop, labels)
        return Span(start, end, metadata, None if same else content, modality="table")

    def metadata(
        self, first: int, stop: int, labels: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The metadata of a chunk of these rows, or of the header if there are none."""
        metadata: dict[str, Any] = {}
        if stop > first:
            metadata |= {"row_start": first + 1, "row_end": stop}
        columns = self.table.labels if labels is None else labels
        if any(columns):
            metadata["columns"] = list(columns)
        if self.table.caption:
            metadata["caption"] = self.table.caption
        return metadata


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
