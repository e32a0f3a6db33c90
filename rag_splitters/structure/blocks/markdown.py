"""The blocks of a Markdown text: CommonMark with tables, front matter and display formulas."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from rag_splitters.structure.blocks.block import Block
from rag_splitters.structure.blocks.leaves import Leaves
from rag_splitters.structure.blocks.rules import (
    Rule,
    formula,
    nested_less,
    scans_less,
    uncut_rows,
    wiki,
)

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["front_matter", "markdown_blocks"]

_WINDOW = 60_000  # characters that are parsed at once, so that memory is bounded
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_BLANK_LINE = re.compile(r"(?:\r\n|\r|\n)[ \t]*(?:\r\n|\r|\n)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FRONT_MATTER = re.compile(
    r"\ufeff?(---|\+\+\+)[ \t]*(?:\r\n|\r|\n)(?=[\w\"'-][^\r\n]{0,200}?[:=]|#|\1)"
    r"(?P<body>.*?(?:\r\n|\r|\n)|)(?:\1|\.\.\.)[ \t]*(?=[\r\n]|\Z)",
    re.DOTALL,
)


def markdown_blocks(text: str) -> list[Block]:
    """Finds the blocks of a Markdown text, by markdown-it-py.

    Blocks inside lists and quotes are those of the innermost items, with a common `group`. An
    item's own paragraphs are one block. Link reference definitions are paragraphs.

    >>> text = "Title\\n===\\n\\n```py\\n# x\\n```"
    >>> [(block.kind, block.title) for block in markdown_blocks(text)]
    [('heading', 'Title'), ('code', 'py')]
    """
    leaves = Leaves(text)
    position = 0
    if match := front_matter(text):
        position = match.end()
        leaves.put(Block("front_matter", 0, position, 0, "", 0, *match.span("body")))
    size = _WINDOW
    while position < len(text):
        end = _window_end(text, position, size)
        tokens = _parser().parse(_SURROGATE.sub("\ufffd", text[position:end]))
        starts = [match.end() for match in _LINE_BREAK.finditer(text, position, end)]
        lines = [position, *starts, end]
        if end < len(text):
            outer = [index for index, token in enumerate(tokens) if _is_outer(token)]
            if len(outer) == 1:  # it may go on behind the window
                size *= 2
                continue
            if outer:  # the last one is read again, from its beginning, with what follows
                end = lines[(tokens[outer[-1]].map or [0])[0]]
                tokens = tokens[: outer[-1]]
        leaves.add(tokens, lines)
        position, size = end, _WINDOW
    return leaves.finished()


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """A parser of blocks alone; what is inside a paragraph is not parsed."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": 1000}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    block = parser.block.ruler
    interrupted = ["paragraph", "reference", "blockquote", "list"]
    own: dict[str, Rule] = {rule.name: rule.fn for rule in block.__rules__}
    block.at("table", uncut_rows(own["table"]), {"alt": ["paragraph", "reference"]})
    block.before("table", "formula", formula, {"alt": interrupted})
    block.before("lheading", "wiki", wiki, {"alt": interrupted[:3]})
    for name, ends in (("blockquote", interrupted), ("list", interrupted[:3])):
        limited = nested_less(scans_less(own[name]) if name == "blockquote" else own[name])
        block.at(name, limited, {"alt": ends})
    return parser


def _is_outer(token: Token) -> bool:
    return token.level == 0 and token.nesting >= 0


def _window_end(text: str, position: int, size: int) -> int:
    """Where the window from `position` ends: at a blank line, or else at some line's end."""
    wanted = position + size
    if wanted >= len(text):
        return len(text)
    if match := _BLANK_LINE.search(text, wanted, wanted + _WINDOW):
        return match.end()
    match = _LINE_BREAK.search(text, wanted)
    return match.end() if match else len(text)


def front_matter(text: str) -> re.Match[str] | None:
    """The front matter at the beginning of a text, in YAML or TOML; its group "body" is inside.

    >>> front_matter("---\\ntitle: Tea\\n---\\n# Tea").group("body")
    'title: Tea\\n'
    """
    return _FRONT_MATTER.match(text)
