"""Workbooks (XLSX) as Markdown tables."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from xml.etree import ElementTree

from rag_splitters.reading.archives import (
    check_archive,
    damaged_file,
    named_elements,
    parse_part,
)
from rag_splitters.reading.markdown import markdown_table

_DATE_FORMATS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_LITERAL = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_COLUMN = re.compile(r"[A-Z]{1,3}")
_MOST_COLUMNS = 1_000  # of a sheet; cells further to the right are dropped
_FIRST_DAY = datetime(1899, 12, 30)


def read_xlsx(data: bytes, name: str) -> str:
    """Read a workbook as Markdown: each sheet as a heading and a table.

    Formulas are read as their last results, and dates as ISO 8601. Charts, comments, hidden sheets
    and empty rows are dropped.

    Parameters:
        data: the workbook.
        name: its name, for error messages.

    Raises InputError if the workbook is damaged or protected, or unpacks to more than 500 MB.
    """
    check_archive(data, name, "XLSX")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return "\n\n".join(_Workbook(archive).sheets())
    except Exception as error:
        raise damaged_file(name, "XLSX", error) from error


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
        self.is_date = [_is_date(each.get("numFmtId", "0"), formats) for each in styles]

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
                rows = [
                    self._row(row) for row in named_elements(parse_part(self.archive, path), "row")
                ]
                if table := markdown_table([row for row in rows if any(row)]):
                    yield f"# {' '.join(sheet.get('name', '').split())}\n\n{table}"

    def _parts(self, path: str, name: str) -> list[ElementTree.Element]:
        """Return the elements with a name in a part of the workbook, which may be missing."""
        with suppress(KeyError):
            return list(named_elements(parse_part(self.archive, path), name))
        return []

    def _row(self, row: ElementTree.Element) -> list[str]:
        values: list[str] = []
        for cell in named_elements(row, "c"):
            place = _COLUMN.match(cell.get("r", ""))
            column = _column(place[0]) if place else len(values)
            if column < _MOST_COLUMNS:
                values += [""] * (column + 1 - len(values))
                values[column] = self._value(cell)
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
        style = int(cell.get("s", "0"))
        if kind == "n" and value and style < len(self.is_date) and self.is_date[style]:
            with suppress(ValueError, OverflowError):
                return _date(float(value))
        return value


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


def _is_date(number: str, formats: dict[str | None, str]) -> bool:
    """Whether numbers in a format are dates or times."""
    if number in formats:
        return bool(re.search(r"[ymdhs]", _LITERAL.sub("", formats[number]), re.IGNORECASE))
    return int(number) in _DATE_FORMATS


def _date(days: float) -> str:
    """Write a date, or a time of day if there is no date.

    >>> _date(45292.0), _date(45292.5), _date(0.25)
    ('2024-01-01', '2024-01-01 12:00:00', '06:00:00')
    """
    moment = _FIRST_DAY + timedelta(seconds=round(days * 86_400))
    if days < 1:
        return moment.time().isoformat()
    return moment.date().isoformat() if days == int(days) else moment.isoformat(" ")
