"""Field types that strategies share, and how functions are written in a configuration.

A function is written as its importable name, and a tokenizer as a fingerprint. `restore` is the
only place that turns such a name back into a function.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, ValidationInfo

from rag_splitters.text.ids import stable_uuid
from rag_splitters.text.sizing import LengthFunction, check_length_function

__all__ = [
    "Function",
    "FunctionOrName",
    "Size",
    "Texts",
    "Unit",
    "describe",
    "function_name",
    "import_object",
    "restore",
    "unnamed_error",
    "whole_number",
]


def whole_number(value: Any, name: str, least: int) -> int:
    """The value if it is a whole number of at least `least`; otherwise raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return value


def describe(value: Any) -> str:
    """A name for a function, class or tokenizer that is the same in every process.

    Raises ValueError if the name would not lead back to the function, as for a lambda.

    >>> describe(describe)
    'function:rag_splitters.fields:describe'
    """
    if isinstance(value, str):
        return value
    for tokenizer in (getattr(value, "backend_tokenizer", value), value):
        if hasattr(tokenizer, "to_str"):
            return f"tokenizer:{stable_uuid(type(value).__qualname__, tokenizer.to_str())}"
    encoding = getattr(value, "name", None)
    if hasattr(value, "encode_ordinary") and isinstance(encoding, str):
        return f"tokens:{encoding}"
    name = function_name(value)
    if not _leads_to(name, value):
        raise unnamed_error(name)
    return name


def unnamed_error(name: str) -> ValueError:
    """The error to raise for a function that cannot be imported by its name."""
    return ValueError(
        f"{name} has no name by which another process could find it, so it cannot be written to a "
        "configuration or a cache key: define it with def at the top level of a module"
    )


def function_name(function: Any) -> str:
    """The name of a function or class, also of one that cannot be imported by it."""
    module = getattr(function, "__module__", "")
    return f"function:{module}:{getattr(function, '__qualname__', '')}"


def restore(value: Any, field: str | None) -> Any:
    """The function that a name from `describe` stands for; any other value unchanged.

    Raises ValueError for the name of a tokenizer or recogniser: a configuration does not contain
    the object, so the caller has to pass it to `field` again.
    """
    if not isinstance(value, str):
        return value
    kind, _, path = value.partition(":")
    if kind in ("tokenizer", "recogniser"):
        raise ValueError(
            f"{value!r} is the name of a {kind}, and a configuration does not contain the object: "
            f"pass it again as {field}="
        )
    return import_object(path) if kind == "function" else value


def import_object(path: str) -> Any:
    """Import an object by a path like "module:Class.method"."""
    module, _, names = path.partition(":")
    target: Any = importlib.import_module(module)
    for name in names.split("."):
        target = getattr(target, name)
    return target


def _leads_to(name: str, value: Any) -> bool:
    try:
        return restore(name, None) is value
    except (AttributeError, ImportError, ValueError):
        return False


def _restore_field(value: Any, info: ValidationInfo) -> Any:
    return restore(value, info.field_name)


Size = Annotated[int, BeforeValidator(lambda value: whole_number(value, "chunk_size", 1))]
"""A field for a chunk size."""

Unit = Annotated[
    LengthFunction,
    BeforeValidator(check_length_function),
    BeforeValidator(_restore_field),  # the last one runs first
    PlainSerializer(describe),
]
"""A field for a length function."""

Function = Annotated[
    Callable[..., Any],
    BeforeValidator(_restore_field),
    PlainSerializer(describe, return_type=str),
]
"""A field for a function, which is written as its importable name."""

FunctionOrName = Annotated[
    str | Callable[..., Any],
    BeforeValidator(_restore_field),
    PlainSerializer(describe, return_type=str),
]
"""A field for a function, or for the name of one that the strategy knows."""

Texts = Annotated[Sequence[str], AfterValidator(tuple)]
"""A field for strings; a list becomes a tuple."""
