"""What the stores keep of a document: its text, its parents and children, and a record of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from rag_splitters.text.ids import stable_uuid
from rag_splitters.text.sources import copy_metadata
from rag_splitters.text.surrogates import without_surrogates

SOURCE_KEY = "_source_id"
"""The key in a child's metadata that holds its document's identity."""
NESTED_KEY = "_nested"
"""The key in a child's metadata that holds, as JSON, what its vector store cannot keep."""
POSITION_KEYS = ("start_index", "end_index", "chunk_index")
RECORD_PREFIX = "source/"
"""The prefix of the docstore's keys for records; a folder's name in stores that keep files."""
STATE_PREFIX = "state/"
"""The prefix of the docstore's keys for what is neither a record nor a parent."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A text with its metadata and its id: a source document, a parent or a child."""

    text: str
    metadata: dict[str, Any]
    id: str | None = None
    context: str = ""
    """The headings above a child; put before its text where that is embedded or indexed."""

    @property
    def searched_text(self) -> str:
        """The text that is embedded and indexed."""
        return f"{self.context}\n\n{self.text}" if self.context else self.text

    @property
    def span(self) -> tuple[int, int] | None:
        """The positions that a splitter reported, if it reported both ends.

        A start alone is how the frameworks' own splitters report what they guessed with `str.find`.
        """
        start, end = self.metadata.get("start_index"), self.metadata.get("end_index")
        if type(start) is int and type(end) is int and 0 <= start <= end:
            return start, end
        return None

    @property
    def offset(self) -> int:
        """Where a document begins in what it was cut from: 0 unless it is an exact chunk itself."""
        span = self.span
        return span[0] if span and span[1] - span[0] == len(self.text) else 0

    def without_positions(self) -> Entry:
        """Drop the positions, so that a splitter that reports none does not pass these on."""
        return replace(self, metadata=_without_positions(self.metadata))


@dataclass(frozen=True, slots=True)
class Record:
    """A source document, and the ids of all that was made of it."""

    identity: str
    document: Entry
    digest: str
    parents: tuple[str, ...]
    children: tuple[str, ...]
    child_keys: tuple[str, ...]
    """The metadata keys of its children."""
    pending: Literal["", "adding", "removing"] = ""
    """The operation that has not finished; then every chunk that may exist is listed."""

    def to_row(self) -> tuple[str, Entry]:
        """Return the row of the docstore that holds this record."""
        metadata = {
            "document_metadata": self.document.metadata,
            "digest": self.digest,
            "parents": list(self.parents),
            "children": list(self.children),
            "child_keys": list(self.child_keys),
            "pending": self.pending,
        }
        return record_key(self.identity), Entry(self.document.text, metadata, self.identity)

    @classmethod
    def from_row(cls, row: Entry | None, identity: str | None = None) -> Record | None:
        """Read a record from its row; None if there is no row. The row's id is the identity."""
        if row is None:
            return None
        metadata, identity = row.metadata, row.id if row.id is not None else identity
        if identity is None:
            raise ValueError("a record of the docstore has lost its id")
        return cls(
            identity=identity,
            document=Entry(row.text, metadata["document_metadata"], identity),
            digest=metadata["digest"],
            parents=tuple(metadata["parents"]),
            children=tuple(metadata["children"]),
            child_keys=tuple(metadata["child_keys"]),
            pending=metadata["pending"],
        )

    def pending_after(self, old: Record | None) -> Record:
        """Return this record while it is being added: it also lists the old record's chunks."""
        if old is None:
            return replace(self, pending="adding")
        return replace(
            self,
            parents=_union(self.parents, old.parents),
            children=_union(self.children, old.children),
            child_keys=_union(self.child_keys, old.child_keys),
            pending="adding",
        )


def record_key(identity: str) -> str:
    """Return the key of a document's record, made of characters that every store accepts."""
    return RECORD_PREFIX + stable_uuid(identity)


def is_parent_key(key: str) -> bool:
    """Does a row of the docstore hold a parent, and not a record or a state?"""
    return not key.startswith((RECORD_PREFIX, STATE_PREFIX))


def flatten_metadata(metadata: Mapping[str, Any], parent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a child as a vector store accepts it.

    What vector stores can filter on stays as it is. The rest becomes JSON under one key, unless the
    parent has the same, from which `restore_child` takes it back.
    """
    flat: dict[str, Any] = {}
    nested: dict[str, Any] = {}
    for key, value in metadata.items():
        if _is_storable(value) and _is_storable_key(key):
            flat[key] = _storable(value)
        elif key not in parent or not _equal(parent[key], value):
            nested[key] = value
    return flat | {NESTED_KEY: json.dumps(nested, sort_keys=True)} if nested else flat


def restore_child(child: Entry, parent: Entry, inherited: frozenset[str] | None = None) -> Entry:
    """Return a child as it was before a vector store changed its metadata and text.

    It has its parent's metadata: all of it or, if given, only the `inherited` keys.
    """
    own = copy_metadata(dict(sorted(child.metadata.items())))  # Chroma keeps no order
    own.pop(SOURCE_KEY, None)
    own.pop(NESTED_KEY, None)
    parents = copy_metadata(_without_positions(parent.metadata))
    if inherited is not None:
        parents = {key: value for key, value in parents.items() if key in inherited}
    for key, value in parents.items():
        if key in own and _is_storable(value) and own[key] == _storable(value):
            own[key] = value  # the store has it without lone surrogates
    nested = json.loads(child.metadata.get(NESTED_KEY) or "{}")
    text, start, outer = child.text, own.get("start_index"), parent.metadata.get("start_index")
    if isinstance(start, int) and isinstance(outer, int):
        exact = parent.text[start - outer : own["end_index"] - outer]
        text = exact if without_surrogates(exact) == text else text
    return Entry(text, parents | own | nested, child.id)


def _without_positions(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key not in POSITION_KEYS}


def _is_storable(value: object) -> bool:
    """Does Chroma accept it: a string, a bounded number, or a list of one kind of them?"""
    if isinstance(value, list):
        kinds = {type(item) for item in value}
        return len(kinds) == 1 and not kinds & {list} and all(map(_is_storable, value))
    if type(value) is int:
        return -(2**63) <= value < 2**63
    return type(value) in (str, bool) or (type(value) is float and math.isfinite(value))


def _is_storable_key(key: str) -> bool:
    return bool(key) and not key.startswith("chroma:") and key == without_surrogates(key)


def _storable(value: Any) -> Any:
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return without_surrogates(value) if isinstance(value, str) else value


def _equal(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except (TypeError, ValueError):  # arrays compare item by item
        return False


def _union(new: tuple[str, ...], old: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(new + old))
