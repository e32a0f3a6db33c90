"""The form of a strategy, made from its parameters, and the chunker that its values make.

A page, or a link with settings in it, is trusted less than a program. So the form also lists what
may be set: a parameter that can name code, a file or a model has fixed choices here, or no control.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from rag_splitters.chunkers.by_name import (
    build_chunker,
    chunker_class,
    parameter_docs,
    required_models,
    split_union,
)
from rag_splitters.contract.chunker import Chunker
from rag_splitters.errors import InputError
from rag_splitters.playground.model_set import ModelSet

_CHOICES = {
    "length_function": ("characters", "words", "tokens", "tokens:o200k_base"),
    "segmenter": ("rules", "punkt"),
}


@cache
def form(kind: type[Chunker]) -> Sequence[Mapping[str, Any]]:
    """Return the controls of a strategy's form: name, control, default, meaning, allowed values.

    >>> from rag_splitters import PageChunker
    >>> [(each["name"], each["control"]) for each in form(PageChunker)][:2]
    [('chunk_size', 'number'), ('chunk_overlap', 'share')]
    """
    controls = []
    for name, (default, meaning) in parameter_docs(kind).items():
        if control := _control(name, kind.model_fields[name]):
            controls.append(
                {"name": name, "meaning": meaning, "default": _plain(default)} | control
            )
    return controls


def chunker_from_form(name: str, parameters: Mapping[str, Any], models: ModelSet) -> Chunker:
    """Return the strategy with the parameters that a page sent, and the models that it requires.

    A chunker inside another one is the name of a strategy, which has its defaults.

    Raises: ValueError with a message of one line, if there is no such strategy or parameter, if a
    page must not set it, if a value is not allowed, or if a required model is missing.

    >>> chunker_from_form("recursive", {"chunk_size": 20}, ModelSet.load()).chunk_size
    20
    >>> chunker_from_form("sentence", {"segmenter": "x"}, ModelSet.load())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rag_splitters.errors.InputError: segmenter can be rules or punkt on this page, ...
    """
    kind = chunker_class(name)
    controls = {control["name"]: control for control in form(kind)}
    values: dict[str, Any] = {}
    for key in required_models(kind):
        if hint := models.missing(key):
            raise InputError(f"{name} needs {hint}")
        values[key] = getattr(models, key)
    for key, value in parameters.items():
        if key in kind.model_fields and key not in controls:
            raise InputError(f"{key} can be set only in Python, not on this page")
        control = controls.get(key, {"default": ...})
        if value != control["default"]:
            values[key] = _value(value, control, models)
    return build_chunker(name, values)


def _plain(default: Any) -> Any:
    """Return a default as JSON, with chunkers by the names of their strategies."""
    if isinstance(default, Chunker):
        return default.strategy
    if isinstance(default, list | tuple):
        return list(map(_plain, default))
    return default if isinstance(default, str | int | float | bool) else None


def _control(name: str, field: FieldInfo) -> dict[str, Any] | None:
    """Return the control for a parameter; None if a page must not set it."""
    if name in _CHOICES:
        return {"control": "choice", "choices": _CHOICES[name]}
    words, types = split_union(field.annotation)
    control: dict[str, Any] | None = None
    if _are_chunkers(types):
        control = {"control": "chunker", "optional": _allows_none(field.annotation)}
    elif types in ({int}, {float}):
        control = {"control": "number", "step": 1 if types == {int} else "any", **_bounds(field)}
    elif types == {int, float}:  # units, or a share of the size
        control = {"control": "share"}
    elif types == {bool}:
        control = {"control": "flag"}
    elif types == {str}:
        control = {"control": "text"}
    elif not types and words:
        return {"control": "choice", "choices": [each for each in words if isinstance(each, str)]}
    elif len(types) == 1 and (list_control := _list_control(types.pop())):
        control = {"control": list_control}
    return control and {**control, "words": words}


def _list_control(kind: Any) -> str | None:
    """Return the control for a list of one type."""
    if get_origin(kind) is Mapping:
        return None
    _, members = split_union(get_args(kind)[0]) if get_args(kind) else ([], set())
    if members in ({str}, {int}):
        return "texts" if members == {str} else "numbers"
    return "chunkers" if _are_chunkers(members) else None


def _are_chunkers(types: set[Any]) -> bool:
    return any(isinstance(each, type) and issubclass(each, Chunker) for each in types)


def _allows_none(annotation: Any) -> bool:
    return annotation is NoneType or any(map(_allows_none, get_args(annotation)))


def _bounds(field: FieldInfo) -> dict[str, Any]:
    """Return the smallest and the largest value, if the field declares them."""
    least = [each.ge for each in field.metadata if hasattr(each, "ge")]
    most = [each.le for each in field.metadata if hasattr(each, "le")]
    return {**({"least": least[0]} if least else {}), **({"most": most[0]} if most else {})}


def _value(value: Any, control: Mapping[str, Any], models: ModelSet) -> Any:
    """Return a parameter's value, if a page may set it.

    Raises: ValueError otherwise.
    """
    kind, words = control.get("control"), control.get("words", ())
    if "choices" in control and value not in (*control["choices"], control["default"]):
        raise InputError(
            f"{control['name']} can be {_or(control['choices'])} on this page, others in Python; "
            f"got {value!r}"
        )
    if kind == "chunkers" and isinstance(value, list):
        return [chunker_from_form(each, {}, models) for each in value]
    if kind == "chunker" and value is not None and value not in words:
        return chunker_from_form(value, {}, models)
    return value


def _or(choices: Sequence[str]) -> str:
    return " or ".join([", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices)
