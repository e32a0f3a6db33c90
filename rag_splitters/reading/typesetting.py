"""Removal of what typesetting adds to a text: running heads, page numbers, and hyphens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rag_splitters.text.excerpt import Excerpt, Replacement
from rag_splitters.text.lines import roman_value

_EDGE = 3  # lines at the top and at the bottom of a page that may be running heads
_LONGEST_HEAD = 200  # characters
_NUMBER = re.compile(r"\b(?:\d{1,5}|[ivxl]{1,7}|[IVXL]{1,7})\b")

DIVISION = "\v"
"""What stands between the lines of one cell of a table after a hyphen."""

_HYPHEN = re.compile(rf"(?<=[^\W_])([-\u2010\u00ad])[ \t]*(\n?\f|[\n{DIVISION}])[ \t]*(?=[^\W_])")
_REST = re.compile(r"([^\W_]{1,60})\S{0,60}(?!\S)[ \t]*")
_WORD = re.compile(r"[^\W_]+(?:[-\u2010][^\W_]+)*")
_LONGEST_WORD = 60
_CONJUNCTIONS = frozenset("and bis et or oder ou to und y".split())


_Key = tuple[str, tuple[bool, int] | None]
"""A line without its page number, and how that number counts pages.

The latter is whether it is Roman, and the offset from the page's index. None: no page number."""


def inner_lines(lines_per_page: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """Return the range of lines of each page, without running heads, feet and page numbers.

    These are lines at the top or bottom that pages repeat: unchanged on five pages, or on three if
    that is half of all; or with a number that counts the pages, on three pages or on all. If one
    count runs through half of the pages, lines that end with it may differ in other words, such as
    a head that names the chapter. A line that often stands between others, too, is none.

    >>> inner_lines([["Tea 1", "Green"], ["Tea 2", "Black"], ["Tea 3", "White"]])
    [(1, 2), (1, 2), (1, 2)]
    """
    keys_per_page = [
        {key for line in _edges(lines) for key in _keys(line, page)}
        for page, lines in enumerate(lines_per_page)
    ]
    counts = Counter(key for keys in keys_per_page for key in keys)
    inside = Counter(line for lines in lines_per_page for line in {*_filled(lines)[_EDGE:-_EDGE]})
    size = len(lines_per_page)
    repeated = {
        key
        for key, count in counts.items()
        if _is_repeated(key, count, size) and 2 * inside[key[0]] < count
    }
    numbered = Counter(
        counter for keys in keys_per_page for counter in {key[1] for key in keys & repeated}
    )
    main = {counter for counter, count in numbered.items() if counter and 2 * count >= size}

    def is_head(page: int, line: str) -> bool:
        has_number = any(key[1] in main for key in keys_per_page[page] & repeated)
        return any(
            key in repeated or (not has_number and key[1] in main and key[0].endswith("#"))
            for key in _keys(line, page)
        )

    ranges = [
        _without_edges(lines, partial(is_head, page)) for page, lines in enumerate(lines_per_page)
    ]
    has_text = any(
        line.strip()
        for lines, (first, last) in zip(lines_per_page, ranges, strict=True)
        for line in lines[first:last]
    )
    return ranges if has_text else [(0, len(lines)) for lines in lines_per_page]


def _filled(lines: Sequence[str]) -> list[str]:
    return [" ".join(line.split()) for line in lines if line.strip()]


def _edges(lines: Sequence[str]) -> list[str]:
    filled = _filled(lines)
    return filled[:_EDGE] + filled[-_EDGE:]


def _keys(line: str, page: int) -> Iterator[_Key]:
    """Yield the line itself, and the line without each number that may count pages."""
    line = " ".join(line.split())
    if 0 < len(line) <= _LONGEST_HEAD:
        yield line, None
        for number in _NUMBER.finditer(line):
            is_roman = not number[0].isdecimal()
            value = roman_value(number[0]) if is_roman else int(number[0])
            yield f"{line[: number.start()]}#{line[number.end() :]}", (is_roman, value - page)


def _is_repeated(key: _Key, count: int, pages: int) -> bool:
    if key[1] is not None:
        return count >= 3 or count == pages > 1
    return count >= 5 or (count >= 3 and 2 * count >= pages)


def _without_edges(lines: Sequence[str], is_head: Callable[[str], bool]) -> tuple[int, int]:
    """Return the range of lines inside the heads, of which each side has at most three."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    first, last = 0, len(lines)
    for number in filled[:_EDGE]:
        if not is_head(lines[number]):
            break
        first = number + 1
    for number in reversed(filled[-_EDGE:]):
        if number < first or not is_head(lines[number]):
            break
        last = number
    return first, last


def without_hyphens(text: str) -> Excerpt:
    """Join words that are divided at the end of a line or page.

    The second part moves up to the first. Other words of the text decide whether the hyphen belongs
    to the word, as in "well-known"; if they do not, it is dropped.

    >>> text = "A well-known word may be di-\\nvided. This is well-\\nknown, too."
    >>> without_hyphens(text).text
    'A well-known word may be divided.\\nThis is well-known,\\ntoo.'
    """
    whole = _HYPHEN.sub("0", text.casefold())  # any letter, so that no part counts as a word
    words = Counter(word.replace("\u2010", "-") for word in _WORD.findall(whole))
    replacements: list[Replacement] = []
    previous_end = 0
    for match in _HYPHEN.finditer(text):
        rest = _REST.match(text, match.end())
        start = max(previous_end, match.start() - _LONGEST_WORD)
        before = text[start : match.start()].split()
        hyphen = _hyphen_of(before[-1], rest[1], match[1], words) if rest and before else None
        if rest is None or hyphen is None:
            continue
        is_whole_line = text[rest.end() : rest.end() + 1] in ("", "\n", "\f")
        line_break = "" if is_whole_line and match[2] == "\n" else match[2]
        line_break = " " if line_break == DIVISION else line_break
        word_end = rest.start() + len(rest[0].rstrip())
        replacements.append((match.start(), match.end(), hyphen))
        replacements.append((word_end, rest.end(), line_break))
        previous_end = rest.end()
    return Excerpt.of(text, 0, len(text), replacements)


def _hyphen_of(before: str, second: str, mark: str, words: Counter[str]) -> str | None:
    """Return the text between the parts of a joined word; None to leave the parts apart.

    `before` has all signs before the hyphen, `words` the frequencies of the words in the text.
    """
    if mark == "\u00ad":
        return ""
    first = _WORD.findall(before)[-1]
    one, other = first.casefold(), second.casefold()
    joined, compound = words[one + other], words[f"{one}-{other}"]
    if joined or compound:
        return "" if joined >= compound else mark
    if other in _CONJUNCTIONS:  # "pre- and post-war"
        return None
    parts = (one, other)
    is_cased_word = first.islower() or first.isupper() or first.istitle()
    changes_case = first.isupper() != second[0].isupper()  # "Jean-Luc", "DNA-based"
    is_address = any(sign in before for sign in "/@_.:\\")
    are_words = all(len(part) > 2 and words[part] for part in parts)
    has_other_hyphens = not first.isalnum()
    has_number = not (first[-1].isalpha() and second[0].isalpha())
    keeps = changes_case or is_address or are_words or has_other_hyphens or has_number
    return mark if keeps or not is_cased_word else ""
