"""The features of `HashingEmbeddings`: words, neighbouring words and character n-grams, hashed."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["WORD", "features", "hash_text", "text_terms", "word_terms"]


def features(texts: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Row, hash and weight of every feature of the texts, computed once for each distinct word."""
    import numpy as np

    numbers: dict[str, int] = {}
    terms: dict[str, tuple[str, ...]] = {}
    per_text = [
        [numbers.setdefault(term, len(numbers)) for term in text_terms(text, terms)]
        for text in texts
    ]
    grams = [_grams(word) for word in numbers]
    starts = np.cumsum([0, *map(len, grams)])
    gram_hashes = np.array([h for hashes in grams for h in hashes], dtype=np.int64)
    words = np.array([number for row in per_text for number in row], dtype=np.int64)
    rows = np.repeat(np.arange(len(texts)), [len(row) for row in per_text])

    pairs, counts = np.unique(rows * max(len(numbers), 1) + words, return_counts=True)
    pair_rows, pair_words = np.divmod(pairs, max(len(numbers), 1))
    strength = 1.0 + np.log(counts)
    lengths = np.diff(starts)[pair_words]
    offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    features = gram_hashes[np.repeat(starts[pair_words], lengths) + offsets]
    # The first feature is the word itself; its n-grams share a part of its weight.
    share = np.where(offsets == 0, 1.0, _GRAM_SHARE / np.sqrt(np.repeat(lengths, lengths)))
    feature_weights = np.repeat(strength, lengths) * share

    same = rows[1:] == rows[:-1]
    word_hashes = gram_hashes[starts[words]] if len(words) else words
    bigrams = (word_hashes[:-1][same] * 0x9E3779B1 + word_hashes[1:][same] * 7) & 0x7FFFFFFF
    bigram_weights = np.full(len(bigrams), _BIGRAM_SHARE)
    return (
        np.concatenate([np.repeat(pair_rows, lengths), rows[1:][same]]),
        np.concatenate([features, bigrams]),
        np.concatenate([feature_weights, bigram_weights]),
    )


_GRAM_SHARE = 0.6
_BIGRAM_SHARE = 0.3
# Scripts written without spaces (Thai to Khmer, kana, Han, Hangul): pairs of characters.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff"
)
_UNSPACED += "\U00020000-\U0003ffff"
WORD = re.compile(f"[{_UNSPACED}]+|(?:[^\\W_{_UNSPACED}]|[\u0300-\u036f\u0900-\u0dff])+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_STOP_TEXT = """
a about above according after again against all also am an and any are as at be because been
before being below between both but by can could did do does doing down during each few for from
further had has have having he her here hers him his how i if in into is it its itself just like
many may me might more most much must my no nor not now of off on once one only or other our
ours out over own same she should so some such than that the their theirs them then there these
they this those through to too under until up upon us very was we were what when where which
while who whom whose why will with within would you your yours s t re ve ll d m
"""
_STOP_WORDS = frozenset(_STOP_TEXT.split())


def text_terms(text: str, known: dict[str, tuple[str, ...]]) -> list[str]:
    """The terms that count; never none, but for a blank text. `known` remembers words' terms."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = WORD.findall(folded)
    for word in words:
        if word not in known:
            known[word] = word_terms(word)
    return [term for word in words for term in known[word]] or [f" {x}" for x in folded.split()]


def word_terms(word: str) -> tuple[str, ...]:
    """A word without its ending, nothing for a stop word, pairs of characters without spaces."""
    if word in _STOP_WORDS:
        return ()
    if _IS_UNSPACED.match(word):
        return tuple(word[i : i + 2] for i in range(max(1, len(word) - 1)))
    return (word if word.isdigit() else _stem(word),)


def _stem(word: str) -> str:
    """Cut the commonest English endings, so that "taxes", "taxed" and "taxing" meet."""
    for ending, instead, least in _ENDINGS:
        if len(word) >= least and word.endswith(ending):
            word = word[: -len(ending)] + instead
            break
    return word[:-1] if len(word) > 4 and word[-1] == "e" else word


_ENDINGS = (
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


def _grams(word: str) -> list[int]:
    """The hash of the word, then those of its character n-grams."""
    hashes = [hash_text(word)]
    if len(word) > 3:
        marked = f"<{word}>" if len(word) < 64 else word[:64]
        sizes = (4, 5)
        hashes += [hash_text(marked[i : i + n]) for n in sizes for i in range(len(marked) - n + 1)]
    return hashes


def hash_text(text: str) -> int:
    """The text as a number of 31 bits; the same in every process, for lone surrogates too."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) & 0x7FFFFFFF
