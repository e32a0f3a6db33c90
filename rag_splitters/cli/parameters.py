"""From what stands on a command line to a chunker, with messages for what does not fit."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from rag_splitters.chunker import Chunker
from rag_splitters.chunkers import CATALOGUE
from rag_splitters.cli.models import load_embeddings, load_llm

__all__ = ["build", "parameter_docs", "parse", "shown", "strategy"]

_MODELS = {"embeddings": load_embeddings, "llm": load_llm}


def strategy(name: str) -> type[Chunker]:
    """The strategy of that name, or a ValueError that suggests the nearest."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    near = get_close_matches(name.lower().replace("-", "_"), CATALOGUE, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(CATALOGUE)}"
    raise ValueError(f"unknown strategy {name!r}: {hint}")


def build(name: str, parameters: Mapping[str, Any]) -> Chunker:
    """The strategy with these parameters, or a ValueError in one line.

    >>> build("recursive", {"chunk_size": 0})
    Traceback (most recent call last):
    ValueError: chunk_size must be a whole number of at least 1, got 0
    """
    kind = strategy(name)
    for parameter in parameters:
        _known(name, kind, parameter)
    values = {
        key: _MODELS[key](value)
        if key in _MODELS and isinstance(value, str)
        else _nested(kind.model_fields[key], value)
        for key, value in parameters.items()
    }
    try:
        return kind(**values)
    except ValidationError as error:
        raise ValueError(_told(error)) from None
    except (AttributeError, ImportError, TypeError) as error:  # "function:<module>:<name>"
        raise ValueError(f"{name} cannot be set up: {error}") from error


def parse(name: str, pairs: Iterable[str]) -> dict[str, Any]:
    """The parameters in `name=value` pairs; those that hold lists may be given several times.

    >>> parse("keyword", ["keywords=Article", "keywords=Annex", "chunk_size=200"])
    {'keywords': ['Article', 'Annex'], 'chunk_size': 200}
    """
    kind = strategy(name)
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise ValueError(f"a parameter is given as name=value, got {pair!r}")
        field = _known(name, kind, key)
        value = _value(field, text)
        if key in values and not _is_list(field):
            raise ValueError(f"{key} is given twice")
        values[key] = [*values[key], *value] if key in values else value
    return values


def parameter_docs(kind: type[Chunker]) -> dict[str, tuple[Any, str]]:
    """Default and description of each parameter; descriptions are the fields' docstrings."""
    written: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, Chunker):
            written.update(_attribute_docs(base))
    defaults: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        defaults[name] = field.get_default(call_default_factory=True, validated_data=defaults)
    return {name: (default, written.get(name, "")) for name, default in defaults.items()}


def shown(value: Any) -> str:
    """A default as it would be typed: strings as JSON, chunkers by their names."""
    if isinstance(value, Chunker):
        names = {kind: name for name, kind in CATALOGUE.items()}
        return json.dumps(names.get(type(value), type(value).__name__))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    return json.dumps(value, default=repr)


def _known(name: str, kind: type[Chunker], parameter: str) -> FieldInfo:
    """The field of that name, or a ValueError that lists the fields."""
    fields = kind.model_fields
    if parameter in fields:
        return fields[parameter]
    near = get_close_matches(parameter, fields, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"{name} has no parameter {parameter!r}: {hint}it has {', '.join(fields)}")


def _value(field: FieldInfo, text: str) -> Any:
    """The text as JSON where that is what the field takes, else the text."""
    kinds = _members(field.annotation)
    if kinds <= {str, NoneType}:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if not _is_list(field):
        return value
    if isinstance(value, list):
        return value
    texts = any(get_args(kind)[:1] == (str,) for kind in kinds)
    return [text if texts else value]


def _members(annotation: Any) -> set[Any]:
    """What a union is made of, with `str` for literal strings."""
    if get_origin(annotation) in (Union, UnionType):
        return set().union(*map(_members, get_args(annotation)))
    if get_origin(annotation) is Literal:
        return {type(value) for value in get_args(annotation)}
    return {annotation}


def _is_list(field: FieldInfo) -> bool:
    return any(get_origin(kind) in (list, tuple, Sequence) for kind in _members(field.annotation))


def _nested(field: FieldInfo, value: Any) -> Any:
    """The value with strategies in the place of their names, where a field holds chunkers."""
    if "Chunker" not in str(field.annotation) or value in _words(field.annotation):
        return value
    return [_stage(part) for part in value] if isinstance(value, list) else _stage(value)


def _words(annotation: Any) -> list[Any]:
    """The literal values that a field takes, wherever they stand in its type."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [word for part in get_args(annotation) for word in _words(part)]


def _stage(value: Any) -> Any:
    """`"page"` and `{"strategy": "page", "pages_per_chunk": 2}` as chunkers."""
    if isinstance(value, str):
        return build(value, {})
    if isinstance(value, Mapping):
        if not isinstance(value.get("strategy"), str):
            raise ValueError(f'{json.dumps(value)} does not name its "strategy"')
        return build(value["strategy"], {k: v for k, v in value.items() if k != "strategy"})
    return value


def _told(error: ValidationError) -> str:
    """What is wrong with each parameter, in one line, as a person would say it."""
    told: dict[str, str] = {}
    for detail in error.errors(include_url=False, include_context=False):
        name = str(detail["loc"][0]) if detail["loc"] else ""
        message = " ".join(detail["msg"].removeprefix("Value error, ").split())
        if detail["type"] == "missing":
            message = f"{name} is needed, and has no default"
            message += f": give --{name}" if name in _MODELS else ""
        elif detail["type"] != "value_error":
            message = f"{name}: {message}, got {detail['input']!r}"
        elif name and name not in message:
            message = f"{name}: {message}"
        told.setdefault(name, message)
    return "; ".join(told.values())


def _attribute_docs(kind: type[Any]) -> dict[str, str]:
    """The docstrings below the fields of one class."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError):  # no source at hand
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
