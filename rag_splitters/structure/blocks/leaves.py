"""From the tokens of markdown-it-py to blocks."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

import regex

from rag_splitters.structure.blocks.block import Block, Kind
from rag_splitters.structure.blocks.filling import fill_gaps, pair_captions
from rag_splitters.structure.blocks.html import html_blocks
from rag_splitters.text.boundaries import skip_space, trim_space

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["Leaves", "plain_title"]

_LONGEST_TITLE = 500  # characters of a heading that are kept as its title
_IMAGE = (
    r"!\[((?:[^\[\]\\]|\\.|\[[^\[\]]*+\])*+)\](?:\((?:[^()\\]|\\.|\([^()]*+\))*+\)|\[[^\[\]]*+\])?+"
)
_IMAGES = regex.compile(rf"(?:{_IMAGE}|\[{_IMAGE}\]\([^()]*+\)|\s)++", regex.DOTALL)
_FIRST_IMAGE = regex.compile(_IMAGE, regex.DOTALL)
_HTML_TABLE = re.compile(r"\s*<table[\s>]", re.IGNORECASE)
_HTML_IMAGE = re.compile(r"<img\b([^<>]{0,2000})|<img\b", re.IGNORECASE)
_HTML_HEADING = re.compile(r"<h[1-6][\s>]", re.IGNORECASE)
_ALT = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")
_LINK = regex.compile(r"!?\[((?:[^\[\]\\]|\\.|\[[^\[\]]*+\])*+)\](?:\([^()]*+\)|\[[^\[\]]*+\])")
_MARKS = re.compile(r"(\*{1,3}|`+|~~|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w))")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


class Leaves:
    """Gathers the blocks of a Markdown text from the tokens of its parts.

    Parameters:
        text: the whole text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._blocks: list[Block] = []
        self._containers: list[tuple[Kind, int]] = []  # kind, offset where it begins
        self._unused: list[int] = []  # beginnings of containers that hold nothing yet
        self._group = 0
        self._item = -1  # the last block, if the paragraphs that follow in its item belong to it

    def put(self, block: Block) -> None:
        """Add a block that was found otherwise."""
        self._blocks.append(block)

    def finished(self) -> list[Block]:
        """All blocks, with what no token told of as paragraphs."""
        return pair_captions(self._text, fill_gaps(self._text, self._blocks))

    def add(self, tokens: Sequence[Token], lines: Sequence[int]) -> None:
        """Add the tokens of a part whose lines begin at these offsets, and whose end comes last."""
        for index, token in enumerate(tokens):
            if token.type in ("bullet_list_open", "ordered_list_open", "blockquote_open"):
                self._open("quote" if token.type == "blockquote_open" else "html", token, lines)
            elif token.type == "list_item_open":
                self._open("list_item", token, lines)
            elif token.type.endswith(("list_close", "list_item_close", "blockquote_close")):
                self._close(token, lines)
            elif token.map and token.type != "inline":
                self._leaf(token, tokens[index + 1] if index + 1 < len(tokens) else token, lines)

    def _open(self, kind: Kind, token: Token, lines: Sequence[int]) -> None:
        if not self._containers:
            self._group += 1
        begin = (token.map or [0])[0]
        self._containers.append((kind, lines[begin]))
        self._unused.append(lines[begin])
        self._item = -1

    def _close(self, token: Token, lines: Sequence[int]) -> None:
        kind, start = self._containers[-1]
        if self._unused and kind != "html":  # nothing in it: its marks are a block
            line = bisect_right(lines, start)
            self._put(kind, start, lines[min(line, len(lines) - 1)])
        self._containers.pop()
        self._unused = self._unused[: len(self._containers)]
        self._item = -1

    def _leaf(self, token: Token, inline: Token, lines: Sequence[int]) -> None:
        begin, end = token.map or [0, 0]
        start, stop = lines[begin], lines[min(end, len(lines) - 1)]
        kind, level, title = self._described(token, inline)
        if kind in ("code", "front_matter") and token.type == "fence":
            count = token.content.count("\n") + (
                not token.content.endswith("\n") and token.content != ""
            )
            inner = (lines[begin + 1], lines[min(begin + 1 + count, len(lines) - 1)])
            self._put(kind, start, stop, level, title, inner)
        else:
            self._put(kind, start, stop, level, title)

    def _described(self, token: Token, inline: Token) -> tuple[Kind, int, str]:
        """Kind, level and title of a leaf."""
        inner = self._containers[-1][0] if self._containers else None
        content = inline.content if inline.type == "inline" else ""
        kind: Kind = "paragraph"
        title, level = "", 0
        if token.type in ("fence", "code_block"):
            return "code", 0, (token.info.split() or [""])[0].strip("{}.")
        if token.type == "table_open":
            return "table", 0, ""
        if token.type == "formula":
            return "formula", 0, ""
        if token.type == "html_block":
            kind, level, title = _html_kind(token.content)
        elif token.type == "hr":
            kind = "rule"
        elif token.type == "heading_open":
            kind, level, title = "heading", int(token.tag[1]), plain_title(content)
        elif token.type == "paragraph_open" and content[:1] in "![" and _IMAGES.fullmatch(content):
            found = _FIRST_IMAGE.search(content)
            kind, title = "image", plain_title(found.group(1)) if found else ""
        if inner and kind in ("paragraph", "heading", "rule"):
            return inner, sum(each == inner for each, _ in self._containers), ""
        return kind, level, title

    def _put(
        self,
        kind: Kind,
        start: int,
        stop: int,
        level: int = 0,
        title: str = "",
        inner: tuple[int, int] | None = None,
    ) -> None:
        """Add a block of whole lines, with the marks of the containers that begin with it."""
        text, unused = self._text, self._unused
        if unused:
            start = min(start, unused[0])
            self._unused = []
        before = self._blocks[-1].end if self._blocks else 0
        start = skip_space(text, max(start, before))
        end = trim_space(text, start, max(stop, start))
        if end <= start:
            return
        group = self._group if self._containers else 0
        if kind in ("list_item", "quote") and not level:
            level = sum(each == kind for each, _ in self._containers)
        if self._item >= 0 and kind == "list_item" and self._item == len(self._blocks) - 1:
            start = self._blocks.pop().start
        content = (
            (min(max(inner[0], start), end), min(max(inner[1], start), end)) if inner else (-1, -1)
        )
        self._blocks.append(Block(kind, start, end, level, title, group, *content))
        self._item = len(self._blocks) - 1 if kind == "list_item" else -1


def plain_title(content: str) -> str:
    """A heading's text without marks, tags and line breaks, at most 500 characters of it.

    >>> plain_title("The **whole** [story](a.html) &amp; `more`")
    'The whole story & more'
    """
    short = _UNWRITABLE.sub("\ufffd", content[: 2 * _LONGEST_TITLE])
    short = _TAG.sub("", _LINK.sub(r"\1", short))
    short = html.unescape(_ESCAPE.sub(r"\1", _MARKS.sub("", short)))
    return " ".join(short.split())[:_LONGEST_TITLE]


def _html_kind(content: str) -> tuple[Kind, int, str]:
    """What an HTML block of a Markdown text is: a table, an image, a heading, or several things.

    Returns: kind, level and title.
    """
    if _HTML_TABLE.match(content) and "</table" in content.lower():
        return "table", 0, ""
    image = _HTML_IMAGE.search(content)
    if image and not _TAG.sub("", content).strip():
        alt = _ALT.search(image.group(1) or "")
        title = html.unescape(next(filter(None, alt.groups()), "")) if alt else ""
        return "image", 0, title
    if _HTML_HEADING.search(content):
        blocks = html_blocks(content)
        if len(blocks) == 1 and blocks[0].kind == "heading":
            return "heading", blocks[0].level, blocks[0].title
    return "html", 0, ""
