"""Measures of a text in characters, in words, or with a user's own function."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from operator import index
from typing import Any, ClassVar, TypeAlias

from rag_splitters.errors import InputError

_WORD = re.compile(r"\S+")
_LONG = 16  # times a size: a longer text is hardly ever within it, so it is not measured whole


class Measure(ABC):
    """The lengths of the parts of one text, in one unit.

    A subclass implements `length`; `furthest` and `earliest` use it to search. They are exact if a
    part is never longer than the whole, as in characters, words and tokens.
    """

    is_monotone: ClassVar[bool] = False
    """Whether a part is certain never to be longer, in units, than the whole."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.characters_per_unit = 4.0

    @abstractmethod
    def length(self, start: int, end: int) -> int:
        """Return the length of `text[start:end]` in units."""

    def fits(self, start: int, end: int, size: int) -> bool:
        """Whether `text[start:end]` has at most `size` units.

        A text of any length takes no longer than one that is a little too long.
        """
        if size < 0:
            return False
        is_long = end - start > _LONG * self.characters_per_unit * size
        if is_long and self.furthest(start, size) < end:
            return False
        return self.length(start, end) <= size

    def is_tiny(self, start: int, end: int, size: int) -> bool:
        """Whether `text[start:end]` has less than a tenth of `size` units."""
        return self.fits(start, end, (size - 1) // 10)

    def furthest(self, start: int, size: int) -> int:
        """Return the largest `end` for which `text[start:end]` has at most `size` units."""
        text = self.text
        limit = len(text) - start
        return start + self._fitting(lambda n: self.length(start, start + n), limit, size)

    def earliest(self, end: int, size: int) -> int:
        """Return the smallest `start` for which `text[start:end]` has at most `size` units."""
        return end - self._fitting(lambda n: self.length(end - n, end), end, size)

    def _fitting(self, length_of: Callable[[int], int], limit: int, size: int) -> int:
        """Return the largest number of code points, up to `limit`, of at most `size` units.

        The first guess is based on the characters per unit in earlier calls. Near the answer, steps
        of 1, 2, 4 and so on follow, because each length needs a call of the user's function.
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
"""A function from a text to its measure."""


class CharacterMeasure(Measure):
    """Lengths in code points."""

    is_monotone = True

    def length(self, start: int, end: int) -> int:
        return end - start

    def fits(self, start: int, end: int, size: int) -> bool:
        return end - start <= size

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
    """Lengths by a user's function, which is called again for each part."""

    def __init__(self, text: str, function: Callable[[str], Any]) -> None:
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
            raise InputError(
                f"length_function must return a whole number of at least 0, "
                f"but {name} returned {answer!r} for a text of {end - start} characters"
            )
        return length
