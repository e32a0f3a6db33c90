"""Identity, metadata and position that a chunk inherits from its source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel

from rag_splitters.ids import ChunkIds
from rag_splitters.parameters.checks import stored_number
from rag_splitters.text.origin import PLACES

M = TypeVar("M", bound=BaseModel)

_new = object.__new__
_set_fields, _set_names, _set_extra, _set_private = (
    BaseModel.__dict__[name].__set__
    for name in (
        "__dict__",
        "__pydantic_fields_set__",
        "__pydantic_extra__",
        "__pydantic_private__",
    )
)
_IMMUTABLE = frozenset((str, int, float, bool, type(None), bytes))


class Identities:
    """Makes different chunk ids for the documents of one call, even for equal documents.

    >>> identities = Identities()
    >>> first, again = (identities.ids_of("text", {}, "a") for _ in range(2))
    >>> first.of(0, 4) == again.of(0, 4)
    False
    """

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}

    def ids_of(self, text: str, metadata: Mapping[str, Any], document_id: str | None) -> ChunkIds:
        """Return the maker of ids for the next document's chunks."""
        ids = ChunkIds(text, metadata, document_id)
        source = ids.source()
        count = self._counts[source] = self._counts.get(source, 0) + 1
        if count > 1:
            ids.repeat(count)
        return ids


def copy_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Copy metadata so that the copy shares nothing that can change."""
    return copier(metadata)()


def copier(metadata: Mapping[str, Any]) -> Callable[[], dict[str, Any]]:
    """Return a function that copies a document's metadata, so that chunks share nothing.

    >>> make = copier({"tags": ["a"]})
    >>> make()["tags"] is make()["tags"]
    False
    """
    shared = dict(metadata)
    try:
        return _copier_of(shared)
    except RecursionError:  # a value that contains itself
        return partial(deepcopy, shared)


def _copier_of(value: Any) -> Callable[[], Any]:
    kind = type(value)
    if kind is not dict and kind is not list:
        return partial(deepcopy, value)
    items = value.items() if kind is dict else enumerate(value)
    nested = [(key, _copier_of(each)) for key, each in items if type(each) not in _IMMUTABLE]
    if not nested:
        return value.copy  # type: ignore[no-any-return]

    def copy() -> Any:
        new = value.copy()
        for key, copy_nested in nested:
            new[key] = copy_nested()
        return new

    return copy


def users_keys(metadata: Mapping[str, Any], ours: Iterable[str]) -> frozenset[str]:
    """Return the keys of a source's metadata that its chunks keep: ours give way to them.

    Not among them are `start_index`, which LangChain replaces, too, and the places that our readers
    write, such as `page_start`: those of a chunk are more exact. `ours` are the keys that we have
    added, if the source is itself one of our chunks.

    >>> sorted(users_keys({"source": "a", "chunk_index": 7, "page_start": 3}, ()))
    ['chunk_index', 'source']
    """
    return frozenset(metadata).difference(("start_index", *PLACES), ours)


def offset_in_source(start: Any, end: Any, text: str) -> tuple[int, int | None]:
    """Return the offset in the original source of a chunk that will be cut again.

    Returns: (offset, None) if a position in the text, plus `offset`, is a position in the source;
    (start, end) if the chunk was rewritten, so that only its whole evidence has a position;
    (0, None) if the text is not a chunk.

    >>> offset_in_source(10, 14, "four")
    (10, None)
    """
    start, end = stored_number(start), stored_number(end)
    if start is None or end is None or not 0 <= start <= end:
        return 0, None
    return (start, None) if end - start == len(text) else (start, end)


def copies_of(template: M, names: Iterable[str]) -> Callable[[Mapping[str, Any]], M]:
    """Return a function that copies a pydantic object with other values for some fields.

    It is five times as fast as `template.model_copy(update=values)`, which matters because the
    front ends make an object for each chunk. Other fields, such as those that a later version of
    the framework adds, have the template's values. Values are not checked.

    >>> from pydantic import BaseModel
    >>> class Note(BaseModel):
    ...     text: str = ""
    ...     language: str = "en"
    >>> copies_of(Note(), ["text"])({"text": "Tea"})
    Note(text='Tea', language='en')
    """
    cls, fields = type(template), template.__dict__
    names_set = {*template.__pydantic_fields_set__, *names}
    extra, private = template.__pydantic_extra__, template.__pydantic_private__

    def copy(values: Mapping[str, Any]) -> M:
        new: M = _new(cls)
        _set_fields(new, {**fields, **values})
        _set_names(new, names_set.copy())
        _set_extra(new, extra)
        _set_private(new, private)
        return new

    return copy
