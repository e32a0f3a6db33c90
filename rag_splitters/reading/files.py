"""Reads files: text unchanged, PDF by pages, notebooks, subtitles and mails without markup."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rag_splitters.errors import FileError, InputError, MissingFileError
from rag_splitters.reading.decoding import decode, has_mark
from rag_splitters.reading.epub import read_epub
from rag_splitters.reading.parts import is_huge, read_parts
from rag_splitters.reading.pdf import read_pdf
from rag_splitters.reading.slides import read_pptx
from rag_splitters.reading.word import read_docx
from rag_splitters.reading.workbooks import read_xlsx
from rag_splitters.span import Source
from rag_splitters.structure.kinds import READ_KINDS, kind_of_name, read_kind
from rag_splitters.structure.stored_outline import write_outline
from rag_splitters.text.coloured import number_of
from rag_splitters.text.origin import (
    READ_ALL,
    Reading,
    ReadingOptions,
    Row,
    UnreadableError,
    line_range,
    write_origin,
)

logger = logging.getLogger(__name__)

_OTHER_SUFFIXES = (".docx", ".epub", ".pdf", ".pptx", ".txt", ".xlsx")
_REFUSED = {
    "msg": "save it as .eml, or convert it with the package extract-msg",
    **dict.fromkeys(("doc", "rtf", "odt"), "save it as .docx"),
    **dict.fromkeys(("xls", "ods", "xlsb"), "save it as .xlsx or .csv"),
    **dict.fromkeys(("ppt", "odp"), "save it as .pptx"),
    **dict.fromkeys(("zip", "gz", "tgz", "tar", "7z", "rar"), "unpack it first"),
    **dict.fromkeys(("mobi", "azw", "azw3"), "convert it to .epub, for example with Calibre"),
}
"""Kinds of files that no reader reads, and what to do with them."""
_MOST_SUFFIXES = 8  # in a message


def find_files(paths: Sequence[Path], *, skip: Path | None = None) -> tuple[list[Path], list[Path]]:
    """List the files among the paths, and the files of known kinds in the folders among them.

    Known kinds are PDFs, `.docx`, `.pptx`, `.xlsx`, `.epub` and `.txt` files, and everything that
    `structure.kinds` recognises by its name. Hidden files and folders are left out, and so are
    links to folders and the folder `skip`. A file that is named twice is listed once.

    Returns: the files to read, and the other files in the folders. A folder that cannot be read is
    among the former, so that reading it raises an error and nobody takes its files for removed.

    Raises: FileNotFoundError if a path does not exist; ValueError if a folder holds no such file.
    """
    files: dict[str, Path] = {}
    others: list[Path] = []
    for path in paths:
        if not os.path.exists(path):
            file_bytes(path)  # which says what is wrong
        inside = list(_files_inside(path, skip)) if path.is_dir() else []
        readable = [file for file in inside if _is_for_reading(file)]
        passed_over = [file for file in inside if not _is_for_reading(file)]
        if path.is_dir() and not readable:
            contents = f": there are only {describe_files(passed_over)}" if passed_over else ""
            raise InputError(f"{path} holds no files of a known kind{contents}")
        others += passed_over
        for file in readable or [path]:
            files.setdefault(os.path.abspath(file), file)
    return list(files.values()), [each for each in others if os.path.abspath(each) not in files]


def read_sources(path: str | Path, options: ReadingOptions = READ_ALL) -> Iterator[Source]:
    """Read a file, or all files of known kinds in a folder; see `find_files`.

    A warning in the log says how many files of a folder were skipped, and with which suffixes. A
    huge log or table is read in parts; see `read_parts`.

    Raises: what `read_file` and `find_files` raise.
    """
    path = Path(path)
    files, others = find_files([path]) if os.path.isdir(path) else ([path], [])
    if others:
        logger.warning("%s: skipped %s", path, describe_files(others))
    for file in files:
        is_large = os.path.isfile(file) and is_huge(file)
        yield from read_parts(file) if is_large else read_file(file, options)


def describe_files(files: Sequence[Path]) -> str:
    """Say how many files there are, and with which suffixes.

    >>> describe_files([Path("a.png"), Path("b.PNG"), Path("LICENCE")])
    '3 files: 2 .png, 1 without a suffix'
    """
    counts = Counter(file.suffix.lower() or "without a suffix" for file in files).most_common()
    names = [f"{count} {suffix}" for suffix, count in counts[:_MOST_SUFFIXES]]
    rest = sum(count for _, count in counts[_MOST_SUFFIXES:])
    others = f", {rest} others" if rest else ""
    return f"{number_of(len(files), 'file')}: {', '.join(names)}{others}"


def _is_for_reading(path: Path) -> bool:
    """Whether a path is a folder, or has the name of a text of a known kind, a PDF or an Office
    file, and is not a pipe or a device, from which reading might never end."""
    if os.path.exists(path) and not os.path.isfile(path):
        return os.path.isdir(path)
    return path.suffix.lower() in _OTHER_SUFFIXES or kind_of_name(path.name) is not None


def read_file(path: str | Path, options: ReadingOptions = READ_ALL) -> list[Source]:
    """Read a file: one source, or one for each message of a mailbox; see `read_bytes`.

    Raises: OSError if the file cannot be opened; ValueError if it is not a text file, or is damaged
    or of another kind than its name says; ImportError if the library for its kind is not installed.
    Every message names the file.
    """
    path = Path(path)
    return read_bytes(file_bytes(path), path.as_posix(), options)


def file_bytes(path: Path) -> bytes:
    """Return the bytes of a file. Raises FileError if it is missing, a folder or unreadable."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingFileError(f"{path}: no such file or folder") from error
    except OSError as error:
        if os.path.isdir(path) and os.access(path, os.R_OK):
            raise FileError(f"{path} is a folder, not a file") from error
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error


def read_text(path: str | Path) -> str:
    """Return the text of a file, with blank lines between the messages of a mailbox."""
    return join_sources(read_file(path), "")[0]


def join_sources(sources: Sequence[Source], name: str) -> tuple[str, Mapping[str, Any]]:
    """Return the text of a file, with blank lines between several sources, and its metadata.

    The metadata of several sources is only the name.
    """
    metadata = sources[0].metadata if len(sources) == 1 else {"source": name}
    return "\n\n".join(source.text for source in sources), metadata


def read_bytes(data: bytes, name: str, options: ReadingOptions = READ_ALL) -> list[Source]:
    """Read the bytes of a file. Its kind is detected by the name, which becomes id and `source`.

    Text of most kinds (Markdown, HTML, source code) stays as it is, with its line breaks and tags,
    but without a byte order mark; see `decode` for its encoding. The loaders of the front ends say
    what is read from other kinds. The metadata records where each part comes from (`line_start`,
    `page_start`, `origin`, `outline`), so that every strategy can give its chunks their lines,
    pages, headings or offsets: in code points in the file's text without a byte order mark, or in
    bytes in a mail that is not UTF-8. The id of a message in a mailbox is the name, "#" and the
    Message-ID.

    >>> read_bytes(b"\\xef\\xbb\\xbfplain text", "notes.txt")[0].text
    'plain text'
    """
    suffix = name.lower().rpartition(".")[2]
    if data.startswith(b"%PDF-") or suffix in ("docx", "epub", "pdf", "pptx", "xlsx"):
        return _with_text([_read_document(data, name, suffix)], name)
    if suffix in _REFUSED:
        raise InputError(f"{name} cannot be read: {_REFUSED[suffix]}")
    kind = kind_of_name(name)
    if kind not in READ_KINDS:
        text = decode(data, name)
        return [Source(text, {"source": name, **line_range(text)}, name)]
    text, is_bytes = _decode_mail(data, name) if kind == "mail" else (decode(data, name), False)
    try:
        readings = read_kind(text, kind, options, is_bytes=is_bytes, name=name)
    except UnreadableError as error:
        raise InputError(f"{name} cannot be read as {_NAMES[kind]}: {error}") from error
    sources = [
        Source(each.text, {"source": name, **each.to_metadata()}, new_id)
        for each, new_id in zip(readings, _ids(name, readings), strict=True)
    ]
    return _with_text(sources or [Source("", {"source": name}, name)], name)


def _with_text(sources: list[Source], name: str) -> list[Source]:
    """Return the sources of a file, and write a warning to the log if none of them has text."""
    if not any(source.text for source in sources):
        logger.warning("%s holds no text; images and encrypted parts are not read", name)
    return sources


def _read_document(data: bytes, name: str, suffix: str) -> Source:
    """Read a PDF, a book or an Office file. Pages and slides are numbered from 1."""
    metadata: dict[str, Any] = {"source": name}
    if data.startswith(b"%PDF-") or suffix == "pdf":
        text, headings = read_pdf(data, name)
        metadata |= {"page_start": 1, "page_end": text.count("\f") + 1}
        metadata |= write_outline(text, headings)
    elif suffix == "epub":
        text, headings, title = read_epub(data, name)
        metadata |= {"title": title} if title else {}
        metadata |= write_outline(text, headings)
    else:
        metadata["mimetype"] = "text/markdown"
        rows: list[Row] = []
        if suffix == "pptx":
            text, rows = read_pptx(data, name)
        else:
            text = read_docx(data, name) if suffix == "docx" else read_xlsx(data, name)
        if rows:
            metadata |= {"page_start": rows[0][1], "page_end": rows[-1][1]}
            metadata |= write_origin(text, {"page": rows})
    return Source(text, metadata, name)


_NAMES = {"notebook": "a notebook", "subtitles": "subtitles", "mail": "mail"}


def _ids(name: str, readings: Sequence[Reading]) -> Iterator[str]:
    """Yield unique ids for the texts in a file."""
    if len(readings) == 1:
        yield name
        return
    used: set[str] = set()
    for number, reading in enumerate(readings, 1):
        new_id = f"{name}#{reading.metadata.get('message_id', number)}"
        yield new_id if new_id not in used else f"{new_id}#{number}"
        used.add(new_id)


def _decode_mail(data: bytes, name: str) -> tuple[str, bool]:
    """Decode a mail by its mark, as UTF-8 or, if it mixes encodings, each byte as a character."""
    with suppress(UnicodeDecodeError):
        if not has_mark(data):
            data.decode("utf-8")
        return decode(data, name), False
    return data.decode("latin-1"), True


def _files_inside(folder: Path, skip: Path | None) -> Iterator[Path]:
    """Yield the files in a folder that are not hidden, sorted; then folders that cannot be read."""
    errors = list[OSError]()
    for name, folders, files in os.walk(folder, onerror=errors.append):
        here = Path(name)
        visible = sorted(each for each in folders if not each.startswith("."))
        folders[:] = [each for each in visible if not _is_same(here / each, skip)]
        for file in sorted(files):
            if not file.startswith("."):
                yield here / file
    yield from (Path(error.filename) for error in errors)


def _is_same(one: Path, other: Path | None) -> bool:
    return other is not None and one.exists() and other.exists() and one.samefile(other)
