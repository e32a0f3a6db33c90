"""Bytes into text: by their byte order mark, as UTF-8, by what they declare, or by a guess."""

from __future__ import annotations

import codecs
import logging
import re

from rag_splitters.extras import install_command

logger = logging.getLogger(__name__)

_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARATION = re.compile(
    rb"<meta\b[^>]{0,200}?\bcharset\s*=\s*[\"']?\s*([\w.:+-]+)"
    rb"|<\?xml\b[^>]{0,100}?\bencoding\s*=\s*[\"']([\w.:+-]+)"
    rb"|\A\s*@charset\s+\"([\w.:+-]+)\"",
    re.IGNORECASE,
)
_BEGINNING = 2048  # bytes in which a page declares its encoding
_IN_BROWSERS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
"""What a declared encoding means in practice, as browsers read it (the Encoding Standard)."""


def decode(data: bytes, name: str) -> str:
    """The text of a file, without a byte order mark. No character is ever replaced.

    A text without a mark that is not UTF-8 is read in the encoding that HTML, XML or CSS declares,
    else in the one that charset-normalizer takes it for. That is a guess, so a warning in the log
    names it.

    Parameters:
        data: the bytes.
        name: the file's name, for error messages.

    Raises: ValueError if it is not a text file, or if no encoding fits; ImportError if
    charset-normalizer is needed and not installed.

    >>> decode("naïve".encode("utf-16"), "a.txt")
    'naïve'
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decode_marked(data[len(mark) :], encoding, name)
    if (nul := data.find(0)) >= 0:
        raise ValueError(f"{name} is not a text file: it has a NUL byte at offset {nul}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte 0x{data[error.start]:02x} at offset {error.start}"
    declared = _declared_encoding(data)
    if declared:
        try:
            return data.decode(declared)
        except (UnicodeDecodeError, LookupError):  # "hex" and "rot13" are codecs, but of no text
            logger.warning("%s declares the encoding %s, but is not in it", name, declared)
    return _guess(data, name, where)


def _decode_marked(data: bytes, encoding: str, name: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} is not a text file: its byte order mark says {encoding}, but it has the byte "
            f"0x{data[error.start]:02x} at offset {error.start} behind it"
        ) from None


def _declared_encoding(data: bytes) -> str | None:
    """The encoding that the beginning of HTML, XML or CSS declares, if Python knows it."""
    declaration = _DECLARATION.search(data[:_BEGINNING])
    if declaration is None:
        return None
    try:
        encoding = codecs.lookup(next(filter(None, declaration.groups())).decode("ascii"))
    except LookupError:
        return None
    return _IN_BROWSERS.get(encoding.name, encoding.name)


def _guess(data: bytes, name: str, where: str) -> str:
    """The text in the encoding that charset-normalizer takes it for."""
    try:
        from charset_normalizer import from_bytes
    except ImportError as error:
        raise ImportError(
            f"{name} is not in UTF-8 ({where}): save it as UTF-8, or have its encoding "
            f"guessed: {install_command('encodings')}"
        ) from error
    match = from_bytes(data).best()
    if match is None:
        raise ValueError(
            f"{name} is not a text file in any known encoding; in UTF-8 it has {where}"
        )
    logger.warning("%s is not in UTF-8 (%s): it is read as %s", name, where, match.encoding)
    return data.decode(match.encoding)
