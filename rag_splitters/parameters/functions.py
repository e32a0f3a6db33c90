"""Functions in configurations: a configuration holds a function's name, never the function.

Reading a configuration imports nothing: `restore` finds only the functions that the user
registered.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import MethodType
from typing import Any, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

from rag_splitters.calls import with_value
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.ids import stable_uuid
from rag_splitters.parameters.conversions import CONVERSIONS

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z_][\w.-]*")  # no colon, which every importable name has
_functions: dict[str, Callable[..., Any]] = {}
_allows_tokens = ContextVar("_allows_tokens", default=False)
_tokens: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def describe(value: Any) -> str:
    """Return a name for a function, class or tokenizer that is the same in every process.

    For a registered function, it is the name under which it was registered; for any other, its
    importable name. Raises ValueError for a function that has neither, such as a lambda.

    >>> describe(describe)
    'function:rag_splitters.parameters.functions:describe'
    """
    if isinstance(value, str):
        return value
    for kind, conversion in CONVERSIONS.items():
        if isinstance(value, conversion):
            return f"{kind}:{describe(value.function)}"
    for tokenizer in (getattr(value, "backend_tokenizer", value), value):
        if hasattr(tokenizer, "to_str"):
            return f"tokenizer:{stable_uuid(type(value).__qualname__, tokenizer.to_str())}"
    encoding = getattr(value, "name", None)
    if hasattr(value, "encode_ordinary") and isinstance(encoding, str):
        return f"tokens:{encoding}"
    if registered := registered_name(value):
        return registered
    name = function_name(value)
    return name if _leads_to(name, value) else name_within_process(name, value)


def names_within_process() -> AbstractContextManager[None]:
    """Let `describe` name functions that no other process could find, such as lambdas."""
    return with_value(_allows_tokens, True)


def name_within_process(name: str, function: Any) -> str:
    """Return a name for a function, for cache keys, that is valid only in this process.

    Raises ValueError outside of `names_within_process`.
    """
    if not _allows_tokens.get():
        raise InputError(
            f"{name} cannot be written to a configuration or a cache key, because no other process "
            "could find it by name: define it with def at the top level of a module, or register "
            "it under a name with rag_splitters.register"
        )
    try:
        token = _tokens.setdefault(function, uuid4().hex)
    except TypeError:  # an object without a hash, or one that cannot be referred to weakly
        token = uuid4().hex
    return f"unnamed:{name}:{token}"


def function_name(function: Any) -> str:
    """Return the name of a function or class, even if it cannot be imported by that name."""
    module = getattr(function, "__module__", "")
    return f"function:{module}:{getattr(function, '__qualname__', '')}"


def restore(value: Any, field: str | None) -> Any:
    """Return the registered function that a name refers to; any other value unchanged.

    Raises ValueError for a function that is not registered, because a configuration must not
    choose what is imported and called, and for the name of a tokenizer or recogniser: a
    configuration does not contain the object, so the caller has to pass it as `field` again.
    """
    if not isinstance(value, str):
        return value
    kind, _, path = value.partition(":")
    if kind in CONVERSIONS:
        inner = restore(path, field)
        return value if isinstance(inner, str) else CONVERSIONS[kind](inner)
    if kind in ("tokenizer", "recogniser", "unnamed"):
        thing = "function without a name" if kind == "unnamed" else kind
        raise InputError(
            f"{value!r} stands for a {thing}, and a configuration does not contain the object: "
            f"pass it again as {field}="
        )
    if kind != "function":
        return value
    function = look_up(_functions, path)
    if function is None:
        raise InputError(
            f"{field}={value!r} names a function that is not registered, and a configuration never "
            f"imports one: pass the function again as {field}=, or register it first with "
            "rag_splitters.register(name, function)"
        )
    return function


def register_function(name: str, function: Callable[..., Any]) -> None:
    """Let configurations name a function as "function:<name>"; see `rag_splitters.register`."""
    if not callable(function):
        raise InputTypeError(
            f"register takes a subclass of Chunker or a function, got {type(function).__qualname__}"
        )
    add_to_registry(_functions, name, function)


def registered_name(function: Any) -> str | None:
    """Return the name of a registered function in configurations, or None for any other.

    >>> registered_name(print) is None
    True
    """
    for name, each in _functions.items():
        if _is_same(each, function):
            return f"function:{name}"
    return None


def add_to_registry(registry: dict[str, T], name: str, value: T) -> None:
    """Register a value under a name.

    Raises ValueError if the name is not an identifier (dots and hyphens are allowed), if it is
    already taken, or if the value already has another name: a value has one name, so that cache
    keys do not depend on the order of registration.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            "a registered name consists of letters, digits, '_', '.' and '-', and begins with a "
            f"letter or '_', got {name!r}"
        )
    if name in registry and not _is_same(registry[name], value):
        raise InputError(
            f"{name!r} is already registered, for {function_name(registry[name])}: choose another "
            "name"
        )
    for other, each in registry.items():
        if other != name and _is_same(each, value):
            raise InputError(f"{function_name(value)} is already registered, as {other!r}")
    registry[name] = value


def look_up(registry: Mapping[str, T], name: str) -> T | None:
    """Return the value with this registered or importable name, or None if there is none.

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
    """Whether both are the same object; methods are compared, as each access makes a new one."""
    return one is other or (isinstance(one, MethodType) and bool(one == other))


def _leads_to(name: str, value: Any) -> bool:
    """Whether a value can be imported under this name; its module must be loaded already."""
    module, _, path = name.removeprefix("function:").partition(":")
    target: Any = sys.modules.get(module)
    for part in path.split("."):
        target = getattr(target, part, None)
    return target is value
