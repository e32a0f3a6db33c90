"""Reading files: UTF-8 text of any kind as it is, and PDF as its pages."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_splitters.reading.pdf import pdf_text
from rag_splitters.span import Source
from rag_splitters.structure.kinds import KINDS

_PROSE = ("markdown", "html", "rst", "asciidoc", "latex", "mail", "subtitles")
SUFFIXES = frozenset(
    f".{suffix}"
    for suffixes in ("pdf txt", *(KINDS[name].suffixes for name in _PROSE))
    for suffix in suffixes.split()
)
"""The files that are read when a folder is named."""


def find_files(paths: Sequence[Path], *, skip: Path | None = None) -> tuple[list[Path], list[Path]]:
    """The named files, and the files with one of `SUFFIXES` inside the named folders.

    Hidden files and folders are left out, and so is the folder `skip`. A file that is named twice
    is listed once.

    Returns: the files to read, and the files inside the folders that have another suffix.

    Raises: FileNotFoundError if a path does not exist; ValueError if a folder holds no such file.
    """
    files: dict[str, Path] = {}
    others: list[Path] = []
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        inside = list(_files_inside(path, skip)) if path.is_dir() else []
        named = [file for file in inside if file.suffix.lower() in SUFFIXES]
        if path.is_dir() and not named:
            raise ValueError(f"{path} holds no files to read ({' '.join(sorted(SUFFIXES))})")
        others += [file for file in inside if file.suffix.lower() not in SUFFIXES]
        for file in named or [path]:
            files.setdefault(os.path.abspath(file), file)
    return list(files.values()), [each for each in others if os.path.abspath(each) not in files]


def read_source(path: str | Path) -> Source:
    """A file as a source, whose id and `source` in the metadata are the path.

    UTF-8 text of any kind (Markdown, HTML, source code) comes as it is, with its line breaks and
    tags, but without a byte order mark. A PDF comes as its pages with form feeds between them, as
    `page_start` and `page_end` in the metadata say; every strategy reads them there. Running heads
    and page numbers are dropped from it, and words that a line's end divides are in one piece.

    Raises: OSError if the file cannot be opened; ValueError if it is not a text file, or a PDF
    that cannot be read or holds no text; ImportError for a PDF if pypdfium2 is not installed. Every
    message names the file.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OSError(f"{path} cannot be read: {error.strerror or error}") from error
    return source_from_bytes(data, path.as_posix())


def read_text(path: str | Path) -> str:
    """The text of a file; see `read_source`."""
    return read_source(path).text


def source_from_bytes(data: bytes, name: str) -> Source:
    """The bytes of a file as a source; `name` is its id, and its suffix marks PDFs.

    >>> source_from_bytes(b"\\xef\\xbb\\xbfplain text", "notes.txt").text
    'plain text'
    """
    if data.startswith(b"%PDF-") or name.lower().endswith(".pdf"):
        text = pdf_text(data, name)
        pages = {"page_start": 1, "page_end": text.count("\f") + 1}
        return Source(text, {"source": name, **pages}, name)
    return Source(_decode(data, name), {"source": name}, name)


def _decode(data: bytes, name: str) -> str:
    nul = data.find(0)
    if nul >= 0:
        raise ValueError(f"{name} is not a text file: it has a NUL byte at offset {nul}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} is not a UTF-8 text file: byte 0x{data[error.start]:02x} at offset "
            f"{error.start}"
        ) from None


def _files_inside(folder: Path, skip: Path | None) -> Iterator[Path]:
    """The files inside a folder that are not hidden, in order."""
    for name, folders, files in os.walk(folder):
        here = Path(name)
        visible = sorted(each for each in folders if not each.startswith("."))
        folders[:] = [each for each in visible if not _is_same(here / each, skip)]
        for file in sorted(files):
            if not file.startswith("."):
                yield here / file


def _is_same(one: Path, other: Path | None) -> bool:
    return other is not None and one.exists() and other.exists() and one.samefile(other)
