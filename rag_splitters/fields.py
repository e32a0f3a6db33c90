"""Field types that strategies share, and how functions are written in a configuration.

A function is written as a name, and a tokenizer as a fingerprint. Reading a configuration imports
nothing: `restore` finds only the functions that the user registered.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, ValidationInfo

from rag_splitters.text.ids import stable_uuid
from rag_splitters.text.sizing import LengthFunction, check_length_function

__all__ = [
    "Function",
    "FunctionOrName",
    "Size",
    "Texts",
    "Unit",
    "add_to_registry",
    "describe",
    "function_name",
    "look_up",
    "register_function",
    "registered_name",
    "restore",
    "unnamed_error",
    "whole_number",
]

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z_][\w.-]*")  # no colon, so that it is unlike an importable name
_functions: dict[str, Callable[..., Any]] = {}


def whole_number(value: Any, name: str, least: int) -> int:
    """The value if it is a whole number of at least `least`; otherwise raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return value


def describe(value: Any) -> str:
    """A name for a function, class or tokenizer that is the same in every process.

    A registered function has the name under which it was registered, any other its importable
    name. Raises ValueError for a function that has neither, such as a lambda.

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
    if registered := registered_name(value):
        return registered
    name = function_name(value)
    if not _leads_to(name, value):
        raise unnamed_error(name)
    return name


def unnamed_error(name: str) -> ValueError:
    """The error to raise for a function that cannot be imported by its name."""
    return ValueError(
        f"{name} has no name by which another process could find it, so it cannot be written to a "
        "configuration or a cache key: define it with def at the top level of a module, or give it "
        "a name with rag_splitters.register"
    )


def function_name(function: Any) -> str:
    """The name of a function or class, also of one that cannot be imported by it."""
    module = getattr(function, "__module__", "")
    return f"function:{module}:{getattr(function, '__qualname__', '')}"


def restore(value: Any, field: str | None) -> Any:
    """The registered function that a name from `describe` stands for; any other value unchanged.

    Raises ValueError for a function that is not registered, because a configuration must not
    choose what is imported and called. It also does so for the name of a tokenizer or recogniser:
    a configuration does not contain the object, so the caller has to pass it to `field` again.
    """
    if not isinstance(value, str):
        return value
    kind, _, path = value.partition(":")
    if kind in ("tokenizer", "recogniser"):
        raise ValueError(
            f"{value!r} is the name of a {kind}, and a configuration does not contain the object: "
            f"pass it again as {field}="
        )
    if kind != "function":
        return value
    function = look_up(_functions, path)
    if function is None:
        raise ValueError(
            f"{field}={value!r} names a function that is not registered, and a configuration never "
            f"imports one: pass the function again as {field}=, or register it first with "
            "rag_splitters.register(name, function)"
        )
    return function


def register_function(name: str, function: Callable[..., Any]) -> None:
    """Let configurations name a function as "function:<name>"; see `rag_splitters.register`."""
    if not callable(function):
        raise TypeError(
            f"register takes a subclass of Chunker or a function, got {type(function).__qualname__}"
        )
    add_to_registry(_functions, name, function)


def registered_name(function: Any) -> str | None:
    """The name of a registered function in configurations; None if it is not registered.

    >>> registered_name(print) is None
    True
    """
    for name, each in _functions.items():
        if _is_same(each, function):
            return f"function:{name}"
    return None


def add_to_registry(registry: dict[str, T], name: str, value: T) -> None:
    """Register a value under a name.

    Raises ValueError if the name is not an identifier (dots and hyphens are allowed), if it stands
    for something else already, or if the value has another name already: a value has one name, so
    that cache keys do not depend on the order of registration.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            "a registered name consists of letters, digits, '_', '.' and '-', and begins with a "
            f"letter or '_', got {name!r}"
        )
    if name in registry and not _is_same(registry[name], value):
        raise ValueError(
            f"{name!r} is registered already, for {function_name(registry[name])}: choose another "
            "name"
        )
    for other, each in registry.items():
        if other != name and _is_same(each, value):
            raise ValueError(f"{function_name(value)} is registered already, as {other!r}")
    registry[name] = value


def look_up(registry: Mapping[str, T], name: str) -> T | None:
    """The value that was registered under a name, or whose importable name this is; or None.

    Names are compared, and nothing is imported.
    """
    if name in registry:
        return registry[name]
    full_name = f"function:{name.removeprefix('function:')}"
    for value in registry.values():
        if function_name(value) == full_name and _leads_to(full_name, value):
            return value
    return None


def _is_same(one: Any, other: Any) -> bool:
    """Whether both are one object; each access to a method creates a new one."""
    return one is other or (isinstance(one, MethodType) and bool(one == other))


def _leads_to(name: str, value: Any) -> bool:
    """Whether the loaded module of a function or class has it under its name."""
    module, _, path = name.removeprefix("function:").partition(":")
    target: Any = sys.modules.get(module)
    for part in path.split("."):
        target = getattr(target, part, None)
    return target is value


def _restore_field(value: Any, info: ValidationInfo) -> Any:
    return restore(value, info.field_name)


def _restore_function(value: Any, info: ValidationInfo) -> Any:
    function = restore(value, info.field_name)
    if isinstance(function, str):
        raise ValueError(
            f"{info.field_name} must be a function, or the name of a registered one as "
            f'"function:<name>", got {value!r}'
        )
    return function


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
    BeforeValidator(_restore_function),
    PlainSerializer(describe, return_type=str),
]
"""A field for a function, which is written as its name."""

FunctionOrName = Annotated[
    str | Callable[..., Any],
    BeforeValidator(_restore_field),
    PlainSerializer(describe, return_type=str),
]
"""A field for a function, or for the name of one that the strategy knows."""

Texts = Annotated[Sequence[str], AfterValidator(tuple)]
"""A field for strings; a list becomes a tuple."""
