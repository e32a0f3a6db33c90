"""The blocks of a Markdown text: CommonMark with tables, front matter and formulas."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import regex

from rag_splitters.structure.block import Block, Kind
from rag_splitters.structure.blocks.plain import with_anchors, with_items
from rag_splitters.structure.html.blocks import html_blocks
from rag_splitters.structure.html.tree import parse_html
from rag_splitters.structure.markup import FORMULAS, FRONT_MATTER
from rag_splitters.text.boundaries import skip_space, trim_space
from rag_splitters.text.lines import BLANK_LINE, CAPTION, LINE_BREAK

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token


_WINDOW = 60_000  # characters to parse at once, to limit memory use
_FRONT_MATTER = re.compile(FRONT_MATTER)


def markdown_blocks(text: str) -> list[Block]:
    """Find the blocks of a Markdown text with markdown-it-py.

    Inside a list or a quote, the blocks are those of the innermost items, with a common `group`.
    The paragraphs of an item are one block. Link reference definitions are paragraphs.

    >>> text = "Title\\n===\\n\\n```py\\n# x\\n```"
    >>> [(block.kind, block.title) for block in markdown_blocks(text)]
    [('heading', 'Title'), ('code', 'py')]
    """
    leaves = _Leaves(text)
    position = front_matter_end(text)
    if position:
        leaves.blocks.append(Block("front_matter", 0, position))
    size = _WINDOW
    while position < len(text):
        end = _window_end(text, position, size)
        tokens = _parser().parse(text[position:end])
        starts = [match.end() for match in LINE_BREAK.finditer(text, position, end)]
        lines = [position, *starts, end]
        if end < len(text):
            outer = [index for index, token in enumerate(tokens) if _is_outer(token)]
            if len(outer) == 1:  # the block may continue after the window
                size *= 2
                continue
            if outer:  # parse the last block again in the next window, as it may continue there
                end = lines[(tokens[outer[-1]].map or [0])[0]]
                tokens = tokens[: outer[-1]]
        leaves.add(tokens, lines)
        position, size = end, _WINDOW
    return leaves.finished()


def front_matter_end(text: str) -> int:
    """Return the end of the YAML or TOML at the beginning of a text, or 0.

    >>> front_matter_end("---\\ntitle: Tea\\n---\\nHot.")
    18
    """
    match = _FRONT_MATTER.match(text)
    return match.end() if match else 0


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Create a parser of blocks, which does not parse the inside of paragraphs."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": 1000}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    block = parser.block.ruler
    interrupted = ["paragraph", "reference", "blockquote", "list"]  # blocks that a rule may end
    own: dict[str, _Rule] = {rule.name: rule.fn for rule in block.__rules__}
    block.at("table", _whole_table(own["table"]), {"alt": ["paragraph", "reference"]})
    block.before("table", "formula", _formula, {"alt": interrupted})
    block.before("formula", "prose", _prose, {"alt": []})
    for name, ends in (("blockquote", interrupted), ("list", interrupted[:3])):
        limited = _limit_nesting(_linear_quote(own[name]) if name == "blockquote" else own[name])
        block.at(name, limited, {"alt": ends})
    return parser


def _is_outer(token: Token) -> bool:
    return token.level == 0 and token.nesting >= 0


def _window_end(text: str, position: int, size: int) -> int:
    """Return the end of the window from `position`: at a blank line, or at the end of a line."""
    end = position + size
    if end >= len(text):
        return len(text)
    if match := BLANK_LINE.search(text, end, end + _WINDOW):
        return match.end()
    match = LINE_BREAK.search(text, end)
    return match.end() if match else len(text)


_Rule: TypeAlias = "Callable[[StateBlock, int, int, bool], bool]"

_MAX_NESTING = 32  # levels of lists, items and quotes; deeper marks are text
_MAX_REREAD = 4  # levels; a deeper quote ends with its lazy lines
_MAX_FORMULA = 200  # lines
_MARKS_AT_START = frozenset("#>*+-=_|:~`<[!$\\0123456789")
_OPENING = re.compile(rf"\$\$|\\\[|\\begin\{{((?:{'|'.join(FORMULAS)})\*?)\}}")


def _prose(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Return the rule of paragraphs in which no line begins with a mark or a digit.

    No other rule can match or end them, so most lines of prose are read without trying any.
    """
    line = start
    while line < end and not state.isEmpty(line):
        if state.src[state.bMarks[line] + state.tShift[line]] in _MARKS_AT_START:
            return False
        if state.is_code_block(line):
            return False
        line += 1
    state.push("prose", "", 0).map = [start, line]
    state.line = line
    return True


def _limit_nesting(rule: _Rule) -> _Rule:
    """Return the rule of a container, limited to a nesting depth far below the recursion limit."""

    def limited(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        return state.level < _MAX_NESTING and rule(state, start, end, silent)

    return limited


def _linear_quote(quote: _Rule) -> _Rule:
    """Return the rule of quotes in linear time.

    The original reads every line after the quote that might be a lazy continuation, so many short
    quotes without blank lines between them take quadratic time. This rule shows it only the lines
    up to the next quote mark, and twice as many such runs each time that it consumes them all.
    """

    def limited(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        if silent or not _is_marked(state, start):
            return silent and quote(state, start, end, silent)
        count, runs = len(state.tokens), 1
        while (stop := _runs(state, start, end, runs)) < end:
            if not quote(state, start, stop, silent):
                return False
            if state.line < stop or state.isEmpty(stop) or state.level >= _MAX_REREAD:
                return True
            del state.tokens[count:]
            state.line, runs = start, 2 * runs
        return quote(state, start, end, silent)

    return limited


def _runs(state: StateBlock, start: int, end: int, count: int) -> int:
    """Return the end of so many runs, each of lines with a quote mark followed by lines without."""
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


def _whole_table(table: _Rule) -> _Rule:
    """Return the rule of tables, without tokens for rows and cells, which are not needed here.

    The original rule decides whether a table begins, and the table ends at the same line.
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


def _formula(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Apply the rule of `$$ ... $$`, `\\[ ... \\]` and equation environments on whole lines."""
    first = state.bMarks[start] + state.tShift[start]
    opening = _OPENING.match(state.src, first, state.eMarks[start])
    if state.is_code_block(start) or not opening:
        return False
    mark, name = opening.group(), opening.group(1)
    closing = {"$$": "$$", "\\[": "\\]"}.get(mark, f"\\end{{{name}}}")
    for line in range(start, min(end, start + _MAX_FORMULA)):
        begin, stop = state.bMarks[line] + state.tShift[line], state.eMarks[line]
        if line > start and (begin >= stop or state.sCount[line] < state.blkIndent):
            return False
        begin = opening.end() if line == start else begin
        place = state.src.find(closing, begin, stop)
        if place >= 0:
            is_formula = not state.src[place + len(closing) : stop].strip(" \t.,;")
            if is_formula and not silent:
                state.push("formula", "", 0).map = [start, line + 1]
                state.line = line + 1
            return is_formula
        if state.src.find(mark, begin, stop) >= 0:
            return False
    return False


_KINDS: dict[str, Kind] = {
    "fence": "code",
    "code_block": "code",
    "table_open": "table",
    "formula": "formula",
    "hr": "rule",
}
_MAX_TITLE = 500  # characters
LABEL = r"(?:[^\[\]\\]|\\.|\[(?:[^\[\]\\]|\\.)*+\])*+"
"""Pattern of the text of a link, or the alternative text of an image, between its brackets."""
_IMAGE = rf"!\[({LABEL})\](?:\((?:[^()\\]|\\.|\([^()]*+\))*+\)|\[[^\[\]]*+\])?+"
_ANY_IMAGE = regex.compile(rf"(?|\[{_IMAGE}\]\([^()]*+\)|{_IMAGE})", regex.DOTALL)
_CODE = r"(?<!`)(?P<fence>`+)(?!`)(?P<code>.+?)(?<!`)(?P=fence)(?!`)"  # nothing in it is markup
ESCAPE = r"\\([!-/:-@\[-`{-~])"
"""Pattern of a character after a backslash."""
_LINK = regex.compile(
    rf"{ESCAPE}|{_CODE}|!?\[(?P<label>{LABEL})\](?:\([^()]*+\)|\[[^\[\]]*+\])", regex.DOTALL
)
_MARKS = re.compile(  # an escaped character, code, a tag or emphasis
    rf"{ESCAPE}|{_CODE}|<[A-Za-z/!?][^<>]*>|`+|~~|\*{{1,3}}(?=\S)|(?<=\S)\*{{1,3}}"
    r"|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)",
    re.DOTALL,
)


class _Leaves:
    """Collects the blocks of a Markdown text from the tokens of its windows."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.blocks: list[Block] = []
        self._containers: list[tuple[Kind, int]] = []  # kind, start
        self._unused: list[int] = []  # starts of containers that have no block yet
        self._group = 0
        self._item = -1  # index of the last block, if the next paragraph of its item joins it

    def finished(self) -> list[Block]:
        """Return all blocks. Text that no token covers becomes paragraphs."""
        blocks = _pair_captions(self._text, _fill_gaps(self._text, self.blocks))
        blocks = with_items(self._text, _in_details(self._text, blocks))
        return with_anchors(self._text, blocks)

    def add(self, tokens: Sequence[Token], lines: Sequence[int]) -> None:
        """Add the tokens of a window, given the starts of its lines and, last, its end."""
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
        if self._unused and kind != "html":  # an empty container: its marks are a block
            line = bisect_right(lines, start)
            self._put(kind, start, lines[min(line, len(lines) - 1)])
        self._containers.pop()
        self._unused = self._unused[: len(self._containers)]
        self._item = -1

    def _leaf(self, token: Token, inline: Token, lines: Sequence[int]) -> None:
        begin, end = token.map or [0, 0]
        start, stop = lines[begin], lines[min(end, len(lines) - 1)]
        kind, level, title = self._describe(token, inline)
        if kind == "heading":
            line = self._text[lines[end - 1] : stop].rstrip("\r\n")
            if line == "-- " or (line == "--" and "\n" in inline.content):  # above a signature
                kind, level, title = "paragraph", 0, ""
        self._put(kind, start, stop, level, title)

    def _describe(self, token: Token, inline: Token) -> tuple[Kind, int, str]:
        """Return the kind, level and title of a leaf."""
        inner = self._containers[-1][0] if self._containers else None
        content = inline.content if inline.type == "inline" else ""
        kind = _KINDS.get(token.type, "paragraph")
        title, level = "", 0
        if kind == "code":
            title = (token.info.split() or [""])[0].strip("{}.")
        elif token.type == "html_block":
            kind, level, title = _html_kind(token.content)
        elif token.type == "heading_open":
            kind, level = "heading", int(token.tag[1])
            title = _plain_title(_ANY_IMAGE.sub(" ", content)) or _plain_title(content)  # badges
        elif content[:1] in ("!", "[") and not _ANY_IMAGE.sub("", content).strip():
            image = _ANY_IMAGE.match(content)
            kind, title = "image", _plain_title(image[1]) if image else ""
        if inner and kind in ("paragraph", "heading", "rule"):
            return inner, 0, ""
        return kind, level, title

    def _put(self, kind: Kind, start: int, stop: int, level: int = 0, title: str = "") -> None:
        """Add a block of whole lines, with the marks of the containers that it opens."""
        text, unused = self._text, self._unused
        if unused:
            start = min(start, unused[0])
            self._unused = []
        before = self.blocks[-1].end if self.blocks else 0
        start = skip_space(text, max(start, before))
        end = trim_space(text, start, max(stop, start))
        if end <= start:
            return
        group = self._group if self._containers else 0
        if kind in ("list_item", "quote") and not level:
            level = sum(each == kind for each, _ in self._containers)
        if self._item >= 0 and kind == "list_item" and self._item == len(self.blocks) - 1:
            start = self.blocks.pop().start
        self.blocks.append(Block(kind, start, end, level, title, group))
        self._item = len(self.blocks) - 1 if kind == "list_item" else -1


def _plain_title(content: str) -> str:
    """Return the first 500 characters of a heading's text, without marks, tags and line breaks.

    >>> _plain_title("The **whole** [story](a.html) &amp; `f([a][, *b]) -> C<D>`")
    'The whole story & f([a][, *b]) -> C<D>'
    """
    content = _LINK.sub(
        lambda link: link[0] if link["label"] is None else link["label"], content[: 2 * _MAX_TITLE]
    )
    plain = _MARKS.sub(lambda mark: mark[1] or html.escape(mark["code"] or ""), content)
    return " ".join(html.unescape(plain).split())[:_MAX_TITLE]


def _html_kind(content: str) -> tuple[Kind, int, str]:
    """Return kind, level and title of an HTML block: table, image, heading or mixed HTML."""
    blocks = [each for each in html_blocks(parse_html(content)) if each.kind != "dropped"]
    if len(blocks) == 1 and blocks[0].kind in ("table", "image", "heading"):
        return blocks[0].kind, blocks[0].level, blocks[0].title
    return "html", 0, ""


_DETAILS = re.compile(r"<(/?)details\b", re.IGNORECASE)


def _in_details(text: str, blocks: Sequence[Block]) -> list[Block]:
    """Give the blocks of each `<details>` a group. Its headings, which would not end, are text."""
    results: list[Block] = []
    group = max((block.group for block in blocks), default=0)
    depth = 0
    for block in blocks:
        before = depth
        if block.kind == "html":
            tags = _DETAILS.findall(text, block.start, block.end)
            depth = max(0, depth + len(tags) - 2 * sum(tag == "/" for tag in tags))
            group += before == 0 < depth
        if before or depth:
            block = replace(block, group=group)
        if depth and block.kind == "heading":
            block = replace(block, kind="paragraph", level=0, title="")
        results.append(block)
    return results


_MAX_CAPTION = 500  # characters


def _fill_gaps(text: str, blocks: Sequence[Block]) -> list[Block]:
    """Add the text between blocks, as paragraphs or as part of a quote."""
    filled: list[Block] = []
    position = 0
    for block in [*blocks, Block("paragraph", len(text), len(text))]:
        start = skip_space(text, position)
        end = trim_space(text, start, block.start)
        last = filled[-1] if filled else None
        is_container = last is not None and last.kind in ("quote", "list_item")
        if last and is_container and start < end and not text[start:end].strip("> \t\r\n"):
            filled[-1] = replace(last, end=end)
        elif start < end:
            group = last.group if last and last.group == block.group else 0
            filled.append(Block("paragraph", start, end, group=group))
        if block.end > block.start:
            filled.append(block)
            position = block.end
    return filled


def _pair_captions(text: str, blocks: Sequence[Block]) -> list[Block]:
    """Give each image or table and its caption a common group.

    A caption is a short paragraph right before or after, which begins like "Figure 3" or "Table
    2:". It becomes the title of the table.
    """
    paired = list(blocks)
    group = max((block.group for block in blocks), default=0)
    for index, block in enumerate(paired):
        if block.kind not in ("image", "table") or block.group:
            continue
        for other in (index + 1, index - 1):
            if 0 <= other < len(paired) and _names(text, paired[other], block.kind):
                group += 1
                caption = " ".join(text[paired[other].start : paired[other].end].split())
                title = block.title or caption.strip("*_: ")
                paired[index] = replace(block, group=group, title=title)
                paired[other] = replace(paired[other], group=group)
                break
    return paired


def _names(text: str, block: Block, kind: str) -> bool:
    """Whether this block is the caption of an image or a table."""
    if block.kind != "paragraph" or block.group or block.end - block.start > _MAX_CAPTION:
        return False
    match = CAPTION.match(text, block.start, block.end)
    return match is not None and match.group(kind) is not None
