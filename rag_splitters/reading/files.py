"""Reading files: text as it is, notebooks, subtitles and mails for their words, PDF by pages."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_splitters.reading.decoding import decode
from rag_splitters.reading.office import read_docx, read_pptx
from rag_splitters.reading.pdf import read_pdf
from rag_splitters.span import Source
from rag_splitters.structure.kinds import READ_KINDS, kind_of_name
from rag_splitters.structure.outlined import write_outline
from rag_splitters.structure.read_kinds import read_kind
from rag_splitters.text.origin import (
    READ_ALL,
    Reading,
    ReadingOptions,
    UnreadableError,
    write_origin,
)

logger = logging.getLogger(__name__)

_OTHER_SUFFIXES = (".docx", ".pdf", ".pptx", ".txt")
_MOST_SUFFIXES = 8  # that a note names


def find_files(paths: Sequence[Path], *, skip: Path | None = None) -> tuple[list[Path], list[Path]]:
    """The named files, and the files inside the named folders whose names say what they are.

    These are PDFs, `.docx`, `.pptx` and `.txt` files, and every kind that `structure.kinds` knows
    by name. Hidden files and folders are left out, and so is the folder `skip`. A file that is
    named twice is listed once.

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


def read_sources(path: str | Path, options: ReadingOptions = READ_ALL) -> Iterator[Source]:
    """The sources in a file, or in all files of a known kind inside a folder; see `find_files`.

    Says in a warning in the log how many files of a folder it passed over, and of which kinds.

    Raises: what `read_file` and `find_files` raise.
    """
    path = Path(path)
    if not path.is_dir():
        yield from read_file(path, options)
        return
    files, others = find_files([path])
    if others:
        logger.warning("%s: passed over %s", path, describe_files(others))
    for file in files:
        yield from read_file(file, options)


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
    """Does a file's name say that it is a text and of which kind, or a PDF or an Office file?"""
    return file.suffix.lower() in _OTHER_SUFFIXES or kind_of_name(file.name) is not None


def read_file(path: str | Path, options: ReadingOptions = READ_ALL) -> list[Source]:
    """The sources in a file: one, or of a mailbox one for each message; see `read_bytes`.

    Raises: OSError if the file cannot be opened; ValueError if it is not a text file, or is damaged
    or of another kind than its name says; ImportError if the library for its kind is not installed.
    Every message names the file.
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
    return read_bytes(data, path.as_posix(), options)


def read_text(path: str | Path) -> str:
    """The text of a file; the messages of a mailbox with blank lines between them."""
    return _joined(read_file(path))


def text_from_bytes(data: bytes, name: str) -> str:
    """The text of a file from its bytes; see `read_text`."""
    return _joined(read_bytes(data, name))


def _joined(sources: Sequence[Source]) -> str:
    return "\n\n".join(source.text for source in sources)


def read_bytes(data: bytes, name: str, options: ReadingOptions = READ_ALL) -> list[Source]:
    """The sources in the bytes of a file; `name` says what it is, is their id, and in `source`.

    Text of most kinds (Markdown, HTML, source code) comes as it is, with its line breaks and tags,
    but without a byte order mark; see `decode` for its encoding. Of notebooks, subtitles and mails,
    what there is to read comes; see `read_kind`. The metadata say where each part of it stands in
    the file, so that each chunk has `file_start` and `file_end`: offsets in the file's text without
    a byte order mark in code points, or in bytes in a mail that is not UTF-8. The messages of a
    mailbox have the name, "#" and their Message-ID as their ids.

    A PDF comes as its pages with form feeds between them, as `page_start` and `page_end` in the
    metadata say; every strategy reads them there. Running heads and page numbers are dropped from
    it, and words that a line's end divides are in one piece. Its headings, by their fonts, are in
    the metadata as `outline`. Word documents and presentations come as Markdown; the slides of a
    presentation are its pages.

    >>> read_bytes(b"\\xef\\xbb\\xbfplain text", "notes.txt")[0].text
    'plain text'
    """
    if data.startswith(b"%PDF-") or name.lower().endswith(".pdf"):
        text, headings = read_pdf(data, name)
        pages = {"page_start": 1, "page_end": text.count("\f") + 1}
        return [Source(text, {"source": name, **pages, **write_outline(text, headings)}, name)]
    suffix = name.lower().rpartition(".")[2]
    if suffix == "docx":
        return [Source(read_docx(data, name), {"source": name, "mimetype": "text/markdown"}, name)]
    if suffix == "pptx":
        return [_presentation(data, name)]
    kind = kind_of_name(name)
    if kind not in READ_KINDS:
        return [Source(decode(data, name), {"source": name}, name)]
    text, is_bytes = _decode_mail(data, name) if kind == "mail" else (decode(data, name), False)
    try:
        readings = read_kind(text, kind, options, is_bytes=is_bytes, name=name)
    except UnreadableError as error:
        raise ValueError(f"{name} cannot be read as {_NAMES[kind]}: {error}") from error
    if not readings:
        return [Source("", {"source": name}, name)]
    ids = _ids(name, readings)
    return [
        Source(each.text, {"source": name, **each.to_metadata()}, new_id)
        for each, new_id in zip(readings, ids, strict=True)
    ]


def _presentation(data: bytes, name: str) -> Source:
    """A presentation, whose slides are its pages."""
    text, rows = read_pptx(data, name)
    pages = {"page_start": rows[0][1], "page_end": rows[-1][1]} if rows else {}
    origin = write_origin(text, {"page": rows})
    return Source(text, {"source": name, "mimetype": "text/markdown", **pages, **origin}, name)


_NAMES = {"notebook": "a notebook", "subtitles": "subtitles", "mail": "mail"}


def _ids(name: str, readings: Sequence[Reading]) -> Iterator[str]:
    """The ids of the texts in a file, each different."""
    if len(readings) == 1:
        yield name
        return
    used: set[str] = set()
    for number, reading in enumerate(readings, 1):
        new_id = f"{name}#{reading.metadata.get('message_id', number)}"
        yield new_id if new_id not in used else f"{new_id}#{number}"
        used.add(new_id)


def _decode_mail(data: bytes, name: str) -> tuple[str, bool]:
    """A mail as UTF-8 or, if it is of several encodings, its bytes as characters."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1"), True
    return decode(data, name), False


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
