"""Reads a huge log or table part by part, so that it need not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import IO

from rag_splitters.errors import FileError, InputError
from rag_splitters.span import Source
from rag_splitters.text.origin import line_breaks, line_range, write_origin

HUGE = 50_000_000
"""Files with more bytes are read in parts, if they consist of lines."""

OF_LINES = (".csv", ".jsonl", ".log", ".ndjson", ".tsv")
"""The suffixes of files that consist of independent lines."""

_PART = 1_000_000  # characters
_TABLES = (".csv", ".tsv")


def is_huge(path: Path) -> bool:
    """Whether a file is read in parts: a log, a table or JSON lines of more than 50 MB."""
    return path.suffix.lower() in OF_LINES and path.stat().st_size > HUGE


def read_parts(path: Path) -> Iterator[Source]:
    """Read a log, a table or JSON lines as one source for each million characters.

    A part ends before an entry, a record or a line, and its id is the path with its first and last
    line: `app.log#L1-L15000`. Text that is added to the end of the file changes only the last part.
    Each part of a table begins with the table's header, which counts as the lines before the part.
    The metadata gives chunks their lines and positions in the file; `row_start`, `json_path` and
    the like are counted in the part.

    Raises: ValueError if the file is not in UTF-8; OSError if it cannot be read.
    """
    name, header, start, line = path.as_posix(), "", 0, 1
    is_table = path.suffix.lower() in _TABLES
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for part in _parts(file, is_table, path.suffix.lower() == ".log"):
                if "\0" in part:
                    raise InputError(f"{name} is not a text file: it has a NUL byte")
                end, last = start + len(part), line + len(line_breaks(part))
                last -= part.endswith(("\n", "\r"))
                text = header + part
                rows = [(0, start, start)] * bool(header) + [(len(header), start, end)]
                numbers = line_range(text, line - len(line_breaks(header)))
                metadata = {"source": name, **numbers, **write_origin(text, {"file": rows})}
                yield Source(text, metadata, f"{name}#L{line}-L{last}")
                header = _header(part) if is_table and start == 0 else header
                start, line = end, line + len(line_breaks(part))
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is read in parts, because it is larger than {HUGE // 1_000_000} MB, and this "
            f"needs UTF-8: convert it first ({error})"
        ) from error
    except OSError as error:
        raise FileError(f"{name} cannot be read: {error.strerror or error}") from error


def _parts(file: IO[str], is_table: bool, is_log: bool) -> Iterator[str]:
    """Yield the text of a file in parts of whole records, entries or lines."""
    lines, length, quotes = list[str](), 0, 0
    while line := file.readline(_PART):
        if length >= _PART:
            is_inside = quotes % 2 or (is_log and line[0] in " \t") or lines[-1][-1] not in "\r\n"
            if not is_inside or length >= 2 * _PART:
                yield "".join(lines)
                lines, length, quotes = [], 0, 0
        lines.append(line)
        length += len(line)
        quotes += line.count('"') if is_table else 0
    if lines:
        yield "".join(lines)


def _header(text: str) -> str:
    """Return the first record of a table, unless it has no letter, as a header has."""
    end = quotes = 0
    for line in StringIO(text, newline=""):
        end, quotes = end + len(line), quotes + line.count('"')
        if quotes % 2 == 0:
            return text[:end] if any(map(str.isalpha, text[:end])) else ""
    return ""
