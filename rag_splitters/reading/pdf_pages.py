"""Reads a page of a PDF: its lines with their fonts, and what its tables are found by."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice, pairwise
from statistics import median
from typing import Any, NamedTuple

from rag_splitters.reading.fonts import Font, Line, Part, join_lines
from rag_splitters.reading.pdf_tables import FEWEST_ROWS, MOST_RULES, Grid, Rule, Word, find_grids

_HYPHEN = "\x02"  # PDFium's mark for a hyphen at the end of a line
_LINE_BREAK = re.compile(rf"\r\n|[\r\n{_HYPHEN}]")
_BOLD = re.compile(rb"bold|black|heavy|demi|-medi\Z|\bCM(?:B|BX|SSBX)\d", re.IGNORECASE)
_SPACE = 0.25  # times the height of the larger letter: the minimum gap between parts of a line
_SMALLEST_GAP = 0.8  # times the height of a text: the minimum distance of texts beside each other
_WORD = re.compile(r"\S+")
_ALL = re.compile(r".+")
_RAISED = 0.6  # times the size of a letter: how far an exponent may be above the line
_WORD_SPACE = 0.4  # times the size of a letter: the maximum space between words
_LARGE = 1.6  # times the size of the text: the minimum size of a large first letter
_NEAR = 3  # lines between a large first letter and its paragraph, in PDFium's order
_REACH = 200  # characters within which the next line is searched for


class Geometry(NamedTuple):
    """Where the words of each line of a page stand, and the grids that are drawn on it.

    Parameters:
        words: the words of each line that may be a row; of another line, all its text as one.
        grids: the grids.
    """

    words: list[list[Word]]
    grids: list[Grid]


def read_page(page: Any, raw: Any) -> tuple[list[Line], Geometry | None]:
    """Return the lines of a page, and its geometry if it may have a table."""
    letters = _Letters(page, raw)
    lines = letters.lines()
    return lines, _geometry(lines, letters)


def _geometry(lines: Sequence[Line], letters: _Letters) -> Geometry | None:
    """Return the geometry of a page; None if it cannot have a table."""
    rows = list(letters.rows_with_gaps())
    if len(rows) < 2:
        return None
    grids = find_grids(list(islice(letters.rules(), MOST_RULES + 1)))
    if len(rows) < FEWEST_ROWS and not grids:
        return None
    rows += [(grid.bands[0], grid.bands[-1]) for grid in grids]
    heights = {each for low, high in rows for each in range(int(low) - 1, int(high) + 1)}
    words = list[list[Word]]()
    for line in lines:
        is_row = line.font is not None and int(line.font.baseline) in heights
        words.append(list(letters.words(line, _WORD if is_row else _ALL)))
    return Geometry(words, grids)


class _Letters:
    """The letters of a page: their text, fonts and places on the page as it is shown."""

    def __init__(self, page: Any, raw: Any) -> None:
        self._page, self._raw = page, raw
        self._text_page = page.get_textpage()
        self._quarters = page.get_rotation() // 90  # clockwise

    def lines(self) -> list[Line]:
        """Return the lines with their fonts."""
        text: str = self._text_page.get_text_bounded()
        characters: str = self._text_page.get_text_range()  # slightly more; fonts belong to these
        lines: list[Line] = []
        start = place = 0
        for match in [*_LINE_BREAK.finditer(text), None]:
            content = text[start : match.start() if match else len(text)].replace("\f", " ")
            start = match.end() if match else len(text)
            letters = content.strip()
            at = characters.find(letters, place, place + len(content) + _REACH) if letters else -1
            font = self._font_of(letters, at) if at >= 0 else None
            indent = len(content) - len(content.lstrip())
            if at >= 0:
                pattern = _WORD if font and self._spans_lines(letters, at, font.size) else _ALL
                parts: tuple[Part, ...] = tuple(
                    Part(indent + each.start(), each[0], at + each.start())
                    for each in pattern.finditer(letters)
                )
            else:
                parts = tuple(_raised_parts(letters, indent, characters, place))
            place = parts[-1].place + len(parts[-1].text) if parts else place
            hyphen = "-" if match and match[0] == _HYPHEN else ""
            for line in self._apart(Line(content + hyphen, font, parts)):
                self._add(lines, line)
        return lines

    def _add(self, lines: list[Line], line: Line) -> None:
        """Add a line to those of the page, or to the end of the one that it stands beside."""
        last = len(lines) - 1
        near = range(last, max(last - _NEAR, -1), -1)
        cap = next((n for n in near if self._is_drop_cap(lines[n], line)), None)
        if cap is not None:
            lines.append(join_lines([lines.pop(cap), line], "")._replace(font=line.font))
        elif lines and self._are_beside(lines[-1].parts, line.parts):
            lines[-1] = join_lines([lines[-1], line])
        elif lines and self._goes_on(lines[-1], line, _RAISED):
            lines[-1] = join_lines([lines[-1], line], "")
        else:
            lines.append(line)

    def _spans_lines(self, letters: str, place: int, size: float) -> bool:
        """Whether PDFium has joined texts of several lines, as on a page with little text."""
        origins = []
        for index in map(self._index, (place, place + len(letters) - 1)):
            x, y = ctypes.c_double(), ctypes.c_double()
            self._raw.FPDFText_GetCharOrigin(self._text_page, index, x, y)
            origins.append(self._shown(x.value, y.value, x.value, y.value).bottom)
        return abs(origins[0] - origins[1]) > size

    def words(self, line: Line, pattern: re.Pattern[str]) -> Iterator[Word]:
        """Yield the words of a line, with their edges on the page."""
        for part in line.parts:
            for match in pattern.finditer(part.text):
                left = self._box(part.place + match.start()).left
                right = self._box(part.place + match.end() - 1).right
                yield Word(part.offset + match.start(), part.offset + match.end(), left, right)

    def rules(self) -> Iterator[Rule]:
        """Yield the bounds of the lines and rectangles that are drawn on the page."""
        for drawing in self._page.get_objects([self._raw.FPDF_PAGEOBJ_PATH], max_depth=1):
            yield Rule(*self._shown(*drawing.get_bounds()))

    def rows_with_gaps(self) -> Iterator[tuple[float, float]]:
        """Yield the lower and upper edge of each text that is beside, or above, the one before."""
        last = _Box(0.0, 0.0, 0.0, 0.0)
        for index in range(self._text_page.count_rects()):
            box = self._shown(*self._text_page.get_rect(index))
            least = _SMALLEST_GAP * max(box.height, last.height)
            if box.left - last.right >= least and box.top > last.bottom:
                yield box.bottom, box.top
            last = box

    def _apart(self, line: Line) -> Iterator[Line]:
        """Yield the parts of a line that stand apart from each other.

        On a page with little text, PDFium takes a letter or digit that is drawn alone for a line of
        its own, or joins it with the text before it, though there is a gap between them. There and
        on a page that is rotated, it joins lines.
        """
        parts = line.parts
        gaps = [n for n in range(1, len(parts)) if self._are_apart(parts[:n], parts[n:])]
        if not gaps:
            yield line
            return
        for first, last in pairwise([0, *gaps, len(parts)]):
            begin = parts[first].offset if first else 0
            end = parts[last].offset if last < len(parts) else len(line.text)
            own = tuple(part._replace(offset=part.offset - begin) for part in parts[first:last])
            yield Line(line.text[begin:end].rstrip(), self._font_of(own[0].text, own[0].place), own)

    def _is_drop_cap(self, cap: Line, line: Line) -> bool:
        """Whether the first letter of a paragraph is a large one, beside the line that goes on."""
        if len(cap.text.strip()) != 1 or not cap.text.strip().isupper():
            return False
        is_large = cap.font and line.font and cap.font.size > _LARGE * line.font.size
        return bool(is_large) and self._goes_on(cap, line, 1)

    def _goes_on(self, line: Line, after: Line, height: float) -> bool:
        """Whether a line begins right behind another, and neither above nor below it.

        Parameters:
            height: the maximum distance of their baselines, times the larger size.
        """
        if not (line.parts and after.parts):
            return False
        font, other = self._font_at(line, -1), self._font_at(after, 0)
        if font is None or other is None:
            return False
        size = max(font.size, other.size)
        if abs(font.baseline - other.baseline) >= height * size:
            return False
        gap = self._box(after.parts[0].place).left - self._last_box(line.parts).right
        return abs(gap) < _WORD_SPACE * size

    def _are_beside(self, one: Sequence[Part], other: Sequence[Part]) -> bool:
        """Whether a part of a line begins behind another, with a gap between them."""
        if not one or not other:
            return False
        before, after = self._last_box(one), self._box(other[0].place)
        low, high = max(before.bottom, after.bottom), min(before.top, after.top)
        is_behind = after.left - before.right > _SPACE * max(before.height, after.height)
        return is_behind and 2 * (high - low) > min(before.height, after.height)

    def _are_apart(self, one: Sequence[Part], other: Sequence[Part]) -> bool:
        """Whether a part of a line begins behind another, with a gap between them, or elsewhere."""
        if self._are_beside(one, other):
            return True
        before, after = self._last_box(one), self._box(other[0].place)
        across = max(after.left - before.right, before.left - after.right)
        along = max(after.bottom - before.top, before.bottom - after.top)
        return max(across, along) > max(before.height, after.height)

    def _last_box(self, parts: Sequence[Part]) -> _Box:
        return self._box(parts[-1].place + len(parts[-1].text) - 1)

    def _box(self, place: int) -> _Box:
        """Return the edges of a letter of PDFium's text."""
        edges = [ctypes.c_double() for _ in range(4)]
        self._raw.FPDFText_GetCharBox(self._text_page, self._index(place), *edges)
        left, right, bottom, top = (edge.value for edge in edges)
        return self._shown(left, bottom, right, top)

    def _index(self, place: int) -> int:
        """Return PDFium's number of a letter of its text."""
        index: int = self._raw.FPDFText_GetCharIndexFromTextIndex(self._text_page, place)
        return index

    def _shown(self, left: float, bottom: float, right: float, top: float) -> _Box:
        """Return edges as they are shown: PDFium gives those before the page is rotated."""
        for _ in range(self._quarters):
            left, bottom, right, top = bottom, -right, top, -left
        return _Box(left, bottom, right, top)

    def _font_at(self, line: Line, number: int) -> Font | None:
        """Return the font of a line or, if it is unknown, of one of its parts."""
        part = line.parts[number]
        indent = len(part.text) - len(part.text.lstrip())
        return line.font or self._font_of(part.text.strip(), part.place + indent)

    def _font_of(self, line: str, start: int) -> Font | None:
        """Return the font of a line's first, middle and last letter; None if it is unknown."""
        raw, page = self._raw, self._text_page
        middle = len(line) // 2 - line[len(line) // 2].isspace()
        places = [self._index(start + each) for each in (0, middle, len(line) - 1)]
        if raw.FPDFText_GetUnicode(page, places[0]) != ord(line[0]):
            return None
        matrices = [raw.FS_MATRIX() for _ in places]
        if not all(map(partial(raw.FPDFText_GetMatrix, page), places, matrices)):
            return None
        sizes = [
            raw.FPDFText_GetFontSize(page, place) * math.hypot(matrix.c, matrix.d)
            for place, matrix in zip(places, matrices, strict=True)
        ]
        is_bold = self._is_bold(places[0]) and self._is_bold(places[-1])
        x, y = matrices[0].e, matrices[0].f
        return Font(median(sizes), is_bold, self._shown(x, y, x, y).bottom)

    def _is_bold(self, index: int) -> bool:
        """Whether a letter is bold, by its font's name, because PDFium only guesses weights."""
        name, flags = ctypes.create_string_buffer(100), ctypes.c_int()
        self._raw.FPDFText_GetFontInfo(self._text_page, index, name, len(name), flags)
        return _BOLD.search(name.value) is not None


class _Box(NamedTuple):
    """The edges of a letter or a drawing on a page, in points."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        """The distance of its upper and lower edge."""
        return self.top - self.bottom


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
