"""Parsing by tree-sitter: grammars loaded at first use, offsets in code points, bounded effort."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import Any

from rag_splitters.structure.syntax.grammars import GRAMMARS

__all__ = ["UnreadableError", "as_ascii", "parse"]

_PROBE = 8_000  # how much of a text is read to see whether it is code at all
_MAX_OPEN = 400  # "<" in one statement; ":" in a selector of CSS

_BUFFERS: list[bytearray] = []  # those that no thread is using

_SPACE = re.compile(r"[^\S\x00-\x7f]|[\x00\ufeff]")
_OTHER = re.compile(r"[^\x00-\x7f]")
_LONE_RETURN = re.compile(r"\r(?!\n)")
_STATEMENT = re.compile(rb"[;{}>]")
_DEEP_YAML = re.compile(rb"^[ \t?:-]{100}", re.MULTILINE)


class UnreadableError(Exception):
    """tree-sitter cannot make sense of a text, or not in fair time; the message says why."""


def parse(code: bytes, language: str) -> Any:
    """The tree-sitter tree of a code.

    tree-sitter repairs what is wrong with a text, and takes its time for one that is no code at
    all, the square of its length at worst. So one whose beginning is mostly errors, or words that
    no rule connects, is given up, and so is one that costs more steps than its length explains:
    both depend on the text alone.

    Raises: UnreadableError; ImportError where tree-sitter or the grammar is not installed.
    """
    if language == "yaml" and _DEEP_YAML.search(code):
        raise UnreadableError("too complex")  # its grammar crashes at some 250 open blocks
    opening = b":" if language == "css" else b"<"
    if any(part.count(opening) > _MAX_OPEN for part in _STATEMENT.split(code)):
        raise UnreadableError("too complex")  # costs the square of their number
    probe = _parse(code[:_PROBE], language)
    errors, orphans = _errors(probe)
    if errors * 32 > _PROBE or orphans * 6.5 > _PROBE:
        raise UnreadableError("syntax error")
    return _parse(code, language) if len(code) > _PROBE else probe


def as_ascii(text: str) -> bytes:
    """The text with one byte for every code point, so that tree-sitter's offsets are ours.

    No grammar cares which letter stands in a name, a string or a comment; white space stays white
    space, NUL is taken for some, and every line break has a line feed, by which tree-sitter counts.
    """
    known = _LONE_RETURN.sub("\n", text) if "\r" in text else text
    if not known.isascii() or "\0" in known:
        known = _OTHER.sub("x", _SPACE.sub(" ", known))
    return known.encode("ascii")


@lru_cache(maxsize=64)
def _grammar(language: str) -> Any:
    module, function = GRAMMARS[language]
    try:
        from tree_sitter import Language

        return Language(getattr(import_module(module), function)())
    except ImportError as error:
        raise ImportError(
            f"CodeChunker needs tree-sitter and {module.replace('_', '-')}: "
            "pip install 'rag-splitters[code]'"
        ) from error


def _parse(code: bytes, language: str) -> Any:
    """The tree; UnreadableError where it would take more than twenty steps for a byte."""
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
    except ValueError as error:  # what it raises when it is stopped
        raise UnreadableError("too complex") from error
    finally:
        _BUFFERS.append(buffer)


def _buffer(size: int) -> bytearray:
    """A buffer of at least `size` bytes, used again and again.

    tree-sitter's binding (0.26) never lets go of what a read callback has returned, so that a view
    of every text would keep that text for ever.
    """
    known = _BUFFERS.pop() if _BUFFERS else bytearray(1 << 16)
    return known if len(known) >= size else bytearray(2 * size)


def _errors(tree: Any) -> tuple[int, int]:
    """How many errors are in a tree, and how many nodes in them no rule connects, lists aside.

    Code that is cut off has few of them; what is no code has one for every word or bracket.
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
