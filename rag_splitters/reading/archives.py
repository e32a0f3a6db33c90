"""Books (EPUB) as text with headings, and workbooks (XLSX) as Markdown tables."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import unquote
from xml.etree import ElementTree

from rag_splitters.reading.decoding import decode
from rag_splitters.reading.office import check_archive, damaged_file, markdown_table
from rag_splitters.structure.block import Block
from rag_splitters.structure.html.text import plain_page

_PAGES = ("application/xhtml+xml", "text/html")
_DATE_FORMATS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_LITERAL = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_COLUMN = re.compile(r"[A-Z]{1,3}")
_MOST_COLUMNS = 1_000  # of a sheet; cells further to the right are dropped
_FIRST_DAY = datetime(1899, 12, 30)


def read_epub(data: bytes, name: str) -> tuple[str, list[Block], str]:
    """Read a book as text: its chapters in their order, without tags and images.

    Parameters:
        data: the book.
        name: its name, for error messages.

    Returns: the text, its headings, and the title of the book.

    Raises InputError if the book is damaged or protected, or unpacks to more than 500 MB.
    """
    check_archive(data, name, "EPUB")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            container = _xml(archive, "META-INF/container.xml")
            path = next(_named(container, "rootfile")).get("full-path", "")
            package = _xml(archive, path)
            chapters = [
                decode(archive.read(each), f"{name}: {each}") for each in _chapters(package, path)
            ]
    except Exception as error:  # damaged archives raise many kinds of errors
        raise damaged_file(name, "EPUB", error) from error
    parts: list[str] = []
    headings: list[Block] = []
    length = 0
    for page in map(plain_page, chapters):
        if page.text:
            headings += [
                replace(each, start=length + each.start, end=length + each.end)
                for each in page.blocks
                if each.kind == "heading" and each.title
            ]
            parts.append(page.text)
            length += len(page.text) + 2
    title = next((each.text or "" for each in _named(package, "title")), "")
    return "\n\n".join(parts), headings, " ".join(title.split())


def _chapters(package: ElementTree.Element, path: str) -> Iterator[str]:
    """Yield the paths of a book's chapters in their order."""
    items = {each.get("id"): each for each in _named(package, "item")}
    for reference in _named(package, "itemref"):
        item = items.get(reference.get("idref"))
        if item is not None and item.get("media-type") in _PAGES:
            target = unquote(item.get("href", ""))
            yield posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


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
        for sheet in _named(_xml(self.archive, "xl/workbook.xml"), "sheet"):
            key = next((value for key, value in sheet.items() if key.endswith("}id")), "")
            if sheet.get("state", "visible") == "visible" and key in targets:
                path = posixpath.normpath(posixpath.join("/xl", targets[key])).lstrip("/")
                rows = [self._row(row) for row in _named(_xml(self.archive, path), "row")]
                if table := markdown_table([row for row in rows if any(row)]):
                    yield f"# {' '.join(sheet.get('name', '').split())}\n\n{table}"

    def _parts(self, path: str, name: str) -> list[ElementTree.Element]:
        """Return the elements with a name in a part of the workbook, which may be missing."""
        with suppress(KeyError):
            return list(_named(_xml(self.archive, path), name))
        return []

    def _row(self, row: ElementTree.Element) -> list[str]:
        values: list[str] = []
        for cell in _named(row, "c"):
            place = _COLUMN.match(cell.get("r", ""))
            column = _column(place[0]) if place else len(values)
            if column < _MOST_COLUMNS:
                values += [""] * (column + 1 - len(values))
                values[column] = self._value(cell)
        return values

    def _value(self, cell: ElementTree.Element) -> str:
        kind = cell.get("t", "n")
        value = next((each.text or "" for each in _named(cell, "v")), "")
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


class _Builder(ElementTree.TreeBuilder):
    """Builds elements, and refuses a document type, which could declare harmful entities."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError(f"it has a document type ({name})")


def _xml(archive: zipfile.ZipFile, path: str) -> ElementTree.Element:
    """Parse a part of an archive."""
    parser = ElementTree.XMLParser(target=_Builder())  # noqa: S314 - see _Builder
    parser.feed(archive.read(path))
    root: ElementTree.Element = parser.close()
    return root


def _named(root: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    """Yield the elements with a name in any namespace."""
    return (each for each in root.iter() if each.tag.rpartition("}")[2] == name)


def _text(element: ElementTree.Element) -> str:
    """Return the text of a string, without the signs of its pronunciation."""
    readings = {id(t) for phonetic in _named(element, "rPh") for t in _named(phonetic, "t")}
    return "".join(each.text or "" for each in _named(element, "t") if id(each) not in readings)


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
