"""Field types that strategies share, plain error messages, and functions in configurations.

A configuration holds a function's name and a tokenizer's fingerprint. Reading it imports nothing:
`restore` finds only the functions that the user registered.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import cache, wraps
from itertools import pairwise
from types import MethodType
from typing import Annotated, Any, ParamSpec, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import ErrorDetails

from rag_splitters.text.conversions import CONVERSIONS
from rag_splitters.text.ids import stable_uuid
from rag_splitters.text.sizing import LengthFunction, check_length_function

_P = ParamSpec("_P")
T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z_][\w.-]*")  # no colon, which every importable name has
_functions: dict[str, Callable[..., Any]] = {}
_allows_tokens = ContextVar("_allows_tokens", default=False)
_tokens: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def whole_number(value: Any, name: str, least: int) -> int:
    """Return the value if it is a whole number of at least `least`, else raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return value


def check_overlap(value: Any) -> int | float:
    """Return the value if it is a share in [0, 1) or a whole number, else raise ValueError."""
    if not isinstance(value, float):
        return whole_number(value, "chunk_overlap", 0)
    if not 0 <= value < 1:
        raise ValueError(
            f"chunk_overlap must be a share in [0, 1) or a whole number, got {value!r}"
        )
    return value


def did_you_mean(name: str, names: Collection[str], alternatives: str = "choose one of") -> str:
    """Return the end of an error message: the most similar name or, without one, all names.

    >>> did_you_mean("chunk-size", ["chunk_size", "language"])
    "did you mean 'chunk_size'?"
    """
    near = get_close_matches(name.lower().replace("-", "_"), names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"{alternatives} {', '.join(names)}"


def unknown_parameter(owner: str, name: str, names: Collection[str]) -> ValueError:
    """Return the error to raise for a parameter that a class or strategy does not have."""
    hint = did_you_mean(name, names, "its parameters are")
    return ValueError(f"{owner} got an unknown parameter {name!r}: {hint}")


def check_keywords(*others: Callable[..., Any]) -> Callable[[Callable[_P, T]], Callable[_P, T]]:
    """Decorate a function so that an unknown keyword raises `unknown_parameter`.

    Parameters:
        others: the functions that it passes keywords on to; their parameters are accepted, too.
    """

    def decorate(function: Callable[_P, T]) -> Callable[_P, T]:
        parameters: dict[str, inspect.Parameter] = {}
        for each in (function, *others):
            parameters.update(inspect.signature(each).parameters)
        names = [name for name, each in parameters.items() if each.kind != each.VAR_KEYWORD]
        owner = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def checking_function(*args: _P.args, **options: _P.kwargs) -> T:
            for name in options:
                if name not in names:
                    raise unknown_parameter(owner, name, names)
            return function(*args, **options)

        return checking_function

    return decorate


def field_descriptions(kind: type[BaseModel]) -> dict[str, str]:
    """Return the description of each field: the docstring below it, else its `description`.

    The description of a field that has neither is empty.
    """
    docstrings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            docstrings.update(_field_docstrings(base))
    return {
        name: docstrings.get(name, field.description or "")
        for name, field in kind.model_fields.items()
    }


@cache
def _field_docstrings(kind: type[Any]) -> Mapping[str, str]:
    """The docstrings below the fields of one class."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError):  # the source is not available
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


@contextmanager
def plain_errors(kind: type[BaseModel]) -> Iterator[None]:
    """Raise a ValueError with a plain message instead of pydantic's ValidationError."""
    try:
        yield
    except ValidationError as error:
        raise ValueError(_error_message(error, kind)) from None


def _error_message(error: ValidationError, kind: type[BaseModel]) -> str:
    """Say in one line what is wrong with each parameter."""
    groups: dict[str, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        if detail["type"] == "default_factory_not_called":
            continue  # another parameter is wrong
        name, *path = detail["loc"] or ("",)
        places = "".join(f"[{part}]" for part in path if isinstance(part, int))
        groups.setdefault(f"{name}{places}", []).append(detail)
    return "; ".join(_parameter_error(path, group, kind) for path, group in groups.items())


def _parameter_error(path: str, details: Sequence[ErrorDetails], kind: type[BaseModel]) -> str:
    """Say what is wrong with one parameter; a union has an error for each of its types."""
    types = {detail["type"] for detail in details}
    if "extra_forbidden" in types:
        return str(unknown_parameter(kind.__name__, path, kind.model_fields))
    if "missing" in types:
        return f"{kind.__name__} needs the parameter {path!r}"
    if "frozen_instance" in types or "frozen_field" in types:
        return f"{kind.__name__} cannot be changed: create a new one with {path}="
    for detail in details:
        cause = detail.get("ctx", {}).get("error")
        if cause is not None:
            nested = isinstance(cause, ValidationError)
            message = _error_message(cause, kind) if nested else str(cause)
            return message if path.partition("[")[0] in message else f"{path}: {message}"
    expected = " or ".join(dict.fromkeys(_expectation(detail) for detail in details))
    return f"{path or kind.__name__} must be {expected}, got {_format_value(details[0]['input'])}"


_EXPECTATIONS = {
    "bool": "True or False",
    "callable": "a function",
    "dict": "a dictionary",
    "finite": "a finite number",
    "float": "a number",
    "int": "a whole number",
    "is": "a list",
    "list": "a list",
    "mapping": "a dictionary",
    "model": "a dictionary of parameters",
    "sequence": "a list",
    "string": "a string",
    "tuple": "a list",
}
"""What a value must be, by the first word of the type of pydantic's error."""

_LIMITS = {
    "greater_than": "greater than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
}


def _expectation(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _LIMITS:
        return _LIMITS[kind].format(**context)
    if context.get("class_name") == "Chunker":
        return 'a chunker or {"strategy": name, ...}'
    if kind == "is_instance_of" and context["class"] != "Sequence":
        return f"an object of type {context['class']}"
    other = detail["msg"].removeprefix("Input should be ")
    return _EXPECTATIONS.get(kind.partition("_")[0], other)


def _format_value(value: Any) -> str:
    """Format a value for an error message; of an object, which may hold a secret, the type."""
    if not _is_plain(value):
        return f"an object of type {type(value).__qualname__}"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(key) and _is_plain(part) for key, part in value.items())
    return value is None or isinstance(value, (str, int, float))


def describe(value: Any) -> str:
    """Return a name for a function, class or tokenizer that is the same in every process.

    For a registered function, it is the name under which it was registered; for any other, its
    importable name. Raises ValueError for a function that has neither, such as a lambda.

    >>> describe(describe)
    'function:rag_splitters.fields:describe'
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


@contextmanager
def names_within_process() -> Iterator[None]:
    """Let `describe` name functions that no other process could find, such as lambdas."""
    state = _allows_tokens.set(True)
    try:
        yield
    finally:
        _allows_tokens.reset(state)


def name_within_process(name: str, function: Any) -> str:
    """Return a name for a function, for cache keys, that is valid only in this process.

    Raises ValueError outside of `names_within_process`.
    """
    if not _allows_tokens.get():
        raise ValueError(
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
        raise ValueError(
            f"{value!r} stands for a {thing}, and a configuration does not contain the object: "
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
        raise ValueError(
            "a registered name consists of letters, digits, '_', '.' and '-', and begins with a "
            f"letter or '_', got {name!r}"
        )
    if name in registry and not _is_same(registry[name], value):
        raise ValueError(
            f"{name!r} is already registered, for {function_name(registry[name])}: choose another "
            "name"
        )
    for other, each in registry.items():
        if other != name and _is_same(each, value):
            raise ValueError(f"{function_name(value)} is already registered, as {other!r}")
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


def _restore_field(value: Any, info: ValidationInfo) -> Any:
    return restore(value, info.field_name)


def _restore_function(value: Any, info: ValidationInfo) -> Any:
    function = restore(value, info.field_name)
    if isinstance(function, str):
        raise ValueError(
            f'{info.field_name} must be a function, or "function:<name>" for a registered one, '
            f"got {value!r}"
        )
    return function


Size = Annotated[int, BeforeValidator(lambda value: whole_number(value, "chunk_size", 1))]
"""A field for a chunk size."""

Overlap = Annotated[int | float, BeforeValidator(check_overlap)]
"""A field for an overlap: a count of units, or a share of the chunk size."""

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
"""A field for a function; a configuration holds its name."""

FunctionOrName = Annotated[
    str | Callable[..., Any],
    BeforeValidator(_restore_field),
    PlainSerializer(describe, return_type=str),
]
"""A field for a function, or for the name of one that the strategy knows."""

Texts = Annotated[Sequence[str], AfterValidator(tuple)]
"""A field for strings; a list becomes a tuple."""
