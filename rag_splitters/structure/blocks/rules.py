"""Block rules for markdown-it-py: display formulas, and bounds to nesting and looking ahead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from rag_splitters.structure.blocks.plain import wiki_heading

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

__all__ = ["Rule", "formula", "formula_length", "nested_less", "scans_less", "uncut_rows", "wiki"]

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


def wiki(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A heading between equals signs, as MediaWiki writes it."""
    begin, stop = state.bMarks[start] + state.tShift[start], state.eMarks[start]
    if state.is_code_block(start) or not state.src.startswith("=", begin):
        return False
    heading = wiki_heading(state.src[begin:stop])
    if heading is None or silent:
        return heading is not None
    level, content = heading
    state.push("heading_open", f"h{level}", 1).map = [start, start + 1]
    inline = state.push("inline", "", 0)
    inline.map, inline.content, inline.children = [start, start + 1], content, []
    state.push("heading_close", f"h{level}", -1)
    state.line = start + 1
    return True


def formula(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """`$$ ... $$`, `\\[ ... \\]` or an equation environment that fills whole lines."""
    if state.is_code_block(start):
        return False

    def contents() -> Iterator[tuple[int, int]]:
        for line in range(start, end):
            begin, stop = state.bMarks[line] + state.tShift[line], state.eMarks[line]
            if line > start and (begin >= stop or state.sCount[line] < state.blkIndent):
                return
            yield begin, stop

    count = formula_length(state.src, contents())
    if count and not silent:
        state.push("formula", "", 0).map = [start, start + count]
        state.line = start + count
    return bool(count)


def formula_length(text: str, lines: Iterable[tuple[int, int]]) -> int:
    """How many lines a display formula takes that begins with the first of them; 0 for none.

    Parameters:
        text: the text.
        lines: where the contents of its lines begin and end, up to the next blank line.
    """
    mark = closing = ""
    for count, (start, end) in enumerate(islice(lines, _FORMULA_LINES), 1):
        begin = start
        if not mark:
            opening = _OPENING.match(text, start, end)
            name = opening.group(1) if opening else None
            if not opening or (name and name not in _ENVIRONMENTS):
                return 0
            mark, begin = opening.group(), opening.end()
            closing = {"$$": "$$", "\\[": "\\]"}.get(mark, f"\\end{{{name}}}")
        place = text.find(closing, begin, end)
        if place >= 0:
            return 0 if text[place + len(closing) : end].strip(" \t.,;") else count
        if text.find(mark, begin, end) >= 0:
            return 0
    return 0
