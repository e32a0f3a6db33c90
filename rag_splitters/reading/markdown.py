"""Markdown for files that have blocks, but no text of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MARKUP = re.compile(
    r"^([ \t]*)(#{1,6}(?=\s|\Z)|>|`{3}|~{3}|[-+*](?=\s)|\d+(?=[.)]\s))", re.MULTILINE
)


def markdown_item(text: str, depth: int, mark: str) -> str:
    """Write a list item with its mark, indented by its depth."""
    indent = "   " * depth
    rest = f"\n{indent}{' ' * (len(mark) + 1)}"
    return f"{indent}{mark} {rest.join(escape_markdown(text).splitlines())}"


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


def join_blocks(blocks: Iterable[tuple[str, bool]]) -> str:
    """Join the blocks with blank lines, or with line breaks between list items."""
    parts: list[str] = []
    after_item = False
    for block, is_item in blocks:
        if block:
            parts += ["\n" if is_item and after_item else "\n\n"] * bool(parts)
            parts.append(block)
            after_item = is_item
    return "".join(parts)
