"""Where chunks of a PDF are on its pages, and the pages with these places marked."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any

from rag_splitters.errors import InputError
from rag_splitters.reading.fonts import Part
from rag_splitters.reading.pdf import Layout, open_pdf, read_layout
from rag_splitters.reading.pdf_forms import field_edges
from rag_splitters.text.results import read_result

_YELLOW = (255, 225, 0)
_PIXELS = 1400  # the longer side of the image of a page
_WORDS = 3  # at the end of a chunk's place in the file: the chunk must end with the same ones


@dataclass(frozen=True, order=True)
class Box:
    """A rectangle on a page.

    Parameters:
        page: the number of the page, counted from 1.
        left: its left edge in points, from the lower left corner of the page as in PDF.
        bottom: its bottom edge.
        right: its right edge.
        top: its top edge.
    """

    page: int
    left: float
    bottom: float
    right: float
    top: float


def locate(path: str | Path, chunk: Any) -> list[Box]:
    """Return the rectangles that a chunk of a PDF covers, one or more for each of its lines.

    Use it to show a reader where an answer stands. The file is read again.

    Parameters:
        path: the PDF.
        chunk: a chunk of the text that `FileLoader`, `FileReader` or `read_file` read from it: a
            `Chunk`, a LangChain document with `start_index` and `end_index`, or a LlamaIndex node.

    Raises: ValueError if the chunk has no positions, or if the file holds another text there;
    ImportError if pypdfium2 is not installed; OSError if the file cannot be opened.
    """
    return _locate(Path(path).read_bytes(), Path(path).as_posix(), chunk)


def _locate(data: bytes, name: str, chunk: Any) -> list[Box]:
    start, end, text = _position_of(chunk)
    layout = _layout(data, name)
    evidence = layout.joined.text[start:end]
    words, ending = _words(text), _words(evidence)[-_WORDS:]
    if not evidence.strip() or ending != words[len(words) - len(ending) :]:
        raise InputError(
            f"{name} does not hold this chunk at {start} to {end}: the file has changed since it "
            "was read, or the chunk is from another file"
        )
    first, last = layout.joined.bounds(start, end)
    with open_pdf(data, name) as (document, pdfium):
        return [
            Box(page + 1, *edges)
            for page, part, begin, stop in _parts_between(layout, first, last)
            for edges in _edges(document[page], pdfium.raw, part, begin, stop)
        ]


def mark_pages(path: str | Path, chunks: Iterable[Any]) -> bytes:
    """Return a PDF of the pages on which chunks stand, with the chunks highlighted.

    Parameters and errors: those of `locate`.
    """
    path = Path(path)
    boxes = sorted({box for chunk in chunks for box in locate(path, chunk)})
    with open_pdf(path.read_bytes(), path.as_posix()) as (document, pdfium):
        for page, edges in groupby(boxes, key=lambda box: box.page):
            _highlight(document[page - 1], pdfium.raw, list(edges))
        marked = {box.page - 1 for box in boxes}
        for number in reversed(range(len(document))):
            if number not in marked:
                document.del_page(number)
        output = BytesIO()
        document.save(output)
    return output.getvalue()


def draw_page(data: bytes, name: str, chunk: Any, number: int) -> bytes:
    """Return a page of a PDF, counted from 1, as a PNG image; see `mark_pages`.

    Raises: what `locate` raises, and ValueError if there is no such page.
    """
    boxes = [box for box in _locate(data, name, chunk) if box.page == number]
    with open_pdf(data, name) as (document, pdfium):
        if not 0 < number <= len(document):
            raise InputError(f"{name} has {len(document)} pages, and none with number {number}")
        page = document[number - 1]
        _highlight(page, pdfium.raw, boxes)
        image = page.render(scale=_PIXELS / max(page.get_size()), rev_byteorder=True)
        return _png(image.width, image.height, image.n_channels, image.stride, bytes(image.buffer))


def _png(width: int, height: int, channels: int, stride: int, pixels: bytes) -> bytes:
    """Return pixels, whose rows begin after each `stride` bytes, as a PNG image."""
    rows = (pixels[at * stride : at * stride + width * channels] for at in range(height))
    colours = {1: 0, 3: 2, 4: 6}[channels]
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows), 6)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))
        for kind, part in parts
    )


def _words(text: str) -> list[str]:
    """Return the words of a text without the edges of cells, which a part of a cell gets, too."""
    return [word for word in text.split() if word != "|"]


@lru_cache(maxsize=2)
def _layout(data: bytes, name: str) -> Layout:
    """Return the layout of a PDF, which is remembered for the next chunk of the same file."""
    return read_layout(data, name)


def _highlight(page: Any, raw: Any, boxes: Sequence[Box]) -> None:
    """Add one highlight for each box to a page."""
    for box in boxes:
        left, bottom, right, top = box.left, box.bottom, box.right, box.top
        annotation = raw.FPDFPage_CreateAnnot(page, raw.FPDF_ANNOT_HIGHLIGHT)
        quad = raw.FS_QUADPOINTSF(left, top, right, top, left, bottom, right, bottom)
        raw.FPDFAnnot_SetColor(annotation, raw.FPDFANNOT_COLORTYPE_Color, *_YELLOW, 255)
        raw.FPDFAnnot_SetRect(annotation, raw.FS_RECTF(left, top, right, bottom))
        raw.FPDFAnnot_AppendAttachmentPoints(annotation, quad)
        raw.FPDFPage_CloseAnnot(annotation)


def _position_of(chunk: Any) -> tuple[int, int, str]:
    """Return start, end and text of a chunk of ours or of a framework."""
    text, _, start, end, _ = read_result(chunk)
    if start is None or end is None:
        raise InputError(
            f"the chunk has no positions: start {start!r}, end {end!r}. Split with a splitter of "
            "rag_splitters and add_start_index=True"
        )
    return start, end, text


def _parts_between(layout: Layout, first: int, last: int) -> Iterator[tuple[int, Part, int, int]]:
    """Yield the parts of lines between two offsets with their pages, and the range of each part."""
    for page, lines in enumerate(layout.pages):
        start = layout.starts[page]
        for line in lines:
            for part in line.parts:
                begin = max(first - start - part.offset, 0)
                stop = min(last - start - part.offset, len(part.text))
                if begin < stop:
                    yield page, part, begin, stop
            start += len(line.text) + 1


def _edges(
    page: Any, raw: Any, part: Part, begin: int, stop: int
) -> Iterator[tuple[float, float, float, float]]:
    """Yield left, bottom, right and top of the rectangles around a range of a part of a line."""
    if part.place < 0:
        yield field_edges(page, raw, part.place)
        return
    text_page = page.get_textpage()
    letters = part.text[begin:stop].strip()
    if not letters:
        return
    offset = part.place + part.text.index(letters, begin)
    start = raw.FPDFText_GetCharIndexFromTextIndex(text_page, offset)
    end = raw.FPDFText_GetCharIndexFromTextIndex(text_page, offset + len(letters) - 1)
    yield from map(text_page.get_rect, range(text_page.count_rects(start, end - start + 1)))
