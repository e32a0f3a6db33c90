"""Strategies by name, and fields that hold a chunker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, ValidationInfo

from rag_splitters.contract.chunker import Chunker
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.parameters.functions import add_to_registry, describe, look_up, register_function
from rag_splitters.parameters.messages import did_you_mean

_strategies: dict[str, type[Chunker]] = {}


def register(name: str, value: type[Chunker] | Callable[..., Any]) -> None:
    """Register a chunker class or a function of your own, so that configurations can name it.

    Loading a configuration never imports anything: it finds only the built-in strategies and what
    has been registered.

    Parameters:
        name: letters, digits, "_", "." and "-". A nested chunker is written as
            `{"strategy": name, ...}`, a function as "function:<name>".
        value: a subclass of `Chunker`, or a function.

    Raises TypeError for any other value, and ValueError if the name is already taken by another
    class or function, or if the class or function is already registered under another name.

    >>> from rag_splitters import Span, TitledChunker
    >>> class Halves(Chunker):
    ...     def spans(self, text):
    ...         middle = len(text) // 2
    ...         return [Span(0, middle), Span(middle, len(text))]
    >>> register("halves", Halves)
    >>> TitledChunker(chunker={"strategy": "halves"}).chunker
    Halves()
    """
    if not isinstance(value, type):
        register_function(name, value)
    elif issubclass(value, Chunker):
        add_to_registry(_strategies, name, value)
        value.strategy = name
    else:
        raise InputTypeError(
            f"register takes a subclass of Chunker, got the class {value.__qualname__}"
        )


def registered_strategy(name: str) -> type[Chunker]:
    """Return the built-in or registered strategy of this name.

    Raises ValueError if there is none.
    """
    kind = look_up(_strategies, name)
    if kind is None:
        raise InputError(
            f"unknown strategy {name!r}: {did_you_mean(name, _strategies)}; register your own "
            "classes first, with rag_splitters.register(name, class)"
        )
    return kind


def _dump_chunker(chunker: Chunker) -> dict[str, Any]:
    """Return the strategy's name and parameters, without those that only a front end has."""
    kind = type(chunker)
    core = _strategies.get(kind.strategy)
    is_registered = core is not None and issubclass(kind, core)
    fields = core.model_fields if core is not None and is_registered else kind.model_fields
    parameters = chunker.model_dump(include=set(fields))
    name = kind.strategy if is_registered else describe(kind)
    return {**{key: parameters[key] for key in fields if key in parameters}, "strategy": name}


def _load_chunker(value: Any, info: ValidationInfo) -> Any:
    """Build the chunker that `_dump_chunker` described; return any other object unchanged."""
    if not isinstance(value, Mapping):
        return value
    name = value.get("strategy")
    if not isinstance(name, str):
        raise InputError(
            f'{info.field_name or "chunker"} must be a chunker or {{"strategy": name, ...}}, '
            f"got {value!r}"
        )
    skipped = ("class_name", "strategy")
    parameters = {str(key): part for key, part in value.items() if key not in skipped}
    return registered_strategy(name)(**parameters)


Nested = Annotated[
    Chunker, BeforeValidator(_load_chunker), PlainSerializer(_dump_chunker, return_type=dict)
]
"""A field that holds another chunker, written with the name of its strategy."""

NestedMany = Annotated[Sequence[Nested], Field(min_length=1), AfterValidator(tuple)]
"""A field that holds at least one chunker; a list becomes a tuple."""
