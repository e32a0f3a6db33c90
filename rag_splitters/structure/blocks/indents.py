"""The indentation of lines."""

from __future__ import annotations


def line_start(text: str, position: int) -> int:
    """Return the start of the indentation before `position`, or `position` after other text.

    >>> line_start("a\\n  b", 4), line_start("a b", 2)
    (2, 2)
    """
    start = position
    while start and text[start - 1].isspace() and text[start - 1] not in "\r\n":
        start -= 1
    return start if not start or text[start - 1] in "\r\n" else position
