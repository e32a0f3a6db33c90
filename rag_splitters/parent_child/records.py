"""What the stores hold for a document: its parents and children, and a record that lists them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from rag_splitters.errors import InputTypeError
from rag_splitters.ids import chunk_id, stable_uuid
from rag_splitters.parameters.checks import stored_number
from rag_splitters.parent_child.errors import DamagedRowsError
from rag_splitters.text.sources import copy_metadata
from rag_splitters.text.surrogates import without_surrogates

SOURCE_KEY = "_source_id"
"""The key in a child's metadata that holds its document's identity."""
NESTED_KEY = "_nested"
"""The key in a child's metadata that holds, as JSON, what its vector store cannot keep."""
EDITION_KEY = "_edition"
"""The key in a child's metadata that holds the number of the turn in which it was written."""
PLACE_KEYS = ("_start", "_end")
"""The keys in the metadata of a rewritten parent's child that tell where in the parent it is."""
REPRESENTS_KEY = "_represents"
"""The key in a representation's metadata that holds the id of the child or parent that it is of."""
NUMBER_KEY = "chunk_index"
POSITION_KEYS = ("start_index", "end_index", NUMBER_KEY)
_OWN_KEYS = (SOURCE_KEY, NESTED_KEY, EDITION_KEY, REPRESENTS_KEY, *PLACE_KEYS)
# What one child gives a vector store to filter on. Chroma's collection is damaged for good by a
# few thousand values in one row, and each child of a document repeats them all.
MAX_VALUES = 200
MAX_CHARACTERS = 10_000
LIST = "[]"
_MAX_DEPTH = 100
_MAX_BITS = 13_000  # Python converts no more than 4,300 digits
_SCALARS = {str, float, bool, type(None)}
RECORD_PREFIX = "source/"
"""The prefix of the docstore's keys for records; a folder's name in stores that keep files."""
FORMAT = 8
"""The format of what is stored; increase it when that changes, so that other versions refuse it."""
STATE_PREFIX = "state/"
"""The prefix of the docstore's keys for what is neither a record nor a parent."""


INDEX_KEY = f"{STATE_PREFIX}index"
"""The key of the row that says what the index is."""


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
        keys = ("start_index", "end_index")
        start, end = (stored_number(self.metadata.get(key)) for key in keys)
        return None if start is None or end is None or not 0 <= start <= end else (start, end)

    @property
    def offset(self) -> int:
        """Where a document begins in what it was cut from: 0 unless it is an exact chunk itself."""
        span = self.span
        return span[0] if span and span[1] - span[0] == len(self.text) else 0

    def without_positions(self) -> Entry:
        """Drop the positions, so that a splitter that reports none does not pass these on."""
        return Entry(self.text, _without_positions(self.metadata), self.id, self.context)


@dataclass(frozen=True, slots=True)
class Identity:
    """What an index is."""

    id: str
    collection: str
    """The name of its collection; nothing if that is in memory, or not known."""
    model: str
    """The name of its embedding model; nothing if the vector store embeds by itself."""
    dimension: int | None = None
    is_reembedding: bool = False
    """Whether its documents are being embedded with another model."""
    format: int = FORMAT

    def to_row(self) -> tuple[str, Entry]:
        """Return the row of the docstore that holds it."""
        return INDEX_KEY, Entry(self.id, asdict(self), INDEX_KEY)


@dataclass(frozen=True, slots=True)
class Record:
    """A source document, and the ids of all that was made of it.

    Each text is stored once: the parents hold the document's text, and the record only what stands
    between them, or all of it where a splitter rewrites texts.
    """

    identity: str
    rest: str = ""
    """What the document has besides the parents that are parts of it."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """The document's."""
    digest: str = ""
    """Changes with the document, and with the settings of the index. Nothing if no version is to
    stay: while the first one is being added, or the document removed."""
    parents: tuple[str, ...] = ()
    spans: tuple[tuple[int, int] | None, ...] = ()
    """Which part of the document each parent is; None if its text is another one."""
    children: tuple[str, ...] = ()
    child_keys: tuple[str, ...] = ()
    """The metadata keys of its children."""
    texts: tuple[str, ...] = ()
    """Hashes of the texts that were embedded for its children."""
    details: tuple[str, ...] = ()
    """Hashes of its children's metadata."""
    representations: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The key of each piece, and the texts by which it is found; the last children have them."""
    settings: str = ""
    """How its children were embedded: by which model, with which smoothing and headings."""
    checksum: str = ""
    """A hash of the rest."""
    metadata_hashes: tuple[str, ...] = ()
    """Of the document's metadata and of its parents'; see `metadata_hash`."""
    is_whole: bool = True
    """Whether all the children of this version are stored, as it is once they are written."""
    other_parents: tuple[str, ...] = ()
    other_children: tuple[str, ...] = ()
    """What may exist besides, of another version, and has to be removed."""

    def to_row(self) -> tuple[str, Entry]:
        """Return the row of the docstore that holds this record."""
        metadata = {name: getattr(self, name) for name in _COLUMNS}
        metadata["document_metadata"] = self.metadata
        return record_key(self.identity), Entry(self.rest, metadata, self.identity)

    @classmethod
    def from_row(cls, row: Entry | None, identity: str | None = None) -> Record | None:
        """Read a record from its row; None if there is no row. The row's id is the identity.

        Raises DamagedRowsError if it is not what was written.
        """
        if row is None:
            return None
        identity = row.id if row.id is not None else identity
        try:
            if identity is None:
                raise ValueError
            columns = {name: row.metadata[name] for name in _COLUMNS}
            columns |= {n: tuple(v) for n, v in columns.items() if isinstance(v, list)}
            columns["spans"] = tuple(each and (each[0], each[1]) for each in columns["spans"])
            columns["representations"] = tuple(
                (key, tuple(texts)) for key, texts in columns["representations"]
            )
            metadata = dict(row.metadata["document_metadata"])
        except (IndexError, KeyError, TypeError, ValueError):
            key = "a record" if identity is None else record_key(identity)
            raise DamagedRowsError(
                f"the record of document {identity!r} is damaged: call verify(repair=True), and "
                "add the document again",
                [key],
            ) from None
        return cls(identity=identity, rest=row.text, metadata=metadata, **columns)

    @property
    def is_complete(self) -> bool:
        """Whether there is a version, and all of it is stored."""
        return bool(self.digest) and self.is_whole

    @property
    def is_finished(self) -> bool:
        """Whether the operation that wrote it has ended: nothing is missing or to be removed."""
        return self.is_complete and not self.other_parents and not self.other_children

    @property
    def piece_count(self) -> int:
        """How many of its children are pieces of it; the others, behind them, represent pieces."""
        return len(self.children) - sum(len(texts) for _, texts in self.representations)

    @property
    def all_parents(self) -> tuple[str, ...]:
        """All the parents that may exist."""
        return _union(self.parents, self.other_parents)

    @property
    def all_children(self) -> tuple[str, ...]:
        """All the children that may exist."""
        return _union(self.children, self.other_children)

    def before(self, new: Record) -> Record:
        """Return this record while a new version is being added."""
        return replace(
            self,
            is_whole=False,
            child_keys=_union(self.child_keys, new.child_keys),
            representations=self.representations + new.representations,  # they were paid for
            other_parents=_union(self.other_parents, new.parents),
            other_children=_union(self.other_children, new.children),
        )

    def after(self, old: Record | None) -> Record:
        """Return this record while what it replaces is still to be removed."""
        if old is None:
            return self
        parents = _without(old.all_parents, self.parents)
        children = _without(old.all_children, self.children)
        return replace(self, other_parents=parents, other_children=children)

    def without_version(self) -> Record:
        """Return this record while the document is being removed."""
        return Record(
            self.identity,
            metadata=self.metadata,
            child_keys=self.child_keys,
            other_parents=self.all_parents,
            other_children=self.all_children,
        )

    def restore_document(self, parents: Mapping[str, Entry | None]) -> Entry | None:
        """Put the document together; None if a part of its text is lost.

        Parameters:
            parents: the rows of its parents, by their keys.
        """
        if not self.is_intact({}):
            return None
        parts: list[tuple[int, str]] = []
        for key, span in zip(self.parents, self.spans, strict=True):
            if span is not None:
                row = parents.get(key)
                if row is None or not is_own_parent(key, row):
                    return None
                parts.append((span[0], row.text))
        return Entry(join_parts(self.rest, parts), self.metadata, self.identity)

    def text_between(self, start: int, end: int) -> str | None:
        """Return a part of the document that is in no parent; None if some of it is."""
        spans = sorted(span for span in self.spans if span is not None)
        covered = position = 0
        for first, last in spans:
            if first < end and start < last:
                return None
            if last <= start:
                covered += max(0, last - max(first, position))
                position = max(position, last)
        return self.rest[start - covered : end - covered]

    def is_intact(self, parents: Mapping[str, Entry | None]) -> bool:
        """Whether the rest, and those of the parents that are given, are what was written."""
        rows = [(key, row) for key in self.parents if (row := parents.get(key)) is not None]
        expected = dict(zip(("", *self.parents), self.metadata_hashes, strict=False))
        all_metadata = [("", self.metadata), *((key, row.metadata) for key, row in rows)]
        return (
            fingerprint(self.rest) == self.checksum
            and all(is_own_parent(key, row) for key, row in rows)
            and all(expected.get(key) in ("", metadata_hash(each)) for key, each in all_metadata)
        )


def cut_parts(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return what a text has besides some parts of it, which may overlap.

    >>> cut_parts("one two three", [(4, 7), (5, 8)])
    'one three'
    """
    rest: list[str] = []
    position = 0
    for start, end in sorted(spans):
        rest.append(text[position:start])
        position = max(position, end)
    return "".join([*rest, text[position:]])


def join_parts(rest: str, parts: Iterable[tuple[int, str]]) -> str:
    """Return the text from which parts were cut, each with the position where it began.

    >>> join_parts("one three", [(4, "two"), (5, "wo ")])
    'one two three'
    """
    text: list[str] = []
    position = taken = 0
    for start, part in sorted(parts):
        if start > position:
            text.append(rest[taken : taken + start - position])
            taken, position = taken + start - position, start
        text.append(part[position - start :])
        position = max(position, start + len(part))
    return "".join([*text, rest[taken:]])


_COLUMNS = [
    each.name for each in fields(Record) if each.name not in ("identity", "rest", "metadata")
]


_encode_sorted = json.JSONEncoder(sort_keys=True).encode


def metadata_hash(metadata: Mapping[str, Any]) -> str:
    """Return a short hash of metadata; nothing if JSON lacks a value: stores may change those."""
    try:
        return fingerprint(_encode_sorted(metadata))
    except (TypeError, ValueError):
        return ""


def fingerprint(text: str) -> str:
    """Return a short hash of a text.

    >>> fingerprint("some text")
    'f2d42d5e4e509e1b'
    """
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


@lru_cache(maxsize=4096)
def record_key(identity: str) -> str:
    """Return the key of a document's record, made of characters that every store accepts."""
    return RECORD_PREFIX + stable_uuid(identity)


def parent_row(parent: Entry, identity: str) -> tuple[str, Entry]:
    """Return the row of the docstore that holds a parent; the row's id is the document's."""
    return parent.id or "", Entry(parent.text, parent.metadata, identity)


def is_own_parent(key: str, row: Entry) -> bool:
    """Whether a row of the docstore is a parent that we wrote, with its text as it was then.

    Its key is made of these; see `id_of_chunk`.
    """
    return row.id is not None and NUMBER_KEY in row.metadata and key == id_of_chunk(row.id, row)


def id_of_chunk(owner: str, chunk: Entry) -> str:
    """Return the id of a parent or child, made of that of its document or parent, place and text.

    Its place is where it stands in the document or, if that is not known, its number.
    """
    number = chunk.metadata[NUMBER_KEY]
    start, end = chunk.span or (number, number)
    return chunk_id(owner, start, end, chunk.text)


def is_chunk_id(key: str) -> bool:
    """Whether the key is a UUID of version 5, as our parents have, and Classic's have not."""
    return len(key) == 36 and key[14] == "5"


def is_parent_key(key: str) -> bool:
    """Whether a row of the docstore holds a parent, and not a record or a state."""
    return not key.startswith((RECORD_PREFIX, STATE_PREFIX))


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
    for key, value, is_inherited in _by_importance(metadata, parent):
        if is_storable_key(key) and (stored := _storable(value)) is not None:
            count, size = _measure(value)
            if values + count <= MAX_VALUES and characters + len(key) + size <= MAX_CHARACTERS:
                flat[key] = stored
                values, characters = values + count, characters + len(key) + size
                continue
        if not is_inherited:
            nested[key] = value
    # A splitter's own object that JSON lacks becomes its text: the documents' values are checked.
    return flat | {NESTED_KEY: json.dumps(nested, sort_keys=True, default=str)} if nested else flat


def _by_importance(
    metadata: Mapping[str, Any], parent: Mapping[str, Any]
) -> list[tuple[str, Any, bool]]:
    """Return key, value, and whether the parent has the same: positions, own values, the rest."""
    positions, own, inherited = list[Any](), list[Any](), list[Any]()
    for key, value in metadata.items():
        is_inherited = key in parent and _equal(parent[key], value)
        rows = positions if key in POSITION_KEYS else inherited if is_inherited else own
        rows.append((key, value, is_inherited))
    return positions + own + inherited


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
        nested = json.loads(own.pop(NESTED_KEY, "{}"))
        for key in (REPRESENTS_KEY, *PLACE_KEYS):
            own.pop(key, None)
    parents = copy_metadata(_without_positions(parent.metadata))
    if inherited is not None:
        parents = {key: value for key, value in parents.items() if key in inherited}
    for key, value in parents.items():
        if key in own and own[key] == _storable(value):
            own[key] = value  # the store has it without lone surrogates
    text = child.text
    if child.span is not None and parent.span is not None:
        start, end = (place - parent.span[0] for place in child.span)
        exact = parent.text[start:end]
        text = exact if without_surrogates(exact) == text else text
    return Entry(text, parents | own | nested, child.id)


def _without_positions(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key not in POSITION_KEYS}


def value_kind(value: object) -> str | None:
    """Return the kind of a value that Chroma accepts; None of one that it does not.

    It accepts strings, bounded numbers, and lists of one kind of them, whose kind ends with "[]".
    """
    kind = type(value)
    if kind is str or kind is bool:
        return kind.__name__
    if type(value) is int:
        return "int" if -(2**63) <= value < 2**63 else None
    if type(value) is float:
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


def _storable(value: Any) -> Any:
    """Return a value as Chroma accepts it; None of one that it does not."""
    if type(value) is str:
        return without_surrogates(value)
    if value_kind(value) is None:
        return None
    return [_storable(item) for item in value] if isinstance(value, list) else value


def _measure(value: Any) -> tuple[int, int]:
    """Return how many values a value is, and how many characters."""
    if type(value) is str:
        return 1, len(value)
    if not isinstance(value, list):
        return 1, 0
    return len(value), sum([len(item) for item in value if type(item) is str])


def _equal(one: object, other: object) -> bool:
    if one is other:
        return True
    try:
        return bool(one == other)
    except (TypeError, ValueError):  # arrays compare item by item
        return repr(one) == repr(other)


def _union(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one + other))


def _without(all_ids: tuple[str, ...], ids: tuple[str, ...]) -> tuple[str, ...]:
    remaining = set(ids)
    return tuple(each for each in all_ids if each not in remaining)
