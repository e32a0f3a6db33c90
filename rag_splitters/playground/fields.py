"""The form of a strategy, made from its parameters, and what a page may set them to.

A page, and a link with settings in it, is trusted less than a program. So the form is the list of
what is taken: a parameter that can name code, a file or a model has the choices that stand here, or
is not offered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from rag_splitters.chunker import Chunker
from rag_splitters.chunkers import CATALOGUE
from rag_splitters.cli.parameters import build, parameter_docs, strategy
from rag_splitters.playground.models import Models

__all__ = ["MODELS", "chunker_of", "differing", "form", "name_of", "needed"]

MODELS = ("embeddings", "llm", "ner")
"""Parameters that hold a model."""

_CHOICES = {
    "length_function": ("characters", "words", "tokens", "tokens:o200k_base"),
    "segmenter": ("rules", "punkt"),
}
_DEEPEST = 4  # chunkers within chunkers


@cache
def form(kind: type[Chunker]) -> Sequence[Mapping[str, Any]]:
    """What a form shows of each parameter: name, control, default, meaning, and what it can be.

    >>> from rag_splitters import PageChunker
    >>> [(each["name"], each["control"]) for each in form(PageChunker)][:2]
    [('chunk_size', 'number'), ('chunk_overlap', 'share')]
    """
    controls = []
    for name, (default, meaning) in parameter_docs(kind).items():
        if control := _control(name, kind.model_fields[name]):
            controls.append({"name": name, "meaning": meaning, "default": _json(default)} | control)
    return controls


def needed(kind: type[Chunker]) -> list[str]:
    """The models without which the strategy cannot be made.

    >>> from rag_splitters import SemanticChunker
    >>> needed(SemanticChunker)
    ['embeddings']
    """
    return [name for name in MODELS if name in kind.model_fields and _is_needed(kind, name)]


def chunker_of(name: str, parameters: Any, models: Models, depth: int = 0) -> Chunker:
    """The strategy with these parameters, as JSON holds them, and the models that it needs.

    Raises: ValueError in one line for a strategy or parameter that is none, or that a page may not
    set, for a value that is not taken, and for a model that is needed and was not given.

    >>> chunker_of("recursive", {"chunk_size": 20}, Models.of(None, None)).chunk_size
    20
    >>> chunker_of("sentence", {"segmenter": "spacy:./mine"}, Models.of(None, None))
    Traceback (most recent call last):
    ValueError: segmenter can be rules or punkt on this page, others in Python; got 'spacy:./mine'
    """
    kind = strategy(name)
    if not isinstance(parameters, Mapping):
        raise ValueError(f"parameters must be an object, got {type(parameters).__name__}")
    if depth > _DEEPEST:
        raise ValueError("chunkers are nested too deep")
    controls = {control["name"]: control for control in form(kind)}
    values: dict[str, Any] = {}
    for key in needed(kind):
        if missing := models.missing(key):
            raise ValueError(f"{name} needs {missing}")
        values[key] = getattr(models, key)
    for key, value in parameters.items():
        if key in kind.model_fields and key not in controls:
            raise ValueError(f"{key} cannot be set on this page, only in Python")
        values[key] = _value(value, controls.get(key, {}), models, depth)
    return build(name, values)


def differing(chunker: Chunker) -> dict[str, Any]:
    """The parameters that are not at their defaults.

    >>> from rag_splitters import RecursiveChunker
    >>> differing(RecursiveChunker(chunk_size=1000, chunk_overlap=20))
    {'chunk_overlap': 20}
    """
    known = chunker.__dict__
    return {
        name: known[name]
        for name, field in type(chunker).model_fields.items()
        if field.is_required()
        or known[name] != field.get_default(call_default_factory=True, validated_data=known)
    }


def name_of(chunker: Chunker) -> str:
    """The strategy's name in the catalogue."""
    return next(name for name, kind in CATALOGUE.items() if type(chunker) is kind)


def _control(name: str, field: FieldInfo) -> dict[str, Any] | None:
    """The control for a parameter; None for one that a page cannot set."""
    if name in _CHOICES:
        return {"control": "choice", "choices": _CHOICES[name]}
    if name == "llm" and not field.is_required():
        return {"control": "model"}
    words, kinds = _members(field.annotation)
    control: dict[str, Any] | None = None
    if any(isinstance(kind, type) and issubclass(kind, Chunker) for kind in kinds):
        control = {"control": "chunker", "optional": _takes_none(field.annotation)}
    elif kinds in ({int}, {float}):
        control = {"control": "number", "step": 1 if kinds == {int} else "any", **_bounds(field)}
    elif kinds == {int, float}:  # units, or a share of the size
        control = {"control": "share"}
    elif kinds == {bool}:
        control = {"control": "flag"}
    elif kinds == {str}:
        control = {"control": "text"}
    elif not kinds and words:
        return {"control": "choice", "choices": words}
    elif len(kinds) == 1 and (found := _listed(kinds.pop())):
        control = {"control": found}
    return control and {**control, "words": words}


def _listed(kind: Any) -> str | None:
    """The control for a list of one kind."""
    _, members = _members(get_args(kind)[0]) if get_args(kind) else ([], set())
    if members in ({str}, {int}):
        return "texts" if members == {str} else "numbers"
    is_chunkers = any(isinstance(each, type) and issubclass(each, Chunker) for each in members)
    return "chunkers" if is_chunkers else None


def _members(annotation: Any) -> tuple[list[str], set[Any]]:
    """The words that a type takes, and the other types that a union is made of, but for None."""
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return list(get_args(annotation)), set()
    if get_origin(annotation) not in (Union, UnionType):
        return [], {annotation} - {NoneType}
    words: list[str] = []
    kinds: set[Any] = set()
    for part in get_args(annotation):
        more, others = _members(part)
        words += more
        kinds |= others
    return words, kinds


def _takes_none(annotation: Any) -> bool:
    return annotation is NoneType or any(map(_takes_none, get_args(annotation)))


def _bounds(field: FieldInfo) -> dict[str, Any]:
    """Least and greatest value, where the field declares them."""
    least = [each.ge for each in field.metadata if hasattr(each, "ge")]
    most = [each.le for each in field.metadata if hasattr(each, "le")]
    return {**({"least": least[0]} if least else {}), **({"most": most[0]} if most else {})}


def _is_needed(kind: type[Chunker], name: str) -> bool:
    return kind.model_fields[name].is_required()


def _json(value: Any) -> Any:
    """A default as JSON holds it; chunkers by their names and what differs."""
    if isinstance(value, Chunker):
        inner = {key: _json(each) for key, each in differing(value).items()}
        return {"strategy": name_of(value), **inner}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    return value if isinstance(value, str | int | float | bool) else None


def _value(value: Any, control: Mapping[str, Any], models: Models, depth: int) -> Any:
    """A parameter's value, if it is one that a page may set."""
    kind, words = control.get("control"), control.get("words", ())
    if "choices" in control and value not in control["choices"]:
        raise ValueError(
            f"{control['name']} can be {_or(control['choices'])} on this page, others in Python; "
            f"got {value!r}"
        )
    if kind == "model":
        if value and models.missing("llm"):
            raise ValueError(f"{control['name']} needs {models.missing('llm')}")
        return models.llm if value else None
    if kind == "chunkers" and isinstance(value, list):
        return [_inner(each, models, depth) for each in value]
    if value is None and control.get("optional"):
        return None
    if kind == "chunker" and not (isinstance(value, str) and value in words):
        return _inner(value, models, depth)
    return value


def _inner(value: Any, models: Models, depth: int) -> Chunker:
    """A chunker within another, as {"strategy": name, parameter: value}."""
    if not isinstance(value, Mapping) or not isinstance(value.get("strategy"), str):
        raise ValueError('a chunker within another is {"strategy": name, ...}')
    parameters = {key: each for key, each in value.items() if key != "strategy"}
    return chunker_of(value["strategy"], parameters, models, depth + 1)


def _or(choices: Sequence[str]) -> str:
    return " or ".join([", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices)
