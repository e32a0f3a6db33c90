"""Reads Jupyter notebooks as Markdown, with positions in the JSON."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator

from rag_splitters.structure.html.text import plain_page
from rag_splitters.structure.json_members import InvalidJsonError, JsonMembers, read_members
from rag_splitters.text.excerpt import ExcerptWriter
from rag_splitters.text.origin import READ_ALL, Reading, ReadingOptions, Row, UnreadableError

_ESCAPE = re.compile(r"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|\\u\w{4}|\\.")
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # colours in tracebacks
_LANGUAGE = re.compile(r"[\w+#.-]{1,40}\Z")
_MAGIC = re.compile(r"%%(\w+)")
_MAGIC_LANGUAGES = {"sh": "bash", "js": "javascript", "python3": "python"} | {
    name: name for name in "bash html javascript latex markdown perl r ruby sql svg".split()
}
_OUTPUT_TYPES = ("text/markdown", "text/plain", "text/html")  # the best first


def read_notebook(text: str, options: ReadingOptions = READ_ALL) -> Reading:
    """Read a notebook as Markdown: text cells unchanged, code and its outputs between fences.

    Notebooks of the formats 3 and 4 are supported. The text of outputs is read: Markdown, else
    plain text, else HTML without tags. Images, widgets, metadata, attachments and terminal colours
    are dropped.

    Parameters:
        text: the JSON.
        options: how much of each output to keep.

    Returns: the text, the rows of its cells, which count from 1, and their positions in the JSON.

    Raises UnreadableError if the text is not JSON or has no cells.

    >>> cell = '{"cell_type": "code", "source": ["x = 1\\\\n", "x"]}'
    >>> read_notebook('{"nbformat": 4, "cells": [' + cell + "]}").text
    '```\\nx = 1\\nx\\n```'
    """
    try:
        tree = _Tree(read_members(text))
    except InvalidJsonError as error:
        raise UnreadableError(str(error)) from None
    return _Notebook(text, tree, options.max_output).read()


class _Tree:
    """The members of JSON by their names."""

    def __init__(self, members: JsonMembers) -> None:
        self.members, self.text = members, members.text
        self._children: dict[int, list[int]] = defaultdict(list)
        for node, parent in enumerate(members.parents):
            self._children[parent].append(node)

    def elements(self, node: int | None) -> list[int]:
        """Return the members of a value; none if there is no value."""
        return [] if node is None else self._children.get(node, [])

    def get(self, node: int, *names: str) -> int | None:
        """Return the member with this path of names below a value, or None."""
        for name in names:
            quoted = f'"{name}"'
            starts, ends = self.members.starts, self.members.name_ends
            matches = (
                each
                for each in self.elements(node)
                if ends[each] - starts[each] == len(quoted)
                and self.text.startswith(quoted, starts[each])
            )
            member = next(matches, None)
            if member is None:
                return None
            node = member
        return node

    def value(self, node: int) -> tuple[int, int]:
        """Start and end of a value, without its name."""
        start = self.members.name_ends[node] or self.members.starts[node]
        while self.text[start] in " \t\r\n:" and self.members.name_ends[node]:
            start += 1
        return start, self.members.ends[node]

    def strings(self, node: int | None) -> Iterator[tuple[int, int]]:
        """Start and end of each string that a value is or consists of, without quotation marks."""
        for each in [] if node is None else (self.elements(node) or [node]):
            start, end = self.value(each)
            if self.text[start] == '"':
                yield start + 1, end - 1

    def string(self, node: int | None) -> str:
        """Return a value as a text; "" if there is none."""
        return "".join(self.decoded(start, end) for start, end in self.strings(node))

    def decoded(self, start: int, end: int) -> str:
        """The text of a string between its quotation marks."""
        return "".join(text for text, _, _ in self.pieces(start, end))

    def pieces(self, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        """The parts of a string, each with its start and end in the JSON."""
        position = start
        for escape in _ESCAPE.finditer(self.text, start, end):
            if escape.start() > position:
                yield self.text[position : escape.start()], position, escape.start()
            yield json.loads(f'"{escape[0]}"'), escape.start(), escape.end()
            position = escape.end()
        if end > position:
            yield self.text[position:end], position, end


def _level(value: str) -> int:
    """Return the level of a heading for its JSON value: a number from 1 to 6."""
    return min(max(int(value), 1), 6) if value.isdecimal() and len(value) < 6 else 1


class _Notebook:
    """Writes the cells of a notebook one after the other."""

    def __init__(self, text: str, tree: _Tree, max_output: int | None) -> None:
        self.writer = ExcerptWriter(text)
        self.tree, self.max_output = tree, max_output
        self.rows: list[Row] = []
        self.language = ""

    def read(self) -> Reading:
        tree = self.tree
        root = next(iter(tree.elements(-1)), 0)
        lists = [tree.get(root, "cells")]
        sheets = tree.elements(tree.get(root, "worksheets"))  # format 3
        lists += [tree.get(sheet, "cells") for sheet in sheets]
        if all(each is None for each in lists):
            raise UnreadableError("it has no cells")
        metadata = ("metadata", "language_info", "name"), ("metadata", "kernelspec", "language")
        names = (tree.string(tree.get(root, *path)) for path in metadata)
        self.language = next(filter(_LANGUAGE.match, names), "")
        cells = (cell for each in lists for cell in tree.elements(each))
        for number, cell in enumerate(cells, 1):
            self._write_cell(cell, number)
        return Reading(self.writer.excerpt(), {"cell": self.rows}, mimetype="text/markdown")

    def _write_cell(self, cell: int, number: int) -> None:
        tree = self.tree
        kind = tree.string(tree.get(cell, "cell_type"))
        source = tree.get(cell, "source")
        source = tree.get(cell, "input") if source is None else source
        if tree.string(source).strip():
            start = self._begin()
            self.rows.append((start, number, number))
            if kind == "code":
                self._write_fenced(self._parts(source), self._language(cell, source))
            else:
                if kind == "heading":  # format 3
                    level = tree.get(cell, "level")
                    value = tree.text[slice(*tree.value(level))] if level is not None else "1"
                    self.writer.add("#" * _level(value) + " ")
                self._write(self._parts(source))
        outputs = tree.elements(tree.get(cell, "outputs")) if self.max_output != 0 else []
        for output in outputs:
            self._write_output(output, number)

    def _begin(self) -> int:
        """Begin a new block, and return its start."""
        self.writer.add("\n\n" if self.writer.length else "")
        return self.writer.length

    def _language(self, cell: int, source: int | None) -> str:
        """Return the language of a code cell, by its magic, its metadata or the notebook's."""
        if magic := _MAGIC.match(self.tree.string(source)):
            return _MAGIC_LANGUAGES.get(magic[1], self.language)
        own = self.tree.string(self.tree.get(cell, "language"))  # format 3
        return own if _LANGUAGE.match(own) else self.language

    def _parts(self, node: int | None) -> list[tuple[str, int, int]]:
        """Return the parts of a text, without trailing white space and terminal colours."""
        tree = self.tree
        parts = [each for span in tree.strings(node) for each in tree.pieces(*span)]
        while parts and not parts[-1][0].strip():
            parts.pop()
        while parts and parts[0][0] in ("\n", "\r"):
            parts.pop(0)
        whole = "".join(part for part, _, _ in parts)
        if "\x1b" not in whole or not parts:
            return parts
        start, end = min(part[1] for part in parts), max(part[2] for part in parts)
        return [(_TERMINAL.sub("", whole), start, end)]

    def _write_output(self, output: int, number: int) -> None:
        tree = self.tree
        data = tree.get(output, "data")
        if data is None:
            parts = self._parts(tree.get(output, "text")) or self._traceback(output)
            media_type = "text/plain"
            if not parts and (html := tree.get(output, "html")) is not None:
                parts, media_type = self._parts(html), "text/html"
        else:
            nodes = ((name, tree.get(data, name)) for name in _OUTPUT_TYPES)
            media_type, node = next((each for each in nodes if each[1] is not None), ("", None))
            parts = self._parts(node)
        if media_type == "text/html" and parts:
            html_text = "".join(part for part, _, _ in parts)
            parts = [(plain_page(html_text, False).text, parts[0][1], parts[-1][2])]
        if not "".join(part for part, _, _ in parts).strip():
            return
        parts = self._trim(parts)
        self.rows.append((self._begin(), number, number))
        if media_type == "text/plain":
            self._write_fenced(parts, "")
        else:
            self._write(parts)

    def _traceback(self, output: int) -> list[tuple[str, int, int]]:
        """Return the last line of an error: its name and message."""
        tree = self.tree
        name, value = tree.get(output, "ename"), tree.get(output, "evalue")
        if name is None:
            return []
        colon = [(": ", tree.value(name)[1], tree.value(name)[1])]
        message = self._parts(value)
        return [*self._parts(name), *(colon if message else []), *message]

    def _trim(self, parts: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
        """Shorten an output to `max_output` characters, and say how many were left out."""
        if self.max_output is None:
            return parts
        results: list[tuple[str, int, int]] = []
        budget = self.max_output
        total = sum(len(part) for part, _, _ in parts)
        for part, start, end in parts:
            if len(part) > budget:
                is_copy = end - start == len(part)
                if budget:
                    results.append((part[:budget], start, start + budget if is_copy else end))
                last = results[-1][2]
                results.append((f"\n[{total - self.max_output} more characters]", last, last))
                return results
            budget -= len(part)
            results.append((part, start, end))
        return results

    def _write_fenced(self, parts: list[tuple[str, int, int]], language: str) -> None:
        runs = re.findall(r"^ {0,3}(`{3,})", "".join(part for part, _, _ in parts), re.MULTILINE)
        fence = "`" * (max(map(len, runs), default=2) + 1)
        self.writer.add(f"{fence}{language}\n", parts[0][1], parts[0][1])
        self._write(parts)
        self.writer.add(f"\n{fence}")

    def _write(self, parts: list[tuple[str, int, int]]) -> None:
        for part, start, end in parts:
            self.writer.add(part, start, end)
