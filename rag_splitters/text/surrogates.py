"""Lone surrogates, which a Python string can hold and no client or store accepts."""

from __future__ import annotations


def without_surrogates(text: str) -> str:
    """The text with U+FFFD in place of lone surrogates; two that belong together are joined.

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


def hide_surrogates(text: str) -> str:
    """The text with a private character in place of each surrogate; see `show_surrogates`.

    >>> show_surrogates(hide_surrogates("a\\ud800b")) == "a\\ud800b"
    True
    """
    return text if without_surrogates(text) == text else text.translate(_HIDDEN)


def show_surrogates(text: str) -> str:
    """The text that `hide_surrogates` was given."""
    return text.translate(_SHOWN)


_HIDDEN = {code: 0xF0000 + code for code in range(0xD800, 0xE000)}
_SHOWN = {hidden: code for code, hidden in _HIDDEN.items()}
