"""Messages about wrong parameters, in our own words instead of pydantic's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from inspect import signature
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rag_splitters.errors import InputError


def did_you_mean(name: str, names: Collection[str], alternatives: str = "choose one of") -> str:
    """Return the end of an error message: the most similar name or, without one, all names.

    >>> did_you_mean("chunk-size", ["chunk_size", "language"])
    "did you mean 'chunk_size'?"
    """
    near = get_close_matches(name.lower().replace("-", "_"), names)
    return f"did you mean {near[0]!r}?" if near else f"{alternatives} {', '.join(names)}"


def unknown_parameter(
    owner: str, name: str, names: Collection[str], synonyms: Mapping[str, str] | None = None
) -> InputError:
    """Return the error to raise for a parameter that a class or strategy does not have.

    Parameters:
        synonyms: names of other libraries for its parameters.
    """
    name_here = (synonyms or {}).get(name, name)
    hint = did_you_mean(name_here, names, "its parameters are")
    return InputError(f"{owner} got an unknown parameter {name!r}: {hint}")


@contextmanager
def plain_errors(kind: type[BaseModel] | Callable[..., Any]) -> Iterator[None]:
    """Raise an InputError with a plain message instead of pydantic's ValidationError.

    Parameters:
        kind: the class, or the function whose arguments are checked.
    """
    try:
        yield
    except ValidationError as error:
        raise InputError(_error_message(error, kind)) from None


def _error_message(error: ValidationError, kind: Any) -> str:
    """Say in one line what is wrong with each parameter."""
    groups: dict[str, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        name, *path = detail["loc"] or ("",)
        places = "".join(f"[{part}]" for part in path if isinstance(part, int))
        groups.setdefault(f"{name}{places}", []).append(detail)
    return "; ".join(_parameter_error(path, group, kind) for path, group in groups.items())


def _parameter_error(path: str, details: Sequence[ErrorDetails], kind: Any) -> str:
    """Say what is wrong with one parameter; a union has an error for each of its types."""
    types = {detail["type"] for detail in details}
    if types & {"extra_forbidden", "unexpected_keyword_argument"}:
        names = getattr(kind, "model_fields", None) or signature(kind).parameters
        return str(unknown_parameter(kind.__name__, path, names))
    if types & {"missing", "missing_argument"}:
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
    return f"{path or kind.__name__} must be {expected}, got {describe_value(details[0]['input'])}"


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
    "too_short": "a list that is not empty",
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


def describe_value(value: Any) -> str:
    """Describe a value in an error message; of an object, which may hold a secret, the type.

    >>> describe_value("a text"), describe_value(["a text", Ellipsis])
    ("'a text'", 'a list of str and ellipsis')
    """
    if isinstance(value, type):
        return f"the class {value.__qualname__} instead of an object of it"
    if isinstance(value, (list, tuple)) and not _is_plain(value):
        kinds = dict.fromkeys(type(each).__qualname__ for each in value)
        return f"a {type(value).__qualname__} of {' and '.join(kinds)}"
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
