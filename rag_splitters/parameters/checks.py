"""Checks of single parameters that classes and functions share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeAlias, TypeVar

from pydantic import BaseModel

from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.parameters.messages import describe_value, unknown_parameter

P = ParamSpec("P")
T = TypeVar("T")

LengthFunction: TypeAlias = Any
"""`"characters"`, `"words"`, `"tokens"`, `"tokens:<name>"`, a tokenizer, or a function."""


def whole_number(value: Any, name: str, least: int) -> int:
    """Return the value as an int if it is a whole number of at least `least`.

    Whole numbers of other libraries are accepted, such as NumPy's int64. Raises InputError for any
    other value.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def stored_number(value: Any) -> int | None:
    """Return a whole number in metadata as an int, and None for anything else.

    Data frames give back numbers of NumPy, and some vector stores floats.

    >>> [stored_number(value) for value in (7, 7.0, 7.5, True, "7")]
    [7, 7, None, None, None]
    """
    if value is None or isinstance(value, bool) or not isinstance(value, Integral | float):
        return None
    return int(value) if isinstance(value, Integral) or value.is_integer() else None


def count_or_share(value: Any, name: str, *, includes_one: bool) -> int | float:
    """Return the value if it is a whole number or a share, from 0 to 1, else raise InputError."""
    if isinstance(value, Integral) or not isinstance(value, Real):  # NumPy has numbers of its own
        return whole_number(value, name, 0)
    share = float(value)
    if not 0 <= share <= 1 or (share == 1 and not includes_one):
        shares = "[0, 1]" if includes_one else "[0, 1)"
        raise InputError(f"{name} must be a share in {shares} or a whole number, got {value!r}")
    return share


def check_length_function(value: LengthFunction) -> LengthFunction:
    """Return a length function in its simplest form (`len` becomes "characters").

    Raises InputError if it is not a length function.

    >>> check_length_function(len)
    'characters'
    """
    if value is len:
        return "characters"
    if isinstance(value, str):
        unit, colon, name = value.partition(":")
        if unit == "tokens" and any(mark in name for mark in ("/", "\\", ".json")):
            raise InputError(
                f"length_function={value!r} names a file, and a configuration opens none: pass the "
                "tokenizer itself, such as tokenizers.Tokenizer.from_file(path)"
            )
        if value in ("characters", "words", "tokens") or (unit == "tokens" and colon and name):
            return value
    elif callable(value) or is_tokenizer(value):
        return value
    raise InputError(
        'length_function must be "characters", "words", "tokens", "tokens:<encoding or model>", '
        f"a tokenizer or a function from text to length, got {value!r}"
    )


def is_tokenizer(value: object) -> bool:
    """Whether it is a tiktoken encoding, a `tokenizers.Tokenizer` or a transformers tokenizer."""
    return any(hasattr(value, name) for name in ("encode_ordinary", "token_to_id", "tokenize"))


def compile_pattern(pattern: str, name: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a user's regular expression. Raises InputError, with its name, if it is invalid.

    >>> compile_pattern("*", "separator")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rag_splitters.errors.InputError: separator '*' is not a valid regular expression: nothing to ...
    """
    try:
        return re.compile(pattern, flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise InputError(f"{name} {pattern!r} is not a valid regular expression: {error}") from None


def check_has(value: Any, attribute: str, expected: str) -> None:
    """Raise a TypeError if something that a user passed is not what was expected.

    Parameters:
        attribute: an attribute that it has if it is.
        expected: what it should be, and how to make one.
    """
    if not hasattr(value, attribute):
        raise InputTypeError(f"expected {expected}, got {describe_value(value)}")


def check_kind(value: Any, kind: type[Any], name: str) -> None:
    """Raise a TypeError if something that a user passed is not an object of a class."""
    if not isinstance(value, kind):
        raise InputTypeError(f"{name} must be a {kind.__name__}, got {describe_value(value)}")


def check_list(values: Any, expected: str) -> None:
    """Raise a TypeError for a single thing, such as a bare text, in place of several.

    Parameters:
        expected: what the values should be, in the plural.
    """
    if isinstance(values, (str, bytes, Mapping, BaseModel)) or not isinstance(values, Iterable):
        raise InputTypeError(f"expected a list of {expected}, got {describe_value(values)}")


def check_keywords(
    *others: Callable[..., Any], synonyms: Mapping[str, str] | None = None
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function so that an unknown keyword raises `unknown_parameter`.

    Parameters:
        others: the functions that it passes keywords on to; their parameters are accepted, too.
        synonyms: names of other libraries for its parameters, which an error translates.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        parameters: dict[str, inspect.Parameter] = {}
        for each in (function, *others):
            parameters.update(inspect.signature(each).parameters)
        names = [name for name, each in parameters.items() if each.kind != each.VAR_KEYWORD]
        owner = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def checking_function(*args: P.args, **options: P.kwargs) -> T:
            for name in options:
                if name not in names:
                    raise unknown_parameter(owner, name, names, synonyms)
            return function(*args, **options)

        return checking_function

    return decorate
