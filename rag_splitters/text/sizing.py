"""The length of a text in characters, words, tokens, or by the user's own function.

Users pass a *length function*. Its *sizer* makes a `Measure` of a text, which is created once and
then returns the lengths of many parts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

from rag_splitters.text.measures import (
    CallableMeasure,
    CharacterMeasure,
    Measure,
    Sizer,
    WordMeasure,
)

__all__ = ["LengthFunction", "Measure", "Sizer", "check_length_function", "sizer"]

LengthFunction: TypeAlias = Any
"""`"characters"`, `"words"`, `"tokens"`, `"tokens:<name>"`, a tokenizer, or a function."""


def check_length_function(value: LengthFunction) -> LengthFunction:
    """Return a length function in its simplest form (`len` becomes "characters").

    Raises ValueError if it is not a length function.

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
    """Whether it is a tiktoken encoding, a `tokenizers.Tokenizer` or a transformers tokenizer."""
    return any(hasattr(value, name) for name in ("encode_ordinary", "token_to_id", "tokenize"))


def sizer(length_function: LengthFunction) -> Sizer:
    """Return the sizer of a length function. Tokenizers are loaded once per process.

    Parameters:
        length_function: see `LengthFunction`.

    Returns: a function from a text to its `Measure`.

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


@lru_cache(maxsize=64)
def _sizer(length_function: LengthFunction) -> Sizer:
    if length_function in ("characters", len):
        return CharacterMeasure
    if length_function == "words":
        return WordMeasure
    if isinstance(length_function, str) or _is_tokenizer(length_function):
        from rag_splitters.text.tokens import token_sizer  # loads NumPy

        return token_sizer(check_length_function(length_function))
    return lambda text: CallableMeasure(text, length_function)
