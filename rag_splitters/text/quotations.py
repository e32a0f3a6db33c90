"""Finds where a text has a quotation that may differ in white space, markup or a few words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cached_property
from html import unescape
from typing import NamedTuple
from unicodedata import normalize

from rag_splitters.text.boundaries import UNSPACED

_ACCENTS = r"[\u0300-\u036f\u3099\u309a]"  # that are characters of their own, in a decomposed text
# Tags and addresses of links are no words of a text.
_TOKEN = re.compile(
    r"<[^<>]{1,500}>|\]\([^()\s]{1,500}\)|(?P<entity>&(?:#x?)?\w{1,10};)"
    rf"|(?P<word>(?!\s)[{UNSPACED}]{_ACCENTS}*|(?:[^\W_{UNSPACED}]{_ACCENTS}*)+)"
)
_LETTERS = re.compile(rf"[^\W_{UNSPACED}]{{2}}|\S{_ACCENTS}|{_ACCENTS}[^\W_{UNSPACED}]")
_MARKUP = re.compile(rf"{_TOKEN.pattern}|[*_`~\s]")


class Occurrence(NamedTuple):
    """A part of a text that has the words of a quotation, or most of them.

    Parameters:
        start: where it begins, in code points.
        end: where it ends.
        likeness: the share of the words that are the same and in the same order: 1 for all.
    """

    start: int
    end: int
    likeness: float


class _Word(NamedTuple):
    """A word of a text as it is compared: in one Unicode form, without capitals and entities."""

    start: int
    end: int
    text: str


class QuotableText:
    """A text in which quotations are looked up; it is read once, in linear time.

    >>> text = QuotableText("The *old* lamp\\nwas lit. The new lamp was not.")
    >>> text.find("The old lamp was lit.")
    [Occurrence(start=0, end=23, likeness=1.0)]
    >>> nearest = text.nearest("The old lamp was never lit")
    >>> text.text[nearest.start : nearest.end], round(nearest.likeness, 2)
    ('The *old* lamp\\nwas lit', 0.91)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _words_in(text)
        self._words = [word.text for word in self._tokens]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for index, word in enumerate(self._words):
            places.setdefault(word, []).append(index)
        return places

    def find(self, quotation: str) -> list[Occurrence]:
        """Return the places of a quotation, from left to right.

        White space, markup, punctuation and capitals may differ, unless it also stands somewhere
        letter by letter.
        """
        quotation = quotation.strip()
        exact = [
            Occurrence(start, start + len(quotation), 1.0) for start in self._copies(quotation)
        ]
        whole = [each for each in exact if not self._is_inside_a_word(each)]
        return whole or self._places_of_words(quotation) or exact

    def _copies(self, quotation: str) -> Iterator[int]:
        start = self.text.find(quotation) if quotation else -1
        while start >= 0:
            yield start
            start = self.text.find(quotation, start + 1)

    def _is_inside_a_word(self, place: Occurrence) -> bool:
        """Whether a place begins or ends between two letters of a word."""
        edges = (self.text[max(0, edge - 1) : edge + 1] for edge in (place.start, place.end))
        return any(len(edge) == 2 and _LETTERS.fullmatch(edge) for edge in edges)

    def _places_of_words(self, quotation: str) -> list[Occurrence]:
        words = [word.text for word in _words_in(quotation)]
        if not words or not all(word in self._places for word in words):
            return []
        rarest = min(range(len(words)), key=lambda index: len(self._places[words[index]]))
        firsts = [place - rarest for place in self._places[words[rarest]] if place >= rarest]
        matches = [first for first in firsts if self._words[first : first + len(words)] == words]
        return [self._occurrence(first, first + len(words), quotation, 1.0) for first in matches]

    def nearest(self, quotation: str) -> Occurrence | None:
        """Return the place that has most of the words in the same order; None if it has none."""
        words = [word.text for word in _words_in(quotation)]
        window = self._window(words)
        if window is None:
            return None
        first, last = max(0, window - len(words)), window + 2 * len(words)
        matcher = SequenceMatcher(None, self._words[first:last], words, autojunk=False)
        blocks = [block for block in matcher.get_matching_blocks() if block.size]
        rest = len(words) - blocks[-1].b - blocks[-1].size
        begin = max(0, first + blocks[0].a - blocks[0].b)
        end = min(len(self._words), first + blocks[-1].a + blocks[-1].size + rest)
        likeness = 2 * sum(block.size for block in blocks) / (len(words) + end - begin)
        return self._occurrence(begin, end, quotation, likeness)

    def _window(self, words: list[str]) -> int | None:
        """Return where as many words follow each other that have the most of these words."""
        needed = Counter(words)
        places = sorted(index for word in needed for index in self._places.get(word, ()))
        best, window, held = 0, None, Counter[str]()
        count = begin = 0
        for place in places:
            word = self._words[place]
            held[word] += 1
            count += held[word] <= needed[word]
            while places[begin] <= place - len(words):
                left = self._words[places[begin]]
                count -= held[left] <= needed[left]
                held[left] -= 1
                begin += 1
            if count > best:
                best, window = count, places[begin]
        return window

    def _occurrence(self, first: int, last: int, quotation: str, likeness: float) -> Occurrence:
        start, end = self._tokens[first].start, self._tokens[last - 1].end
        rest = quotation[_words_in(quotation)[-1].end :]
        for mark in _MARKUP.sub("", rest):  # such as the full stop
            if not self.text.startswith(mark, end):
                break
            end += 1
        return Occurrence(start, end, likeness)


def _words_in(text: str) -> list[_Word]:
    """Return the words of a text; one with an entity for a letter, such as `&eacute;`, is whole."""
    found: list[tuple[int, int, list[str]]] = []
    is_open = False  # whether an entity joins what follows to the last word
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        letter = unescape(match["entity"]) if match["entity"] else ""
        is_letter = letter.isalpha()
        if match["word"] or is_letter:
            parts = [normalize("NFKC", match["word"] or letter).casefold()]
            if found and found[-1][1] == start and (is_letter or is_open):
                start, _, before = found.pop()
                before += parts
                parts = before
            found.append((start, end, parts))
        is_open = is_letter
    return [_Word(start, end, "".join(parts)) for start, end, parts in found]


def word_differences(quotation: str, text: str) -> str:
    """Show how a quotation differs from a text: `[-what the text lacks-]`, `{+what it has+}`.

    >>> word_differences("He paid four dollars.", "He paid three dollars.")
    'He paid [-four-] {+three+} dollars.'
    """
    one, other = quotation.split(), text.split()
    parts: list[str] = []
    matcher = SequenceMatcher(None, [w.casefold() for w in one], [w.casefold() for w in other])
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            parts += other[c:d]
            continue
        parts += [f"[-{' '.join(one[a:b])}-]"] if a < b else []
        parts += [f"{{+{' '.join(other[c:d])}+}}"] if c < d else []
    return " ".join(parts)
