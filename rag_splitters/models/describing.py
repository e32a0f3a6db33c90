"""The name of a model in configurations, cache keys and messages, which never holds a secret."""

from __future__ import annotations

import functools
import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from rag_splitters.fields import function_name, restore, unnamed_error

__all__ = [
    "Portable",
    "describe_model",
    "load_model",
    "portable",
    "restored",
    "stable_name",
    "without_secrets",
]

_NAMES = ("model_name", "model", "model_id", "azure_deployment", "deployment_name", "repo_id")
_NUMBERS = ("dimensions", "temperature", "top_p", "max_tokens", "seed")
_SECRET = re.compile(
    r"api_?-?key|(?:^|[_-])token$|secret|passw|authorization|credential", re.IGNORECASE
)
_PASSWORD = re.compile(r"://[^/@\s]*:([^/@\s]+)@")


def describe_model(model: Any) -> str:
    """A short name for a model: the same in every process and in both frameworks.

    It is the name under which the model is served, with the numbers that change its answers, or
    the class of a model that has no name. A function gives its importable name. An object with a
    `description` (a string) gives that. The name never holds an address in memory, a URL or a
    secret.

    >>> describe_model(describe_model)
    'function:rag_splitters.models.describing:describe_model'
    """
    own = getattr(model, "description", None)
    if isinstance(own, str) and own:
        return own
    bound = getattr(model, "bound", None)  # of LangChain's RunnableBinding
    if bound is not None:
        return describe_model(bound)
    if isinstance(model, functools.partial):
        return f"<partial of {describe_model(model.func)}>"
    if hasattr(model, "__qualname__"):
        owner = getattr(model, "__self__", None)
        if owner is not None and not isinstance(owner, (type, ModuleType)):
            return f"{describe_model(owner)}.{model.__name__}"
        return function_name(model)
    return _describe_object(model)


def _describe_object(model: Any) -> str:
    """For example "gpt-4o(temperature=0.5)" or "my_package.MyModel"."""
    kind = type(model)
    values = [getattr(model, name, None) for name in _NAMES]
    names = list(dict.fromkeys(value for value in values if isinstance(value, str) and value))
    first, *details = names or [f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"]
    for name in _NUMBERS:
        value = getattr(model, name, None)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            details.append(f"{name}={value}")
    return f"{first}({', '.join(details)})" if details else first


def stable_name(model: Any) -> str:
    """The name of a model in a configuration or a cache key: that of `describe_model`.

    Raises ValueError for a function without an importable name (a lambda, a closure, a partial).
    """
    name = describe_model(model)
    if "<" in name:
        raise unnamed_error(name)
    return name


def load_model(value: Any, field: str, kinds: str, wrap: Callable[[Any], Any]) -> Any:
    """The wrapped model for the value of a field: a model, or the name of a function.

    Parameters:
        value: the field's value.
        field: the field's name, for messages.
        kinds: the kinds of models that the field takes, for messages.
        wrap: wraps a model; raises TypeError for what is none.

    Raises ValueError for any other name, because a configuration does not contain the model
    itself, and for a value that is not a model.
    """
    model = restore(value, field)
    if isinstance(model, str):
        raise ValueError(
            f"{field} must be {kinds}, got {value!r}: a configuration names a model but does not "
            f"contain it, so pass the model again as {field}="
        )
    try:
        return wrap(model)
    except TypeError as error:
        raise ValueError(str(error)) from None


def without_secrets(message: str, model: Any) -> str:
    """The message with every secret that the model holds replaced by `***`."""
    for secret in sorted(set(_secrets(_state(model))), key=len, reverse=True):
        if len(secret) > 3:
            message = message.replace(secret, "***")
    return message


def _state(model: Any) -> Mapping[str, Any]:
    found = getattr(model, "__dict__", None)
    return found if isinstance(found, Mapping) else {}


def _secrets(state: Mapping[Any, Any]) -> Iterator[str]:
    """Values that are secret by their type or by the name that they are kept under."""
    for name, value in state.items():
        if hasattr(value, "get_secret_value"):
            value = value.get_secret_value()
            if isinstance(value, str):
                yield value
        elif isinstance(value, str):
            if _SECRET.search(str(name)):
                yield from (value, *value.split())  # "Bearer abc" holds "abc"
            else:
                yield from _PASSWORD.findall(value)
        elif isinstance(value, Mapping):
            yield from _secrets(value)


@dataclass(frozen=True)
class Portable:
    """A model less its secrets: how to make it again where they are in the environment."""

    kind: type
    settings: Mapping[str, Any]


def portable(model: Any) -> Any:
    """What to pickle for a model: the model itself, or a `Portable` where it holds a secret.

    Raises: TypeError for an object that holds a secret and does not say how to pickle it.
    """
    if not any(_secrets(_state(model))):
        return model
    kind = type(model)
    if not hasattr(kind, "model_fields"):
        own = ("__reduce__", "__reduce_ex__", "__getstate__")
        if any(getattr(kind, name, None) is not getattr(object, name, None) for name in own):
            return model
        raise TypeError(
            f"{describe_model(model)} holds a secret, which is not written to a pickle: give its "
            "class a __reduce__ that leaves the secret out, or use a function at the top level of "
            "a module"
        )
    settings = {}
    for name in sorted(model.model_fields_set & set(kind.model_fields)):
        value, field = getattr(model, name), kind.model_fields[name]
        if not field.exclude and not any(_secrets({name: value})) and _can_be_pickled(value):
            config = kind.model_config
            by_name = config.get("populate_by_name") or config.get("validate_by_name")
            settings[name if by_name else field.alias or name] = value
    return Portable(kind, settings)


def restored(model: Any) -> Any:
    """The model that `portable` wrote; it takes its secrets from its environment."""
    return model.kind(**model.settings) if isinstance(model, Portable) else model


def _can_be_pickled(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:  # whatever a foreign class raises
        return False
    return True
