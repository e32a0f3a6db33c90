"""Tables of comma- or tab-separated values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rag_splitters.structure.tables.model import Cell, Row, Table
from rag_splitters.text.lines import LINE, LINE_BREAK

_SENTENCE_END = (".", ":", ";", "!", "?", ",", "\u2026")
_DELIMITERS = "\t,;"
_FIELD_END = {each: re.compile(rf"[\r\n{re.escape(each)}]") for each in _DELIMITERS}
_LINES = 50  # at the beginning of a text, which show whether it is a table
_FEWEST = 3  # minimum number of records in a table; two if they are separated by tabs
_WORDS = 2.5  # average number of words in a field after ", "; with more, the lines are prose
_LABEL = 40  # characters in a column's label
_LABEL_WORDS = 5
_SENTENCE = re.compile(r"[.;:!?]\s|[.;:!?\u2026]\Z|\u2014")


@dataclass(eq=False, kw_only=True)
class SeparatedTable(Table):
    """A table with one record per line and a separator between the fields.

    A field in double quotes may contain separators, line breaks and doubled quotes. The first
    record is the header, unless it contains no letter. The standard library's `csv` cannot be used:
    it reports no positions, and it refuses fields over 131,072 characters and, before Python 3.11,
    null bytes.

    Parameters: those of `Table`, and
        delimiter: the separator.
    """

    delimiter: str

    @classmethod
    def of(cls, text: str, records: Sequence[Row], delimiter: str) -> SeparatedTable:
        """Return the table of these records."""
        first = text[records[0].start : records[0].end]
        count = int(any(map(str.isalpha, first)))
        start, end = records[0].start, records[-1].end
        return cls(text, start, end, records[:count], records[count:], delimiter=delimiter)

    @classmethod
    def read(cls, text: str, delimiter: str) -> SeparatedTable | None:
        """Read a whole text as one table; None if it is blank."""
        records = [row for row, _ in _records(text, 0, len(text), delimiter)]
        rows = [row for row in records if text[row.start : row.end].strip()]
        return cls.of(text, rows, delimiter) if rows else None

    @property
    def head(self) -> Sequence[Row]:
        """The rows to repeat before others."""
        return self.header

    def cells(self, row: Row) -> Sequence[Cell]:
        return _cells(self.text, row, self.delimiter)

    def escape(self, cell: Cell) -> str:
        return '""' if cell.start > cell.begin else ""


def separated_tables(text: str, start: int, end: int) -> list[SeparatedTable]:
    """Find the tables in a part of a text: lines with the same number of fields, at least two.

    The fields of the first line must be short: labels or data, not sentences or log messages. Prose
    is not a table: spaces follow its commas, its fields are long, and its lines end with full
    stops.

    >>> text = "See:\\nname,age\\nAda,36\\nAlan,41\\n"
    >>> [(table.start, table.end) for table in separated_tables(text, 0, len(text))]
    [(5, 28)]
    """
    tables: list[SeparatedTable] = []
    position = start
    while position < end:
        table = None
        line = _line_end(text, position, end)
        for delimiter in _DELIMITERS:
            if text.find(delimiter, position, line) >= 0:
                table = _table(text, position, end, delimiter)
            if table:
                break
        if table:
            tables.append(table)
            line = table.end
        match = LINE_BREAK.match(text, line, end)
        position = match.end() if match else max(line, position + 1)
    return tables


def is_separated(text: str, delimiter: str) -> bool:
    """Whether a text is a table, as far as its first lines show."""
    if delimiter not in text.partition("\n")[0]:
        return False
    beginning = "\n".join(text.strip("\n").split("\n", _LINES)[:_LINES])
    table = _table(beginning, 0, len(beginning), delimiter)
    return table is not None and (table.end == len(beginning) or '"' in beginning[table.end :])


def delimiter_of(text: str, delimiters: str) -> str:
    """Return the delimiter that is the most frequent in the first line of a text."""
    first = LINE.match(text.lstrip())
    return max(delimiters, key=(first[0] if first else "").count)


def may_be_separated(text: str, delimiters: str) -> bool:
    """Whether most of the first lines have as many fields as the first one, at least two."""
    delimiter = delimiter_of(text, delimiters)
    records = islice(_records(text.strip(), 0, len(text.strip()), delimiter), _LINES)
    counts = [fields for _, fields in records]
    return bool(counts) and counts[0] > 1 and 2 * counts.count(counts[0]) > len(counts)


def _table(text: str, start: int, end: int, delimiter: str) -> SeparatedTable | None:
    """Return the table whose first record begins at `start`, if there is one."""
    rows: list[Row] = []
    count = 0
    for row, fields in _records(text, start, end, delimiter):
        if fields < 2 or (count and fields != count):
            break
        if not text[row.start : row.end].strip(delimiter + " \t"):
            break
        if len(rows) == 8 and _is_prose(text, rows, count, delimiter):
            return None
        if not rows and not _are_labels(text, _cells(text, row, delimiter)):
            return None
        rows.append(row)
        count = fields
    fewest = 2 if delimiter == "\t" else _FEWEST
    if len(rows) < fewest or _is_prose(text, rows[:8], count, delimiter):
        return None
    return SeparatedTable.of(text, rows, delimiter)


def _cells(text: str, row: Row, delimiter: str) -> list[Cell]:
    cells: list[Cell] = []
    position = row.start
    while True:
        start, end, stop = _field(text, position, row.end, delimiter)
        cells.append(Cell(position, start, end, len(cells)))
        if stop >= row.end:
            return cells
        position = stop + 1


def _are_labels(text: str, cells: Sequence[Cell]) -> bool:
    """Whether all fields are short enough for the labels of columns, and no parts of sentences."""
    for field in (text[cell.start : cell.end].strip() for cell in cells):
        words = len(field.split())
        if len(field) > _LABEL or words > _LABEL_WORDS or (words > 1 and _SENTENCE.search(field)):
            return False
        if any(field.count(one) != field.count(other) for one, other in ("()", "[]", "{}")):
            return False
    return True


def _is_prose(text: str, rows: Sequence[Row], fields: int, delimiter: str) -> bool:
    """Whether these lines look like sentences or code instead of records."""
    lines = [text[row.start : row.end] for row in rows]
    if any(not line[:1].strip() for line in lines):
        return True  # indented: a list, code
    ends = sum(line.rstrip().endswith(_SENTENCE_END) for line in lines)
    if delimiter == "\t":
        return False
    starts = [cell.start for row in rows for cell in _cells(text, row, delimiter)[1:]]
    if 2 * sum(text.startswith(" ", start) for start in starts) <= len(starts):
        return 2 * ends > len(lines)
    words = sum(len(line.split()) for line in lines)
    return fields < 3 or ends > 0 or words > _WORDS * fields * len(lines)


def _records(text: str, start: int, end: int, delimiter: str) -> Iterator[tuple[Row, int]]:
    """Yield the records from `start` on, each with its number of fields."""
    position = start
    while position < end:
        stop = _line_end(text, position, end)
        if text.find('"', position, stop) < 0:
            fields = text.count(delimiter, position, stop) + 1
        else:
            fields, field = 1, position
            while True:
                _, _, stop = _field(text, field, end, delimiter)
                if stop >= end or text[stop] != delimiter:
                    break
                fields, field = fields + 1, stop + 1
        yield Row(position, stop), fields
        match = LINE_BREAK.match(text, stop, end)
        position = match.end() if match else end


def _field(text: str, begin: int, end: int, delimiter: str) -> tuple[int, int, int]:
    """Return the start and end of the content of the field at `begin`, and the end of the field."""
    if text.startswith('"', begin, end):
        quote = text.find('"', begin + 1, end)
        while quote >= 0 and text.startswith('"', quote + 1, end):
            quote = text.find('"', quote + 2, end)
        if quote >= 0 and (quote + 1 == end or text[quote + 1] in (delimiter, "\r", "\n")):
            return begin + 1, quote, quote + 1
    match = _FIELD_END[delimiter].search(text, begin, end)
    stop = match.start() if match else end
    return begin, stop, stop


def _line_end(text: str, start: int, end: int) -> int:
    match = LINE_BREAK.search(text, start, end)
    return match.start() if match else end
