"""What may be said of a model: a stable name, and never a secret."""

from __future__ import annotations

import functools
import pickle
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

__all__ = ["Portable", "describe_model", "portable", "restored", "without_secrets"]

_NAMES = ("model_name", "model", "model_id", "azure_deployment", "deployment_name", "repo_id")
_NUMBERS = ("dimensions", "temperature", "top_p", "max_tokens", "seed")
_SECRET = re.compile(
    r"api_?-?key|(?:^|[_-])token$|secret|passw|authorization|credential", re.IGNORECASE
)
_PASSWORD = re.compile(r"://[^/@\s]*:([^/@\s]+)@")


def describe_model(model: Any) -> str:
    """A name by which a model is known again in another process: its class, its name, its numbers.

    For cache keys, configurations and error messages. It never holds an address in memory, a URL
    or a secret. A function gives its importable name; an object with a `description` (text) gives
    that; a model that `chat_model` or `Embedder` wraps gives the model's.

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
    name = getattr(model, "__qualname__", None)
    if name is not None:
        owner = getattr(model, "__self__", None)
        if owner is not None and not isinstance(owner, (type, ModuleType)):
            return f"{describe_model(owner)}.{model.__name__}"
        return f"function:{getattr(model, '__module__', '')}:{name}"
    return _described_object(model)


def _described_object(model: Any) -> str:
    kind = type(model)
    package = kind.__module__.partition(".")[0]
    values = (getattr(model, name, None) for name in _NAMES)
    parts = list(dict.fromkeys(value for value in values if isinstance(value, str) and value))
    for name in _NUMBERS:
        value = getattr(model, name, None)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            parts.append(f"{name}={value}")
    return f"{package}.{kind.__qualname__}({', '.join(parts)})"


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
