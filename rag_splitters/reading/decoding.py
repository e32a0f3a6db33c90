"""Bytes to text: by a mark in them, as UTF-8, by the declared encoding, or by a guess."""

from __future__ import annotations

import codecs
import logging
import re
from contextlib import suppress

from rag_splitters.errors import InputError, MissingExtraError
from rag_splitters.extras import install_command
from rag_splitters.text.charsets import WESTERN, declared_encoding, is_damaged_utf_8

logger = logging.getLogger(__name__)

_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SHIFTS = {b"\x1b$)C": "iso2022_kr", b"\x1b$": "iso2022_jp_2"}
"""What begins Korean and Japanese in encodings of seven bits, in which every text is UTF-8, too."""
_DECLARATION = re.compile(
    rb"<meta\b[^>]{0,200}?\bcharset\s*=\s*[\"']?\s*([\w.:+-]+)"
    rb"|<\?xml\b[^>]{0,100}?\bencoding\s*=\s*[\"']([\w.:+-]+)"
    rb"|\A\s*@charset\s+\"([\w.:+-]+)\"",
    re.IGNORECASE,
)
_BEGINNING = 2048  # bytes at the beginning of a page that may declare its encoding
_WESTERN = "cp1252"
_GUESSES = (
    *(f"cp{page}" for page in (866, 874, 932, 949, *range(1250, 1258))),
    *(f"iso8859_{part}" for part in (2, 5, 6, 7, 8, 15)),
    *("big5", "euc_jp", "gb18030", "koi8_r", "koi8_u", "mac_cyrillic"),
)
"""The usual encodings that browsers know. Others, such as those of DOS, of Celtic languages and of
old Macs, are guessed wrongly more often than rightly: of the 388 files of chardet's tests, 18 are
read wrongly, and 21 with all that browsers know."""


def has_mark(data: bytes) -> bool:
    """Whether a text begins with a byte order mark, which says how it is encoded."""
    return data.startswith(tuple(mark for mark, _ in _MARKS))


def decode(data: bytes, name: str) -> str:
    """Decode a file's text, without a byte order mark. No character is ever replaced.

    A text with the escape sequences of ISO-2022 is read by them. Any other text without a mark that
    is not UTF-8 is read in the encoding that HTML, XML or CSS declares. Without one, it is UTF-8
    with a few bytes in cp1252, such as those of a letter that was cut off, or else in the encoding
    that charset-normalizer guesses; of equally likely ones, in cp1252. The log warns of both.

    Raises: ValueError if it is not a text file, or if no encoding fits; ImportError if
    charset-normalizer is needed and not installed.

    >>> decode("naïve".encode("utf-16"), "a.txt")
    'naïve'
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decode_marked(data[len(mark) :], encoding, name)
    if (nul := data.find(0)) >= 0:
        raise InputError(f"{name} is not a text file: it has a NUL byte at offset {nul}")
    for shift, encoding in _SHIFTS.items():
        if shift in data:
            with suppress(UnicodeDecodeError):
                return data.decode(encoding)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte 0x{data[error.start]:02x} at offset {error.start}"
    declared = _declared_encoding(data)
    if declared:
        try:
            return data.decode(declared)
        except (UnicodeDecodeError, LookupError):  # "hex" and "rot13" are no text encodings
            logger.warning("%s is not in the encoding %s that it declares", name, declared)
    if is_damaged_utf_8(data):
        logger.warning("%s is damaged UTF-8 (%s): reading such bytes as cp1252", name, where)
        return data.decode("utf-8", WESTERN)
    return _guess(data, name, where)


def _decode_marked(data: bytes, encoding: str, name: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not a text file: its byte order mark says {encoding}, but the byte "
            f"0x{data[error.start]:02x} at offset {error.start} is invalid there"
        ) from None


def _declared_encoding(data: bytes) -> str | None:
    """Return the encoding that the beginning of HTML, XML or CSS declares, if Python has it."""
    declaration = _DECLARATION.search(data[:_BEGINNING])
    if declaration is None:
        return None
    name = next(filter(None, declaration.groups())).decode("ascii")
    try:
        return declared_encoding(name)
    except LookupError:
        return None


def _guess(data: bytes, name: str, where: str) -> str:
    """Decode a text in the encoding that charset-normalizer guesses."""
    try:
        from charset_normalizer import from_bytes
    except ImportError as error:
        raise MissingExtraError(
            f"{name} is not in UTF-8 ({where}): save it as UTF-8, or install what is needed to "
            f"guess its encoding: {install_command('encodings')}"
        ) from error
    matches = from_bytes(data, cp_isolation=list(_GUESSES))
    match = matches.best()
    if match is None:
        raise InputError(
            f"{name} is not a text file in any known encoding; in UTF-8 it has {where}"
        )
    is_western = any(
        _WESTERN in each.could_be_from_charset
        and (each.chaos, -each.coherence) <= (match.chaos, -match.coherence)
        for each in matches
    )
    encoding = _WESTERN if is_western else match.encoding
    logger.warning("%s is not in UTF-8 (%s): reading it as %s", name, where, encoding)
    return data.decode(encoding)
