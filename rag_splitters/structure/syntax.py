"""The syntax of source code, read by tree-sitter: where to cut it, and what it defines."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any

from rag_splitters.errors import MissingExtraError
from rag_splitters.extras import install_command
from rag_splitters.structure.languages import LANGUAGES
from rag_splitters.text.lines import with_line_feeds
from rag_splitters.text.origin import UnreadableError

_MAX_DEPTH = 24  # the cuts of all deeper nodes are one level
_MAX_PATH = 32  # definitions nested deeper have no name
_LONGEST_NAME = 200
_INDENT = 200  # cuts inside a line count only after this column, as in minified code

# Nodes before a definition that belong to it, in addition to comments.
_PREFIXES = frozenset(
    ("access_specifier", "attribute_item", "attribute_list", "decorator", "marginalia")
)
_HEADERS = frozenset(("modifier", "modifiers", "start_tag", "visibility_modifier"))
_CONTENTS = frozenset(("string_content", "heredoc_body"))  # of a string that begins above
_WRAPPERS = frozenset(("decorated_definition", "export_statement", "template_declaration"))
_FUNCTIONS = frozenset(("arrow_function", "function_expression", "generator_function", "class"))
_PAIRS = frozenset(("block_mapping_pair", "pair"))  # definitions if they have several lines
_NAMES = frozenset(("object_reference", "bare_key", "dotted_key", "quoted_key"))

_BLANK_LINE = re.compile(rb"\n[ \t\r\f\v]*\n")


@dataclass(slots=True)
class Definition:
    """A class, a function or another definition; it begins with its comments and decorators."""

    start: int
    end: int
    name: str
    parent: int
    """The index of the definition around it, or -1."""


@dataclass(slots=True)
class Syntax:
    """The places to cut source code, and its definitions. All positions are code-point offsets.

    Parameters:
        levels: ascending offsets at which nodes begin, for each depth of the tree.
        joints: offsets between the parts of one node, such as a header and its body.
        definitions: the definitions, in the order of their starts.
        errors: number of code points in parts that the grammar does not understand, without the
            carriage returns.
    """

    levels: list[list[int]] = field(default_factory=list)
    joints: list[int] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    errors: int = 0

    def path(self, start: int, end: int) -> list[str]:
        """Return the names of the definitions around `start` to `end`, the outermost first."""
        names: list[str] = []
        index = bisect_right(self.definitions, start, key=lambda each: each.start) - 1
        while index >= 0:
            each = self.definitions[index]
            names += [each.name] if each.end >= end else []
            index = each.parent
        return names[::-1]

    def add_returns(self, text: str) -> None:
        """Move all positions to those in a text whose carriage returns were left out."""
        returns = [m.start() - number for number, m in enumerate(re.finditer("\r\n", text))]

        def moved(positions: Iterable[int]) -> list[int]:
            return [position + bisect_left(returns, position) for position in positions]

        self.levels, self.joints = [*map(moved, self.levels)], moved(self.joints)
        for each in self.definitions:
            each.start, each.end = moved((each.start, each.end))


def read_syntax(text: str, language: str) -> Syntax:
    """Read the syntax of source code.

    Raises `UnreadableError` if the text is not code in this language, and ImportError if the extra
    `code` is not installed.
    """
    bare = text.replace("\r\n", "\n")  # how errors are repaired depends on every character
    code = as_ascii(bare)
    syntax = _Reader(bare, code, language, parse(code, language)).read()
    if len(bare) < len(text):
        syntax.add_returns(text)
    return syntax


class _Reader:
    """Walks a tree once, without recursion, and records cuts and definitions.

    It does not enter nodes of a single line, where most nodes are, unless they hold definitions.
    """

    def __init__(self, text: str, code: bytes, language: str, tree: Any) -> None:
        self.text, self.code, self.tree = text, code, tree
        self.types = frozenset(LANGUAGES[language].definitions.split())
        self.starts = _definition_starts(tree, language)
        self.syntax = Syntax()
        self.levels: list[list[int]] = [[] for _ in range(_MAX_DEPTH)]
        self.has_error = tree.root_node.has_error
        self.error_end = 0
        self.prefix = (-1, -1)  # start and end of the comments and decorators just read
        self.wrapper = (-1, -1, -1)  # start, end and depth of an `export` or `template`
        self.open: list[int] = []

    def read(self) -> Syntax:
        cursor, depth = self.tree.walk(), 0
        starts, firsts = [cursor.node.start_byte], [-1]  # of parents, of their first members
        is_line = False
        while True:
            if not is_line and cursor.goto_first_child():
                depth += 1
            else:
                while depth and not cursor.goto_next_sibling():
                    cursor.goto_parent()
                    depth -= 1
                if not depth:
                    return self._result()
            node = cursor.node
            del starts[depth:], firsts[depth:]
            starts.append(node.start_byte)
            firsts.append(-1)
            is_line = not node.is_named or self._is_line(node)
            if node.is_named:
                first = self._visit(node, cursor, depth, starts[depth - 1], firsts[depth - 1])
                firsts[depth - 1] = first

    def _is_line(self, node: Any) -> bool:
        """Whether a node is within a line, and nothing in it matters."""
        row, column = node.end_point
        if column > _INDENT or row != node.start_point.row or (self.has_error and node.has_error):
            return False
        definitions = bisect_left(self.starts, node.end_byte)
        definitions -= bisect_left(self.starts, node.start_byte)
        return not definitions or (definitions == 1 and node.type in self.types)

    def _visit(self, node: Any, cursor: Any, depth: int, outer: int, first: int) -> int:
        """Record a node. Returns the start of its parent's first member, or -1 if not yet known."""
        start, kind = node.start_byte, node.type
        if self.has_error and start >= self.error_end and node.is_error:
            self.error_end = node.end_byte
            self.syntax.errors += node.end_byte - start
        column = node.start_point.column
        line, is_inline = start - column, column > _INDENT
        opens = not column or (not is_inline and self.code[line:start].isspace())
        is_definition = kind in self.types and (
            kind not in _PAIRS or node.start_point.row < node.end_point.row
        )
        if not (opens or is_inline or is_definition) or kind in _CONTENTS:
            return first
        position = start if is_inline else self._lead_start(line)
        if opens and (kind in _PREFIXES or kind.endswith("comment")):
            self.prefix = (position, self._trim(node.end_byte))
        if kind in _WRAPPERS:
            self.wrapper = (position, node.end_byte, depth)
        if is_definition:
            self._define(node, depth, position)
        if not (opens or is_inline):
            return first
        if start == outer:
            is_header = kind in _HEADERS or kind in _PREFIXES or kind.startswith("keyword_")
            is_header = is_header or cursor.field_id is not None  # it only opens its parent
            return first if first >= 0 or is_header else position
        is_part = _is_closing(node) or (
            cursor.field_id is not None and cursor.field_name != "alternative"
        )
        if depth > 1 and (first < 0 or position <= first):
            first, is_part = max(first, position), True
        (self.syntax.joints if is_part else self.levels[min(depth, _MAX_DEPTH) - 1]).append(
            position
        )
        return first

    def _lead_start(self, line: int) -> int:
        """Return the start of the comments and decorators right before a line, or of the line."""
        begin, end = self.prefix
        if begin >= 0 and end <= line < end + 2 * _INDENT:
            gap = self.code[end:line]
            if not gap.strip(b": \t\r\n\f\v") and not _BLANK_LINE.search(gap):
                return begin
        return line

    def _trim(self, end: int) -> int:
        """Return `end` before the line break that some grammars include in a comment."""
        return end - 1 if self.code[end - 1 : end] == b"\n" else end

    def _define(self, node: Any, depth: int, start: int) -> None:
        definitions, end = self.syntax.definitions, node.end_byte
        while self.open and definitions[self.open[-1]].end <= node.start_byte:
            self.open.pop()
        if len(self.open) >= _MAX_PATH or not (name := self._name(node)):
            return
        begin, wrapper_end, wrapper_depth = self.wrapper
        if wrapper_depth == depth - 1 and end <= wrapper_end:
            start, self.wrapper = min(start, begin), (-1, -1, -1)
        if definitions and start <= definitions[-1].start:  # another one began in this line
            start = max(node.start_byte, definitions[-1].start)
        parent = self.open[-1] if self.open else -1
        self.open.append(len(definitions))
        definitions.append(Definition(start, end, name, parent))

    def _name(self, node: Any) -> str:
        """Return the name of a definition, or "" if it has none."""
        if node.type == "block":  # of HCL: its type and labels
            body = next(each for each in node.children if each.type == "block_start")
            return " ".join(self.text[node.start_byte : body.start_byte].split())[:_LONGEST_NAME]
        if node.type == "init_declaration":
            return "init"
        if node.type == "variable_declarator":
            value = node.child_by_field_name("value")
            if value is None or value.type not in _FUNCTIONS:
                return ""
        fields = ("name", "declarator", "type", "key")
        name_node = next((each for f in fields if (each := node.child_by_field_name(f))), None)
        if name_node is None:
            head = [node.named_child(i) for i in range(min(node.named_child_count, 6))]
            name_node = next((each for each in head if each.type in _NAMES), None)
        for _ in range(50):  # a C function's name is inside its declarators
            inner = name_node and name_node.child_by_field_name("declarator")
            if name_node and not inner and name_node.type == "reference_declarator":
                inner = name_node.named_child(0)
            if not inner:
                break
            name_node = inner
        if name_node is None:
            return ""
        end = min(name_node.end_byte, name_node.start_byte + _LONGEST_NAME)
        return " ".join(self.text[name_node.start_byte : end].split()).strip("\"'")

    def _result(self) -> Syntax:
        """Return the syntax, with sorted cuts and definitions extended to the ends of lines."""
        syntax = self.syntax
        syntax.levels = [sorted(set(cuts)) for cuts in self.levels if cuts]
        syntax.joints = sorted(set(syntax.joints))
        starts = [each.start for each in syntax.definitions]
        for each in syntax.definitions:
            line_end = self.code.find(b"\n", each.end, each.end + _INDENT)
            following = bisect_left(starts, each.end)
            stop = starts[following] if following < len(starts) else len(self.code)
            each.end = max(each.end, min(line_end, stop))
        return syntax


def _definition_starts(tree: Any, language: str) -> list[int]:
    """Return where the nodes of definitions begin, except those that need several lines."""
    query = _definition_query(language)
    if query is None:
        return []
    from tree_sitter import QueryCursor

    nodes = QueryCursor(query).captures(tree.root_node).get("definition", [])
    return sorted(node.start_byte for node in nodes)


@lru_cache(maxsize=64)
def _definition_query(language: str) -> Any:
    """Return the query for the definitions of a language, or None if it has none."""
    types = [each for each in LANGUAGES[language].definitions.split() if each not in _PAIRS]
    if not types:
        return None
    from tree_sitter import Query

    return Query(_grammar(language), "".join(f"({each}) @definition" for each in types))


def _is_closing(node: Any) -> bool:
    """Whether a node belongs to the one before, like an end tag or a variable's docstring."""
    if node.type == "expression_statement" and node.child_count == 1:
        return bool(node.child(0).type == "string")
    return node.type in ("end_tag", "where_clause")


_PROBE = 8_000  # characters to parse first, to see whether the text is code at all
_MAX_OPEN = 400  # "<" in one statement; ":" in a selector of CSS
_MAX_UNCLOSED = 4_000_000  # characters to read for comments that are never closed
_COMMENTED = frozenset(
    "c cpp csharp css go hcl java javascript php rust sql swift tsx typescript".split()
)

_BUFFERS: list[bytearray] = []  # not in use by any thread

_SPACE = re.compile(r"[^\S\x00-\x7f]|[\x00\ufeff]")
_OTHER = re.compile(r"[^\x00-\x7f]")
_STATEMENT = re.compile(rb"[;{}>]")
_TOO_COMPLEX = {
    "swift": rb"#{1000}",
    "typescript": rb"(?:<[^<>]*>\s*){200}",
    "yaml": rb"(?m)^[ \t?:-]{100}",  # the grammar crashes at 250 open blocks
}
"""By the language: what takes its grammar time quadratic in its length, or makes it crash."""


def parse(code: bytes, language: str) -> Any:
    """Parse code with tree-sitter.

    tree-sitter repairs errors, which for a text that is not code can take time quadratic in its
    length. So parsing stops if the beginning is mostly errors, or words that no rule connects, or
    if it takes more steps than the length explains. Both depend on the text alone.

    Raises UnreadableError if the text is not code, and ImportError if tree-sitter or the grammar is
    not installed.
    """
    if language in _TOO_COMPLEX and re.search(_TOO_COMPLEX[language], code):
        raise UnreadableError("too complex")
    opening = b":" if language == "css" else b"<"
    if any(part.count(opening) > _MAX_OPEN for part in _STATEMENT.split(code)):
        raise UnreadableError("too complex")  # takes time quadratic in their number
    if language in _COMMENTED and _unclosed_work(code) > _MAX_UNCLOSED:
        raise UnreadableError("too complex")  # each reads on to the end of the text
    probe = _parse(code[:_PROBE], language)
    errors, orphans = _errors(probe)
    if errors * 32 > _PROBE or orphans * 6.5 > _PROBE:
        raise UnreadableError("syntax error")
    return _parse(code, language) if len(code) > _PROBE else probe


def _unclosed_work(code: bytes) -> int:
    """Return the number of characters to read for the comments that are never closed."""
    start = code.rfind(b"*/") + 2 if b"*/" in code else 0
    return code.count(b"/*", start) * (len(code) - start)


def as_ascii(text: str) -> bytes:
    """Encode a text with one byte per code point, so that tree-sitter's offsets are code points.

    Grammars do not care which letters are in names, strings and comments. White space stays white
    space, NUL becomes a space, and every line break gets a line feed, which tree-sitter counts.
    """
    code = with_line_feeds(text)
    if not code.isascii() or "\0" in code:
        code = _OTHER.sub("x", _SPACE.sub(" ", code))
    return code.encode("ascii")


@lru_cache(maxsize=64)
def _grammar(language: str) -> Any:
    module, _, function = LANGUAGES[language].grammar.partition(" ")
    try:
        from tree_sitter import Language

        return Language(getattr(import_module(module), function or "language")())
    except ImportError as error:
        raise MissingExtraError(
            f"CodeChunker needs tree-sitter and {module.replace('_', '-')}: "
            + install_command("code")
        ) from error


def _parse(code: bytes, language: str) -> Any:
    """Return the tree. Raises UnreadableError if it takes more than twenty steps per byte."""
    grammar = _grammar(language)
    from tree_sitter import Parser

    budget = 200 + len(code) // 5  # it reports every hundred steps

    def is_too_much(offset: int, has_error: bool) -> bool:
        nonlocal budget
        budget -= 1
        return budget < 0

    buffer = _buffer(len(code))
    view = memoryview(buffer)[: len(code)]
    view[:] = code
    try:
        return Parser(grammar).parse(lambda offset, _: view[offset:], progress_callback=is_too_much)
    except ValueError as error:  # raised when parsing is stopped
        raise UnreadableError("too complex") from error
    finally:
        _BUFFERS.append(buffer)


def _buffer(size: int) -> bytearray:
    """Return a reusable buffer of at least `size` bytes.

    tree-sitter's binding (0.26) never releases what a read callback has returned, so a view of
    each text would keep all texts in memory.
    """
    buffer = _BUFFERS.pop() if _BUFFERS else bytearray(1 << 16)
    return buffer if len(buffer) >= size else bytearray(2 * size)


def _errors(tree: Any) -> tuple[int, int]:
    """Count the errors in a tree, and the nodes in them that no rule connects, except in lists.

    Truncated code has few such nodes. A text that is not code has one for every word or bracket.
    """
    cursor, errors, orphans = tree.walk(), 0, 0
    while True:
        node = cursor.node
        if node.is_error or node.is_missing:
            children = node.children
            errors += 1
            orphans += len(children) - 2 * sum(each.type == "," for each in children)
        if node.has_error and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return errors, orphans
