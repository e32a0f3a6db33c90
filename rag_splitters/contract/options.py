"""A framework's own names for the parameters of its splitters, translated by a table of rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rag_splitters.contract.chunker import Chunker, without
from rag_splitters.errors import InputError
from rag_splitters.parameters.messages import describe_value

Rule: TypeAlias = Callable[[str, Mapping[str, Any]], dict[str, Any]]
"""A function from a framework's name and all parameters to our parameters instead."""

Rules: TypeAlias = Mapping[type[Chunker] | str, Mapping[str, Rule]]
"""Rules for the strategies of a class, or for those that have a parameter, by the framework's
names. The first one that fits is used."""


def translate(kind: type[Chunker], parameters: Mapping[str, Any], rules: Rules) -> dict[str, Any]:
    """Translate a framework's names of parameters into ours; unknown ones stay as they are.

    Raises ValueError if a parameter is passed under both names, or if we have no counterpart.
    """
    ours = {name: value for name, value in parameters.items() if name in kind.model_fields}
    for name in without(parameters, ours):
        rule = _rule(kind, name, rules)
        values = {name: parameters[name]} if rule is None else rule(name, parameters)
        for own_name, value in values.items():
            if own_name in ours:
                raise InputError(f"pass {own_name} or {name}, not both")
            ours[own_name] = value
    return ours


def _rule(kind: type[Chunker], name: str, rules: Rules) -> Rule | None:
    for owner, group in rules.items():
        fits = owner in kind.model_fields if isinstance(owner, str) else issubclass(kind, owner)
        if fits and name in group:
            return group[name]
    return None


def rename(ours: str, convert: Callable[[Any], Any] = lambda value: value) -> Rule:
    """Return a rule for a parameter that has another name here; None leaves it unset."""

    def rule(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        value = parameters[name]
        return {} if value is None else {ours: convert(value)}

    return rule


def only(values: Sequence[Any], advice: str) -> Rule:
    """Return a rule for a parameter that we lack: only values without effect are accepted."""

    def rule(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        value = parameters[name]
        if value is None or value in values:
            return {}
        raise InputError(f"leave {name} out: {advice}; got {describe_value(value)}")

    return rule


def ignore(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out a parameter that has no effect in the framework either: a rule."""
    return {}
