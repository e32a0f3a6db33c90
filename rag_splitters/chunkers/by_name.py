"""Chunkers by name: from a strategy's name and plain parameters to a chunker, and back.

For callers that get their settings as text or JSON, such as the command line and the playground.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from inspect import getdoc
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from rag_splitters.chunkers import CATALOGUE
from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.sized import chunkers_in
from rag_splitters.errors import InputError
from rag_splitters.models.named import load_embeddings, load_function, load_llm
from rag_splitters.parameters.descriptions import field_descriptions
from rag_splitters.parameters.messages import did_you_mean, unknown_parameter

MODEL_PARAMETERS = {
    "embeddings": "an embedding model",
    "llm": "a chat model",
    "ner": "an entity recogniser",
}
"""The parameters that hold a model, and which kind of model."""

_LOADERS = {"embeddings": load_embeddings, "llm": load_llm}
_FUNCTIONS = ("length_function", "segmenter", "ner")


def chunker_class(name: str, others: Iterable[str] = ()) -> type[Chunker]:
    """Return the chunker class of a strategy; case and hyphens in its name do not matter.

    Parameters:
        others: what the caller accepts besides the strategies, for the message of the error.

    Raises: ValueError if there is no such strategy; the message suggests the most similar name.

    >>> chunker_class("page").__name__
    'PageChunker'
    >>> chunker_class("content-aware") is chunker_class("ContentAware")
    True
    """
    letters = _letters(name)
    for each, kind in CATALOGUE.items():
        if letters in (_letters(each), f"{_letters(each)}chunker"):
            return kind
    raise InputError(f"unknown strategy {name!r}: {did_you_mean(name, [*CATALOGUE, *others])}")


def _letters(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def build_chunker(name: str, parameters: Mapping[str, Any]) -> Chunker:
    """Build a strategy from its name and parameters.

    A model may be given by its name ("openai:gpt-4o-mini"), a function as "function:module:name",
    and a chunker inside another one as the strategy's name or as
    `{"strategy": name, parameter: value}`. Functions are imported, so use it only for values that
    the user typed or that you have checked.

    Raises: ValueError with a one-line message.

    >>> stages = ["page", {"strategy": "sentence", "chunk_size": 50}]
    >>> build_chunker("hybrid", {"stages": stages}).stages[1].chunk_size
    50
    >>> build_chunker("recursive", {"chunk_size": 0})
    Traceback (most recent call last):
    rag_splitters.errors.InputError: chunk_size must be a whole number of at least 1, got 0
    """
    kind = chunker_class(name)
    values = {
        key: _value(parameter_field(name, key), key, value) for key, value in parameters.items()
    }
    for key in required_models(kind):
        if key not in values:
            raise InputError(f"{name} needs {MODEL_PARAMETERS[key]} (parameter {key!r})")
    return kind(**values)


def parameter_field(name: str, parameter: str) -> FieldInfo:
    """Return a strategy's field for this parameter.

    Raises: ValueError if there is no such parameter; the message suggests the most similar name.
    """
    fields = chunker_class(name).model_fields
    if parameter in fields:
        return fields[parameter]
    raise unknown_parameter(name, parameter, fields)


def describe_strategy(kind: type[Chunker]) -> str:
    """Return the docstring of a strategy without its examples.

    >>> describe_strategy(chunker_class("page")).partition(".")[0]
    'Makes each page a chunk'
    """
    return (getdoc(kind) or "").partition("\n>>> ")[0].rstrip()


def parameter_docs(kind: type[Chunker]) -> dict[str, tuple[Any, str]]:
    """Return the default and the description, on one line, of each parameter by its name."""
    return {
        name: (kind.model_fields[name].get_default(), " ".join(description.split()))
        for name, description in field_descriptions(kind).items()
    }


def default_as_python(value: Any) -> str:
    """Return a parameter's default as Python, with chunkers by the names of their strategies.

    A parameter without a default is "required".

    >>> default_as_python(CATALOGUE["hybrid"]().stages)
    "['paragraph', 'sentence']"
    """
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, Chunker):
        return repr(value.strategy)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(default_as_python, value))}]"
    return repr(value)


def required_models(kind: type[Chunker]) -> list[str]:
    """Return the parameters of a strategy that require a model.

    >>> required_models(chunker_class("semantic"))
    ['embeddings']
    """
    fields = kind.model_fields
    return [key for key in MODEL_PARAMETERS if key in fields and fields[key].is_required()]


def models_in(chunker: Chunker) -> set[str]:
    """Return the parameters that hold a model, in a chunker or inside it.

    >>> models_in(build_chunker("hybrid", {"stages": ["page", {"strategy": "titled"}]}))
    set()
    """
    chunkers = list(chunkers_in(chunker))
    return {
        name
        for name in MODEL_PARAMETERS
        if any(getattr(each, name, None) is not None for each in chunkers)
    }


def changed_parameters(chunker: Chunker, kind: type[Chunker] | None = None) -> dict[str, Any]:
    """Return the parameters that differ from the defaults of a front end, or of its own class.

    >>> changed_parameters(build_chunker("recursive", {"chunk_size": 1000, "chunk_overlap": 20}))
    {'chunk_overlap': 20}
    """
    values, kind = chunker.__dict__, kind or type(chunker)
    fields = {name: field for name, field in kind.model_fields.items() if name in values}
    defaults = {name: field.get_default() for name, field in fields.items()}
    required = {name for name, field in fields.items() if field.is_required()}
    changed = {n: values[n] for n in fields if n in required or values[n] != defaults[n]}
    defaults |= kind.implied_parameters(changed)
    return {n: values[n] for n in fields if n in required or values[n] != defaults[n]}


def _holds_chunkers(field: FieldInfo, value: Any) -> bool:
    """Whether a value is a chunker or a list of them, and not a word such as "keep"."""
    return "Chunker" in str(field.annotation) and value not in split_union(field.annotation)[0]


def split_union(annotation: Any) -> tuple[list[Any], set[Any]]:
    """Return the literal values that a type allows, and the other types in its union but None.

    >>> split_union(Literal["auto"] | int | None)
    (['auto'], {<class 'int'>})
    """
    if get_origin(annotation) is Annotated:
        return split_union(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return list(get_args(annotation)), set()
    if get_origin(annotation) not in (Union, UnionType):
        return [], {annotation} - {NoneType}
    literals: list[Any] = []
    types: set[Any] = set()
    for member in get_args(annotation):
        member_literals, member_types = split_union(member)
        literals += member_literals
        types |= member_types
    return literals, types


def _value(field: FieldInfo, name: str, value: Any) -> Any:
    """Replace names of models and chunkers in a value by the objects."""
    if name in _LOADERS and isinstance(value, str):
        return _LOADERS[name](value)
    if name in _FUNCTIONS and isinstance(value, str) and value.startswith("function:"):
        return load_function(value, name, lambda function: function)
    if name == "cache" and isinstance(value, str):
        return Path(value)
    if name == "length_function" and isinstance(value, str) and value.endswith(".json"):
        return _read_tokenizer(Path(value.removeprefix("tokens:")))
    if not _holds_chunkers(field, value):
        return value
    if isinstance(value, list):
        return [_build_nested(part) for part in value]
    if name == "rules" and isinstance(value, Mapping):
        return {
            key: each if isinstance(each, str) else _build_nested(each)
            for key, each in value.items()
        }
    return _build_nested(value)


def _read_tokenizer(path: Path) -> Any:
    """Read a tokenizer from its file, which the user typed: a configuration may not name it."""
    from tokenizers import Tokenizer

    if not path.is_file():
        raise InputError(f"length_function: there is no file {str(path)!r}")
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises no other class
        raise InputError(f"length_function: {path} holds no tokenizer: {error}") from error


def _build_nested(value: Any) -> Any:
    """Build a chunker from `"page"` or `{"strategy": "page", "pages_per_chunk": 2}`."""
    if isinstance(value, str):
        return build_chunker(value, {})
    if isinstance(value, Mapping):
        if not isinstance(value.get("strategy"), str):
            raise InputError(f'{json.dumps(value)} does not name its "strategy"')
        parameters = {key: each for key, each in value.items() if key != "strategy"}
        return build_chunker(value["strategy"], parameters)
    return value
