"""How long is text[a:b]? In characters, words, tokens, or by the user's own function.

A *sizer* takes a text and returns a `Measure` of it; the measure is then asked many times.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import lru_cache
from operator import index
from typing import Any, ClassVar, TypeAlias

__all__ = [
    "CallableMeasure",
    "CharacterMeasure",
    "LengthFunction",
    "Measure",
    "Sizer",
    "WordMeasure",
    "check_length_function",
    "sizer",
]

LengthFunction: TypeAlias = Any
"""`"characters"`, `"words"`, `"tokens"`, `"tokens:<name>"`, a tokenizer, or a function."""

_WORD = re.compile(r"\S+")


class Measure(ABC):
    """A text, measured: lengths of its parts in one unit.

    A subclass says `length`; `furthest` and `earliest` then search by it. They are exact where the
    length grows with the text, as it does by characters, words and tokens.
    """

    is_monotone: ClassVar[bool] = False
    """Is a part never longer, in units, than the whole that it is a part of?"""

    def __init__(self, text: str) -> None:
        self.text = text
        self.characters_per_unit = 4.0

    @abstractmethod
    def length(self, start: int, end: int) -> int:
        """The length of `text[start:end]` in units."""

    def furthest(self, start: int, size: int) -> int:
        """The largest `end` for which `text[start:end]` measures at most `size` units."""
        text = self.text
        limit = len(text) - start
        return start + self._fitting(lambda n: self.length(start, start + n), limit, size)

    def earliest(self, end: int, size: int) -> int:
        """The smallest `start` for which `text[start:end]` measures at most `size` units."""
        return end - self._fitting(lambda n: self.length(end - n, end), end, size)

    def _fitting(self, length_of: Callable[[int], int], limit: int, size: int) -> int:
        """The most code points, up to `limit`, that measure at most `size` units.

        Starts from the ratio that the last call found, then steps by 1, 2, 4 ... once it is near.
        """
        low, high, step = 0, limit + 1, 1
        probe = int(size * self.characters_per_unit)
        for turn in range(10_000):
            if high - low <= 1:
                break
            probe = min(max(probe, low + 1), high - 1)
            length = length_of(probe)
            low, high = (probe, high) if length <= size else (low, probe)
            if length > 0 and probe > 8:
                self.characters_per_unit = probe / length
            if abs(length - size) <= 1:
                probe, step = probe + (step if length <= size else -step), step * 2
            elif turn > 6 and high <= limit:
                probe = (low + high) // 2
            else:
                probe = max(probe * size // length, probe // 8) if length > 0 else probe * 8
                probe = min(probe, low * 8 + 8)
        return low


Sizer: TypeAlias = Callable[[str], Measure]


class CharacterMeasure(Measure):
    """Lengths in code points."""

    is_monotone = True

    def length(self, start: int, end: int) -> int:
        return end - start

    def furthest(self, start: int, size: int) -> int:
        end = start + size
        return end if end < len(self.text) else len(self.text)

    def earliest(self, end: int, size: int) -> int:
        return end - size if size < end else 0


class WordMeasure(Measure):
    """Lengths in words: runs of characters that are not white space, as `str.split()` sees them."""

    is_monotone = True

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._starts, self._ends = array("q"), array("q")
        for word in _WORD.finditer(text):
            self._starts.append(word.start())
            self._ends.append(word.end())

    def length(self, start: int, end: int) -> int:
        if end <= start:
            return 0
        return bisect_left(self._starts, end) - bisect_right(self._ends, start)

    def furthest(self, start: int, size: int) -> int:
        after = bisect_right(self._ends, start) + size
        return self._starts[after] if after < len(self._starts) else len(self.text)

    def earliest(self, end: int, size: int) -> int:
        before = bisect_left(self._starts, end) - size - 1
        return self._ends[before] if before >= 0 else 0


class CallableMeasure(Measure):
    """Lengths by the user's function, which is asked about each part anew."""

    def __init__(self, text: str, function: Callable[[str], int]) -> None:
        super().__init__(text)
        self._function = function

    def length(self, start: int, end: int) -> int:
        answer = self._function(self.text[start:end])
        try:
            length = index(answer)
        except TypeError:
            length = -1
        if length < 0:
            name = getattr(self._function, "__qualname__", repr(self._function))
            raise ValueError(
                f"length_function must return a whole number of at least 0, "
                f"but {name} returned {answer!r} for a text of {end - start} characters"
            )
        return length


def check_length_function(value: LengthFunction) -> LengthFunction:
    """The value in its plainest form (`len` is "characters"), or ValueError if it is none.

    >>> check_length_function(len)
    'characters'
    """
    if value is len:
        return "characters"
    if isinstance(value, str):
        unit, colon, name = value.partition(":")
        if value in ("characters", "words", "tokens") or (unit == "tokens" and colon and name):
            return value
    elif callable(value) or _is_tokenizer(value):
        return value
    raise ValueError(
        'length_function must be "characters", "words", "tokens", "tokens:<encoding or model>", '
        f"a tokenizer or a function from text to length, got {value!r}"
    )


def _is_tokenizer(value: object) -> bool:
    """Is it a tiktoken encoding, a `tokenizers.Tokenizer` or a transformers tokenizer?"""
    return any(hasattr(value, name) for name in ("encode_ordinary", "token_to_id", "tokenize"))


def sizer(length_function: LengthFunction) -> Sizer:
    """What measures texts by this length function. Tokenizers are loaded once per process.

    Parameters:
        length_function: see `LengthFunction`.

    Returns: a function from a text to its `Measure`.

    Raises: ValueError for what is no length function or an encoding that cannot be had.

    >>> measure = sizer("words")("one two  three")
    >>> measure.length(0, 14), measure.furthest(0, 2)
    (3, 9)
    """
    try:
        return _sizer(length_function)
    except TypeError:  # an object that cannot be hashed
        return _sizer.__wrapped__(length_function)


@lru_cache(maxsize=64)
def _sizer(length_function: LengthFunction) -> Sizer:
    if length_function in ("characters", len):
        return CharacterMeasure
    if length_function == "words":
        return WordMeasure
    if isinstance(length_function, str) or _is_tokenizer(length_function):
        from rag_splitters.text.tokens import token_sizer

        return token_sizer(check_length_function(length_function))
    return lambda text: CallableMeasure(text, length_function)
