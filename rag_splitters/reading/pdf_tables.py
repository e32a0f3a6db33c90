"""Finds the tables on a page of a PDF, by drawn lines or by gaps between columns."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from statistics import median
from typing import NamedTuple

from rag_splitters.reading.fonts import Line, Part
from rag_splitters.reading.markdown import NUMBER
from rag_splitters.reading.typesetting import DIVISION
from rag_splitters.text.lines import MARK

_NEAR = 3.0  # points: drawn lines that are as near as this meet, or are one
_SHORTEST_RULE = 8.0  # points
FEWEST_ROWS = 3
"""Minimum number of rows of a table without drawn lines."""

MOST_RULES = 300
"""Maximum number of lines that are drawn on a page: if there are more, it is a drawing."""
_GAP = 1.0  # times the size of the font: the minimum gap between the cells of a row
_RIVER = 0.5  # the same, between two columns over all rows
_ROW_HEIGHT = 3.0  # times the size of the font: the maximum distance of two rows
_MOST_ROWS = 200  # of a page
_LONGEST_PARAGRAPH = 250  # characters: cells of a grid that are longer are boxes of prose
_FILLED = 0.9  # of the width of a cell: a line that is as long was broken for want of room
_LONGEST_CELL = 25  # characters: if two columns have longer ones, they are columns of prose
_BARS = re.compile(r"[^|]+|\|")
_ITEM = re.compile(rf"(?:{MARK}|[•◦▪‣·–—-]\Z|\[\w{{1,8}}\]\Z|\(?\w{{1,3}}[.):]\Z)")
_SECTION = re.compile(r"(?:[A-Z]|\d{1,3})(?:\.\d{1,3})*\.?\Z")  # not a year


class Word(NamedTuple):
    """A word of a line: its offsets in the line's text, and its left and right edge."""

    start: int
    end: int
    left: float
    right: float


class Rule(NamedTuple):
    """The bounds of something drawn on a page: a line or a rectangle."""

    left: float
    bottom: float
    right: float
    top: float


class _Piece(NamedTuple):
    """Words of one line that stand in one cell."""

    line: int
    start: int
    end: int
    left: float
    right: float


_Row = list[list[_Piece]]


class _Table(NamedTuple):
    lines: set[int]
    rows: list[_Row]


class Grid(NamedTuple):
    """A grid that is drawn on a page.

    Parameters:
        columns: the places of its upright lines.
        bands: the places of its level lines.
        rules: what it is drawn with.
    """

    columns: list[float]
    bands: list[float]
    rules: list[Rule]

    def column_of(self, word: Word) -> int:
        """Return the number of the column in which a word stands."""
        return bisect_right(self.columns, _middle(word)) - 1

    def divides(self, before: Word, after: Word, height: float) -> bool:
        """Whether an upright line stands between two words at this height."""
        low, high = _middle(before), _middle(after)
        edges = (
            (rule.left, rule.right) for rule in self.rules if rule.bottom <= height <= rule.top
        )
        return any(low < edge < high for edge in chain(*edges))


def find_grids(rules: Sequence[Rule]) -> list[Grid]:
    """Return the grids of two columns and two rows or more among what is drawn on a page."""
    grids = [
        Grid(
            _distinct(x for rule in group for x in (rule.left, rule.right)),
            _distinct(y for rule in group for y in (rule.bottom, rule.top)),
            group,
        )
        for group in _touching(rules)
    ]
    return [grid for grid in grids if len(grid.columns) > 2 and len(grid.bands) > 2]


def with_tables(
    lines: Sequence[Line],
    words: Sequence[Sequence[Word]],
    grids: Sequence[Grid],
) -> list[Line]:
    """Return the lines of a page, with its tables written in Markdown.

    A table is a grid of drawn lines, or rows whose cells stand in columns with gaps between them:
    three columns or, with numbers, two. Columns of prose, lists and contents are no tables.
    The first row becomes the header.

    Parameters:
        lines: the lines.
        words: the words of each line; of a line that is certainly no row, all its text as one.
        grids: the grids that are drawn on the page.
    """
    inside = (_in_grid(lines, words, grid) for grid in grids)
    tables = [table for table in inside if table and len(table.rows) > 1]
    in_grid = {number for table in tables for number in table.lines}
    tables += _tables_of_gaps(lines, words, in_grid)
    starts = {min(table.lines): table for table in tables}
    dropped = {number for table in tables for number in table.lines}
    result: list[Line] = []
    for number, line in enumerate(lines):
        if number in starts:
            table_lines = _written(starts[number].rows, lines)
            result += [Line(""), *table_lines, Line("")]
        elif number not in dropped:
            result.append(line)
    return result


def _written(rows: Sequence[_Row], lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the rows of a table in Markdown, each with the places of its cells."""
    for number, row in enumerate(rows):
        text, parts = "|", list[Part]()
        for cell in row:
            text += " "
            for piece in cell:
                places = reversed(lines[piece.line].parts)
                source = next(each for each in places if each.offset <= piece.start)
                first = source.place + piece.start - source.offset
                for match in _BARS.finditer(_text(piece, lines)):
                    text += "\\" if match[0] == "|" else ""
                    parts.append(Part(len(text), match[0], first + match.start()))
                    text += match[0]
                text += f"-{DIVISION}" if _is_divided(piece, lines) else " "
            text += "|"
        yield Line(text, None, tuple(parts))
        if not number:
            yield Line("|" + " --- |" * len(row))


def _is_divided(piece: _Piece, lines: Sequence[Line]) -> bool:
    """Whether a word goes on in the next line of the cell."""
    return lines[piece.line].text[piece.end :] == "-"


def _touching(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Group the drawn lines and rectangles that meet, but not a box with what is inside it."""
    groups: list[list[Rule]] = []
    for rule in rules if len(rules) <= MOST_RULES else ():
        left, bottom, right, top = rule.left - _NEAR, rule.bottom - _NEAR, rule.right, rule.top
        if max(right - left, top - bottom) < _SHORTEST_RULE:
            continue
        right, top = right + _NEAR, top + _NEAR
        apart, meeting = list[list[Rule]](), [rule]
        for group in groups:
            meets = any(
                each.bottom <= top
                and bottom <= each.top
                and left <= each.right
                and each.left <= right
                and not _is_inside(rule, each)
                and not _is_inside(each, rule)
                for each in group
            )
            if meets:
                meeting += group
            else:
                apart.append(group)
        groups = [*apart, meeting]
    return groups


def _is_inside(one: Rule, other: Rule) -> bool:
    is_between = other.left + _NEAR < one.left and one.right < other.right - _NEAR
    return is_between and other.bottom + _NEAR < one.bottom and one.top < other.top - _NEAR


def _distinct(values: Iterable[float]) -> list[float]:
    """Return sorted values, without those that are near the one before."""
    result: list[float] = []
    for value in sorted(values):
        if not result or value - result[-1] > _NEAR:
            result.append(value)
    return result


def _in_grid(lines: Sequence[Line], words: Sequence[Sequence[Word]], grid: Grid) -> _Table | None:
    """Return the words in the cells of a grid; None if a line goes beyond it."""
    columns, bands, _ = grid
    used: set[int] = set()
    cells: dict[tuple[int, int], list[_Piece]] = {}
    for number, line in enumerate(lines):
        height = line.font.baseline + line.font.size / 4 if line.font else 0.0
        if not words[number] or not bands[0] < height < bands[-1]:
            continue
        inside = [each for each in words[number] if columns[0] < _middle(each) < columns[-1]]
        if inside and len(inside) < len(words[number]):
            return None
        band = len(bands) - bisect_right(bands, height)
        for group in _groups(inside, partial(_are_in_one_cell, grid, line)):
            cells.setdefault((band, grid.column_of(group[0])), []).append(_piece(number, group))
            used.add(number)
    filled_bands = sorted({band for band, _ in cells})
    filled_columns = sorted({column for _, column in cells})
    if len(filled_columns) < 2:
        return None
    rows: list[_Row] = []
    for band in filled_bands:
        row = [_reading_order(cells.get((band, column), ()), lines) for column in filled_columns]
        widths = [columns[column + 1] - columns[column] for column in filled_columns]
        starts = _starts_of_numbers(row, lines)
        if not starts and band != filled_bands[0]:  # which may be the header
            starts = _starts_of_fields(row, widths, lines)
        rows += _rows_from(row, starts, lines)
    return None if _are_boxes(rows) else _Table(used, rows)


def _are_boxes(rows: Sequence[_Row]) -> bool:
    """Whether most of the text is prose in cells beside each other, as on a page with frames."""
    lengths = [[sum(each.end - each.start for each in cell) for cell in row] for row in rows]
    prose = [sum(row) for row in lengths if sorted(row)[-2] > _LONGEST_PARAGRAPH]
    return 2 * sum(prose) > sum(map(sum, lengths))


def _middle(word: Word) -> float:
    return (word.left + word.right) / 2


def _groups(words: Sequence[Word], are_together: Callable[[Word, Word], bool]) -> list[list[Word]]:
    """Group the words of a line that stand in one cell."""
    groups: list[list[Word]] = []
    for word in words:
        if groups and are_together(groups[-1][-1], word):
            groups[-1].append(word)
        else:
            groups.append([word])
    return groups


def _piece(number: int, words: Sequence[Word]) -> _Piece:
    first, last = words[0], words[-1]
    return _Piece(number, first.start, last.end, first.left, last.right)


def _are_in_one_cell(grid: Grid, line: Line, before: Word, word: Word) -> bool:
    """Whether two words stand in one cell of a grid.

    A cell may span columns: then no line stands between words that are as near as in a sentence.
    """
    if grid.column_of(before) == grid.column_of(word):
        return True
    size, height = (line.font.size, line.font.baseline) if line.font else (0.0, 0.0)
    is_near = word.left - before.right < _RIVER * size
    return is_near and not grid.divides(before, word, height)


def _reading_order(pieces: Iterable[_Piece], lines: Sequence[Line]) -> list[_Piece]:
    return sorted(pieces, key=lambda piece: (-_baseline(lines[piece.line]), piece.left))


def _baseline(line: Line) -> float:
    return line.font.baseline if line.font else 0.0


def _starts_of_numbers(row: _Row, lines: Sequence[Line]) -> list[int]:
    """Return the baselines of a column of numbers, each of which is in a row of its own."""
    top = max((_height(cell[0], lines) for cell in row if cell), default=0)
    for cell in row:
        heights = [_height(piece, lines) for piece in cell]
        are_numbers = all(NUMBER.match(_text(piece, lines)) for piece in cell)
        if len(set(heights)) > 1 and are_numbers and top - heights[0] <= 1:
            rows = _rows_from(row, heights, lines)
            if all(sum(map(bool, each)) > 1 for each in rows):
                return heights
    return []


def _starts_of_fields(row: _Row, widths: Sequence[float], lines: Sequence[Line]) -> list[int]:
    """Return the baselines of columns of fields, such as the labels and values of a form.

    Most lines of a field end where more would have fitted, so they are not those of a paragraph,
    and beside most of them stands another field.
    """
    columns = [
        {_height(piece, lines) for piece in cell}
        for cell, width in zip(row, widths, strict=True)
        if _are_fields(cell, width, lines)
    ]
    beside = Counter(chain(*columns))
    shared = [height for height, count in beside.items() if count > 1]
    has_rows = len(shared) >= FEWEST_ROWS and 2 * len(shared) > len(beside)
    return sorted(beside, reverse=True) if has_rows else []


def _are_fields(cell: Sequence[_Piece], width: float, lines: Sequence[Line]) -> bool:
    """Whether most lines of a cell end where the next word would have fitted; none is an item."""
    ends: list[bool] = []
    for above, below in pairwise(cell):
        text = _text(below, lines)
        if _ITEM.match(text) and any(map(str.isalpha, text)):
            return False
        word = (below.right - below.left) * (1 + len(text.split()[0])) / len(text)
        ends.append(above.right - above.left + word < _FILLED * width)
    return 2 * sum(ends) > len(ends)


def _height(piece: _Piece, lines: Sequence[Line]) -> int:
    return round(_baseline(lines[piece.line]))


def _rows_from(row: _Row, heights: Iterable[int], lines: Sequence[Line]) -> list[_Row]:
    """Divide a row at the baselines at which others begin; the first has all that is above it."""
    starts = [height + 1.0 for height in dict.fromkeys(heights)]
    bounds = pairwise([float("inf"), *starts[1:], float("-inf")])
    return [
        [[each for each in cell if low < _baseline(lines[each.line]) <= top] for cell in row]
        for top, low in bounds
    ]


def _tables_of_gaps(
    lines: Sequence[Line], words: Sequence[Sequence[Word]], in_grid: set[int]
) -> Iterator[_Table]:
    """Yield the tables whose columns are separated by gaps alone."""
    run: list[list[_Piece]] = []
    for number, line in enumerate([*lines, Line("")]):
        is_row = line.font and number not in in_grid
        cells = _cells_of(number, line, words[number]) if is_row else []
        if run and not _goes_on(run, cells, lines):
            if table := _table_of(run, lines):
                yield table
            run = []
        if run or len(cells) > 1:
            run.append(cells)


def _cells_of(number: int, line: Line, words: Sequence[Word]) -> list[_Piece]:
    """Return the cells of a line: what stands between wide gaps."""
    gap = _GAP * (line.font.size if line.font else 0.0)
    groups = _groups(words, lambda before, word: word.left - before.right < gap)
    return [_piece(number, group) for group in groups]


def _goes_on(run: Sequence[list[_Piece]], cells: list[_Piece], lines: Sequence[Line]) -> bool:
    """Whether a line is the next row of a table, or continues a cell of the last row."""
    if not cells or len(run) >= _MOST_ROWS:
        return False
    font, last = lines[cells[0].line].font, lines[run[-1][0].line].font
    if font is None or last is None or abs(last.baseline - font.baseline) > _ROW_HEIGHT * font.size:
        return False
    columns = _columns([*run, cells], font.size)
    rows = [*run, cells] if len(cells) > 1 else [cells]
    if len(cells) == 1:  # one under the first column may be the next paragraph
        above = [each.left for each in run[-1] if bisect_right(columns, each.left) > 1]
        if not any(abs(left - cells[0].left) <= _NEAR for left in above):
            return False
    return len(columns) > 1 and all(_fills(row, columns) for row in rows)


def _columns(rows: Iterable[Sequence[_Piece]], size: float) -> list[float]:
    """Return the left edges of the columns: what no row crosses is between them."""
    starts: list[float] = []
    end = float("-inf")
    for piece in sorted((each for row in rows for each in row), key=lambda each: each.left):
        if piece.left - end >= _RIVER * size:
            starts.append(piece.left)
        end = max(end, piece.right)
    return starts


def _fills(row: Sequence[_Piece], columns: Sequence[float]) -> bool:
    """Whether the cells of a row stand in different columns."""
    places = [bisect_right(columns, piece.left) for piece in row]
    return len(set(places)) == len(places)


def _table_of(run: Sequence[list[_Piece]], lines: Sequence[Line]) -> _Table | None:
    """Return the table in some lines with gaps, or None if they are a list, contents or prose."""
    font = lines[run[0][0].line].font
    columns = _columns(run, font.size if font else 0.0)
    rows: list[_Row] = []
    for pieces in run:
        row: _Row = [[] for _ in columns]
        for piece in pieces:
            row[bisect_right(columns, piece.left) - 1].append(piece)
        if rows and not row[0] and len(pieces) == 1:
            rows[-1] = [above + below for above, below in zip(rows[-1], row, strict=True)]
        else:
            rows.append(row)
    cells = [
        [" ".join(_text(piece, lines) for piece in cell) for cell in column if cell]
        for column in zip(*rows, strict=True)
    ]
    if len(rows) < FEWEST_ROWS or not _may_be_table(cells):
        return None
    return _Table({piece.line for pieces in run for piece in pieces}, rows)


def _text(piece: _Piece, lines: Sequence[Line]) -> str:
    return lines[piece.line].text[piece.start : piece.end]


def _may_be_table(columns: Sequence[Sequence[str]]) -> bool:
    """Whether the texts of some columns are those of a table."""
    if sum(median(map(len, cells)) > _LONGEST_CELL for cells in columns) > 1:
        return False
    if 2 * sum(map(bool, map(_ITEM.match, columns[0]))) > len(columns[0]):
        return False
    is_short = len(columns) == 2
    if _count_pages(columns[-1]) and (is_short or all(map(_SECTION.match, columns[0]))):
        return False
    return not is_short or 2 * sum(map(bool, map(NUMBER.match, columns[1]))) > len(columns[1])


def _count_pages(cells: Sequence[str]) -> bool:
    """Whether the cells are the page numbers of contents: whole numbers that go up."""
    values = [int(cell) for cell in cells if cell.isdecimal()]
    return len(values) == len(cells) and all(one <= other for one, other in pairwise(values))
