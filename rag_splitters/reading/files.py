"""Reading files as text: UTF-8 of any kind as it stands, and PDF through pypdf."""

from __future__ import annotations

import io
from pathlib import Path

__all__ = ["SUFFIXES", "decode", "read_text"]

SUFFIXES = frozenset({".htm", ".html", ".markdown", ".md", ".pdf", ".rst", ".txt"})
"""What is taken for text when a folder is read."""


def read_text(path: str | Path) -> str:
    """The text of a file.

    Text, Markdown, HTML and whatever else is UTF-8 come as they are, line breaks and tags included,
    without a byte order mark; a PDF as its pages with form feeds between them, by which
    `PageChunker` tells page numbers.

    Raises: OSError for what cannot be opened, ValueError for a file that is no text or a damaged
    PDF, ImportError for a PDF without pypdf; all of them name the file.
    """
    known = Path(path)
    if not known.exists():
        raise FileNotFoundError(f"{known}: no such file")
    if known.is_dir():
        raise IsADirectoryError(f"{known} is a folder, not a file")
    try:
        data = known.read_bytes()
    except OSError as error:
        raise OSError(f"{known} cannot be read: {error.strerror or error}") from error
    return decode(data, str(known))


def decode(data: bytes, name: str) -> str:
    """The text that these bytes are; `name` is for messages, and its suffix tells a PDF.

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
        locked = reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED
        pages = [] if locked else [page.extract_text() for page in reader.pages]
    except Exception as error:  # a damaged file can make pypdf raise nearly anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{name} cannot be read as PDF: {reason}") from error
    if locked:
        raise ValueError(f"{name} cannot be read: it is protected by a password")
    return "\f".join(page.replace("\f", " ") for page in pages)
