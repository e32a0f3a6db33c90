"""The signatures and docstrings that an IDE, `help()` and Jupyter show for classes with fields."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from textwrap import fill
from types import UnionType
from typing import Annotated, Any, SupportsIndex, TypeVar, Union, get_args, get_origin

from typing_extensions import Self

from rag_splitters.parameters.descriptions import field_descriptions

K = TypeVar("K", bound=type[Any])


class Signature:
    """The signature that `help()` shows: positional parameters first, and plain types."""

    def __get__(self, instance: Any, kind: type[Any]) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        names = dict.fromkeys([*kind.positional, *kind.model_fields])
        return inspect.Signature([_as_parameter(kind, name) for name in names])


class Docstring(str):
    """A class docstring that ends with the description of each parameter.

    The descriptions are read from the source code when somebody asks for the docstring, because
    reading them at import would be slow. `pydoc` takes the string from the class's dictionary,
    without `__get__`, and calls `expandtabs` first.
    """

    kind: type[Any]

    def __new__(cls, text: str, kind: type[Any]) -> Self:
        docstring = super().__new__(cls, inspect.cleandoc(text))
        docstring.kind = kind
        return docstring

    def __get__(self, instance: Any, kind: type[Any]) -> str:
        lines = [str(self), "", "Parameters:"]
        for name, meaning in field_descriptions(self.kind).items():
            words = f"{name}: {' '.join(meaning.split())}"
            lines.append(fill(words, 96, initial_indent=" " * 4, subsequent_indent=" " * 8))
        return "\n".join(lines)

    def expandtabs(self, tabsize: SupportsIndex = 8) -> str:
        return self.__get__(None, self.kind).expandtabs(tabsize)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def with_field_descriptions(kind: K) -> K:
    """Return the class, with a docstring that ends with the description of each of its fields."""
    kind.__doc__ = Docstring(str(kind.__doc__), kind)
    return kind


def _as_parameter(kind: type[Any], name: str) -> inspect.Parameter:
    field, ways = kind.model_fields.get(name), inspect.Parameter
    how = ways.POSITIONAL_OR_KEYWORD if name in kind.positional else ways.KEYWORD_ONLY
    if field is None:  # a framework's own name for one of our parameters
        return inspect.Parameter(name, how, default=None)
    default = field.get_default(call_default_factory=True, validated_data={})
    default = inspect.Parameter.empty if field.is_required() else default
    return inspect.Parameter(name, how, default=default, annotation=_plain_type(field.annotation))


def _plain_type(annotation: Any) -> Any:
    """Remove the annotations for pydantic from a type."""
    if get_origin(annotation) is Annotated:
        return _plain_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return reduce(or_, map(_plain_type, get_args(annotation)))
    if (origin := get_origin(annotation)) in (Mapping, Sequence):
        return origin[tuple(map(_plain_type, get_args(annotation)))]
    return annotation
