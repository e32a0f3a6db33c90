"""Frame: what the steps of cutting a table share: sizes, positions, metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rag_splitters.span import Span
from rag_splitters.structure.tables.model import Cell, Row, Table
from rag_splitters.structure.tables.writers import Render, Writer, writer
from rag_splitters.text.boundaries import lines, sentences, skip_space, trim_space, words
from rag_splitters.text.excerpt import Excerpt, boundary_before, data_in
from rag_splitters.text.packing import pack
from rag_splitters.text.sizing import LengthFunction, sizer

__all__ = ["Frame", "largest"]


class Frame:
    """A table that is to be cut, with its writer, the sizes, and where each row begins.

    Parameters: those of `Cutter`, but for `rows_per_chunk`.
    """

    writer: Writer

    def __init__(
        self, table: Table, *, size: int, overlap: int, length_function: LengthFunction
    ) -> None:
        self.table = table
        self.text = table.text
        self.size = size
        self.overlap = overlap
        self.length_function = length_function
        self.positions = [boundary_before(self.text, row.start) for row in table.rows]
        self._sizer = sizer(length_function)
        self._fitting: dict[int, bool] = {}  # of cells over several rows, by where they begin

    def write(self, render: Render) -> None:
        """Have the table written in this way."""
        self.writer = writer(self.table, render)

    def fits(self, content: str) -> bool:
        """Does this measure no more than a chunk may?"""
        return self.length(content) <= self.size

    def length(self, content: str) -> int:
        """What this measures."""
        return self._sizer(content).length(0, len(content))

    def end(self, stop: int) -> int:
        """Where the row before `stop` ends, with all that stands between it and the next."""
        if stop == len(self.positions):
            return self.table.end
        return trim_space(self.text, self.positions[stop - 1], self.positions[stop])

    def begins(self, index: int, cells: Sequence[Cell]) -> list[int]:
        """Where each cell's part of the row begins, and where the last one's ends.

        The part of a cell that reaches into the row from above is empty.
        """
        begins = [self.end(index + 1)]
        for cell in reversed(cells):
            is_own = cell.begin >= self.table.rows[index].start
            begins.append(boundary_before(self.text, cell.begin) if is_own else begins[-1])
        first = begins[-1]
        return [self.positions[index] if each == first else each for each in reversed(begins)]

    def carried(self, row: Row) -> list[Cell]:
        """The cells of rows above that reach into this one, but for those too big for a chunk."""
        for cell in row.carried:
            if cell.begin not in self._fitting:
                part = self.writer.part([""], [self.writer.cell(cell)])
                self._fitting[cell.begin] = self.fits(part)
        return [cell for cell in row.carried if self._fitting[cell.begin]]

    def as_text(self, start: int, end: int) -> list[Span]:
        """A part of the table, cut as text."""
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
        """The metadata of a chunk of these rows; without rows it is the header\'s."""
        metadata: dict[str, Any] = {}
        if stop > first:
            metadata |= {"row_start": first + 1, "row_end": stop}
        columns = self.table.labels if labels is None else labels
        if any(columns):
            metadata["columns"] = list(columns)
        if self.table.caption:
            metadata["caption"] = self.table.caption
        return metadata


def largest(fits: Callable[[int], bool], limit: int, guess: int) -> int:
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
