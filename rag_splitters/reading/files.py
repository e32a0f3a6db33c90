"""Reading files: text of any kind as it is, and PDF as its pages."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_splitters.reading.decoding import decode
from rag_splitters.reading.pdf import read_pdf
from rag_splitters.span import Source
from rag_splitters.structure.kinds import kind_of_name
from rag_splitters.structure.outlined import write_outline

logger = logging.getLogger(__name__)

_MOST_SUFFIXES = 8  # that a note names


def find_files(paths: Sequence[Path], *, skip: Path | None = None) -> tuple[list[Path], list[Path]]:
    """The named files, and the files inside the named folders whose names say what they are.

    These are PDFs, `.txt` files, and every kind that `structure.kinds` knows by name. Hidden files
    and folders are left out, and so is the folder `skip`. A file that is named twice is listed
    once.

    Returns: the files to read, and the other files inside the folders.

    Raises: FileNotFoundError if a path does not exist; ValueError if a folder holds no such file.
    """
    files: dict[str, Path] = {}
    others: list[Path] = []
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        inside = list(_files_inside(path, skip)) if path.is_dir() else []
        readable = [file for file in inside if _is_known(file)]
        passed_over = [file for file in inside if not _is_known(file)]
        if path.is_dir() and not readable:
            contents = f": there are only {describe_files(passed_over)}" if passed_over else ""
            raise ValueError(f"{path} holds no files of a known kind{contents}")
        others += passed_over
        for file in readable or [path]:
            files.setdefault(os.path.abspath(file), file)
    return list(files.values()), [each for each in others if os.path.abspath(each) not in files]


def read_sources(path: str | Path) -> Iterator[Source]:
    """A file as a source, or all files of a known kind inside a folder; see `find_files`.

    Says in a warning in the log how many files of a folder it passed over, and of which kinds.

    Raises: what `read_source` and `find_files` raise.
    """
    path = Path(path)
    if not path.is_dir():
        yield read_source(path)
        return
    files, others = find_files([path])
    if others:
        logger.warning("%s: passed over %s", path, describe_files(others))
    for file in files:
        yield read_source(file)


def describe_files(files: Sequence[Path]) -> str:
    """How many files there are, and with which suffixes.

    >>> describe_files([Path("a.png"), Path("b.PNG"), Path("LICENCE")])
    '3 files: 2 .png, 1 without a suffix'
    """
    counts = Counter(file.suffix.lower() or "without a suffix" for file in files).most_common()
    shown = [f"{count} {suffix}" for suffix, count in counts[:_MOST_SUFFIXES]]
    rest = sum(count for _, count in counts[_MOST_SUFFIXES:])
    total = "1 file" if len(files) == 1 else f"{len(files)} files"
    return f"{total}: {', '.join(shown)}{f', {rest} others' if rest else ''}"


def _is_known(file: Path) -> bool:
    """Does a file's name say that it is a PDF or a text, and of which kind?"""
    return file.suffix.lower() in (".pdf", ".txt") or kind_of_name(file.name) is not None


def read_source(path: str | Path) -> Source:
    """A file as a source, whose id and `source` in the metadata are the path.

    Text of any kind (Markdown, HTML, source code) comes as it is, with its line breaks and tags,
    but without a byte order mark; see `decode` for its encoding. A PDF comes as its pages with form
    feeds between them, as `page_start` and `page_end` in the metadata say; every strategy reads
    them there. Running heads and page numbers are dropped from it, and words that a line's end
    divides are in one piece. Its headings, by their fonts, are in the metadata as `outline`.

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
        text, headings = read_pdf(data, name)
        pages = {"page_start": 1, "page_end": text.count("\f") + 1}
        return Source(text, {"source": name, **pages, **write_outline(text, headings)}, name)
    return Source(decode(data, name), {"source": name}, name)


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
