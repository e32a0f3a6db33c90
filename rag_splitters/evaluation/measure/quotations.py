"""Finding quotations in a document, whatever their white space and markup."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property

from rag_splitters.evaluation.measure.metrics import Range
from rag_splitters.evaluation.measure.visible import VisibleText
from rag_splitters.text.excerpt import Excerpt
from rag_splitters.text.surrogates import without_surrogates

_MARKUP = r"""
    ^[ \t]*(?:[-+*]|>|\#{1,6})[ \t]+     # the mark of a list item, a quote or a heading
  | </?[A-Za-z][^<>]*>                    # a tag of HTML
  | !?\[(?=[^\[\]\n]*\]\()                # the beginning of a link or an image
  | (?<=[^\s\[])\]\([^()\s]*(?:[ \t]+"[^"\n]*")?\)  # and its end
  | [*_`~]+                               # emphasis and code
  | \\(?=[!-/:-@\[-`{-~])                 # an escape
"""
_RUN = re.compile(
    rf"(?:{_MARKUP} | \s | \| | ^:?[-=]{{3,}}:?[ \t]*$ | (?<=\|)[ \t]*:?-+:?[ \t]*(?=\|))+"
    r"| [\ud800-\udbff][\udc00-\udfff] | [\ud800-\udfff]",
    re.VERBOSE | re.MULTILINE,
)
_SPACE = re.compile(r"[\s|]")
_WORD = re.compile(r"\w+")
_MIN_SIMILARITY = 0.4  # share of a quotation's words in the nearest text that is suggested
_MAX_SHOWN = 200


class Quotations:
    """Finds quotations in one document.

    A quotation that is not there letter by letter may differ in white space, such as line breaks,
    and in markup, such as the marks of Markdown or the tags of HTML. Everything else must match,
    case included.

    Parameters:
        text: the document.
        name: its file name, from which its format may be known.

    >>> quotations = Quotations("Cold tea, **hot**\\n tea and [hot tea](tea.html).")
    >>> quotations.find("hot tea")
    [(28, 35)]
    >>> quotations.find("Cold tea, hot tea"), quotations.nearest("a cold tea and hot coffee")
    ([(0, 22)], 'Cold tea, hot tea and hot')
    """

    def __init__(self, text: str, name: str = "") -> None:
        self._text, self._name = text, name

    def find(self, quotation: str) -> list[Range]:
        """The positions of a quotation, from left to right, without overlaps."""
        exact = _occurrences(quotation.strip(), self._text)
        if exact:
            return exact
        visible, plain = self._plain
        return [
            visible.bounds(*plain.bounds(start, end))
            for start, end in _occurrences(_plain(quotation).text.strip(), plain.text)
        ]

    def nearest(self, quotation: str) -> str | None:
        """The part of the text with most of a quotation's words; None if there are too few."""
        _, plain = self._plain
        wanted = Counter(word.casefold() for word in _WORD.findall(quotation))
        words = list(_WORD.finditer(plain.text))
        length = min(sum(wanted.values()), len(words))
        window: Counter[str] = Counter()
        shared = best = first = 0
        for index, word in enumerate(words):
            key = word[0].casefold()
            window[key] += 1
            shared += window[key] <= wanted[key]
            if index >= length:
                old = words[index - length][0].casefold()
                shared -= window[old] <= wanted[old]
                window[old] -= 1
            if shared > best:
                best, first = shared, max(0, index - length + 1)
        if best < max(1, _MIN_SIMILARITY * length):
            return None
        return plain.text[words[first].start() : words[first + length - 1].end()][:_MAX_SHOWN]

    @cached_property
    def _plain(self) -> tuple[Excerpt, Excerpt]:
        """The visible text in the source, and the text without markup in the visible text."""
        visible = VisibleText(self._text, self._name)
        return visible.excerpt, _plain(visible.text)


def _plain(text: str) -> Excerpt:
    """A text without markup, with one space for white space, and as a chat model sees it."""
    return Excerpt.of(
        text,
        0,
        len(text),
        ((run.start(), run.end(), _replacement(run[0])) for run in _RUN.finditer(text)),
    )


def _replacement(run: str) -> str:
    if "\ud800" <= run[0] <= "\udfff":
        return without_surrogates(run)
    return " " if _SPACE.search(run) else ""


def _occurrences(part: str, text: str) -> list[Range]:
    positions: list[Range] = []
    start = text.find(part) if part else -1
    while start >= 0:
        positions.append((start, start + len(part)))
        start = text.find(part, start + len(part))
    return positions
