"""Markdown for what is read from documents, and what a cell of a table holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MARKUP = re.compile(
    r"^([ \t]*)(#{1,6}(?=\s|\Z)|>|`{3}|~{3}|[-+*](?=\s)|\d+(?=[.)]\s))", re.MULTILINE
)

NUMBER = re.compile(r"[-+−–(]?[$€£]?\s?\d[-\d.,:/ E]*\s?[%$€£]?\)?\Z")
"""Pattern of a cell with a number, an amount, a date or a time, and no words."""


def escape_markdown(text: str) -> str:
    """Escape a text, so that no line begins like a block of Markdown."""
    return _MARKUP.sub(_with_backslash, text)


def _with_backslash(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}\\" if match[2].isdigit() else f"{match[1]}\\{match[2]}"


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown, with its first row as the header; "" if it has no text."""
    if not any(cell.strip() for row in rows for cell in row):
        return ""
    width = max(map(len, rows))
    lines = [_line([*row, *[""] * (width - len(row))]) for row in rows]
    return "\n".join([lines[0], _line(["---"] * width), *lines[1:]])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(' '.join(cell.replace('|', chr(92) + '|').split()) for cell in cells)} |"
