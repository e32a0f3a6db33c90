"""Parts of a text that are kept whole if they fit, such as fences, table rows and list items."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from rag_splitters.text.boundaries import skip_space, trim_space
from rag_splitters.text.sizing import LengthFunction, sizer

# The marks that lines begin with. A heading is not an atom, but it ends an item. The first
# characters are checked first, where most lines fail: that takes half the time.
_OPENING = re.compile(
    r"\n[ \t]*(?=[-*+•◦▪‣\d(`~>|#]|[a-z]\))(?:"
    r"(?P<fence>`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})"
    r"|(?P<item>(?:[-*+•◦▪‣]|\d{1,3}[.)]|\([a-z\d]{1,3}\)|[a-z]\))(?=[ \t]+\S))"
    r"|(?P<quote>>)"
    r"|(?P<row>\|)"
    r"|(?P<heading>#{1,6}(?=[ \t])))"
)
_CLOSING = re.compile(r"\n[ \t]*(`{3,}|~{3,})[ \t]*(?=\r?\n|\Z)")
_BARE_RULE = re.compile(  # the line below the header of a table whose rows do not begin with a bar
    r"\n[ \t]*:?-{2,}:?[ \t]*\|[ \t|:-]*(?=\r?\n|\Z)(?:\n[^\n|]*\|[^\n]*)*"
)
_MOST_INDENT = 8  # columns of indentation from the mark of an item to its paragraphs
_LINE = re.compile(r"[^\s][^\n]*")
_TAG = re.compile(r"<(/?)(blockquote|li|pre|tr)\b", re.IGNORECASE)


class Atoms:
    """The parts of a text that are kept whole because they fit into a chunk.

    Parameters:
        text: the text.
        ranges: (start, end) of the parts, of which the outermost ones that fit are used; by
            default, fences, table rows, list items and quotations.
        size: maximum chunk size.
        overlap: maximum overlap.
        length_function: the unit of these sizes.

    The attribute `measure` is the measure of the text, so that the text is measured only once.

    >>> text = "One. Two.\\n- Three. Four."
    >>> atoms = Atoms(text, size=20, overlap=0, length_function="characters")
    >>> atoms.start_of(5), atoms.start_of(19)
    (5, 10)
    """

    def __init__(
        self,
        text: str,
        ranges: Iterable[tuple[int, int]] | None = None,
        *,
        size: int,
        overlap: int,
        length_function: LengthFunction,
    ) -> None:
        self.measure = sizer(length_function)(text)
        self._starts: list[int] = []
        self._ends: list[int] = []
        outer_first = sorted(find_atoms(text) if ranges is None else ranges, key=_outer_first)
        length, limit, outer_end = self.measure.length, size - overlap, 0
        for start, end in outer_first:
            begin = trim_space(text, 0, start) if overlap else start
            if start >= outer_end and length(begin, end) <= limit:
                self._starts.append(skip_space(text, start) if text[start].isspace() else start)
                self._ends.append(end)
                outer_end = end

    @property
    def exist(self) -> bool:
        """Whether there are any atoms."""
        return bool(self._starts)

    def start_of(self, cut: int) -> int:
        """Return the start of the atom that a cut would divide, or the cut if there is none."""
        index = bisect_left(self._starts, cut) - 1
        return self._starts[index] if index >= 0 and cut < self._ends[index] else cut

    def end_from(self, start: int) -> int:
        """Return the end of the atom that starts here, or -1."""
        index = bisect_left(self._starts, start)
        is_here = index < len(self._starts) and self._starts[index] == start
        return self._ends[index] if is_here else -1

    def outside(self, cuts: Iterable[int]) -> list[int]:
        """Return the cuts that do not divide an atom."""
        return [cut for cut in cuts if self.start_of(cut) == cut]

    def is_in(self, start: int, end: int) -> bool:
        """Whether there is an atom in this part of the text."""
        index = bisect_left(self._starts, start)
        return index < len(self._starts) and self._ends[index] <= end


def find_atoms(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of the fences, table rows, list items and quotations of a text, in order.

    They are recognised by their marks, whatever the kind of text. The items of a list follow each
    other, whatever their depth; in HTML, they can be inside each other.

    >>> text = "- One. Two.\\n  Three.\\n- Four."
    >>> [text[start:end] for start, end in find_atoms(text)]
    ['- One. Two.\\n  Three.', '- Four.']
    """
    atoms = list(_marked_atoms(text))
    if "|" in text and ("-|" in text or "- |" in text or "-:" in text):
        atoms += _bare_rows(text)
    if "<" in text:
        atoms += _html_atoms(text)
    return sorted(atoms, key=_outer_first)


def _outer_first(part: tuple[int, int]) -> tuple[int, int]:
    return part[0], -part[1]


def _marked_atoms(text: str) -> Iterator[tuple[int, int]]:
    """Yield the atoms whose lines begin with a mark."""
    lines = "\n" + text  # every line begins after a line feed; offsets are one too large
    end, is_closed = 0, True
    while opening := _OPENING.search(lines, end):
        kind = str(opening.lastgroup)
        end = _line_end(lines, opening.end())
        if kind == "fence" and is_closed:
            closing = _closing(lines, opening["fence"], end)
            is_closed, end = closing >= 0, max(closing, end)
        elif kind in ("item", "quote"):
            end = _block_end(lines, kind, opening.start(kind) - opening.start(), end)
        if kind in ("item", "quote", "row") or (kind == "fence" and is_closed):
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


def _html_atoms(text: str) -> Iterator[tuple[int, int]]:
    """Yield the atoms of HTML."""
    openings: dict[str, int] = {}
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        if not tag[1]:
            openings[name] = tag.start()
        elif (start := openings.pop(name, -1)) >= 0:
            end = text.find(">", tag.end(), tag.end() + 100)
            if end >= 0:
                yield start, end + 1
