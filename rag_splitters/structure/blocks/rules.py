"""Block rules for markdown-it-py: display formulas, and bounds to nesting and looking ahead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

__all__ = ["Rule", "formula", "nested_less", "scans_less", "uncut_rows"]

Rule: TypeAlias = "Callable[[StateBlock, int, int, bool], bool]"

_MOST_NESTED = 32  # levels of lists, items and quotes; deeper marks are text
_REREAD = 4  # levels: deeper quotes end where their lazy lines do
_FORMULA_LINES = 200  # the most lines of a formula
_OPENING = re.compile(r"\$\$|\\\[|\\begin\{([a-z]{1,20}\*?)\}")
_ENVIRONMENTS = frozenset(
    name + star
    for name in ("equation", "align", "gather", "multline", "eqnarray", "displaymath", "math")
    for star in ("", "*")
)


def nested_less(rule: Rule) -> Rule:
    """The rule of a container, which refuses beyond a depth that no recursion limit comes near."""

    def limited(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        return state.level < _MOST_NESTED and rule(state, start, end, silent)

    return limited


def scans_less(quote: Rule) -> Rule:
    """The rule of quotes, made linear.

    It reads on behind the quote's end, over every line that might be lazy continuation, so that
    many short quotes without blank lines between them take quadratic time. Here it is shown the
    lines up to where quote marks begin again, and twice as many such runs each time that it takes
    them all.
    """

    def limited(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        if silent or not _is_marked(state, start):
            return silent and quote(state, start, end, silent)
        known, runs = len(state.tokens), 1
        while (stop := _runs(state, start, end, runs)) < end:
            if not quote(state, start, stop, silent):
                return False
            if state.line < stop or state.isEmpty(stop) or state.level >= _REREAD:
                return True
            del state.tokens[known:]
            state.line, runs = start, 2 * runs
        return quote(state, start, end, silent)

    return limited


def _runs(state: StateBlock, start: int, end: int, count: int) -> int:
    """Where so many runs end: of lines with a quote mark, and then of lines without."""
    line = start
    for _ in range(count):
        while line < end and _is_marked(state, line):
            line += 1
        while line < end and not _is_marked(state, line):
            if state.isEmpty(line):
                return line
            line += 1
    return line


def _is_marked(state: StateBlock, line: int) -> bool:
    return state.src.startswith(">", state.bMarks[line] + state.tShift[line])


def uncut_rows(table: Rule) -> Rule:
    """The rule of tables, without tokens for rows and cells: who needs them cuts them himself.

    Whether a table begins is the rule's to say; it ends at the same lines as there.
    """

    def whole(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        if silent or not table(state, start, end, True):
            return silent and table(state, start, end, True)
        parent, state.parentType = state.parentType, "table"
        ends = state.md.block.ruler.getRules("blockquote")
        line = start + 2
        while line < end and not (
            state.isEmpty(line)
            or state.sCount[line] < state.blkIndent
            or state.is_code_block(line)
            or any(rule(state, line, end, True) for rule in ends)
        ):
            line += 1
        state.push("table_open", "table", 1).map = [start, line]
        state.push("table_close", "table", -1)
        state.parentType, state.line = parent, line
        return True

    return whole


def formula(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """`$$ ... $$`, `\\[ ... \\]` or an equation environment that fills whole lines."""
    if state.is_code_block(start):
        return False
    text, begin, stop = state.src, state.bMarks[start] + state.tShift[start], state.eMarks[start]
    opening = _OPENING.match(text, begin, stop)
    if not opening or (opening.group(1) and opening.group(1) not in _ENVIRONMENTS):
        return False
    mark = opening.group()
    closing = {"$$": "$$", "\\[": "\\]"}.get(mark, f"\\end{{{opening.group(1)}}}")
    begin = opening.end()
    for line in range(start, min(end, start + _FORMULA_LINES)):
        if line > start:
            begin, stop = state.bMarks[line] + state.tShift[line], state.eMarks[line]
            if begin >= stop or state.sCount[line] < state.blkIndent:
                return False
        found = text.find(closing, begin, stop)
        if found < 0 and text.find(mark, begin, stop) < 0:
            continue
        if found < 0 or text[found + len(closing) : stop].strip(" \t.,;"):
            return False
        if not silent:
            token = state.push("formula", "", 0)
            token.map = [start, line + 1]
            state.line = line + 1
        return True
    return False
