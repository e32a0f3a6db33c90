"""What parent-child retrieval writes and removes, and in which order; no framework, no store.

Every function here is `async` and awaits only the `Stores` that it is given. Stores that never
suspend can be run without an event loop by `run`, so that the order is written once for both.

The order keeps two promises. A child that can be found has its parent in the docstore: parents are
written before children and removed after them. And whatever moment a process dies at, the record of
a document lists every chunk that may exist of it, so that adding or deleting it again ends in the
same state: a record is marked as pending before anything changes and is made final at the end.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, TypeVar

from rag_splitters.ids import source_identity, stable_uuid
from rag_splitters.parent_child.passages import Draft, Passage, children_of, parents_of
from rag_splitters.parent_child.records import SOURCES, Record, source_key

__all__ = ["Stores", "add", "get", "remove", "run"]

_LAYOUT = "1"  # counts up when what is stored changes, so that everything is written again
_GROUP_DOCUMENTS = 256
_GROUP_CHARACTERS = 1_000_000

T = TypeVar("T")


class Stores(Protocol):
    """What the plan asks of a framework's splitters and stores; batches are their affair."""

    @property
    def merges_metadata(self) -> bool:
        """Whether a rewritten child keeps old metadata keys, except for those set to None."""

    async def split(
        self, level: Literal["parents", "children"], passages: list[Passage]
    ) -> list[list[Passage]] | None:
        """The chunks of each passage, or None where there is no splitter for this level."""

    async def read(self, keys: Sequence[str]) -> list[Passage | None]:
        """Rows of the docstore."""

    async def write(self, rows: Sequence[tuple[str, Passage]]) -> None:
        """Write rows of the docstore."""

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove rows of the docstore."""

    def keys(self, prefix: str) -> AsyncIterator[str]:
        """The docstore's keys."""

    async def index(self, children: Sequence[Passage]) -> None:
        """Embed children and write them under their ids."""

    async def forget(self, ids: Sequence[str]) -> None:
        """Remove children; those that are not there are passed over."""


async def add(stores: Stores, documents: Iterable[Passage], id_key: str) -> list[str]:
    """Add or replace documents; the identity of each is returned, in order.

    A document that is there already, unchanged, costs no write and no embedding. Of several with
    one identity, the last counts.
    """
    identities: list[str] = []
    for group in _groups(documents):
        named = [(source_identity(p.text, p.metadata, p.id), p) for p in group]
        identities.extend(identity for identity, _ in named)
        await _add_group(stores, dict(named), id_key)
    return identities


async def _add_group(stores: Stores, group: Mapping[str, Passage], id_key: str) -> None:
    drafts = await _drafts(stores, group, id_key)
    rows = await stores.read([source_key(identity) for identity in group])
    changed: list[tuple[Record, Record | None, Draft]] = []
    for draft, row in zip(drafts, rows, strict=True):
        new, old = _record(draft), Record.from_row(row, draft.identity)
        if old is None or old.pending or old.digest != new.digest:
            changed.append((new, old, draft))
    if not changed:
        return
    pairs = [(new, new.merged(old)) for new, old, _ in changed]
    children = [
        _cleared(child, old) if old is not None and stores.merges_metadata else child
        for _, old, draft in changed
        for child in draft.children
    ]
    await stores.write([merged.to_row() for _, merged in pairs])
    await stores.write([(p.id or "", p) for _, _, draft in changed for p in draft.parents])
    await stores.index(children)
    await stores.forget([i for new, old in pairs for i in _without(old.children, new.children)])
    await stores.remove([i for new, old in pairs for i in _without(old.parents, new.parents)])
    await stores.write([new.to_row() for new, _ in pairs])


async def remove(stores: Stores, ids: Sequence[str] | None, source: str | None) -> list[str]:
    """Remove documents and all that was made of them, by identity or `metadata["source"]`.

    The identities that were there are returned.
    """
    if ids is None and source is None:
        raise ValueError("delete needs ids or source")
    named = [] if source is None else await _sources_named(stores, source)
    removed: list[str] = []
    unique = list(dict.fromkeys([*(ids or ()), *named]))
    for start in range(0, len(unique), _GROUP_DOCUMENTS):
        part = unique[start : start + _GROUP_DOCUMENTS]
        rows = await stores.read([source_key(identity) for identity in part])
        found = zip(part, rows, strict=True)
        records = [r for i, row in found if (r := Record.from_row(row, i)) is not None]
        if not records:
            continue
        # Marked first: were the process to die now, adding the document again must not skip it.
        await stores.write([replace(record, pending=True).to_row() for record in records])
        await stores.forget([child for record in records for child in record.children])
        await stores.remove([parent for record in records for parent in record.parents])
        await stores.remove([source_key(record.identity) for record in records])
        removed.extend(record.identity for record in records)
    return removed


async def _sources_named(stores: Stores, source: str) -> list[str]:
    """The documents whose `metadata["source"]` is `source`; reads every record."""
    keys = [key async for key in stores.keys(SOURCES)]
    found: list[str] = []
    for start in range(0, len(keys), _GROUP_DOCUMENTS):
        for row in await stores.read(keys[start : start + _GROUP_DOCUMENTS]):
            record = Record.from_row(row)
            if record is not None and record.document.metadata.get("source") == source:
                found.append(record.identity)
    return found


async def get(stores: Stores, ids: Sequence[str]) -> list[Passage]:
    """Source documents as they were added, by identity, or parents by their UUIDs; in order."""
    unique = list(dict.fromkeys(ids))
    rows = await stores.read([source_key(i) for i in unique])
    parents = await stores.read(unique)
    found = []
    for identity, row, parent in zip(unique, rows, parents, strict=True):
        record = Record.from_row(row, identity)
        passage = parent if record is None else record.document
        if passage is not None:
            found.append(passage)
    return found


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose stores never suspend, with or without an event loop around.

    >>> async def answer() -> int:
    ...     return 42
    >>> run(answer())
    42
    """
    try:
        work.send(None)
    except StopIteration as finished:
        result: T = finished.value
        return result
    work.close()
    raise RuntimeError("the stores of a synchronous call must not suspend")


async def _drafts(stores: Stores, group: Mapping[str, Passage], id_key: str) -> list[Draft]:
    """The parents and children of each document, by one call of each splitter for all of them."""
    chunks = await stores.split("parents", [p.unplaced() for p in group.values()])
    lists: list[list[Passage] | None] = [None] * len(group) if chunks is None else [*chunks]
    sources = list(zip(group.items(), lists, strict=True))
    parents = [parents_of(identity, source, chunks) for (identity, source), chunks in sources]
    whole = [parent.passage.unplaced() for places in parents for parent in places]
    split = iter(await stores.split("children", whole) or [])
    drafts = []
    for (identity, source), places in zip(group.items(), parents, strict=True):
        per_parent = [next(split) for _ in places]
        drafts.append(children_of(identity, source, places, per_parent, id_key))
    return drafts


def _record(draft: Draft) -> Record:
    content = source_identity(draft.source.text, draft.source.metadata)
    parents = tuple(parent.id or "" for parent in draft.parents)
    children = tuple(child.id or "" for child in draft.children)
    rows = json.dumps([child.metadata for child in draft.children], sort_keys=True)
    digest = stable_uuid(_LAYOUT, content, *parents, "", *children, rows)
    keys = tuple(sorted({key for child in draft.children for key in child.metadata}))
    return Record(draft.identity, draft.source, digest, parents, children, keys)


def _cleared(child: Passage, old: Record) -> Passage:
    """The child with None under each metadata key that only its predecessor had."""
    gone = dict.fromkeys(key for key in old.child_keys if key not in child.metadata)
    return replace(child, metadata=child.metadata | gone)


def _groups(documents: Iterable[Passage]) -> Iterator[list[Passage]]:
    """The documents in groups that bound what is in memory at once."""
    group: list[Passage] = []
    characters = 0
    for document in documents:
        group.append(document)
        characters += len(document.text)
        if len(group) == _GROUP_DOCUMENTS or characters >= _GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _without(ids: tuple[str, ...], kept: tuple[str, ...]) -> list[str]:
    keep = set(kept)
    return [i for i in ids if i not in keep]
