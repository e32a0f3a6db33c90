"""Pydantic fields that hold models: checked on the way in, written as a stable name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from rag_splitters.models.describing import describe_model

__all__ = ["check_count", "load_model", "written"]


def check_count(value: Any, name: str, least: int) -> None:
    """Raises: ValueError for what is no whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def load_model(value: Any, name: str, kinds: str, wrap: Callable[[Any], Any]) -> Any:
    """The wrapped model of a field's value; a function may be given by the name `written` gave.

    Raises: ValueError for another name, as a configuration does not hold the model itself, and for
    what is no model.
    """
    if isinstance(value, str):
        kind, _, path = value.partition(":")
        if kind != "function":
            raise ValueError(
                f"{name} must be {kinds}, got {value!r}: a configuration names a model but does "
                f"not hold it, so hand the model in again as {name}="
            )
        module, _, qualified = path.partition(":")
        value = importlib.import_module(module)
        for part in qualified.split("."):
            value = getattr(value, part)
    try:
        return wrap(value)
    except TypeError as error:
        raise ValueError(str(error)) from None


def written(value: Any) -> str:
    """The stable name that stands for a model in a configuration or a cache key.

    Raises: ValueError for a function that has none (a lambda, a closure, a partial).
    """
    name = describe_model(value)
    if "<" in name:
        raise ValueError(
            f"{name} has no name by which another process could find it, so it cannot be written "
            "to a configuration or a cache key: define it with def at the top level of a module"
        )
    return name
