"""The length of a text in characters, words, tokens, or by the user's own function.

Users pass a *length function*. Its *sizer* makes a `Measure` of a text, which is created once and
then returns the lengths of many parts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rag_splitters.parameters.checks import LengthFunction, check_length_function, is_tokenizer
from rag_splitters.text.measures import (
    CallableMeasure,
    CharacterMeasure,
    Measure,
    Sizer,
    WordMeasure,
)

__all__ = [
    "LengthFunction",
    "Measure",
    "Sizer",
    "Sizes",
    "sizer",
    "text_length",
    "unit_name",
]


class Sizes(NamedTuple):
    """The sizes of chunks, in units of a length function.

    Parameters:
        size: maximum chunk size, overlap included.
        overlap: maximum size of the tail that the next chunk repeats.
        length_function: the unit.
        min_size: smaller chunks are merged with a neighbour if the result fits.
    """

    size: int
    overlap: int = 0
    length_function: LengthFunction = "characters"
    min_size: int = 0

    def measure(self, text: str) -> Measure:
        """Return the measure of a text in this unit."""
        return sizer(self.length_function)(text)


def sizer(length_function: LengthFunction) -> Sizer:
    """Return a function from a text to its `Measure`. Tokenizers are loaded once per process.

    Raises: ValueError for anything other than a length function, for an unknown tokenizer, and for
    an encoding whose file is not on this machine.

    >>> measure = sizer("words")("one two  three")
    >>> measure.length(0, 14), measure.furthest(0, 2)
    (3, 9)
    """
    try:
        return _sizer(length_function)
    except TypeError:  # an object that cannot be hashed
        return _sizer.__wrapped__(length_function)


def text_length(text: str, length_function: LengthFunction) -> int:
    """Return the length of a text.

    >>> text_length("one two three", "words")
    3
    """
    return sizer(length_function)(text).length(0, len(text))


def unit_name(length_function: LengthFunction) -> str:
    """Return the plural of a unit; "units" if it is the user's own.

    >>> unit_name("tokens:gpt-4"), unit_name(len)
    ('tokens', 'units')
    """
    return length_function.partition(":")[0] if isinstance(length_function, str) else "units"


@lru_cache(maxsize=64)
def _sizer(length_function: LengthFunction) -> Sizer:
    if length_function in ("characters", len):
        return CharacterMeasure
    if length_function == "words":
        return WordMeasure
    if isinstance(length_function, str) or is_tokenizer(length_function):
        from rag_splitters.text.tokens import token_sizer  # loads NumPy

        return token_sizer(check_length_function(length_function))
    return lambda text: CallableMeasure(text, length_function)
