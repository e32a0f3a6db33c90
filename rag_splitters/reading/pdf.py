"""Reads PDFs: the text, with form feeds between pages, and the headings."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from itertools import accumulate, chain
from threading import Lock
from typing import Any, NamedTuple

from rag_splitters.errors import InputError
from rag_splitters.extras import needs
from rag_splitters.reading.charts import with_scales
from rag_splitters.reading.fonts import LARGER, FontHeading, Line, find_headings, slide_titles
from rag_splitters.reading.pdf_forms import read_fields
from rag_splitters.reading.pdf_pages import read_page
from rag_splitters.reading.pdf_tables import with_tables
from rag_splitters.reading.typesetting import inner_lines, without_hyphens
from rag_splitters.structure.block import Block
from rag_splitters.text.excerpt import Excerpt

logger = logging.getLogger(__name__)

_PDFIUM = Lock()  # the library must not be called from two threads at once


class Layout(NamedTuple):
    """The lines of a PDF, without running heads and page numbers, and the text they are joined to.

    Parameters:
        pages: the lines of each page.
        starts: where each page begins in the lines that are joined by line breaks.
        joined: these lines, with the words joined that are divided at the end of one.
        is_slides: whether its pages are slides: most are wider than high.
    """

    pages: list[list[Line]]
    starts: list[int]
    joined: Excerpt
    is_slides: bool = False


def read_pdf(data: bytes, name: str) -> tuple[str, list[Block]]:
    """Return the text of a PDF, with a line break and a form feed between pages, and its headings.

    Running heads, running feet and page numbers are dropped if pages repeat them, and words that
    are divided at the end of a line are joined. A warning in the log names pages that hold images
    and no text. Tables become Markdown (`with_tables`), and the scale of a chart becomes one line
    (`with_scales`). The values of a form follow the text of their page (`read_fields`). Headings
    are recognised by their fonts, or are the titles of slides; see `find_headings` and
    `slide_titles`.

    Raises: ImportError if pypdfium2 is not installed; ValueError if the PDF is damaged, protected
    by a password, or holds no text.
    """
    layout = read_layout(data, name)
    titles = slide_titles(layout.pages) if layout.is_slides else []
    return layout.joined.text, _place_headings(layout, titles or find_headings(layout.pages))


def read_layout(data: bytes, name: str) -> Layout:
    """Return the lines of a PDF and its text; see `read_pdf`."""
    with open_pdf(data, name) as (document, pdfium):
        read = [(*read_page(page, pdfium.raw), read_fields(page, pdfium.raw)) for page in document]
        pages = [lines for lines, _, _ in read]
        blank = [number for number, page in enumerate(pages) if not _has_text(page)]
        image = pdfium.raw.FPDF_PAGEOBJ_IMAGE
        sizes = [document.get_page_size(number) for number in range(len(document))]
        scans = [n + 1 for n in blank if any(document[n].get_objects([image], max_depth=3))]
    advice = "run text recognition over it first, for example with ocrmypdf"
    if not any(_has_text([*lines, *fields]) for lines, _, fields in read):
        raise InputError(f"{name} holds no text: its pages are probably scanned; {advice}")
    if scans:
        logger.warning("%s: pages %s hold images and no text; %s", name, scans, advice)
    ranges = _ranges_inside(pages)
    pages = [
        with_scales(
            with_tables(lines[first:last], geometry.words[first:last], geometry.grids)
            if geometry
            else lines[first:last]
        )
        for (lines, geometry, _), (first, last) in zip(read, ranges, strict=True)
    ]
    pages = [[*page, *fields] for page, (_, _, fields) in zip(pages, read, strict=True)]
    texts = ["\n".join(line.text for line in page).rstrip() for page in pages]
    starts = list(accumulate((len(each) + 2 for each in texts), initial=0))
    wide = sum(width > height for width, height in sizes)
    joined = without_hyphens("\n\f".join(texts))
    return Layout(pages, starts, joined, 2 * wide > len(pages) > 1)


@contextmanager
def open_pdf(data: bytes, name: str) -> Iterator[tuple[Any, Any]]:
    """Open a PDF, and yield it with the module pypdfium2. See `read_pdf` for the errors."""
    with needs(f"reading {name} needs pypdfium2", "pdf"):
        pdfium: Any = import_module("pypdfium2")
    try:
        with _PDFIUM, closing(pdfium.PdfDocument(data)) as document:
            document.init_forms()
            yield document, pdfium
    except pdfium.PdfiumError as error:
        if error.err_code == pdfium.raw.FPDF_ERR_PASSWORD:
            raise InputError(
                f"{name} cannot be read: it is protected by a password. Save a copy without one"
            ) from error
        raise InputError(
            f"{name} cannot be read as PDF: {error} The file may be damaged: download or export it "
            "again"
        ) from error


def _ranges_inside(pages: Sequence[Sequence[Line]]) -> list[tuple[int, int]]:
    """Return the range of lines of each page inside running heads and feet; see `inner_lines`.

    A title is inside, although running heads repeat it in a smaller font.
    """
    ranges = inner_lines([[line.text for line in page] for page in pages])
    heads = [page[:first] for page, (first, _) in zip(pages, ranges, strict=True)]
    sizes = dict[str, float]()
    for line in chain.from_iterable(heads):
        if line.font:
            text = line.text.strip()
            sizes[text] = min(line.font.size, sizes.get(text, line.font.size))
    return [
        (next((n for n, line in enumerate(head) if _is_title(line, sizes)), first), last)
        for head, (first, last) in zip(heads, ranges, strict=True)
    ]


def _is_title(line: Line, sizes: Mapping[str, float]) -> bool:
    return line.font is not None and line.font.size >= LARGER * sizes[line.text.strip()]


def _has_text(page: Sequence[Line]) -> bool:
    return any(line.text.strip() for line in page)


def _place_headings(layout: Layout, headings: Sequence[FontHeading]) -> list[Block]:
    """Return the headings, by their positions in the text."""
    joined, placed = layout.joined, list[Block]()
    for page, first, last, level in headings:
        lines = [line.text for line in layout.pages[page][:last]]
        begin = layout.starts[page] + sum(len(line) + 1 for line in lines[:first])
        text = "\n".join(lines[first:]).rstrip()
        edges = (begin + len(text) - len(text.lstrip()), begin + len(text))
        start, end = (_end_of_word(joined.text, joined.offset(edge)) for edge in edges)
        if start < end:
            title = " ".join(joined.text[start:end].split())
            placed.append(Block("heading", start, end, level, title))
    return placed


def _end_of_word(text: str, position: int) -> int:
    """Return where the word ends that a position divides; the position itself if there is none."""
    if position and not text[position - 1].isspace():
        while position < len(text) and not text[position].isspace():
            position += 1
    return position
