"""The name of a model in configurations, cache keys and messages."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from rag_splitters.errors import InputError
from rag_splitters.ids import stable_uuid
from rag_splitters.models.secrets import SAFE_HEADERS, is_secret
from rag_splitters.parameters.functions import (
    function_name,
    name_within_process,
    registered_name,
    restore,
)

_NAMES = ("model_name", "model", "model_id", "azure_deployment", "deployment_name", "repo_id")
_NUMBERS = ("dimensions", "temperature", "top_p", "max_tokens", "seed")
_NO_NAME = ("", "unknown")  # the second is LlamaIndex's default


def describe_model(model: Any) -> str:
    """Return a short name for a model, the same in every process and in both frameworks.

    It is the name under which the model is served, with the numbers that change its answers, or
    the class of a model without a name. For a function, it is the importable name, and for an
    object with a `description` (a string), that description. The name never holds an address in
    memory, a URL or a secret.

    >>> describe_model(describe_model)
    'function:rag_splitters.models.describing:describe_model'
    """
    return _describe(model, _MAX_DEPTH)


def _describe(model: Any, depth: int) -> str:
    own = getattr(model, "description", None)
    if isinstance(own, str) and own:
        return own
    if depth and (inner := _inner(model)):
        return " | ".join(_describe(each, depth - 1) for each in inner)
    if isinstance(model, functools.partial):
        return f"<partial of {describe_model(model.func)}>"
    if hasattr(model, "__qualname__"):
        owner = getattr(model, "__self__", None)
        if owner is not None and not isinstance(owner, (type, ModuleType)):
            return f"{describe_model(owner)}.{model.__name__}"
        return function_name(model)
    return _describe_object(model)


def _describe_object(model: Any) -> str:
    """Return a name such as "gpt-4o(temperature=0.5)" or "my_package.MyModel"."""
    kind = type(model)
    values = [getattr(model, name, None) for name in _NAMES]
    own = (value for value in values if isinstance(value, str) and value not in _NO_NAME)
    names = list(dict.fromkeys(own))
    first, *details = names or [f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"]
    for name in _NUMBERS:
        value = getattr(model, name, None)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            details.append(f"{name}={value}")
    return f"{first}({', '.join(details)})" if details else first


_STEPS = (("bound",), ("first", "middle", "last"), ("runnable", "fallbacks"))
"""The fields in which LangChain's bindings, sequences and fallbacks hold their models."""
_MAX_DEPTH = 5  # of these; a mock holds itself


def _inner(model: Any) -> list[Any]:
    """Return the models inside one of LangChain's bindings, sequences or fallbacks."""
    for names in _STEPS:
        if all(getattr(model, name, None) is not None for name in names):
            parts = [getattr(model, name) for name in names]
            lists = [part if isinstance(part, (list, tuple)) else [part] for part in parts]
            return [step for each in lists for step in each]
    return []


def inner_models(model: Any, depth: int = _MAX_DEPTH) -> Iterator[Any]:
    """Yield the model, and those inside LangChain's bindings, sequences and fallbacks."""
    yield model
    for each in _inner(model) if depth else ():
        yield from inner_models(each, depth - 1)


_WITHOUT_EFFECT = frozenset(
    "batch_size cache callbacks callback_manager chunk_size custom_get_token_ids disable_streaming "
    "embed_batch_size kwargs max_retries metadata model_name name num_workers output_version "
    "profile rate_limiter request_timeout show_progress_bar stream_usage streaming tags timeout "
    "verbose".split()
)
"""Fields of models that do not change their answers."""


def cache_name(model: Any) -> str:
    """Return the name of a model in the keys of a cache: its stable name and other parameters.

    These are the parameters that differ from their defaults, without addresses and secrets.
    """
    model = getattr(model, "model", model) if hasattr(model, "description") else model
    parameters = json.dumps(_parameters(model, _MAX_DEPTH), sort_keys=True, default=type)
    name = stable_name(model)
    return name if parameters == "{}" else f"{name} {stable_uuid(parameters)}"


def _parameters(model: Any, depth: int) -> dict[str, Any]:
    """Return the parameters of a model, and of the models inside it."""
    if depth == 0:
        return {}
    if isinstance(model, functools.partial):
        return {"args": _plain(model.args), "kwargs": _plain(model.keywords)}
    if inner := [_parameters(each, depth - 1) for each in _inner(model)]:
        if getattr(model, "bound", None) is None:
            return {"steps": inner} if any(inner) else {}
        own = _plain(getattr(model, "kwargs", {}))
        return {**inner[0], **({"bound": own} if own else {})}
    if not isinstance(model, BaseModel):
        return {}
    names = model.model_fields_set.difference(_NAMES, _NUMBERS, _WITHOUT_EFFECT)
    parameters: dict[str, Any] = _plain(
        {
            name: getattr(model, name)
            for name, field in type(model).model_fields.items()
            if name in names and getattr(model, name) != field.default
        }
    )
    return parameters


def _plain(value: Any, name: str = "") -> Any:
    """Return the part of a value that JSON can represent, without secrets and addresses."""
    if isinstance(value, Mapping):
        is_headers = name.endswith("headers")
        pairs = {
            str(key): _plain(part, str(key))
            for key, part in value.items()
            if not is_secret(str(key), part)
            and not (is_headers and str(key).lower() not in SAFE_HEADERS)
        }
        return {key: part for key, part in pairs.items() if part not in (None, {}, [], "")}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_plain(part, name) for part in value]
    if isinstance(value, str):
        return "" if "://" in value else value
    return value if isinstance(value, (bool, int, float)) else None


def stable_name(model: Any) -> str:
    """Return the name of a model in a configuration or a cache key, as `describe_model`.

    For a registered function, it is the name under which it was registered. Raises ValueError for
    any other function without an importable name (a lambda, a closure, a partial).
    """
    function = getattr(model, "model", model)
    if registered := registered_name(function):
        return registered
    name = describe_model(model)
    return name_within_process(name, function) if "<" in name else name


def load_model(value: Any, field: str, kinds: str, wrap: Callable[[Any], Any]) -> Any:
    """Return the wrapped model for a field's value: a model, or a registered function's name.

    Parameters:
        field: the field's name, for messages.
        kinds: the kinds of models that the field accepts, for messages.
        wrap: wraps a model; raises TypeError for anything else.

    Raises ValueError for any other name, because a configuration does not contain the model
    itself, and for a value that is not a model.
    """
    model = restore(value, field)
    if isinstance(model, str):
        raise InputError(
            f"{field} must be {kinds}, got {value!r}: a configuration names a model but does not "
            f"contain it, so pass the model again as {field}="
        )
    try:
        return wrap(model)
    except TypeError as error:
        raise InputError(str(error)) from None
