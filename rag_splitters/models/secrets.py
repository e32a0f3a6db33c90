"""The secrets that a model holds, such as an API key: kept out of messages and of pickles."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rag_splitters.models.describing import describe_model

__all__ = ["Recipe", "pack_model", "unpack_model", "without_secrets"]

_SECRET = re.compile(
    r"api_?-?key|(?:^|[_-])token$|secret|passw|authorization|credential", re.IGNORECASE
)
_PASSWORD = re.compile(r"://[^/@\s]*:([^/@\s]+)@")


def without_secrets(message: str, model: Any) -> str:
    """The message with every secret of the model replaced by `***`."""
    for secret in sorted(set(_secrets(_state(model))), key=len, reverse=True):
        if len(secret) > 3:
            message = message.replace(secret, "***")
    return message


def _state(model: Any) -> Mapping[str, Any]:
    state = getattr(model, "__dict__", None)
    return state if isinstance(state, Mapping) else {}


def _secrets(state: Mapping[Any, Any]) -> Iterator[str]:
    """The values that are secret by their type or by their name."""
    for name, value in state.items():
        if hasattr(value, "get_secret_value"):
            value = value.get_secret_value()
            if isinstance(value, str):
                yield value
        elif isinstance(value, str):
            if _SECRET.search(str(name)):
                yield from (value, *value.split())  # "Bearer abc" contains "abc"
            else:
                yield from _PASSWORD.findall(value)
        elif isinstance(value, Mapping):
            yield from _secrets(value)


@dataclass(frozen=True)
class Recipe:
    """The class and settings of a model, without its secrets, which are in the environment."""

    kind: type
    settings: Mapping[str, Any]


def pack_model(model: Any) -> Any:
    """What to pickle for a model: the model itself, or a `Recipe` if it holds a secret.

    Raises TypeError for an object that holds a secret and does not say how to pickle it.
    """
    if not any(_secrets(_state(model))):
        return model
    kind = type(model)
    if not hasattr(kind, "model_fields"):
        hooks = ("__reduce__", "__reduce_ex__", "__getstate__")
        if any(getattr(kind, name, None) is not getattr(object, name, None) for name in hooks):
            return model
        raise TypeError(
            f"{describe_model(model)} holds a secret, which is not written to a pickle: give its "
            "class a __reduce__ that omits the secret, or use a function at the top level of a "
            "module"
        )
    settings = {}
    for name in sorted(model.model_fields_set & set(kind.model_fields)):
        value, field = getattr(model, name), kind.model_fields[name]
        if not field.exclude and not any(_secrets({name: value})) and _can_be_pickled(value):
            config = kind.model_config
            by_name = config.get("populate_by_name") or config.get("validate_by_name")
            settings[name if by_name else field.alias or name] = value
    return Recipe(kind, settings)


def unpack_model(model: Any) -> Any:
    """The model that `pack_model` packed; it takes its secrets from the environment."""
    return model.kind(**model.settings) if isinstance(model, Recipe) else model


def _can_be_pickled(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:  # whatever a foreign class raises
        return False
    return True
