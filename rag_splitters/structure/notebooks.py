"""Reads Jupyter notebooks as Markdown, with positions in the JSON."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator

from rag_splitters.structure.html.tags import number_in
from rag_splitters.structure.html.text import plain_page
from rag_splitters.structure.json_members import ESCAPE, JsonMembers, read_members
from rag_splitters.text.excerpt import Excerpt, ExcerptWriter
from rag_splitters.text.origin import READ_ALL, Reading, ReadingOptions, Row, UnreadableError

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

    Returns: the text, the rows of its cells, which count from 1, and their positions in the JSON.

    Raises UnreadableError if the text is not JSON or has no cells.

    >>> cell = '{"cell_type": "code", "source": ["x = 1\\\\n", "x"]}'
    >>> read_notebook('{"nbformat": 4, "cells": [' + cell + "]}").text
    '```\\nx = 1\\nx\\n```'
    """
    return _Notebook(text, _Tree(read_members(text)), options.max_output).read()


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
        """Return start and end of a value, without its name."""
        start = self.members.name_ends[node] or self.members.starts[node]
        while self.text[start] in " \t\r\n:" and self.members.name_ends[node]:
            start += 1
        return start, self.members.ends[node]

    def strings(self, node: int | None) -> Iterator[tuple[int, int]]:
        """Yield start and end of each string in a value, without its quotation marks."""
        for each in [] if node is None else (self.elements(node) or [node]):
            start, end = self.value(each)
            if self.text[start] == '"':
                yield start + 1, end - 1

    def string(self, node: int | None) -> str:
        """Return a value as a text; "" if there is none."""
        pieces = (piece for string in self.strings(node) for piece in self.pieces(*string))
        return "".join(text for text, _, _ in pieces)

    def pieces(self, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Yield the parts of a string, each with its start and end in the JSON."""
        position = start
        for escape in ESCAPE.finditer(self.text, start, end):
            if escape.start() > position:
                yield self.text[position : escape.start()], position, escape.start()
            yield json.loads(f'"{escape[0]}"'), escape.start(), escape.end()
            position = escape.end()
        if end > position:
            yield self.text[position:end], position, end


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
                self._write_fenced(self._excerpt(source), self._language(cell, source))
            else:
                if kind == "heading":  # format 3
                    level = tree.get(cell, "level")
                    value = tree.text[slice(*tree.value(level))] if level is not None else "1"
                    self.writer.add("#" * min(max(number_in(value), 1), 6) + " ")
                self._write(self._excerpt(source))
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

    def _excerpt(self, node: int | None) -> Excerpt:
        """Return a text without line breaks before it, space after it and terminal colours."""
        whole, writer = ExcerptWriter(self.tree.text), ExcerptWriter(self.tree.text)
        for span in self.tree.strings(node):
            for piece in self.tree.pieces(*span):
                whole.add(*piece)
        excerpt = whole.excerpt()
        low, high = len(excerpt.text) - len(excerpt.text.lstrip("\r\n")), len(excerpt.text.rstrip())
        for colour in _TERMINAL.finditer(excerpt.text, low, high):
            writer.extend(excerpt, low, colour.start())
            low = colour.end()
        writer.extend(excerpt, low, high)
        return writer.excerpt()

    def _write_output(self, output: int, number: int) -> None:
        tree = self.tree
        data = tree.get(output, "data")
        if data is None:
            media_type, excerpt = "text/plain", self._excerpt(tree.get(output, "text"))
            excerpt = excerpt if excerpt.text else self._traceback(output)
            if not excerpt.text and (html := tree.get(output, "html")) is not None:
                media_type, excerpt = "text/html", self._excerpt(html)
        else:
            nodes = ((name, tree.get(data, name)) for name in _OUTPUT_TYPES)
            media_type, node = next((each for each in nodes if each[1] is not None), ("", None))
            excerpt = self._excerpt(node)
        writer = ExcerptWriter(tree.text)
        if media_type == "text/html" and excerpt.text:
            text = plain_page(excerpt.text, False).text
            writer.add(text, excerpt.starts[0], excerpt.ends[-1])
            excerpt, writer = writer.excerpt(), ExcerptWriter(tree.text)
        if not excerpt.text.strip():
            return
        rest = 0 if self.max_output is None else max(len(excerpt.text) - self.max_output, 0)
        writer.extend(excerpt, 0, len(excerpt.text) - rest)
        writer.add(f"\n[{rest} more characters]" if rest else "")
        self.rows.append((self._begin(), number, number))
        if media_type == "text/plain":
            self._write_fenced(writer.excerpt(), "")
        else:
            self._write(writer.excerpt())

    def _traceback(self, output: int) -> Excerpt:
        """Return the last line of an error: its name and message."""
        writer = ExcerptWriter(self.tree.text)
        for name in ("ename", "evalue"):
            part = self._excerpt(self.tree.get(output, name))
            writer.add(": " if writer.length and part.text else "")
            writer.extend(part, 0, len(part.text))
        return writer.excerpt()

    def _write_fenced(self, excerpt: Excerpt, language: str) -> None:
        runs = re.findall(r"^ {0,3}(`{3,})", excerpt.text, re.MULTILINE)
        fence = "`" * (max(map(len, runs), default=2) + 1)
        self.writer.add(f"{fence}{language}\n", excerpt.starts[0], excerpt.starts[0])
        self._write(excerpt)
        self.writer.add(f"\n{fence}")

    def _write(self, excerpt: Excerpt) -> None:
        self.writer.extend(excerpt, 0, len(excerpt.text))
