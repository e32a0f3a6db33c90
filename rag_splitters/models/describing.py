"""The name of a model in configurations, cache keys and messages."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rag_splitters.fields import function_name, name_within_process, registered_name, restore

_NAMES = ("model_name", "model", "model_id", "azure_deployment", "deployment_name", "repo_id")
_NUMBERS = ("dimensions", "temperature", "top_p", "max_tokens", "seed")


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

    A registered function has the name under which it was registered. Raises ValueError for any
    other function without an importable name (a lambda, a closure, a partial).
    """
    function = getattr(model, "model", model)
    if registered := registered_name(function):
        return registered
    name = describe_model(model)
    return name_within_process(name, function) if "<" in name else name


def load_model(value: Any, field: str, kinds: str, wrap: Callable[[Any], Any]) -> Any:
    """The wrapped model for the value of a field: a model, or the name of a registered function.

    Parameters:
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
