"""The terms of a text, for comparing texts by their words.

`HashingEmbeddings`, the keyword index and the topic model use them.
"""

from __future__ import annotations

import re
import unicodedata

# Scripts written without spaces (Thai to Khmer, kana, Han, Hangul): pairs of characters.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_WORD = re.compile(f"[{_UNSPACED}]+|(?:[^\\W_{_UNSPACED}]|[\u0300-\u036f\u0900-\u0dff])+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_MAY_BE_UNSPACED = re.compile(f"[{_UNSPACED}\uff66-\uffdc]")  # half-width letters are widened
_HAS_NAME = re.compile("[a-z][A-Z]|[A-Z][A-Z][a-z]|[A-Za-z0-9]_[A-Za-z0-9]")
_NAME = re.compile("[A-Za-z0-9_]+")
_NAME_PART = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MIN_PART, _MAX_NAME = 3, 100  # letters
_STOP_WORDS = frozenset(
    """
    a about above according after again against all also am an and any are as at be because been
    before being below between both but by can could did do does doing down during each few for from
    further had has have having he her here hers him his how i if in into is it its itself just like
    many may me might more most much must my no nor not now of off on once one only or other our
    ours out over own same she should so some such than that the their theirs them then there these
    they this those through to too under until up upon us very was we were what when where which
    while who whom whose why will with within would you your yours s t re ve ll d m
    """.split()
)
_ENDINGS = (  # ending, replacement, minimum length of the word
    ("ies", "y", 5),
    ("sses", "ss", 6),
    ("ing", "", 6),
    ("ed", "", 5),
    ("ss", "ss", 3),
    ("us", "us", 3),
    ("ly", "", 6),
    ("es", "e", 5),
    ("s", "", 4),
)


def text_terms(text: str, cache: dict[str, tuple[str, ...]]) -> list[str]:
    """Return the terms of a text in order, without stop words.

    A text of punctuation alone gives its characters between spaces, so that only a blank text has
    no terms. `cache` holds the terms of earlier words.

    >>> text_terms("The cats of Tokyo, 東京都", {})
    ['cat', 'tokyo', '東京', '京都']
    """
    folded = _fold(text)
    words = _WORD.findall(folded)
    for word in words:
        if word not in cache:
            cache[word] = word_terms(word)
    return [term for word in words for term in cache[word]] or [f" {x}" for x in folded.split()]


def is_single_character(term: str) -> bool:
    """Whether a term is a single character of a script without spaces, and so no whole word.

    >>> is_single_character("茶"), is_single_character("東京"), is_single_character("a")
    (True, False, False)
    """
    return len(term) == 1 and _IS_UNSPACED.match(term) is not None


def final_characters(text: str) -> list[str]:
    """Return the last character of each word in a script without spaces.

    >>> final_characters("Tokyo, 東京都 (首都), 茶")
    ['都', '都']
    """
    if not _MAY_BE_UNSPACED.search(text):
        return []
    words = _WORD.findall(_fold(text))
    return [word[-1] for word in words if len(word) > 1 and _IS_UNSPACED.match(word)]


def identifier_terms(text: str) -> list[str]:
    """Return what finds names in code: parts of camelCase names, and whole snake_case names.

    A camelCase name counts if two of its parts have three letters or more, so that "mRNA" and
    "iPhone" do not; shorter parts say nothing. `text_terms` has the words themselves: camelCase
    names whole, and snake_case names in parts.

    >>> identifier_terms("parseHTMLDocument(max_depth) of mRNA")
    ['pars', 'html', 'document', 'max_depth']
    """
    terms: list[str] = []
    if not _HAS_NAME.search(text):
        return terms
    for name in _NAME.findall(text):
        if len(name) > _MAX_NAME:
            continue
        if "_" in name.strip("_"):
            terms.append(name.strip("_").casefold())
        for word in name.split("_"):
            parts = [part for part in _NAME_PART.findall(word) if len(part) >= _MIN_PART]
            if len(parts) > 1:
                terms += [term for part in parts for term in word_terms(part.casefold())]
    return terms


def find_words(text: str) -> list[str]:
    """Return the words of a text in order, normalised and in lower case, for `word_terms`.

    >>> find_words("It is NAÏVE.")
    ['it', 'is', 'naïve']
    """
    words: list[str] = _WORD.findall(_fold(text))
    return words


def word_terms(word: str) -> tuple[str, ...]:
    """Return the terms of a word: the word without its ending, or nothing for a stop word.

    In scripts written without spaces the terms are pairs of neighbouring characters.

    >>> word_terms("sleeping"), word_terms("the"), word_terms("東京都")
    (('sleep',), (), ('東京', '京都'))
    """
    if word in _STOP_WORDS:
        return ()
    if _IS_UNSPACED.match(word):
        return tuple(word[i : i + 2] for i in range(max(1, len(word) - 1)))
    return (word if word.isdigit() else _stem(word),)


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _stem(word: str) -> str:
    """Cut common English endings, so that "houses", "housed" and "housing" are equal.

    >>> [_stem(word) for word in ("eating", "being", "asked", "used", "flies", "dies", "gas")]
    ['eat', 'being', 'ask', 'used', 'fly', 'die', 'gas']
    """
    for ending, replacement, minimum in _ENDINGS:
        if len(word) >= minimum and word.endswith(ending):
            word = word[: -len(ending)] + replacement
            break
    return word[:-1] if len(word) > 4 and word[-1] == "e" else word
