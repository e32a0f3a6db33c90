"""Tokens of the units between two borders of a text, remembered: English repeats its words."""

from __future__ import annotations

import re
import threading
from array import array
from collections import defaultdict
from itertools import count, islice
from typing import Any

import numpy as np

__all__ = ["BLOCK", "TokenCounts"]

BLOCK = 20_000
"""tiktoken overflows its stack on very long white space and is superlinear on very long words: it
is never handed more than this many characters of a run without a border."""

_PART = 12_000  # characters that are cut into words at once: they stay in the processor's cache
_LONGEST_KEPT = 100
_MOST_KEPT = 500_000
_FEW = 50  # new words that are encoded faster one by one
_TOKENS = 2**32 - 1  # a unit's counts are one number: its tokens, and its characters above them

# Every pattern that tiktoken ships begins a new piece at a single space between two other
# characters, and at a CJK mark between two letters or digits, whatever stands further away.
# So counts add up at these borders, in the whole text and in any part of it.
_SINGLE_SPACE = re.compile(r"(?<=\S) (?=\S)")
_CJK_MARKS = "，。、；：！？"
_BORDER = re.compile(r"(?<=\S)(?= \S)|(?<=[^\W_])(?=[，。、；：！？][^\W_])")


class _Counts(dict[str, int]):
    """Characters and tokens of the units seen so far, as `characters << 32 | tokens`."""

    def __init__(self, encoding: Any) -> None:
        super().__init__()
        self._encode = encoding.encode_ordinary

    def __missing__(self, text: str) -> int:
        if len(text) <= _LONGEST_KEPT:
            if len(self) >= _MOST_KEPT:
                self.clear()
            value = self[text] = len(text) << 32 | len(self._encode(text))
            return value
        blocks = (text[at : at + BLOCK] for at in range(0, len(text), BLOCK))
        return len(text) << 32 | sum(len(self._encode(block)) for block in blocks)


class _SpacedCounts:
    """The same of words, each after a space; those that are new are encoded together.

    Every word has a number, and its counts stand at that number: so a list of words is counted
    without a step in Python for each.
    """

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding
        self._lock = threading.Lock()
        self._has_space = np.zeros(0, np.int8)
        self._forget()

    def of(self, words: list[str]) -> tuple[Any, bool]:
        """The counts of some words, -1 for those that are long or no units; are there such?"""
        with self._lock:
            if len(self._values) >= _MOST_KEPT:
                self._forget()
            known = len(self._numbers)
            try:
                numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
                has_others = len(self._numbers) > known and self._learn()
            except BaseException:  # interrupted: no number may stay without counts
                self._forget()
                raise
            return np.frombuffer(self._values, np.int64)[numbers], has_others

    def _forget(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._values = array("q")

    def _learn(self) -> bool:
        """Count the words that have a number and no counts yet; were there others than units?"""
        size = self._numbers[next(reversed(self._numbers))] + 1 - len(self._values)
        new = list(islice(reversed(self._numbers), size))[::-1]
        units = list(filter(_is_unit, new))
        counts = self._counted(units)
        if len(units) < size:
            known = dict(zip(units, counts, strict=True))
            counts = [known.get(word, -1) for word in new]
            for other in set(new).difference(units):
                del self._numbers[other]
        self._values.extend(counts)
        return len(units) < size

    def _counted(self, units: list[str]) -> list[int]:
        """The counts of new words: of a few one by one, of many by the spaces in their tokens."""
        if len(units) < _FEW:
            encode = self._encoding.encode_ordinary
            return [(len(unit) + 1) << 32 | len(encode(" " + unit)) for unit in units]
        tokens = np.array(self._encoding.encode_ordinary(" " + " ".join(units)))
        counts = np.diff(np.flatnonzero(self._begin_with_space(tokens)), append=len(tokens))
        lengths = np.fromiter(map(len, units), np.int64, len(units)) + 1
        values: list[int] = (lengths << 32 | counts).tolist()
        return values

    def _begin_with_space(self, tokens: Any) -> Any:
        """Whether each token does: there a word begins."""
        missing = int(tokens.max()) + 1 - len(self._has_space)
        if missing > 0:
            self._has_space = np.append(self._has_space, np.full(missing, -1, np.int8))
        new = list(set(tokens[self._has_space[tokens] < 0].tolist()))
        pieces = map(self._encoding.decode_single_token_bytes, new)
        self._has_space[new] = [piece.startswith(b" ") for piece in pieces]
        return self._has_space[tokens]


def _is_unit(word: str) -> bool:
    """Is it short, and are the spaces before and behind it borders?"""
    if len(word) >= _LONGEST_KEPT or " " in word:
        return False
    return word.isalnum() or (word != "" and word.strip() == word)


class TokenCounts:
    """A tiktoken encoding with the counts that it has been asked for."""

    def __init__(self, encoding: Any) -> None:
        self.encoding = encoding
        self.plain = _Counts(encoding)
        self.spaced = _SpacedCounts(encoding)

    def count(self, text: str) -> int:
        """Tokens of a text, which may be long."""
        if len(text) <= BLOCK:
            return self.plain[text] & _TOKENS
        joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return sum(self.plain[unit] & _TOKENS for unit in _BORDER.split(joined))

    def sums(self, text: str) -> tuple[array[int], array[int]]:
        """The borders of a text, from 0 to its end, and how many tokens stand before each."""
        values, start = list[Any](), 0
        while start < len(text) or not values:
            border = _SINGLE_SPACE.search(text, start + _PART)
            stop = border.start() if border else len(text)
            values.append(self._values(text[start:stop], start == 0))
            start = stop
        sums = np.cumsum(values[0] if len(values) == 1 else np.concatenate(values))
        return _from_zero(sums >> 32), _from_zero(sums & _TOKENS)

    def _values(self, part: str, is_first: bool) -> Any:
        """The counts of the units of a part, which begins at a border if it is not the first."""
        if not part.isascii() and any(mark in part for mark in _CJK_MARKS):
            units = _BORDER.split(part)
            return np.fromiter(map(self.plain.__getitem__, units), np.int64, len(units))
        words = (part if is_first else part[1:]).split(" ")
        values, has_others = self.spaced.of(words)
        pieces = _pieces(words, np.flatnonzero(values < 0).tolist()) if has_others else []
        is_inside = np.zeros(len(words), np.bool_)
        for first, last in pieces:
            words[first] = " ".join(words[first : last + 1])
            values[first] = self.plain[" " + words[first]]
            is_inside[first + 1 : last + 1] = True
        if is_first:
            values[0] = self.plain[words[0]]
        return values[~is_inside] if pieces else values


def _pieces(words: list[str], others: list[int]) -> list[tuple[int, int]]:
    """The first and last of the words around those at `others`, up to spaces that are borders."""
    pieces: list[tuple[int, int]] = []
    for at in others:
        first = at - 1 if at > 0 and not words[at][:1].strip() else at
        last = at + 1 if at + 1 < len(words) and not words[at][-1:].strip() else at
        if pieces and first <= pieces[-1][1]:
            pieces[-1] = (pieces[-1][0], last)
        else:
            pieces.append((first, last))
    return pieces


def _from_zero(sums: Any) -> array[int]:
    """0 and the running sums, in a form that `bisect` reads fast."""
    known = array("q", [0])
    known.frombytes(sums.tobytes())
    return known
