"""Cuts one row of a table: by cells, and a cell that is too big as text."""

from __future__ import annotations

from rag_splitters.span import Span
from rag_splitters.structure.tables.frame import Frame, largest
from rag_splitters.structure.tables.model import Cell
from rag_splitters.text.boundaries import lines, sentences, trim_space, words
from rag_splitters.text.excerpt import boundary_before
from rag_splitters.text.packing import pack

__all__ = ["cut_row", "labels_fit"]


def cut_row(frame: Frame, index: int) -> list[Span]:
    """One row, cut by cells under their labels; [] where not even that fits.

    Cells that reach into it from above stand beside its own, where they fit; none stands alone.
    """
    row = frame.table.rows[index]
    cells = [*frame.table.cells(row), *frame.carried(row)]
    cells.sort(key=lambda cell: cell.column)
    written = [frame.writer.cell(cell) for cell in cells]
    labels = [_label(frame, cell, each) for cell, each in zip(cells, written, strict=True)]
    begins = frame.begins(index, cells)
    spans: list[Span] = []
    low, count = 0, 1
    while low < len(cells):
        count = largest(
            lambda n, low=low: frame.fits(  # type: ignore[misc]
                frame.writer.part(labels[low : low + n], written[low : low + n])
            ),
            len(cells) - low,
            count,
        )
        start = begins[low]
        end = trim_space(frame.text, start, begins[low + max(count, 1)])
        if count:
            high = low + count
            content = frame.writer.part(labels[low:high], written[low:high])
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


def labels_fit(frame: Frame) -> bool:
    """Do all of the header's labels stand in the chunks of the first row?"""
    if frame.fits(frame.writer.content(0, 1)):
        return True
    cells = frame.table.cells(frame.table.rows[0])
    columns = {cell.column + shift for cell in cells for shift in range(cell.width)}
    if not frame.table.header:
        return True
    if not set(range(len(frame.table.labels))) <= columns:
        return False
    whole = all(_label(frame, c, frame.writer.cell(c)) == _names(frame, c) for c in cells)
    return whole and bool(cut_row(frame, 0))


def _inside(frame: Frame, index: int, cell: Cell, label: str, start: int, end: int) -> list[Span]:
    """One cell, cut as text under its label; [] where the label leaves no room."""
    excerpt = frame.table.excerpt(cell)

    def content(piece: str) -> str:
        return frame.writer.part([label], [frame.writer.escape(piece)])

    if 4 * frame.length(content("")) > 3 * frame.size:
        return []
    pieces = pack(
        excerpt.text,
        [lines(excerpt.text), sentences(excerpt.text), words(excerpt.text)],
        size=frame.size,
        overlap=frame.overlap,
        length_function=lambda piece: frame.length(content(piece)) if piece else 0,
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


def _label(frame: Frame, cell: Cell, written: str) -> str:
    """The label above a cell, shortened to half of the room where they do not fit together."""
    label = _names(frame, cell)
    if frame.fits(frame.writer.part([label], [written])):
        return label
    parts = label.split(" ")
    markup = frame.length(frame.writer.part([""], [""]))
    most = (frame.size - markup) // 2 + markup

    def fits(count: int) -> bool:
        return frame.length(frame.writer.part([" ".join(parts[:count])], [""])) <= most

    return " ".join(parts[: largest(fits, len(parts), 4)])


def _names(frame: Frame, cell: Cell) -> str:
    labels = frame.writer.labels[cell.column : cell.column + cell.width]
    return " / ".join(dict.fromkeys(filter(None, labels)))
