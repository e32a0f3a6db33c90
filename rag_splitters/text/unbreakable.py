"""Parts of a text that are kept whole if they fit, such as fences, table rows and list items."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rag_splitters.text.boundaries import Finder, trim_space
from rag_splitters.text.lines import AFTER_CLAUSE, LETTERED, MARK
from rag_splitters.text.structure import Structure, outer_first

# The marks that lines begin with. A heading is not such a range, but it ends an item. The first
# characters are checked first, where most lines fail: that takes half the time.
_OPENING = re.compile(
    rf"\n(?:[ \t]*(?=[-+*`~>|#\d(\[]|[^\x00-\x7f]|[A-Za-z]{{1,5}}\))(?:"
    r"(?P<fence>`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})"
    rf"|(?P<item>{MARK})"
    r"|(?P<quote>>)"
    r"|(?P<row>\|)"
    r"|(?P<heading>#{1,6}(?=[ \t])))"
    rf"|{AFTER_CLAUSE}[ \t]*(?P<lettered>{LETTERED}))"
)
_CLOSING = re.compile(r"\n[ \t]*(`{3,}|~{3,})[ \t]*(?=\r?\n|\Z)")
_BARE_RULE = re.compile(  # the line below the header of a table whose rows do not begin with a bar
    r"\n[ \t]*:?-{2,}:?[ \t]*\|[ \t|:-]*(?=\r?\n|\Z)(?:\n[^\n|]*\|[^\n]*)*"
)
_BLOCKS = ("item", "lettered", "quote")
_MOST_INDENT = 8  # columns of indentation from the mark of an item to its paragraphs
_LINE = re.compile(r"[^\s][^\n]*")
_FIELD = r'(?:"(?:[^"\n]|"")*"|[^",;\t\n]*)'
_INDENTED_PROSE = r"\t+(?:[\w'`.,()-]+ +){4}"  # four words behind tabs, as in a changelog
_DATA_ROWS = re.compile(
    rf"(?:(?!{_INDENTED_PROSE}){_FIELD}(?:[,;\t](?! ){_FIELD})+\r?(?:\n|\Z)){{2,}}"
)
_ROW_MARKS = ("\t", ',"', '",', ';"')
_TAG = re.compile(r"<(/?)(blockquote|li|pre|tr)\b", re.IGNORECASE)


def find_unbreakable(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of the fences, table rows, list items and quotations of a text, in order.

    They are recognised by their marks, whatever the kind of text. The items of a list follow each
    other, whatever their depth; in HTML, they can be inside each other.

    >>> text = "- One. Two.\\n  Three.\\n- Four."
    >>> [text[start:end] for start, end in find_unbreakable(text)]
    ['- One. Two.\\n  Three.', '- Four.']
    """
    ranges = list(_marked_ranges(text))
    if "|" in text and ("-|" in text or "- |" in text or "-:" in text):
        ranges += _bare_rows(text)
    if "<" in text:
        ranges += _html_ranges(text)
    ranges += data_rows(text)
    return sorted(ranges, key=outer_first)


def data_rows(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines of data that have tabs or quoted fields, if at least two follow each other.

    >>> text = 'It is:\\nAda,"One. Two.",36\\nAlan,"Three. Four.",41'
    >>> [text[start:end] for start, end in data_rows(text)]
    ['Ada,"One. Two.",36', 'Alan,"Three. Four.",41']
    """
    ranges: set[tuple[int, int]] = set()
    for mark in _ROW_MARKS:
        position = text.find(mark)
        while position >= 0:
            rows = _DATA_ROWS.match(text, text.rfind("\n", 0, position) + 1)
            for row in _LINE.finditer(text, *rows.span()) if rows else ():
                ranges.add((row.start(), trim_space(text, row.start(), row.end())))
            line = text.find("\n", position)
            end = rows.end() if rows else line if line >= 0 else len(text)
            position = text.find(mark, max(end, position + 1))
    yield from sorted(ranges)


def marked_structure(
    text: str, levels: Sequence[Finder] = (), sentences: Sequence[int] | None = None
) -> Structure:
    """Return the structure of a text whose fences, rows, items and quotations are unbreakable."""
    return Structure(text, levels, lambda: find_unbreakable(text), sentences=sentences)


def _marked_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges whose lines begin with a mark."""
    lines = "\n" + text  # every line begins after a line feed; offsets are one too large
    end, is_closed = 0, True
    while opening := _OPENING.search(lines, end):
        kind = str(opening.lastgroup)
        end = _line_end(lines, opening.end())
        if kind == "fence" and is_closed:
            closing = _closing(lines, opening["fence"], end)
            is_closed, end = closing >= 0, max(closing, end)
        elif kind in _BLOCKS:
            end = _block_end(lines, kind, opening.start(kind) - opening.start(), end)
        if kind in _BLOCKS or kind == "row" or (kind == "fence" and is_closed):
            start = opening.start(kind)
            end_of_text = trim_space(lines, start, end) if lines[end - 1].isspace() else end
            yield start - 1, end_of_text - 1


def _closing(lines: str, mark: str, start: int) -> int:
    """Return the end of the line that closes a fence, or -1."""
    for closing in _CLOSING.finditer(lines, start):
        if closing[1].startswith(mark):
            return closing.end()
    return -1


def _block_end(lines: str, kind: str, indent: int, end: int) -> int:
    """Return the end of an item or a quotation whose first line ends at `end`.

    It ends before a blank line or another mark. Indented paragraphs after it belong to an item,
    unless they are centred.
    """
    while end < len(lines):
        opening = _OPENING.match(lines, end)
        if opening is None:
            following = _LINE.search(lines, end)
            if following is None:
                break
            start = following.start()
            last_line = lines.rfind("\n", end, start)
            is_indented = 0 < start - last_line - indent <= _MOST_INDENT
            if last_line > end:
                if kind == "quote" or not is_indented:
                    break
                opening = _OPENING.match(lines, last_line)
        if opening is not None and not (kind == opening.lastgroup == "quote"):
            break
        end = _line_end(lines, opening.end() if opening is not None else start)
    return end


def _line_end(lines: str, position: int) -> int:
    end = lines.find("\n", position)
    return end if end >= 0 else len(lines)


def _bare_rows(text: str) -> Iterator[tuple[int, int]]:
    """Yield the rows of tables whose rows do not begin with a bar."""
    for rule in _BARE_RULE.finditer(text):
        header = text.rfind("\n", 0, rule.start()) + 1
        if "|" in text[header : rule.start()]:
            for row in _LINE.finditer(text, header, rule.end()):
                yield row.start(), trim_space(text, row.start(), row.end())


def _html_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of HTML."""
    openings: dict[str, int] = {}
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        if not tag[1]:
            openings[name] = tag.start()
        elif (start := openings.pop(name, -1)) >= 0:
            end = text.find(">", tag.end(), tag.end() + 100)
            if end >= 0:
                yield start, end + 1
