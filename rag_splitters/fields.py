"""Kinds of fields that strategies share: checked on the way in, written the same everywhere."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from rag_splitters.text.ids import stable_uuid
from rag_splitters.text.sizing import LengthFunction, check_length_function

__all__ = [
    "Function",
    "FunctionOrName",
    "Size",
    "Texts",
    "Unit",
    "describe",
    "described",
    "whole_number",
]

Size = Annotated[int, BeforeValidator(lambda value: whole_number(value, "chunk_size", 1))]
"""A field that holds a chunk size."""

Unit = Annotated[
    LengthFunction,
    BeforeValidator(lambda value: check_length_function(described(value))),
    PlainSerializer(lambda value: describe(value)),
]
"""A field that holds a length function."""


def whole_number(value: Any, name: str, least: int) -> int:
    """The value if it is a whole number of at least `least`, else ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return value


def describe(value: Any) -> str:
    """A stable name for a function or tokenizer: the same in every process, never an address.

    Raises: ValueError for a function without an importable name (a lambda, a closure).
    """
    if isinstance(value, str):
        return value
    for tokenizer in (getattr(value, "backend_tokenizer", value), value):
        if hasattr(tokenizer, "to_str"):
            return f"tokenizer:{stable_uuid(type(value).__qualname__, tokenizer.to_str())}"
    name = getattr(value, "name", None)
    if hasattr(value, "encode_ordinary") and isinstance(name, str):
        return f"tokens:{name}"
    path = f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"
    if not _names(path, value):
        raise ValueError(
            f"{value!r} has no name by which another process could find it, so it cannot be "
            "written to a configuration or a cache key: define it with def at the top level of a "
            "module"
        )
    return f"function:{path}"


def described(value: Any) -> Any:
    """The function that `_describe` named; any other value as it is."""
    if not isinstance(value, str):
        return value
    kind, _, path = value.partition(":")
    if kind == "tokenizer":
        raise ValueError(
            f"{value!r} stands for a tokenizer object, which a configuration does not hold: "
            "hand the tokenizer in again as length_function="
        )
    return _imported(path) if kind == "function" else value


def _names(path: str, value: Any) -> bool:
    """Does this "module:name" lead to the value?"""
    try:
        return _imported(path) is value
    except (AttributeError, ImportError, ValueError):
        return False


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


Function = Annotated[
    Callable[..., Any], BeforeValidator(described), PlainSerializer(describe, return_type=str)
]
"""A field that holds a function, and is written as its importable name."""


FunctionOrName = Annotated[
    str | Callable[..., Any],
    BeforeValidator(described),
    PlainSerializer(describe, return_type=str),
]
"""A field that holds a function or the name of one that the strategy knows."""

Texts = Annotated[Sequence[str], AfterValidator(tuple)]
"""A field that holds strings; a list becomes a tuple."""
