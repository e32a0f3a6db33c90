"""The headings, paragraphs and list items of a plain text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from rag_splitters.structure.block import Block
from rag_splitters.structure.tables.pipe import PipeTable
from rag_splitters.text.boundaries import skip_space, trim_space, whole_words
from rag_splitters.text.leads import anchor_start
from rag_splitters.text.lines import (
    LINE_BREAK,
    NO_MARK,
    is_bullet,
    is_contents_line,
    is_item,
    is_no_title,
    keyword_heading,
    roman_value,
    underlines,
    wiki_heading,
)

_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
_NUMBERED = re.compile(r"(\d{1,3}(?:\.\d{1,3}){0,5})(\.?)[ \t]+(\S.*)")
_ROMAN = re.compile(r"[IVXLC]{1,6}\.[ \t]+\S.*|第?[一二三四五六七八九十百]{1,4}[、章節节]\S.*")
_ROMAN_NUMBER = re.compile(r"(C{0,3}(?:X[LC]|L?X{0,3})(?:I[XV]|V?I{0,3}))\.?\Z")
_LONGEST = 80  # characters of a heading by its numbers or capitals
_LONGEST_KEYWORD = 120
_SMALL_WORDS = 4  # letters: longer words have a capital in a title that ends with a full stop
_SHORT = 45  # characters: a shorter line is not in the middle of a wrapped paragraph
_CHAINS = 4
_CENTRE = range(30, 43)  # columns
_UNDERLINES = "*=-~_"  # each below those before it that were used before
_HEADING_SIGNS = "=h第"  # begin headings without a blank line above, as digits do


def with_paragraphs(
    text: str, parts: Sequence[Block], breaks: re.Pattern[str] | None = None
) -> list[Block]:
    """Add the paragraphs and list items between the parts of a text.

    Parameters:
        parts: some of the blocks of the text, in order.
        breaks: matches the lines that begin a paragraph, in addition to those after a blank line.
    """
    blocks: list[Block] = []
    position = group = 0
    for part in [*parts, Block("paragraph", len(text), len(text))]:
        for block in _paragraphs(text, position, part.start, breaks, group):
            blocks.append(block)
            group = max(group, block.group)
        if part.end > part.start:
            blocks.append(part)
        position = part.end
    return blocks


def _paragraphs(
    text: str, position: int, stop: int, breaks: re.Pattern[str] | None, group: int
) -> Iterator[Block]:
    """Yield the paragraphs, list items and pipe tables of a part of the text."""
    lines = [match.span(1) for match in _LINE.finditer(text, position, stop)]
    lines.append((stop, stop))  # after the blank line that every part ends with
    open_at, is_item = -1, False
    for (start, end), after in pairwise(lines):
        if open_at >= 0 and NO_MARK.match(text, start, end):
            continue
        line = text[start : min(end, start + 200)]
        is_blank = not line.strip() and not text[start:end].strip()
        begins_item = not is_blank and _begins_item(text, line, open_at < 0 or is_item, after)
        begins = begins_item or (breaks is not None and breaks.match(line) is not None)
        if open_at >= 0 and (is_blank or begins):
            yield _paragraph(text, open_at, start, group if is_item else 0)
            open_at = -1
        if open_at < 0 and not is_blank:
            group += begins_item and not is_item
            is_item = begins_item or (is_item and not begins and line[:1].isspace())
            open_at = start


def with_items(text: str, blocks: Sequence[Block]) -> list[Block]:
    """Make items of the lines with marks that Markdown does not know, such as (a), 1.1 and iv."""
    results: list[Block] = []
    group = max((block.group for block in blocks), default=0)
    for block in blocks:
        parts = [block]
        has_lines = LINE_BREAK.search(text, block.start, block.end) is not None
        if block.kind == "paragraph" and not block.group and has_lines:
            parts = list(_paragraphs(text, block.start, block.end, None, group))
            group = max(group, *(part.group for part in parts))
        results += parts if len(parts) > 1 else [block]
    return results


def _paragraph(text: str, start: int, end: int, group: int) -> Block:
    start = skip_space(text, start)
    end = trim_space(text, start, end)
    if not group and text.startswith("|", start) and PipeTable.read(text, start, end):
        return Block("table", start, end)
    return Block("list_item" if group else "paragraph", start, end, bool(group), "", group)


def _begins_item(text: str, line: str, may_begin: bool, after: tuple[int, int]) -> bool:
    """Whether a list item begins here; a number begins one only next to other items."""
    if is_bullet(line):
        return line.lstrip()[0] not in "|>—" and bool(line.lstrip()[1:].strip())
    return is_item(line) and (may_begin or is_item(text[slice(*after)]))


def with_anchors(text: str, blocks: Iterable[Block]) -> list[Block]:
    """Let each heading begin with the anchors and opening tags right before it."""
    results: list[Block] = []
    for block in blocks:
        start = anchor_start(text, block.start) if block.kind == "heading" else block.start
        while results and results[-1].end > start < block.start:
            last = results.pop()
            if last.kind not in ("paragraph", "html"):
                start = skip_space(text, last.end)
            if last.start < start:
                end = trim_space(text, last.start, min(start, last.end))
                results.append(replace(last, end=end))
        start = skip_space(text, start)
        results.append(replace(block, start=start) if start < block.start else block)
    return results


class _Line(NamedTuple):
    """A line and its surroundings."""

    start: int
    end: int
    raw: str
    text: str
    is_first: bool  # after a blank line or a heading
    before: str
    after: str


def plain_headings(text: str, keywords: Sequence[str] = ()) -> list[Block]:
    """Find the headings of a plain text.

    A heading is a line that begins with a keyword and a number ("Chapter 3", "Article IV: ..."), a
    short line with the number after its sibling's ("2.3 Results" after 2.2), a short line in
    capitals between blank lines, one between equals signs ("== Results =="), or one that is
    underlined. Numbered lines with no text between them are a list or a table of contents. In a
    text with headings, a short first line alone is the title.

    Parameters:
        keywords: more words that begin a heading, whatever follows them.

    >>> text = "1. Tea\\n\\nGreen.\\n\\nCRLF = CR LF\\n\\n2. Milk\\n\\nsection 3.7.1. Cold."
    >>> [block.title for block in plain_headings(text)]
    ['1. Tea', '2. Milk']
    """
    pattern = _pattern(tuple(keywords))
    headings: dict[int, Block] = {}
    candidates: list[_Numbered] = []
    displays: list[int] = []  # where headings in capitals or in the middle of a line begin
    following = first = skip_space(text, 0)  # where the text after the last heading begins
    title: Block | None = None
    signs: dict[str, int] = {}  # the levels of the underlines so far
    lines = [match.span(1) for match in _LINE.finditer(text)]
    after_blank = True
    for index, (begin, end) in enumerate(lines):
        raw = text[begin:end]
        content = raw.strip()
        is_first, after_blank = after_blank, not content
        if not content:
            continue
        start = end - len(raw.lstrip())
        is_first = is_first or start == following
        may_be_heading = is_first or pattern or content[0] in _HEADING_SIGNS or content[0].isdigit()
        if start < following or end - begin > 200 or not may_be_heading:
            continue
        if is_contents_line(content):
            continue
        line = _line(text, lines, index, start)
        if start == first and not line.after.strip() and _may_be_title(content):
            title = _heading(text, start, end, 1, content)
        is_label = is_first and len(raw) <= _LONGEST and content[-1] not in ".,;:!?"
        if is_first and (sign := _underline(line)):
            end = lines[index + 1][1]
            outer = (signs.get(each, each == "=") for each in _UNDERLINES.partition(sign)[0])
            level = signs.setdefault(sign, max(outer, default=0) + 1)
            headings[start] = _heading(text, start, end, level, line.text)
        elif wiki := wiki_heading(line.text):
            headings[start] = _heading(text, start, line.end, *wiki)
        elif level := _level(line, pattern, is_first, is_label):
            headings[start] = _heading(text, start, line.end, level, line.text)
        elif is_label and _is_displayed(line):
            words = line.text
            before = headings[displays[-1]] if displays and start == following else None
            if before and _is_continued(text, before, line):
                words, start = f"{before.title} {words}", displays.pop()
            displays.append(start)
            headings[start] = _heading(text, start, line.end, 2, words)
            candidates += filter(None, [_numbered(line, is_first)])
        elif candidate := _numbered(line, is_first):
            candidates.append(candidate)
        if start in headings:
            following = skip_space(text, headings[start].end)
    numbered = {
        line.start: _heading(text, line.start, line.end, min(len(number) + 1, 6), line.text)
        for number, line in _in_sequence(text, candidates)
    }
    counts = Counter(headings[start].title for start in displays)
    for start in displays:
        if counts[headings[start].title] > 2:  # such as "NOT APPLICABLE"
            del headings[start]
        elif numbered and start < min(numbered):
            headings[start] = replace(headings[start], level=1)
    for start, heading in numbered.items():
        headings[start] = replace(headings.get(start, heading), level=heading.level)
    if title and headings and min(block.level for block in headings.values()) > 1:
        headings.setdefault(title.start, title)
    return [headings[start] for start in sorted(headings)]


def _may_be_title(line: str) -> bool:
    """Whether the first line of a text may be its title."""
    is_short = len(line) <= _LONGEST and line[0].isalpha()
    return is_short and line[-1] not in ".,;:!?。！？…" and not is_no_title(line)


def _is_continued(text: str, heading: Block, line: _Line) -> bool:
    """Whether this line continues the heading before it: right below it, or both centred."""
    is_below = "\n" not in text[heading.end : line.start].strip(" \t\r").removeprefix("\n")
    return len(heading.title) <= _LONGEST and (is_below or _is_centred(line))


def _heading(text: str, start: int, end: int, level: int, title: str) -> Block:
    return Block("heading", start, trim_space(text, start, end), level, " ".join(title.split()))


def _line(text: str, lines: Sequence[tuple[int, int]], index: int, start: int) -> _Line:
    """Return a line, whose first visible character is at `start`, with its surroundings."""
    begin, end = lines[index]
    low, high = lines[index - 1] if index else (0, 0)
    before = text[max(low, high - 300) : high].strip()
    low, high = lines[index + 1] if index + 1 < len(lines) else (end, end)
    after = text[low : min(high, low + 700)]
    return _Line(start, end, text[begin:end], text[start:end].rstrip(), not before, before, after)


def _underline(line: _Line) -> str:
    """Return the sign of the underline in the next line, or "" if it is none."""
    after = line.after.rstrip()
    if after[:1] not in tuple(_UNDERLINES) or len(after) > 3 * len(line.raw) + 20:
        return ""
    return after[0] if underlines(after, line.text) else ""


def _level(line: _Line, keywords: re.Pattern[str] | None, is_first: bool, is_label: bool) -> int:
    """Return the level of this line as a heading, by its words or its Roman number, or 0."""
    content = line.text
    if len(line.raw) <= _LONGEST_KEYWORD:
        if keywords is not None and keywords.match(content):
            return 5
        if (is_first or content[0] == "第") and (level := keyword_heading(content, line.after)):
            return level
    return 2 if is_label and not line.after.strip() and _ROMAN.match(content) else 0


def _is_displayed(line: _Line) -> bool:
    """Whether it is a heading by its capitals, or because it is centred."""
    content = line.text
    if line.is_first and content[0].isupper() and _is_centred(line):
        return not is_no_title(content)
    if line.after.strip() or not content.isupper() or is_no_title(content):
        return False
    letters = [each for each in content if each.isalpha()]
    return len(letters) >= 3 and all(map(str.isupper, letters))


def _is_centred(line: _Line) -> bool:
    """Whether it is centred on a page, with a blank line or another centred line below.

    A longer line with the indentation of the next one is in a paragraph.
    """
    raw, after = line.raw.expandtabs(), line.after.expandtabs()
    indent, content = len(raw) - len(raw.lstrip()), after.strip()
    is_even = len(after) - len(after.lstrip()) == indent
    is_paragraph = is_even and (len(content) != len(line.text) or len(content) > _SHORT)
    is_below = after.startswith(" " * 10) and not is_paragraph
    is_above = not content or is_below or content.isupper()
    return indent > 9 and is_above and indent + len(line.text) // 2 in _CENTRE


class _Numbered(NamedTuple):
    """A line that may be a heading, by its number."""

    number: tuple[int, ...]
    line: _Line


def _numbered(line: _Line, is_first: bool) -> _Numbered | None:
    """Return the line as a heading, if its number and its words allow it."""
    is_alone = is_first and not line.after.strip()
    if line.text[0] in "IVXLC" and (roman := _ROMAN_NUMBER.match(line.text)):
        return _Numbered((roman_value(roman[1]),), line) if is_alone else None
    match = _NUMBERED.match(line.text) if line.text[0].isdigit() else None
    if match is None or len(line.raw) > _LONGEST or "..." in line.text:
        return None
    title = match[3]
    if title[0].islower() or not any(map(str.isalpha, title[:3])) or title[-1] in ",;:":
        return None
    if title[-1] in ".!?" and not (is_alone and _has_capitals(title)):
        return None
    ends = is_first or line.before[-1] in ".!?:”\"'»)" or len(line.before) < _SHORT
    after = line.after.strip()
    room = len(after) - len(after.partition(" ")[0])  # in a wrapped line, before the next word
    is_wrapped = len(line.text) > max(_SHORT, room) and any(map(str.isalpha, after))
    follows = not (is_wrapped or after[:1].islower())
    if is_no_title(title) or len(title) < 2 or not (is_alone or (ends and follows)):
        return None
    return _Numbered(tuple(map(int, match[1].split("."))), line)


def _has_capitals(title: str) -> bool:
    """Whether it is one sentence whose words, except short ones, begin with capitals."""
    words = re.findall(r"[^\W\d_]+", title)
    is_small = any(word[0].islower() and len(word) > _SMALL_WORDS for word in words)
    return not re.search(r"[.!?]\s", title) and (title[-1] == "?" or not is_small)


def _in_sequence(text: str, candidates: Sequence[_Numbered]) -> Iterator[_Numbered]:
    """Yield the candidates whose numbers follow each other: 1, 1.1, 1.2, 2.

    A sequence that starts again at 1 inside another one is a list, and so is a sequence without
    text between its lines. A number that no other follows is one only if it has parts, as in 3.7.1.
    """
    chains: list[list[_Numbered]] = []
    open_chains: list[list[_Numbered]] = []
    for candidate in candidates:
        for index in range(len(open_chains) - 1, -1, -1):
            if _follows(open_chains[index][-1].number, candidate.number):
                open_chains[index].append(candidate)
                for inner in open_chains[index + 1 :]:
                    inner.clear()
                del open_chains[index + 1 :]
                break
        else:
            number = candidate.number
            if all(each < 2 for each in number) or (len(number) > 1 and not open_chains):
                chains.append([candidate])
                open_chains = [*open_chains[-_CHAINS:], chains[-1]]
    for chain in filter(None, chains):
        ends = [*(each.line.start for each in chain[1:]), len(text)]
        is_bare = [
            skip_space(text, each.line.end) >= end and len(other.number) <= len(each.number)
            for each, end, other in zip(chain, ends, [*chain[1:], *chain[-1:]], strict=True)
        ]
        is_clear = len(chain) > 1 or len(chain[0].number) > 1
        if is_clear and 3 * sum(is_bare) < max(len(chain), 2):
            yield from chain


def _follows(number: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether the other number is the first below this one, or one of the next two at a level."""
    depth = len(other)
    if other[:-1] != number[: depth - 1]:
        return False
    return other[-1] < 2 if depth > len(number) else 0 < other[-1] - number[depth - 1] < 3


@lru_cache(maxsize=64)
def _pattern(own: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return the pattern of a user's words that begin a heading."""
    words = [whole_words(re.escape(word), word) for word in own]
    return re.compile("|".join(words), re.IGNORECASE) if words else None
