"""Metadata on their way into the stores and back: what these can keep, and what they filter on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from rag_splitters.errors import InputTypeError
from rag_splitters.parent_child.records import (
    EDITION_KEY,
    EXCLUDED_KEY,
    PLACE_KEYS,
    POSITION_KEYS,
    REPRESENTS_KEY,
    SOURCE_KEY,
    Entry,
)
from rag_splitters.text.sources import copy_metadata
from rag_splitters.text.surrogates import without_surrogates

_NESTED_KEY = "_nested"
"""The key in a child's metadata that holds, as JSON, what its vector store cannot keep."""
_OWN_KEYS = (SOURCE_KEY, _NESTED_KEY, EDITION_KEY, REPRESENTS_KEY, EXCLUDED_KEY, *PLACE_KEYS)
# What one child gives a vector store to filter on. Chroma's collection is damaged for good by a
# few thousand values in one row, and each child of a document repeats them all.
MAX_VALUES = 200
MAX_CHARACTERS = 10_000
LIST = "[]"
_MAX_DEPTH = 100
_MAX_BITS = 13_000  # Python converts no more than 4,300 digits
_SCALARS = {str, float, bool, type(None)}


def flatten_metadata(metadata: Mapping[str, Any], parent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a child as a vector store accepts it, and no more than it can bear.

    What vector stores can filter on stays as it is, up to 200 values and 10,000 characters; the
    positions and what the parent does not have come first. The rest becomes JSON under one key,
    unless the parent has the same, from which `restore_child` takes it back.

    >>> flatten_metadata({"page": 3, "author": {"name": "Ann"}, "$price": 5}, {"$price": 5})
    {'page': 3, '_nested': '{"author": {"name": "Ann"}}'}
    """
    flat: dict[str, Any] = {}
    nested: dict[str, Any] = {}
    values = characters = 0
    inherited = {k for k, v in metadata.items() if k in parent and _equal(parent[k], v)}
    for key in sorted(metadata, key=lambda each: (each not in POSITION_KEYS, each in inherited)):
        value = metadata[key]
        if is_storable_key(key) and (stored := storable(value)) is not None:
            count, size = _measure(stored)
            if values + count <= MAX_VALUES and characters + len(key) + size <= MAX_CHARACTERS:
                flat[key] = stored
                values, characters = values + count, characters + len(key) + size
                continue
        if key not in inherited:
            nested[key] = value
    # A splitter's own object that JSON lacks becomes its text: the documents' values are checked.
    return flat | {_NESTED_KEY: json.dumps(nested, sort_keys=True, default=str)} if nested else flat


def check_values(
    value: object, where: str, *, is_json: bool = True, max_depth: int = _MAX_DEPTH
) -> None:
    """Raise a TypeError that names the place of what a store cannot keep.

    That is a key that is not a string, a value that is nested too deep, and a whole number of more
    than 4,000 digits, which Python does not write. With `is_json`, it is also anything that JSON
    lacks. Tuples pass, and come back as lists.

    >>> check_values({1: "small"}, "sizes")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rag_splitters.errors.InputTypeError: sizes has the key 1 (int), which JSON cannot hold: ...
    """
    pending: list[tuple[object, str, int]] = [(value, where, 0)]
    while pending:
        item, place, depth = pending.pop()
        parts: Iterable[tuple[Any, Any]] = ()
        if depth > max_depth:
            top = place[: place.index("]") + 1]
            raise InputTypeError(f"{top} is nested more than {max_depth} levels deep: flatten it")
        if isinstance(item, dict if is_json else Mapping):
            parts = item.items()
            for key in item:
                if not isinstance(key, str):
                    name = f"{key!r} ({type(key).__qualname__})"
                    raise InputTypeError(
                        f"{place} has the key {name}, which JSON cannot hold: keys must be strings"
                    )
        elif isinstance(item, list | tuple):
            parts = enumerate(item)
        elif isinstance(item, int) and item.bit_length() > _MAX_BITS:
            raise InputTypeError(
                f"{place} is a whole number of more than 4,000 digits, which JSON cannot hold: "
                "store it as a string"
            )
        elif is_json and not isinstance(item, int | str | float | None):
            kind = f"{type(item).__module__}.{type(item).__qualname__}".removeprefix("builtins.")
            raise InputTypeError(
                f"{place} is of type {kind}, which JSON cannot hold: use str, int, float, bool, "
                "None, lists and dicts with string keys"
            )
        pending += [
            (part, f"{place}[{key!r}]", depth + 1)
            for key, part in parts
            if type(part) not in _SCALARS
        ]


def restore_child(child: Entry, parent: Entry, inherited: frozenset[str] | None = None) -> Entry:
    """Return a child as it was before a vector store changed its metadata and text.

    It has its parent's metadata: all of it or, if given, only the `inherited` keys.
    """
    own = copy_metadata(dict(sorted(child.metadata.items())))  # Chroma keeps no order
    nested: dict[str, Any] = {}
    if own.pop(SOURCE_KEY, None) is not None:  # langchain_classic's children have none of ours
        nested = json.loads(own.pop(_NESTED_KEY, "{}"))
        for key in (REPRESENTS_KEY, *PLACE_KEYS):
            own.pop(key, None)
    parents = copy_metadata(parent.without_positions().metadata)
    if inherited is not None:
        parents = {key: value for key, value in parents.items() if key in inherited}
    for key, value in parents.items():
        if key in own and own[key] == storable(value):
            own[key] = value  # the store has it without lone surrogates
    text = child.text
    if child.span is not None and parent.span is not None:
        start, end = (place - parent.span[0] for place in child.span)
        exact = parent.text[start:end]
        text = exact if without_surrogates(exact) == text else text
    return Entry(text, parents | own | nested, child.id)


def value_kind(value: object) -> str | None:
    """Return the kind of a value that Chroma accepts; None of one that it does not.

    It accepts strings, bounded numbers, and lists of one kind of them, whose kind ends with "[]".
    Those of a subclass count, too, such as members of an enumeration and NumPy's float64.

    >>> import numpy as np
    >>> value_kind(np.float64(2)), value_kind([True]), value_kind(np.arange(2))
    ('float', 'bool[]', None)
    """
    if isinstance(value, str):
        return "str"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -(2**63) <= value < 2**63 else None
    if isinstance(value, float):
        return "float" if math.isfinite(value) else None
    if not isinstance(value, list):
        return None
    kinds = {value_kind(item) for item in value}
    of_all = kinds.pop() if len(kinds) == 1 else None
    return None if of_all is None or of_all.endswith(LIST) else of_all + LIST


@lru_cache(maxsize=4096)
def is_storable_key(key: str) -> bool:
    """Whether Chroma accepts the key, and it is none of ours."""
    is_plain = key not in _OWN_KEYS and not key.startswith(("$", "#", "chroma:"))
    return bool(key) and is_plain and key == without_surrogates(key)


def storable(value: Any) -> Any:
    """Return a value as Chroma accepts it, also in a list; None of one that it does not.

    A tuple becomes a list, as it does in JSON.
    """
    if isinstance(value, tuple):
        return storable(list(value))
    if isinstance(value, str):
        return without_surrogates(str.__str__(value))
    if value_kind(value) is None:
        return None
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, float):
        return float(value)
    return value if isinstance(value, bool) else int(value)


def _measure(value: Any) -> tuple[int, int]:
    """Return how many values a value is, and how many characters."""
    if isinstance(value, str):
        return 1, len(value)
    if not isinstance(value, list):
        return 1, 0
    return len(value), sum([len(item) for item in value if isinstance(item, str)])


def _equal(one: object, other: object) -> bool:
    if one is other:
        return True
    try:
        return bool(one == other)
    except (TypeError, ValueError):  # arrays compare item by item
        return repr(one) == repr(other)
