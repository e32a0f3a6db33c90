"""Workbooks (XLSX) as Markdown tables."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import accumulate, groupby, takewhile
from xml.etree import ElementTree

from rag_splitters.reading.archives import named_elements, open_archive, parse_part
from rag_splitters.reading.markdown import NUMBER, escape_markdown, markdown_table

_DATE_FORMATS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_PERCENT_FORMATS = frozenset((9, 10))
_ELAPSED_FORMAT = 46
_LITERAL = re.compile(r'"[^"]*"|\[(?!(?:h+|m+|s+)\])[^\]]*\]|\\.', re.IGNORECASE)
_ELAPSED = re.compile(r"\[[hms]", re.IGNORECASE)
_COLUMN = re.compile(r"[A-Z]{1,3}")
_RANGE = re.compile(r"([A-Z]{1,3})(\d{1,7}):[A-Z]{1,3}(\d{1,7})")
_MOST_COLUMNS = 1_000  # of a sheet; cells further to the right are dropped
_LABEL = re.compile(rf"(?:19|20)\d\d\Z|(?!{NUMBER.pattern})")
_Rows = list[list[str]]
_FIRST_DAY, _FIRST_DAY_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)


def read_xlsx(data: bytes, name: str) -> str:
    """Read a workbook as Markdown: each sheet as a heading with its tables.

    Lines of one cell above a table are paragraphs. A header below an empty row begins another
    table. Formulas are read as their last results, and dates as ISO 8601. Charts, comments, hidden
    sheets, empty rows and columns, and columns after the 1,000th are dropped.

    Raises InputError if the workbook is damaged or protected, or unpacks to more than 500 MB.
    """
    with open_archive(data, name, "XLSX") as archive:
        return "\n\n".join(_Workbook(archive).sheets())


class _Workbook:
    """Reads the sheets of a workbook."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.strings = [_text(each) for each in self._parts("xl/sharedStrings.xml", "si")]
        formats = {
            each.get("numFmtId"): each.get("formatCode", "")
            for each in self._parts("xl/styles.xml", "numFmt")
        }
        styles = (each for part in self._parts("xl/styles.xml", "cellXfs") for each in part)
        self.formats = [
            (int(number), _LITERAL.sub("", formats.get(number, "")))
            for number in (each.get("numFmtId", "0") for each in styles)
        ]
        properties = self._parts("xl/workbook.xml", "workbookPr")
        is_1904 = any(each.get("date1904") in ("1", "true") for each in properties)
        self.first_day = _FIRST_DAY_1904 if is_1904 else _FIRST_DAY

    def sheets(self) -> Iterator[str]:
        """Yield each visible sheet that has a cell, in Markdown."""
        targets = {
            each.get("Id"): each.get("Target", "")
            for each in self._parts("xl/_rels/workbook.xml.rels", "Relationship")
        }
        for sheet in named_elements(parse_part(self.archive, "xl/workbook.xml"), "sheet"):
            key = next((value for key, value in sheet.items() if key.endswith("}id")), "")
            if sheet.get("state", "visible") == "visible" and key in targets:
                path = posixpath.normpath(posixpath.join("/xl", targets[key])).lstrip("/")
                if parts := list(_parts(list(self._rows(parse_part(self.archive, path))))):
                    yield "\n\n".join([f"# {' '.join(sheet.get('name', '').split())}", *parts])

    def _parts(self, path: str, name: str) -> list[ElementTree.Element]:
        """Return the elements with a name in a part of the workbook, which may be missing."""
        with suppress(KeyError):
            return list(named_elements(parse_part(self.archive, path), name))
        return []

    def _rows(self, sheet: ElementTree.Element) -> Iterator[list[str]]:
        """Yield the rows of a sheet, and one empty row for those that are not in the file.

        A text that is merged over several rows is in each of them that has other text.
        """
        last, merged = 0, _merged_rows(sheet)
        texts: dict[int, tuple[str, int]] = {}  # by column, with the last row
        for row in named_elements(sheet, "row"):
            number = int(row.get("r", last + 1))
            if number > last + 1:
                yield []
            last, values = number, self._row(row)
            texts = {column: each for column, each in texts.items() if each[1] >= number}
            for column, (text, _) in texts.items() if any(values) else ():
                values += [""] * (column + 1 - len(values))
                values[column] = values[column] or text
            for column, end in merged.get(number, ()):
                texts[column] = (values[column] if column < len(values) else "", end)
            yield values

    def _row(self, row: ElementTree.Element) -> list[str]:
        values: list[str] = []
        for cell in named_elements(row, "c"):
            place = _COLUMN.match(cell.get("r", ""))
            column = _column(place[0]) if place else len(values)
            if column < _MOST_COLUMNS:
                values += [""] * (column + 1 - len(values))
                values[column] = self._value(cell).strip()
        return values

    def _value(self, cell: ElementTree.Element) -> str:
        kind = cell.get("t", "n")
        value = next((each.text or "" for each in named_elements(cell, "v")), "")
        if kind == "s":
            return self.strings[int(value)] if value else ""
        if kind == "inlineStr":
            return _text(cell)
        if kind == "b":
            return "TRUE" if value == "1" else "FALSE"
        if kind == "n" and value:
            style = int(cell.get("s", "0"))
            number, code = self.formats[style] if style < len(self.formats) else (0, "")
            with suppress(ValueError, OverflowError):
                return _number(value, number, code, self.first_day)
        return value


def _merged_rows(sheet: ElementTree.Element) -> Mapping[int, Sequence[tuple[int, int]]]:
    """Return the column and the last row of the cells that are merged over rows, by their first."""
    merged = defaultdict[int, list[tuple[int, int]]](list)
    for each in named_elements(sheet, "mergeCell"):
        if match := _RANGE.match(each.get("ref", "")):
            first, last = int(match[2]), int(match[3])
            if first < last:
                merged[first].append((_column(match[1]), last))
    return merged


def _parts(rows: _Rows) -> Iterator[str]:
    """Yield the tables of a sheet, and the titles above them, in Markdown."""
    table: _Rows = []
    is_list = len(_used(rows)) == 1
    for is_empty, group in groupby(rows, lambda row: not any(row)):
        block = [] if is_empty else list(group)
        count = 0 if is_list else _count_titles(block)
        titles, body = block[:count], block[count:]
        if table and not _has_header(body):
            table += block
            continue
        if table:
            yield _table(table)
        yield from (escape_markdown(" ".join("".join(row).split())) for row in titles)
        table = body
    if table:
        yield _table(table)


def _used(rows: _Rows) -> list[int]:
    """Return the numbers of the columns that are not empty."""
    return sorted({number for row in rows for number, cell in enumerate(row) if cell})


def _count_titles(rows: _Rows) -> int:
    """Return how many of the first rows have a cell in the first column and no other.

    The last of them is the header if there is no other.
    """
    first = _used(rows)[:1]
    count = sum(1 for _ in takewhile(lambda row: _used([row]) == first, rows))
    has_header = count == len(rows) or _count_labels(rows[count:]) > 0
    return count if has_header else max(count - 1, 0)


def _has_header(rows: _Rows) -> bool:
    """Whether some rows begin with labels, and have nothing but numbers below one of them."""
    count = _count_labels(rows)
    labels = _used(rows[count - 1 : count])
    below = ([row[n] for row in rows[count:] if n < len(row) and row[n]] for n in labels)
    return len(labels) > 1 and any(cells and all(map(NUMBER.match, cells)) for cells in below)


def _count_labels(rows: _Rows) -> int:
    """Return how many of the first rows have no numbers, except years."""
    return sum(1 for _ in takewhile(lambda row: all(map(_LABEL.match, row)), rows))


def _table(rows: _Rows) -> str:
    """Write a table, with one header and without its empty columns."""
    columns = _used(rows)
    rows = [[row[n] if n < len(row) else "" for n in columns] for row in rows]
    labels = _count_labels(rows)
    while 1 < labels < len(rows) and len(_used(rows[:1])) < len(_used(rows[1:2])):
        header = _join_header(*rows[:2])
        if len(set(header)) < len(header):  # a label over several columns belongs to each of them
            header = _join_header(accumulate(rows[0], lambda left, own: own or left), rows[1])
        rows, labels = [header, *rows[2:]], labels - 1
    return markdown_table(rows)


def _join_header(upper: Iterable[str], lower: Iterable[str]) -> list[str]:
    pairs = zip(upper, lower, strict=True)
    return [above if above == below else f"{above} {below}".strip() for above, below in pairs]


def _text(element: ElementTree.Element) -> str:
    """Return the text of a string, without the signs of its pronunciation."""
    readings = {
        id(t) for phonetic in named_elements(element, "rPh") for t in named_elements(phonetic, "t")
    }
    return "".join(
        each.text or "" for each in named_elements(element, "t") if id(each) not in readings
    )


def _column(letters: str) -> int:
    """Return the number of a column, from 0.

    >>> _column("A"), _column("AB")
    (0, 27)
    """
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _number(value: str, number: int, code: str, first_day: datetime = _FIRST_DAY) -> str:
    """Write a number as its format shows it: as a date, hours, a percentage or with 15 digits.

    Parameters:
        value: the number.
        number: the number of its format.
        code: the code of its format without texts, if it is the workbook's own.
        first_day: the day 0 of the workbook.

    >>> _number("45292", 14, ""), _number("0.125", 9, ""), _number("2.2000000000000002", 0, "")
    ('2024-01-01', '12.5%', '2.2')
    >>> _number("1.5625", 164, "[h]:mm")
    '37:30:00'
    """
    if number == _ELAPSED_FORMAT or _ELAPSED.search(code):
        return _hours(float(value))
    if number in _DATE_FORMATS or re.search(r"[ymdhs]", code, re.IGNORECASE):
        return _date(float(value), first_day)
    if number in _PERCENT_FORMATS or "%" in code:
        return f"{100 * float(value):.10g}%"
    return f"{float(value):.15g}" if "." in value else value


def _date(days: float, first_day: datetime = _FIRST_DAY) -> str:
    """Write a date, counted in days, or a time of day if there is no date.

    >>> _date(45292.0), _date(45292.5), _date(0.25)
    ('2024-01-01', '2024-01-01 12:00:00', '06:00:00')
    """
    moment = first_day + timedelta(seconds=round(days * 86_400))
    if days < 1:
        return moment.time().isoformat()
    return moment.date().isoformat() if days == int(days) else moment.isoformat(" ")


def _hours(days: float) -> str:
    """Write a length of time, counted in days, in hours, minutes and seconds."""
    minutes, seconds = divmod(abs(round(days * 86_400)), 60)
    return f"{'-' * (days < 0)}{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
