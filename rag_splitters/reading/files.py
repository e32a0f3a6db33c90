"""Reading files as text: UTF-8 of any kind as it is, and PDF through pypdf."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["SUFFIXES", "decode", "find_files", "read_text"]

SUFFIXES = frozenset({".htm", ".html", ".markdown", ".md", ".pdf", ".rst", ".txt"})
"""The files that are read when a folder is named."""


def find_files(paths: Sequence[Path], *, skip: Path | None = None) -> list[Path]:
    """The named files, and the files with one of `SUFFIXES` inside the named folders.

    Hidden files and folders are left out, and so is the folder `skip`. A file that is named twice
    is listed once.

    Raises: FileNotFoundError if a path does not exist; ValueError if a folder holds no such file.
    """
    files: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        named = list(_files_inside(path, skip)) if path.is_dir() else [path]
        if not named:
            raise ValueError(f"{path} holds no files to read ({' '.join(sorted(SUFFIXES))})")
        for file in named:
            files.setdefault(os.path.abspath(file), file)
    return list(files.values())


def read_text(path: str | Path) -> str:
    """The text of a file.

    UTF-8 text of any kind (Markdown, HTML, source code) comes as it is, with its line breaks and
    tags, but without a byte order mark. A PDF comes as its pages with form feeds between them, from
    which `PageChunker` knows the page numbers.

    Raises: OSError if the file cannot be opened; ValueError if it is not a text file, or a damaged
    PDF; ImportError for a PDF if pypdf is not installed. Every message names the file.
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
    return decode(data, str(path))


def decode(data: bytes, name: str) -> str:
    """The text in the bytes of a file; `name` appears in error messages, and its suffix marks PDFs.

    >>> decode(b"\\xef\\xbb\\xbfplain text", "notes.txt")
    'plain text'
    """
    if data.startswith(b"%PDF-") or name.lower().endswith(".pdf"):
        return _pdf_text(data, name)
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


def _pdf_text(data: bytes, name: str) -> str:
    """The pages of a PDF, with a form feed between them and none inside."""
    try:
        from pypdf import PasswordType, PdfReader
    except ImportError as error:
        raise ImportError(
            f"reading {name} needs pypdf: pip install 'rag-splitters[pdf]'"
        ) from error
    try:
        reader = PdfReader(io.BytesIO(data))
        is_locked = reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED
        pages = [] if is_locked else [page.extract_text() for page in reader.pages]
    except Exception as error:  # pypdf may raise nearly anything on a damaged file
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{name} cannot be read as PDF: {reason}") from error
    if is_locked:
        raise ValueError(f"{name} cannot be read: it is protected by a password")
    return "\f".join(page.replace("\f", " ") for page in pages)


def _files_inside(folder: Path, skip: Path | None) -> Iterator[Path]:
    """The files inside a folder that are read, in order."""
    for name, folders, files in os.walk(folder):
        here = Path(name)
        visible = sorted(each for each in folders if not each.startswith("."))
        folders[:] = [each for each in visible if not _is_same(here / each, skip)]
        for file in sorted(files):
            if not file.startswith(".") and Path(file).suffix.lower() in SUFFIXES:
                yield here / file


def _is_same(one: Path, other: Path | None) -> bool:
    return other is not None and one.exists() and other.exists() and one.samefile(other)
