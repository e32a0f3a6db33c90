"""How a text is encoded: what it declares, and UTF-8 that is damaged."""

from __future__ import annotations

import codecs

_IN_BROWSERS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}

_MOST_DAMAGED = 0.1  # invalid bytes for each letter of several bytes
_NOT_ASCII = bytes(range(0x80, 0x100))
_WESTERN_LETTERS = {
    letter.encode("cp1252")[0]: letter for letter in _NOT_ASCII.decode("cp1252", "ignore")
}

WESTERN = "rag_splitters.western"
"""For `bytes.decode`: invalid bytes are read as cp1252 or, where it has no letter, as Latin-1."""


def _decode_western(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    invalid = error.object[error.start : error.end]
    return invalid.decode("latin-1").translate(_WESTERN_LETTERS), error.end


codecs.register_error(WESTERN, _decode_western)


def is_damaged_utf_8(data: bytes) -> bool:
    """Whether a text is UTF-8 with few invalid bytes, such as those of a letter that was cut off.

    >>> text = "Чай зелёный, ".encode() + b"caf\\xe9"
    >>> is_damaged_utf_8(text), text.decode("utf-8", WESTERN)
    (True, 'Чай зелёный, café')
    """
    valid = data.decode("utf-8", "ignore")
    damaged = len(data) - len(valid.encode())
    letters = len(valid) - len(data.translate(None, _NOT_ASCII))
    return damaged <= _MOST_DAMAGED * letters


def declared_encoding(name: str) -> str:
    """Return the encoding that browsers use for a declared one (the Encoding Standard).

    Programs write the name of the smaller encoding and use letters of the larger one.

    Raises: LookupError if Python does not know the encoding.

    >>> declared_encoding("ISO-8859-1"), declared_encoding("koi8-r")
    ('cp1252', 'koi8-r')
    """
    return _IN_BROWSERS.get(codecs.lookup(name).name, name)
