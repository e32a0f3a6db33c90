"""Finding quotations in a document, whatever their white space and markup."""

from __future__ import annotations

import re

from rag_splitters.evaluation.measure.metrics import Range
from rag_splitters.evaluation.measure.visible import VisibleText
from rag_splitters.text.excerpt import Excerpt
from rag_splitters.text.quotations import QuotableText
from rag_splitters.text.surrogates import without_surrogates

_MARKUP = r"""
    ^[ \t]*(?:[-+*]|>|\#{1,6})[ \t]+     # the mark of a list item, a quote or a heading
  | </?[A-Za-z][^<>]*>                    # a tag of HTML
  | !?\[(?=[^\[\]\n]*\]\()                # the beginning of a link or an image
  | (?<=[^\s\[])\]\([^()\s]*(?:[ \t]+"[^"\n]*")?\)  # and its end
  | [*_`~]+                               # emphasis and code
  | \\(?=[!-/:-@\[-`{-~])                 # an escape
"""
_SURROGATE = r"[\ud800-\udbff][\udc00-\udfff] | [\ud800-\udfff]"
_SPACES = re.compile(rf"\s+ | {_SURROGATE}", re.VERBOSE)
_MARKS = re.compile(
    rf"(?:{_MARKUP} | \s | \| | ^:?[-=]{{3,}}:?[ \t]*$ | (?<=\|)[ \t]*:?-+:?[ \t]*(?=\|))+"
    rf"| {_SURROGATE}",
    re.VERBOSE | re.MULTILINE,
)
_SPACE = re.compile(r"[\s|]")
_MIN_LIKENESS = 0.4  # of the nearest text that is suggested
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
    ([(0, 22)], 'Cold tea, hot tea and hot tea')
    """

    def __init__(self, text: str, name: str = "") -> None:
        self._text, self._name = text, name
        self._excerpts: dict[re.Pattern[str], tuple[Excerpt, Excerpt]] = {}

    def find(self, quotation: str) -> list[Range]:
        """The positions of a quotation, from left to right, without overlaps."""
        exact = _occurrences(quotation.strip(), self._text)
        return exact or self._find(_SPACES, quotation) or self._find(_MARKS, quotation)

    def _find(self, ignored: re.Pattern[str], quotation: str) -> list[Range]:
        """The positions of a quotation, but for white space or for white space and markup."""
        text, plain = self._plain(ignored)
        places = _occurrences(_without(ignored, quotation).text.strip(), plain.text)
        positions = [plain.bounds(start, end) for start, end in places]
        return [text.bounds(*position) for position in positions]

    def nearest(self, quotation: str) -> str | None:
        """The visible text with most of a quotation's words; None if there are too few."""
        text = QuotableText(self._plain(_MARKS)[1].text)
        place = text.nearest(quotation)
        if place is None or place.likeness < _MIN_LIKENESS:
            return None
        return text.text[place.start : place.end][:_MAX_SHOWN]

    def _plain(self, ignored: re.Pattern[str]) -> tuple[Excerpt, Excerpt]:
        """The text as an excerpt of the document, and what is left of it as an excerpt of that.

        Markup is looked for in the visible text, and white space in the document itself.
        """
        if ignored not in self._excerpts:
            is_whole = ignored is _SPACES
            whole = Excerpt.of(self._text, 0, len(self._text))
            text = whole if is_whole else VisibleText(self._text, self._name).excerpt
            self._excerpts[ignored] = text, _without(ignored, text.text)
        return self._excerpts[ignored]


def _without(ignored: re.Pattern[str], text: str) -> Excerpt:
    """A text with one space for white space, without markup, and as a chat model sees it."""
    runs = ((run.start(), run.end(), _replacement(run[0])) for run in ignored.finditer(text))
    return Excerpt.of(text, 0, len(text), runs)


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
