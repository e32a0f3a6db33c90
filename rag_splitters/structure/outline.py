"""The headings of a text, and which of them a passage stands under."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rag_splitters.structure.blocks import Block, TextFormat, detect_format, read_blocks
from rag_splitters.structure.blocks.html import html_blocks
from rag_splitters.structure.blocks.markdown import formula_length, front_matter, plain_title
from rag_splitters.structure.blocks.plain import wiki_heading
from rag_splitters.structure.grammars import language_of
from rag_splitters.text.boundaries import skip_space, trim_space

__all__ = ["Heading", "Outline"]

_MARKUP_LANGUAGES = ("html", "latex", "rst")
"""Languages whose loaders often return plain text or Markdown, so the text has to be examined."""


class Heading(NamedTuple):
    """A heading of a text.

    Parameters:
        start: offset of its first code point.
        end: offset after its last one, an underline included.
        level: 1 for the outermost.
        text: the first 500 characters of its text, in one line, without marks and tags.
    """

    start: int
    end: int
    level: int
    text: str


class Outline:
    """The headings of a text, and which of them a position stands under.

    Parameters:
        text: the text.
        headings: its headings, in order.

    >>> outline = Outline.of("# Tea\\n\\n## Green\\n\\nCool the water.")
    >>> outline.title, outline.above(17)
    ('Tea', ('Tea', 'Green'))
    """

    def __init__(self, text: str, headings: Sequence[Heading]) -> None:
        self.headings = headings
        self._starts = [heading.start for heading in headings]
        self._section_ends = [len(text)] * len(headings)
        self.paths: list[tuple[str, ...]] = []  # the path of each heading, down to itself
        self._nested: list[bool] = []  # is it right below its parent?
        open_headings: list[int] = []
        for index, heading in enumerate(headings):
            while open_headings and headings[open_headings[-1]].level >= heading.level:
                self._section_ends[open_headings.pop()] = heading.start
            is_deeper = index > 0 and open_headings[-1:] == [index - 1]
            is_below = is_deeper and skip_space(text, headings[index - 1].end) >= heading.start
            self._nested.append(is_below)
            above = self.paths[open_headings[-1]] if open_headings else ()
            self.paths.append((*above, heading.text))
            open_headings.append(index)

    @classmethod
    def of(
        cls,
        text: str,
        format: TextFormat = "auto",
        *,
        keywords: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        blocks: Sequence[Block] | None = None,
    ) -> Outline:
        """The outline of a Markdown, HTML, wiki or plain text, in linear time.

        Front matter, source code, code blocks, `<pre>` and comments have no headings.

        Parameters:
            text: any text.
            format: the format of the text; "auto" detects it from the metadata and the text.
            keywords: words that open a heading in plain text, in addition to "Chapter", "Section"
                and the like.
            metadata: the metadata of the document, whose language or file name may say that the
                text is source code.
            blocks: the blocks of the text, if they have been read already.

        >>> Outline.of("# TODO", metadata={"source": "build.sh"}).headings
        []
        """
        text_format = format
        if format == "auto":
            text_format = _format_from(metadata or {}) or detect_format(text)
        if text_format == "markdown":
            return cls(text, [heading for heading in _markdown_headings(text) if heading.text])
        if blocks is None:
            blocks = read_blocks(text, text_format, keywords=keywords)
        return cls(text, [heading for heading in _headings_of(blocks) if heading.text])

    @property
    def title(self) -> str:
        """The text of the first heading, or "" if there is none."""
        return self.headings[0].text if self.headings else ""

    def above(self, position: int, end: int | None = None) -> tuple[str, ...]:
        """The texts of the headings that `position` stands under, the outermost first.

        A passage may begin with several nested headings. If you pass its `end`, the headings go
        down to the deepest one that the whole passage stands under.

        >>> outline = Outline.of("# Tea\\n\\n## Green\\n\\nCool the water.")
        >>> outline.above(0), outline.above(0, 32)
        (('Tea',), ('Tea', 'Green'))
        """
        index = bisect_right(self._starts, position) - 1
        if index < 0:
            return ()
        stop = position if end is None else end
        deeper = index + 1
        while deeper < len(self._nested) and self._nested[deeper] and self._starts[deeper] < stop:
            index = deeper if stop <= self._section_ends[deeper] else index
            deeper += 1
        return self.paths[index]


def _format_from(metadata: Mapping[str, Any]) -> TextFormat | None:
    """The format of a document according to its language or file name, or None."""
    language = language_of(metadata)
    if language is None or language in _MARKUP_LANGUAGES:
        return None
    return "markdown" if language == "markdown" else "code"


def _headings_of(blocks: Sequence[Block]) -> Iterator[Heading]:
    for block in blocks:
        if block.kind == "heading":
            yield Heading(block.start, block.end, block.level, block.title)


def _markdown_headings(text: str) -> list[Heading]:
    """The headings of a Markdown text, found about six times faster than by reading its blocks.

    They are the headings among the blocks, which tests/test_outline.py checks, and those inside
    larger HTML blocks.
    """
    return _MarkdownScan(text).headings()


_LINE = re.compile(r"([ \t]*)([^\r\n]*)(?:\r\n?|\n|\Z)")
_MARKS = frozenset("#<>`~=-*+_$\\[|:0123456789")
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*\Z")
_RULE = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}\Z")
_ITEM = re.compile(r"(?:[-+*]|\d{1,9}[.)])(?=[ \t]|\Z)")
_FENCE = re.compile(r"(`{3,})[^`]*\Z|(~{3,})")
_DELIMITERS = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?\Z")
_DEFINITION = re.compile(r"\[[^\[\]\r\n]{1,999}\]:[ \t]*\S")
_HTML_HEADING = re.compile(r"<h[1-6][\s>]", re.IGNORECASE)
_NO_TEXT = re.compile(r"#{1,6}(?:[ \t]|\Z)|`{3}|~{3}|(?:[-*_][ \t]*){3,}\Z")
_TAB = 4  # columns: lines that are indented this far are code


class _MarkdownScan:
    """Reads a Markdown text line by line, tracking only what decides whether a line is a heading.

    A heading inside a list or a quote is part of the item, so their content is skipped.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._headings: list[Heading] = []
        self._skip = 0  # lines before this offset are front matter or a formula
        self._fence = ""  # the marks of the open code fence
        self._html: re.Pattern[str] | None = None  # the end of the open HTML block
        self._html_start = 0
        self._item = 0  # the column of the open list item's content
        self._paragraph = -1  # the start of the open paragraph
        self._is_lazy = False  # may text continue a paragraph of an item or a quote?
        self._is_table = False  # is that paragraph the rows of a table?

    def headings(self) -> list[Heading]:
        text = self._text
        if match := front_matter(text):
            self._skip = match.end()
        for match in _LINE.finditer(text):
            space, content = match.groups()
            start = match.start(2)
            if start < self._skip or (content and self._is_plain(space, content[0])):
                continue
            if self._html:
                self._go_on_html(content, match.end(2))
            elif not content:
                self._paragraph, self._is_lazy = -1, False
            else:
                indent = len(space.expandtabs(_TAB)) if "\t" in space else len(space)
                self._take_line(start, match.end(2), indent, content)
        if self._html:
            self._close_html(len(text))
        return self._headings

    def _is_plain(self, space: str, first: str) -> bool:
        """Is this only more of the open paragraph or code fence? Most lines are."""
        if self._fence:
            return first != self._fence[0]
        return self._paragraph >= 0 and not space and first not in _MARKS

    def _take_line(self, start: int, end: int, indent: int, content: str) -> None:
        """Take a line that is neither blank nor in an HTML block."""
        if self._fence:
            if indent < _TAB and content.startswith(self._fence):
                self._fence = "" if not content.strip(self._fence[0] + " \t") else self._fence
        elif self._item and indent >= self._item:
            self._is_lazy = _is_text(content)
        elif indent >= _TAB:  # code, which ends a table, or the continuation of a paragraph
            self._is_lazy = self._is_lazy and not self._is_table
        elif self._paragraph >= 0 and _UNDERLINE.match(content):
            title = self._text[self._paragraph : start]
            self._put(self._paragraph, end, 1 if content[0] == "=" else 2, title)
        elif content[0] in _MARKS and self._take_mark(start, end, indent, content):
            return
        elif not self._is_lazy:
            self._item = 0
            self._paragraph = start if self._paragraph < 0 else self._paragraph

    def _take_mark(self, start: int, end: int, indent: int, content: str) -> bool:
        """Take a line that begins with a mark; False if the line is only text."""
        first = content[0]
        if first == "#":
            level = len(content) - len(content.lstrip("#"))
            if level > 6 or content[level : level + 1].strip(" \t"):
                return False
            self._put(start, end, level, _without_closing(content[level:]))
        elif first == "=" and (wiki := wiki_heading(content)):
            self._put(start, end, *wiki)
        elif first in "`~" and (fence := _FENCE.match(content)):
            self._leave()
            self._fence = fence.group(1) or fence.group(2)
        elif first == ">":
            self._leave(is_lazy=_is_text(content.lstrip("> \t")))
        elif first in "-*_" and _RULE.match(content):
            self._leave()
        elif (mark := _ITEM.match(content)) and self._opens_item(content, mark.end()):
            rest = content[mark.end() :]
            gap = len(rest) - len(rest.lstrip(" \t"))
            self._leave(is_lazy=_is_text(rest.lstrip(" \t")))
            self._item = indent + mark.end() + (gap if 0 < gap <= _TAB else 1)
        elif first == "<":
            return self._open_html(start, end, content)
        elif first in "$\\" and (stop := self._formula_end(start, end)):
            self._leave()
            self._skip = stop
        elif first in "|:-" and self._is_below_header(start, content):
            self._leave(is_lazy=True)  # a table, whose rows continue until a blank line
            self._is_table = True
        elif first == "[" and self._is_definition(content):
            self._leave()
        else:
            return False
        return True

    def _put(self, start: int, end: int, level: int, content: str) -> None:
        start = skip_space(self._text, start)
        end = trim_space(self._text, start, end)
        self._headings.append(Heading(start, end, level, plain_title(content)))
        self._leave()

    def _leave(self, is_lazy: bool = False) -> None:
        """Close the open paragraph and list item."""
        self._paragraph, self._item, self._is_lazy, self._is_table = -1, 0, is_lazy, False

    def _opens_item(self, content: str, end: int) -> bool:
        """Does this mark open a list item? In a paragraph, only "1." and bullets with text do."""
        if self._paragraph < 0:
            return True
        return content[: end - 1] in ("", "1") and bool(content[end:].strip(" \t"))

    def _is_definition(self, content: str) -> bool:
        """Is this a link reference definition? It cannot interrupt a paragraph."""
        is_inside = self._paragraph >= 0 or self._is_lazy
        return not is_inside and _DEFINITION.match(content) is not None

    def _is_below_header(self, start: int, content: str) -> bool:
        """Is this the delimiter row of a table, below the table's header?"""
        if self._paragraph < 0 or not _DELIMITERS.match(content.rstrip(" \t")):
            return False
        line_end = trim_space(self._text, self._paragraph, start)
        breaks = (self._text.rfind(each, self._paragraph, line_end) for each in "\r\n")
        line_start = max(self._paragraph, *breaks)
        return self._text.find("|", line_start, line_end) >= 0

    def _formula_end(self, start: int, end: int) -> int:
        """Where the formula ends that begins with this line, or 0.

        Below the text of a list item it must end in the same line.
        """
        lines: list[tuple[int, int]] = []

        def contents() -> Iterator[tuple[int, int]]:
            for match in _LINE.finditer(self._text, start):
                if not match.group(2):
                    return
                lines.append(match.span(2))
                yield match.span(2)

        if not formula_length(self._text, contents()):
            return 0
        stop = lines[-1][1]
        return 0 if self._is_lazy and self._item and stop > end else stop

    def _open_html(self, start: int, end: int, content: str) -> bool:
        from markdown_it.rules_block.html_block import HTML_SEQUENCES

        is_inside = self._paragraph >= 0 or self._is_lazy
        for opening, closing, interrupts in HTML_SEQUENCES:
            if opening.search(content):
                if is_inside and not interrupts:
                    return False
                self._leave()
                self._html, self._html_start = closing, start
                self._go_on_html(content, end)
                return True
        return False

    def _go_on_html(self, content: str, end: int) -> None:
        if self._html and self._html.search(content):
            self._close_html(end)

    def _close_html(self, end: int) -> None:
        self._html = None
        start, self._paragraph, self._is_lazy = self._html_start, -1, False
        if _HTML_HEADING.search(self._text, start, end):
            for heading in _headings_of(html_blocks(self._text[start:end])):
                moved = heading._replace(start=heading.start + start, end=heading.end + start)
                self._headings.append(moved)


def _without_closing(content: str) -> str:
    """The content of a `#` heading without the marks that close it."""
    content = content.strip(" \t")
    unclosed = content.rstrip("#")
    return content if unclosed and unclosed[-1] not in " \t" else unclosed


def _is_text(content: str) -> bool:
    """Is this line of an item or a quote a paragraph, which the next line may continue?"""
    return bool(content) and not _NO_TEXT.match(content)
