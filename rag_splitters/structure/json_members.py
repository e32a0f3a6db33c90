"""The members of JSON and JSON lines, with their positions and paths."""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable

from rag_splitters.text.origin import UnreadableError

_MAX_DEPTH = 32  # members nested deeper are part of the member around them
_PROBE = 8  # tokens at the beginning of a text that show whether it is JSON
_MAX_NAME = 100  # characters of a name in a path

_STRING = r'"[^"\\]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\]*)*"'
_NUMBER = r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?"
_TOKEN = re.compile(
    rf"[ \t\n\r]*(?:([\[{{])|([\]}}])|(,)|(:)|({_STRING})"
    rf"|((?:{_NUMBER}|true|false|null|NaN|-?Infinity)(?![\w.+-])))"
)
_OPEN, _CLOSE, _COMMA, _COLON, _TEXT, _OTHER = range(1, 7)
_SPACE = " \t\n\r"
_CLOSERS = "]}," + _SPACE
_NAME = re.compile(rf'(?:[^"\\]|\\u\w{{4}}|\\[^u]){{0,{_MAX_NAME}}}')
_decode = json.JSONDecoder(strict=False).decode
ESCAPE = re.compile(r"\\u[dD][89abAB]\w\w(?:\\u[dD][c-fC-F]\w\w)?|\\u\w{4}|\\.", re.DOTALL)
"""Pattern of an escape in a string."""


class JsonMembers:
    """The values of a JSON text, and the members of its objects and arrays, in their order.

    A member of an object begins with its name. JSON lines have several values at the top.

    >>> members = read_members('{"tea": [1, 2, 3]}')
    >>> members.path(9, 13)
    '$.tea[0:2]'
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts, self.ends = array("q"), array("q")
        self.parents = array("q")  # -1 at the top
        self.numbers = array("q")  # index of each member among its siblings
        self.name_ends = array("q")  # 0 for elements of arrays
        self.depths = array("b")

    def levels(self) -> list[list[int]]:
        """Return the starts of all members but the first of each object or array, by depth."""
        levels: list[list[int]] = [[] for _ in range(_MAX_DEPTH + 1)]
        for start, number, depth in zip(self.starts, self.numbers, self.depths, strict=True):
            if number:
                levels[depth].append(start)
        return [level for level in levels if level]

    def breaks(self, fits: Callable[[int, int], bool]) -> list[int]:
        """Return the starts of the members that are too big, and of those after them.

        A first member is left out, because it stays with the bracket before it.
        """
        breaks = list[int]()
        large_before = bytearray(len(self.starts) + 1)  # by parent: was its last member too big?
        inside = 0
        for node, start in enumerate(self.starts):
            if start < inside:
                continue
            is_large, parent = not fits(start, self.ends[node]), self.parents[node]
            if self.numbers[node] and (is_large or large_before[parent]):
                breaks.append(start)
            large_before[parent] = is_large
            if not is_large:
                inside = self.ends[node]
        return breaks

    def path(self, start: int, end: int) -> str:
        """Return the JSONPath (RFC 9535) of the smallest value that holds a part of the text.

        Brackets at the edges of the part do not count. Several elements of one array are a slice.
        """
        first = self._lineage(self._first(start, end))
        while end > start + 1 and self.text[end - 1] in _CLOSERS:
            end -= 1
        last = self._lineage(self._at(end - 1))
        shared = sum(one == other for one, other in zip(first, last, strict=False))
        path = "$" + "".join(map(self._step, first[:shared]))
        if shared == min(len(first), len(last)) or self.name_ends[first[shared]]:
            return path
        return f"{path}[{self.numbers[first[shared]]}:{self.numbers[last[shared]] + 1}]"

    def _has_lines(self) -> bool:
        """Whether there are several values at the top."""
        return self.ends[0] <= self.starts[-1]

    def _at(self, position: int) -> int:
        """Return the innermost member around a position, or -1."""
        node = bisect_right(self.starts, position) - 1
        while node >= 0 and self.ends[node] <= position:
            node = self.parents[node]
        return node

    def _first(self, start: int, end: int) -> int:
        """Return the first member of a part, after the brackets that are left open."""
        node = self._at(start)
        while node >= 0 and self.starts[node] >= start and self.ends[node] > end:
            child = node + 1
            if child == len(self.starts) or self.parents[child] != node:
                break
            if self.starts[child] >= end:
                break
            node = child
        return node

    def _lineage(self, node: int) -> list[int]:
        """Return a member with those around it, the outermost first; nothing for -1."""
        nodes: list[int] = []
        while node >= 0:
            nodes.append(node)
            node = self.parents[node]
        return nodes[::-1]

    def _step(self, node: int) -> str:
        """Return the last step of a member's path."""
        if self.parents[node] < 0 and not self._has_lines():
            return ""
        if not self.name_ends[node]:
            return f"[{self.numbers[node]}]"
        opening = _NAME.match(self.text, self.starts[node] + 1)
        name: str = _decode(f'"{opening[0] if opening else ""}"')
        if opening and opening.end() < self.name_ends[node] - 1:
            name += "…"
        if name.isidentifier():
            return f".{name}"
        quoted = json.dumps(name, ensure_ascii=False)[1:-1].replace('\\"', '"')
        return "['" + quoted.replace("'", "\\'") + "']"


def read_members(text: str) -> JsonMembers:
    """Read the members of a text in JSON or JSON lines, in one pass.

    `NaN` and infinities are allowed, as Python writes them, and line breaks in strings.

    Raises UnreadableError for any other text.
    """
    reader = _Reader(text)
    position = 1 if text.startswith("\ufeff") else 0
    stop = len(text.rstrip(_SPACE))
    while position < stop:
        token = _TOKEN.match(text, position)
        if token is None or not reader.read(int(token.lastindex or 0), token):
            before = len(text) - len(text[position:].lstrip(_SPACE))
            raise UnreadableError(f"invalid JSON in line {text.count(chr(10), 0, before) + 1}")
        position = token.end()
    if reader.open or reader.expected != "value" or not reader.members.starts:
        raise UnreadableError("invalid JSON: it ends too early")
    return reader.members


def begins_json(text: str) -> bool:
    """Whether a text begins with an object or array that has content, as far as it is given.

    >>> begins_json('[{"a": 1'), begins_json("[1] See there."), begins_json("[x] Done.")
    (True, False, False)
    """
    reader, position, kind = _Reader(text), 0, 0
    for count in range(_PROBE):
        token = _TOKEN.match(text, position)
        if token is None:
            return count > 1 and (kind == _COLON or text[position:].strip() == "")
        kind = int(token.lastindex or 0)
        if not reader.read(kind, token) or (not count and kind != _OPEN):
            return False
        position = token.end()
    return True


class _Reader:
    """The state of reading: the open brackets, and what may come next."""

    def __init__(self, text: str) -> None:
        self.members = JsonMembers(text)
        self.open: list[
            tuple[int, str]
        ] = []  # the member of each open bracket, and its closing bracket
        self.counts = [0]  # of members so far, at the top and behind each open bracket
        self.expected = "value"  # or "name", "colon", "comma"
        self.member = -1  # the member that is being read
        self.is_first = False  # whether this is the place after an opening bracket

    def read(self, kind: int, token: re.Match[str]) -> bool:
        """Read a token; return False if it is not allowed here."""
        start, end = token.span(kind)
        is_first, self.is_first = self.is_first, kind == _OPEN
        if kind == _TEXT and self.expected == "name":
            self._begin(start, end)
            self.expected = "colon"
        elif kind == _COLON and self.expected == "colon":
            self.expected = "value"
        elif kind in (_TEXT, _OTHER) and self.expected == "value":
            self._begin_element(start)
            self._end(end)
        elif kind == _OPEN and self.expected == "value":
            self._begin_element(start)
            is_object = token[kind] == "{"
            self.open.append((self.member, "}" if is_object else "]"))
            self.counts.append(0)
            self.expected = "name" if is_object else "value"
        elif kind == _CLOSE and self.open and token[kind] == self.open[-1][1]:
            if not (is_first or self.expected == "comma"):
                return False
            self.member = self.open.pop()[0]
            self.counts.pop()
            self._end(end)
        elif kind == _COMMA and self.expected == "comma":
            self.expected = "name" if self.open[-1][1] == "}" else "value"
        else:
            return False
        return True

    def _begin_element(self, start: int) -> None:
        """Begin a member without a name, unless its name has been read."""
        if not self.open or self.open[-1][1] == "]":
            self._begin(start, 0)

    def _begin(self, start: int, name_end: int) -> None:
        members, number = self.members, self.counts[-1]
        self.counts[-1] += 1
        if len(self.open) > _MAX_DEPTH:
            self.member = -1
            return
        self.member = len(members.starts)
        members.starts.append(start)
        members.ends.append(0)
        members.parents.append(self.open[-1][0] if self.open else -1)
        members.numbers.append(number)
        members.name_ends.append(name_end)
        members.depths.append(len(self.open))

    def _end(self, end: int) -> None:
        if self.member >= 0:
            self.members.ends[self.member] = end
        self.expected = "comma" if self.open else "value"
