"""Types of fields that strategies share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, ValidationInfo

from rag_splitters.errors import InputError
from rag_splitters.parameters.checks import (
    LengthFunction,
    check_length_function,
    count_or_share,
    whole_number,
)
from rag_splitters.parameters.functions import describe, restore


def _restore_field(value: Any, info: ValidationInfo) -> Any:
    return restore(value, info.field_name)


def _restore_function(value: Any, info: ValidationInfo) -> Any:
    function = restore(value, info.field_name)
    if isinstance(function, str):
        raise InputError(
            f'{info.field_name} must be a function, or "function:<name>" for a registered one, '
            f"got {value!r}"
        )
    return function


Size = Annotated[int, BeforeValidator(lambda value: whole_number(value, "chunk_size", 1))]
"""A field for a chunk size."""

Overlap = Annotated[
    int | float, BeforeValidator(partial(count_or_share, name="chunk_overlap", includes_one=False))
]
"""A field for an overlap: a count of units, or a share of the chunk size."""

Least = Annotated[
    int | float, BeforeValidator(partial(count_or_share, name="min_chunk_size", includes_one=True))
]
"""A field for a minimum chunk size: a count of units, or a share of the chunk size."""

Unit = Annotated[
    LengthFunction,
    BeforeValidator(check_length_function),
    BeforeValidator(_restore_field),  # the last one runs first
    PlainSerializer(describe),
]
"""A field for a length function."""

Function = Annotated[
    Callable[..., Any],
    BeforeValidator(_restore_function),
    PlainSerializer(describe, return_type=str),
]
"""A field for a function; a configuration holds its name."""

FunctionOrName = Annotated[
    str | Callable[..., Any],
    BeforeValidator(_restore_field),
    PlainSerializer(describe, return_type=str),
]
"""A field for a function, or for the name of one that the strategy knows."""

Texts = Annotated[Sequence[str], AfterValidator(tuple)]
"""A field for strings; a list becomes a tuple."""

SomeTexts = Annotated[Sequence[str], Field(min_length=1), AfterValidator(tuple)]
"""A field for at least one string; a list becomes a tuple."""

LanguageName = Annotated[str, BeforeValidator(lambda value: getattr(value, "value", value))]
"""A field for the name of a language; a member of LangChain's `Language` becomes its value."""
