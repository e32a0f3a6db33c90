"""Reads PDFs: the text, with form feeds between pages, and the headings."""

from __future__ import annotations

import ctypes
import logging
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import accumulate, islice, pairwise
from statistics import median
from threading import Lock
from typing import Any, NamedTuple

from rag_splitters.errors import InputError
from rag_splitters.extras import needs
from rag_splitters.reading.charts import with_scales
from rag_splitters.reading.fonts import (
    Font,
    FontHeading,
    Line,
    Part,
    find_headings,
    join_lines,
    slide_titles,
)
from rag_splitters.reading.pdf_tables import (
    FEWEST_ROWS,
    MOST_RULES,
    Grid,
    Rule,
    Word,
    find_grids,
    with_tables,
)
from rag_splitters.reading.typesetting import Edit, hyphen_edits, inner_lines, moved, with_edits
from rag_splitters.structure.block import Block
from rag_splitters.structure.outline import Outline

logger = logging.getLogger(__name__)

_PDFIUM = Lock()  # the library must not be called from two threads at once
_HYPHEN = "\x02"  # PDFium's mark for a hyphen at the end of a line
_LINE_BREAK = re.compile(rf"\r\n|[\r\n{_HYPHEN}]")
_BOLD = re.compile(rb"bold|black|heavy|demi|-medi\Z|\bCM(?:B|BX|SSBX)\d", re.IGNORECASE)
_FIXED_PITCH = 1  # a flag of a font
_SPACE = 0.25  # times the height of the larger letter: the minimum gap between parts of a line
_SMALLEST_GAP = 0.8  # times the height of a text: the minimum distance of texts beside each other
_WORD = re.compile(r"\S+")
_ALL = re.compile(r".+")
_FIXED = re.compile(rb"mono|courier|consol|typewr|tt\d{1,4}\Z", re.IGNORECASE)
_REACH = 200  # characters within which the next line is searched for
_FEWEST = 3  # headings: if there are fewer, numbered lines are added


class Layout(NamedTuple):
    """The lines of a PDF, without running heads and page numbers, and the text they are joined to.

    Parameters:
        pages: the lines of each page.
        starts: where each page begins in the lines that are joined by line breaks.
        edits: what joins the words that are divided at the end of a line.
        text: the text after the edits.
        is_slides: whether its pages are slides: most are wider than high.
    """

    pages: list[list[Line]]
    starts: list[int]
    edits: list[Edit]
    text: str
    is_slides: bool = False


def read_pdf(data: bytes, name: str) -> tuple[str, list[Block]]:
    """Return the text of a PDF, with a line break and a form feed between pages, and its headings.

    Running heads, running feet and page numbers are dropped if pages repeat them, and words that
    are divided at the end of a line are joined. A warning in the log names pages that hold images
    and no text. Tables become Markdown (`with_tables`), and the scale of a chart becomes one line
    (`with_scales`). Headings are recognised by their fonts, or are the titles of slides; see
    `find_headings` and `slide_titles`.

    Parameters:
        data: the PDF.
        name: its name, for error messages.

    Raises: ImportError if pypdfium2 is not installed; ValueError if the PDF is damaged, protected
    by a password, or holds no text.
    """
    layout = read_layout(data, name)
    titles = slide_titles(layout.pages) if layout.is_slides else []
    return layout.text, _place_headings(layout, titles or find_headings(layout.pages))


def read_layout(data: bytes, name: str) -> Layout:
    """Return the lines of a PDF and its text; see `read_pdf`."""
    with open_pdf(data, name) as (document, pdfium):
        read = [_read_page(page, pdfium.raw) for page in document]
        pages = [lines for lines, _ in read]
        blank = [number for number, page in enumerate(pages) if not _has_text(page)]
        image = pdfium.raw.FPDF_PAGEOBJ_IMAGE
        sizes = [document.get_page_size(number) for number in range(len(document))]
        scans = [n + 1 for n in blank if any(document[n].get_objects([image], max_depth=3))]
    advice = "run text recognition over it first, for example with ocrmypdf"
    if not any(map(_has_text, pages)):
        raise InputError(f"{name} holds no text: its pages are probably scanned; {advice}")
    if scans:
        logger.warning("%s: pages %s hold images and no text; %s", name, scans, advice)
    ranges = inner_lines([[line.text for line in page] for page in pages])
    pages = [
        with_scales(
            with_tables(lines[first:last], geometry.words[first:last], geometry.grids)
            if geometry
            else lines[first:last]
        )
        for (lines, geometry), (first, last) in zip(read, ranges, strict=True)
    ]
    texts = ["\n".join(line.text for line in page).rstrip() for page in pages]
    starts = list(accumulate((len(each) + 2 for each in texts), initial=0))
    lines = "\n\f".join(texts)
    edits = hyphen_edits(lines)
    wide = sum(width > height for width, height in sizes)
    return Layout(pages, starts, edits, with_edits(lines, edits), 2 * wide > len(pages) > 1)


@contextmanager
def open_pdf(data: bytes, name: str) -> Iterator[tuple[Any, Any]]:
    """Open a PDF, and yield it with the module pypdfium2. See `read_pdf` for the errors."""
    with needs(f"reading {name} needs pypdfium2", "pdf"):
        pdfium: Any = import_module("pypdfium2")
    try:
        with _PDFIUM, closing(pdfium.PdfDocument(data)) as document:
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


def _has_text(page: Sequence[Line]) -> bool:
    return any(line.text.strip() for line in page)


def _place_headings(layout: Layout, headings: Sequence[FontHeading]) -> list[Block]:
    """Return the headings, by their positions in the text."""
    places: list[int] = []
    for page, first, last, _ in headings:
        lines = [line.text for line in layout.pages[page][:last]]
        begin = layout.starts[page] + sum(len(line) + 1 for line in lines[:first])
        text = "\n".join(lines[first:]).rstrip()
        places += [begin + len(text) - len(text.lstrip()), begin + len(text)]
    ends = moved(places, layout.edits)
    placed = [
        Block("heading", start, end, heading.level, " ".join(layout.text[start:end].split()))
        for heading, start, end in zip(headings, ends, ends, strict=True)
        if start < end
    ]
    return _with_numbered_lines(layout.text, placed)


def _with_numbered_lines(text: str, headings: list[Block]) -> list[Block]:
    """Add numbered lines to a few headings, which are probably those of a title page."""
    if not 0 < len(headings) < _FEWEST:
        return headings
    ends = {heading.end for heading in headings}
    others = [
        heading
        for heading in Outline.of(text, "text").headings
        if heading.start >= headings[0].end and heading.end not in ends
    ]
    deepest = max(heading.level for heading in headings)
    outermost = min((heading.level for heading in others), default=1)
    below = [replace(each, level=each.level + deepest + 1 - outermost) for each in others]
    return sorted([*headings, *below], key=lambda heading: heading.start)


def _read_page(page: Any, raw: Any) -> tuple[list[Line], _Geometry | None]:
    """Return the lines of a page, and its geometry if it may have a table."""
    text_page = page.get_textpage()
    lines = _lines_of(text_page, raw)
    return lines, _geometry(lines, page, text_page, raw)


def _lines_of(page: Any, raw: Any) -> list[Line]:
    """Return the lines of a page with their fonts."""
    text: str = page.get_text_bounded()
    characters: str = page.get_text_range()  # slightly more than in the text; fonts belong to these
    lines: list[Line] = []
    start = place = 0
    for match in [*_LINE_BREAK.finditer(text), None]:
        content = text[start : match.start() if match else len(text)].replace("\f", " ")
        start = match.end() if match else len(text)
        letters = content.strip()
        at = characters.find(letters, place, place + len(content) + _REACH) if letters else -1
        font = _font_of(letters, page, at, raw) if at >= 0 else None
        indent = len(content) - len(content.lstrip())
        if at >= 0:
            parts: tuple[Part, ...] = (Part(indent, letters, at),)
        else:
            parts = tuple(_raised_parts(letters, indent, characters, place))
        place = parts[-1].place + len(parts[-1].text) if parts else place
        hyphen = "-" if match and match[0] == _HYPHEN else ""
        for line in _apart(Line(content + hyphen, font, parts), page, raw):
            if lines and _are_beside(lines[-1].parts, line.parts, page, raw):
                lines[-1] = join_lines([lines[-1], line])
            else:
                lines.append(line)
    return lines


def _apart(line: Line, page: Any, raw: Any) -> Iterator[Line]:
    """Yield the parts of a line that stand apart from each other.

    On a page with little text, PDFium takes a letter or digit that is drawn alone for a line of its
    own, or joins it with the text before it, though there is a gap between them.
    """
    parts = line.parts
    gaps = [n for n in range(1, len(parts)) if _are_beside(parts[:n], parts[n:], page, raw)]
    if not gaps:
        yield line
        return
    for first, last in pairwise([0, *gaps, len(parts)]):
        begin = parts[first].offset if first else 0
        end = parts[last].offset if last < len(parts) else len(line.text)
        own = tuple(part._replace(offset=part.offset - begin) for part in parts[first:last])
        font = _font_of(own[0].text, page, own[0].place, raw)
        yield Line(line.text[begin:end], font, own)


def _are_beside(one: Sequence[Part], other: Sequence[Part], page: Any, raw: Any) -> bool:
    """Whether a part of a line begins behind another, with a gap between them."""
    if not one or not other:
        return False
    last, first = one[-1].place + len(one[-1].text) - 1, other[0].place
    before, after = _box(last, page, raw), _box(first, page, raw)
    low, high = max(before.bottom, after.bottom), min(before.top, after.top)
    heights = before.top - before.bottom, after.top - after.bottom
    is_apart = after.left - before.right > _SPACE * max(heights)
    return is_apart and 2 * (high - low) > min(heights)


class _Box(NamedTuple):
    """The edges of a letter on a page, in points."""

    left: float
    right: float
    bottom: float
    top: float


def _box(place: int, page: Any, raw: Any) -> _Box:
    """Return the edges of a letter of PDFium's text."""
    edges = [ctypes.c_double() for _ in range(4)]
    raw.FPDFText_GetCharBox(page, raw.FPDFText_GetCharIndexFromTextIndex(page, place), *edges)
    return _Box(*(edge.value for edge in edges))


def _raised_parts(letters: str, offset: int, characters: str, place: int) -> Iterator[Part]:
    """Yield the parts of a line that PDFium's other text breaks at raised and lowered letters.

    >>> list(_raised_parts("x2 + 1", 0, "so x\\r\\n2 + 1.", 0))
    [Part(offset=0, text='x', place=3), Part(offset=1, text='2 + 1', place=6)]
    """
    segments = characters[place : place + 2 * len(letters) + _REACH].split("\r\n")
    start = "".join(segments).find(letters) if letters else -1
    if start < 0:
        return
    joined = 0
    for segment in segments:
        low, high = max(start - joined, 0), min(start + len(letters) - joined, len(segment))
        if low < high:
            yield Part(offset + joined + low - start, segment[low:high], place + low)
        joined += len(segment)
        place += len(segment) + len("\r\n")


def _font_of(line: str, page: Any, start: int, raw: Any) -> Font | None:
    """Return the font of a line's first, middle and last letter; None if it is unknown."""
    middle = len(line) // 2 - line[len(line) // 2].isspace()
    offsets = (0, middle, len(line) - 1)
    places = [raw.FPDFText_GetCharIndexFromTextIndex(page, start + each) for each in offsets]
    if raw.FPDFText_GetUnicode(page, places[0]) != ord(line[0]):
        return None
    matrices = [raw.FS_MATRIX() for _ in places]
    if not all(map(partial(raw.FPDFText_GetMatrix, page), places, matrices)):
        return None
    sizes = [
        raw.FPDFText_GetFontSize(page, place) * math.hypot(matrix.c, matrix.d)
        for place, matrix in zip(places, matrices, strict=True)
    ]
    styles = [_style(page, place, raw) for place in (places[0], places[-1])]
    is_bold, is_fixed = (all(each) for each in zip(*styles, strict=True))
    return Font(median(sizes), is_bold, matrices[0].f, is_fixed)


def _style(page: Any, place: int, raw: Any) -> tuple[bool, bool]:
    """Whether a letter is bold, by the name of its font, and whether its font has a fixed pitch.

    PDFium only guesses weights.
    """
    name, flags = ctypes.create_string_buffer(100), ctypes.c_int()
    raw.FPDFText_GetFontInfo(page, place, name, len(name), flags)
    is_fixed = flags.value & _FIXED_PITCH or _FIXED.search(name.value) is not None
    return _BOLD.search(name.value) is not None, bool(is_fixed)


class _Geometry(NamedTuple):
    """Where the words of each line of a page stand, and the grids that are drawn on it."""

    words: list[list[Word]]
    grids: list[Grid]


def _geometry(lines: Sequence[Line], page: Any, text_page: Any, raw: Any) -> _Geometry | None:
    """Return the geometry of a page; None if it cannot have a table."""
    rows = list(_rows_with_gaps(text_page, raw))
    if len(rows) < 2:
        return None
    grids = find_grids(list(islice(_rules(page, raw), MOST_RULES + 1)))
    if len(rows) < FEWEST_ROWS and not grids:
        return None
    rows += [(grid.bands[0], grid.bands[-1]) for grid in grids]
    heights = {each for low, high in rows for each in range(int(low) - 1, int(high) + 1)}
    words: list[list[Word]] = []
    for line in lines:
        font = line.font
        is_row = font and int(font.baseline) in heights and (grids or not font.is_fixed)
        words.append(list(_words(line, text_page, raw, _WORD if is_row else _ALL)))
    return _Geometry(words, grids)


def _rules(page: Any, raw: Any) -> Iterator[Rule]:
    """Yield the bounds of the lines and rectangles that are drawn on a page."""
    edges = [ctypes.c_float() for _ in range(4)]
    for index in range(raw.FPDFPage_CountObjects(page)):
        drawing = raw.FPDFPage_GetObject(page, index)
        if raw.FPDFPageObj_GetType(drawing) == raw.FPDF_PAGEOBJ_PATH:
            raw.FPDFPageObj_GetBounds(drawing, *edges)
            yield Rule(*(edge.value for edge in edges))


def _rows_with_gaps(page: Any, raw: Any) -> Iterator[tuple[float, float]]:
    """Yield the lower and the upper edge of each text that is beside, or above, the one before."""
    edges = [ctypes.c_double() for _ in range(4)]
    last = 0.0, 0.0, 0.0, 0.0
    for index in range(raw.FPDFText_CountRects(page, 0, -1)):
        raw.FPDFText_GetRect(page, index, *edges)
        left, top, right, bottom = (edge.value for edge in edges)
        _, last_top, last_right, last_bottom = last
        least = _SMALLEST_GAP * max(top - bottom, last_top - last_bottom)
        if left - last_right >= least and top > last_bottom:
            yield bottom, top
        last = left, top, right, bottom


def _words(line: Line, page: Any, raw: Any, pattern: re.Pattern[str]) -> Iterator[Word]:
    """Yield the words of a line, with their edges on the page."""
    for part in line.parts:
        for match in pattern.finditer(part.text):
            left = _box(part.place + match.start(), page, raw).left
            right = _box(part.place + match.end() - 1, page, raw).right
            yield Word(part.offset + match.start(), part.offset + match.end(), left, right)
