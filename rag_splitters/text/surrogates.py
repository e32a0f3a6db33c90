"""Lone surrogates, which Python strings can hold, but no client or store accepts."""

from __future__ import annotations


def without_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD; two that form a pair are joined.

    >>> without_surrogates("a\\ud800b") == "a\\ufffdb"
    True
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def replace_surrogates(text: str) -> str:
    """Replace each surrogate by U+FFFD; the length stays the same.

    >>> replace_surrogates("a\\ud800b") == "a\\ufffdb"
    True
    """
    return text if without_surrogates(text) == text else text.translate(_REPLACED)


_REPLACED = dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)
