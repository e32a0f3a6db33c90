"""The encodings of texts that say how they are encoded."""

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


def declared_encoding(name: str) -> str:
    """Return the encoding that browsers use for a declared one (the Encoding Standard).

    Programs write the name of the smaller encoding and use letters of the larger one.

    Raises: LookupError if Python does not know the encoding.

    >>> declared_encoding("ISO-8859-1"), declared_encoding("koi8-r")
    ('cp1252', 'koi8-r')
    """
    return _IN_BROWSERS.get(codecs.lookup(name).name, name)
