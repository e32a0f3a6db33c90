"""What the stores hold for a document: its parents and children, and a record that lists them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from rag_splitters.ids import chunk_id, stable_uuid
from rag_splitters.parameters.checks import stored_number
from rag_splitters.parent_child.errors import DamagedRowsError

SOURCE_KEY = "_source_id"
"""The key in a child's metadata that holds its document's identity."""
EDITION_KEY = "_edition"
"""The key in a child's metadata that holds the number of the turn in which it was written."""
PLACE_KEYS = ("_start", "_end")
"""The keys in the metadata of a rewritten parent's child that tell where in the parent it is."""
REPRESENTS_KEY = "_represents"
"""The key in a representation's metadata that holds the id of the child or parent that it is of."""
EXCLUDED_KEY = "_rag_splitters_excluded"
"""The key in the metadata of what comes from LlamaIndex for the keys that its models do not see."""
NUMBER_KEY = "chunk_index"
POSITION_KEYS = ("start_index", "end_index", NUMBER_KEY)
RECORD_PREFIX = "source/"
"""The prefix of the docstore's keys for records; a folder's name in stores that keep files."""
FORMAT = 9
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
        metadata = {k: v for k, v in self.metadata.items() if k not in POSITION_KEYS}
        return Entry(self.text, metadata, self.id, self.context)


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
    def from_row(cls, row: Entry | None) -> Record | None:
        """Read a record from its row; None if there is no row. The row's id is the identity.

        Raises DamagedRowsError if it is not what was written.
        """
        if row is None:
            return None
        try:
            if row.id is None:
                raise ValueError
            columns = {name: row.metadata[name] for name in _COLUMNS}
            columns |= {n: tuple(v) for n, v in columns.items() if isinstance(v, list)}
            columns["spans"] = tuple(each and (each[0], each[1]) for each in columns["spans"])
            columns["representations"] = tuple(
                (key, tuple(texts)) for key, texts in columns["representations"]
            )
            metadata = dict(row.metadata["document_metadata"])
        except (IndexError, KeyError, TypeError, ValueError):
            key = "a record" if row.id is None else record_key(row.id)
            raise DamagedRowsError(
                f"the record of document {row.id!r} is damaged: call verify(repair=True), and "
                "add the document again",
                [key],
            ) from None
        return cls(identity=row.id, rest=row.text, metadata=metadata, **columns)

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


def _union(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one + other))


def _without(all_ids: tuple[str, ...], ids: tuple[str, ...]) -> tuple[str, ...]:
    remaining = set(ids)
    return tuple(each for each in all_ids if each not in remaining)
