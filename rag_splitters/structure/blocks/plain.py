"""The blocks of a plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from rag_splitters.structure.blocks.block import Block
from rag_splitters.text.boundaries import skip_space, trim_space

_KEYWORDS = {
    "part": 1,
    "book": 1,
    "teil": 1,
    "volume": 1,
    "chapter": 2,
    "kapitel": 2,
    "annex": 2,
    "appendix": 2,
    "anhang": 2,
    "schedule": 2,
    "section": 3,
    "abschnitt": 3,
    "article": 4,
    "artikel": 4,
}
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
_NUMBER = (
    r"(?:\d{1,4}(?:\.\d{1,3}){0,5}[a-z]?|[IVXLCDM]{1,8}|[A-Z]|"
    r"one|two|three|four|five|six|seven|eight|nine|ten)"
)
_NUMBERED = re.compile(r"(\d{1,3}(?:\.\d{1,3}){0,5})(\.?)[ \t]+(\S.*)")
_ROMAN = re.compile(r"[IVXLC]{1,6}\.[ \t]+\S.*")
_ITEM = re.compile(r"[ \t]*(?:[-*+•◦▪‣·–]|\(?(?:\d{1,3}|[a-z])[.)])[ \t]+\S")
_BULLET = re.compile(r"[ \t]*[-*+•◦▪‣·–][ \t]+\S")
_UNDERLINE = re.compile(r"(={3,}|-{3,}|~{3,}|\*{3,}|_{3,})[ \t]*\Z")
_WIKI = re.compile(r"=(?: ?=){0,5}")
_LONGEST = 80  # characters of a heading by its numbers or capitals
_LONGEST_KEYWORD = 120


def plain_blocks(text: str, keywords: Sequence[str] = ()) -> list[Block]:
    """Finds headings, paragraphs and list items of a plain text.

    A heading is a line that begins with a keyword and a number ("Chapter 3", "Article IV: ..."), a
    short numbered line without a full stop ("2.3 Results"), a short line in capitals between blank
    lines, one between equals signs ("== Results =="), or one that is underlined. Paragraphs end at
    blank lines, list items at the next one.

    Parameters:
        text: any text.
        keywords: further words that open a heading, whatever follows them.

    >>> [(block.kind, block.title) for block in plain_blocks("Chapter 1\\nIt rained.\\n- a\\n- b")]
    [('heading', 'Chapter 1'), ('paragraph', ''), ('list_item', ''), ('list_item', '')]
    """
    return list(_Reader(text, keywords).blocks())


class _Reader:
    """Reads the lines of a text, looking one line ahead."""

    def __init__(self, text: str, keywords: Sequence[str]) -> None:
        self._text = text
        self._keywords = _pattern(tuple(keywords))
        self._group = 0

    def blocks(self) -> Iterator[Block]:
        text = self._text
        lines = [match.span(1) for match in _LINE.finditer(text)]
        open_at = -1  # where the open paragraph or list item begins
        item = False
        blank_before, index = True, 0
        while index < len(lines):
            start, end = lines[index]
            line = text[start : min(end, start + 200)]
            blank = not line.strip() and not text[start:end].strip()
            after = lines[index + 1] if index + 1 < len(lines) else (end, end)
            underlined = open_at < 0 and not blank and self._underlines(after, end - start)
            level = 0 if blank else self._heading(line, end - start, blank_before, after)
            begins_item = not blank and not level and self._begins_item(line, open_at, item, after)
            if (blank or level or underlined or begins_item) and open_at >= 0:
                yield from self._block(open_at, start, item)
                open_at = -1
            if underlined or level:
                item = False
                if underlined:
                    level, end, index = underlined, after[1], index + 1
                yield self._heading_block(line, start, end, level, bool(underlined))
            elif not blank and open_at < 0:
                if begins_item and not item:
                    self._group += 1
                item = begins_item or (item and line[:1].isspace())
                open_at = start
            blank_before = blank or bool(level) or bool(underlined)
            index += 1
        if open_at >= 0:
            yield from self._block(open_at, len(text), item)

    def _block(self, start: int, end: int, item: bool) -> Iterator[Block]:
        start = skip_space(self._text, start)
        end = trim_space(self._text, start, end)
        if end > start and item:
            yield Block("list_item", start, end, 1, "", self._group)
        elif end > start:
            yield Block("paragraph", start, end)

    def _heading_block(
        self, line: str, start: int, end: int, level: int, is_underlined: bool
    ) -> Block:
        start = skip_space(self._text, start)
        wiki = None if is_underlined else wiki_heading(line)
        title = " ".join((wiki[1] if wiki else line).split())
        return Block("heading", start, trim_space(self._text, start, end), level, title)

    def _begins_item(self, line: str, open_at: int, item: bool, after: tuple[int, int]) -> bool:
        """Does a list item begin with this line? A number opens one only next to other items."""
        if _BULLET.match(line):
            return True
        if not _ITEM.match(line):
            return False
        return item or open_at < 0 or bool(_ITEM.match(self._text, *after))

    def _underlines(self, after: tuple[int, int], width: int) -> int:
        """The level of the heading that this line underlines, or 0."""
        start, end = after
        if end - start > 3 * width + 20 or width > 200:
            return 0
        match = _UNDERLINE.match(self._text, start, end)
        return 0 if not match else 1 if match.group(1)[0] in "=*" else 2

    def _heading(self, line: str, width: int, blank_before: bool, after: tuple[int, int]) -> int:
        """The level of the heading in this line, or 0 if it is not a heading."""
        content = line.strip()
        if width <= len(line) and (wiki := wiki_heading(content)):
            return wiki[0]
        if width <= _LONGEST_KEYWORD and (match := self._keywords.match(content)):
            word = match.group(1)
            if word is None:
                return 5
            if not content.endswith((",", ";")) and (blank_before or len(content) <= 40):
                return _KEYWORDS[word.lower()]
        if width > _LONGEST or content[-1:] in ".,;:!?":
            return 0
        following = self._text[after[0] : min(after[1], after[0] + 200)].strip()
        if match := _NUMBERED.match(content):
            depth = match.group(1).count(".") + 1
            dotted = depth > 1 or (blank_before and not following)
            title = match.group(3)
            if dotted and blank_before and title[0].isupper() and len(title) > 2:
                return min(depth + 1, 6)
        if not (blank_before and not following):
            return 0
        if _ROMAN.match(content):
            return 2
        letters = [each for each in content if each.isalpha()]
        capitals = len(letters) >= 3 and all(each.isupper() for each in letters)
        return 2 if capitals else 0


def wiki_heading(line: str) -> tuple[int, str] | None:
    """Level and text of a heading between equals signs, as MediaWiki and WikiText write it.

    >>> wiki_heading("== Tea =="), wiki_heading("= = Green = = "), wiki_heading("====")
    ((2, 'Tea'), (2, 'Green'), None)
    """
    content = line.strip(" \t")
    mark = _WIKI.match(content)
    if mark is None or not content.endswith(mark.group()):
        return None
    text = content[mark.end() : -mark.end()].strip()
    is_heading = bool(text) and text[0] != "=" and text[-1] != "="
    return (mark.group().count("="), text) if is_heading else None


@lru_cache(maxsize=64)
def _pattern(own: tuple[str, ...]) -> re.Pattern[str]:
    """Matches the beginning of a heading: a keyword (group 1) and its number, or a user's word."""
    keywords = "|".join(_KEYWORDS)
    pattern = rf"({keywords})[ \t]+(?:{_NUMBER})(?=[\s.:)–—-]|\Z)"
    if own:
        ends = [r"(?!\w)" if word[-1].isalnum() else "" for word in own]
        words = [re.escape(word) + end for word, end in zip(own, ends, strict=True)]
        pattern += f"|(?:{'|'.join(words)})"
    return re.compile(pattern, re.IGNORECASE)
