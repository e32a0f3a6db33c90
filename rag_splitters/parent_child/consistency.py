"""Keeping an index equal to a set of documents, and finding what an interruption left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_splitters.parent_child.passages import SOURCE_KEY, Passage
from rag_splitters.parent_child.plan import (
    Added,
    add,
    documents_from,
    matches,
    records_of,
    remove,
)
from rag_splitters.parent_child.records import SOURCES, Record
from rag_splitters.parent_child.state import in_step, rebuild
from rag_splitters.parent_child.stores import Stores, parts
from rag_splitters.text.ids import source_identity

__all__ = ["Synced", "Verified", "sync", "verify"]

_GROUP_DOCUMENTS = 256


@dataclass(frozen=True, slots=True)
class Synced:
    """What `sync` did, by the ids of the documents."""

    added: list[str]
    changed: list[str]
    unchanged: list[str]
    deleted: list[str]


@dataclass(frozen=True, slots=True)
class Verified:
    """What `verify` found; with `repair`, what it mended."""

    documents: int
    """How many documents the index has."""
    unfinished: list[str] = field(default_factory=list)
    """Documents whose adding or removing was interrupted."""
    without_parents: list[str] = field(default_factory=list)
    """Documents of which parents are missing in the docstore."""
    without_children: list[str] = field(default_factory=list)
    """Documents of which children are missing in the vector store."""
    orphans: list[str] | None = field(default_factory=list)
    """Children in the vector store that no document has; None where it cannot be listed."""
    stray_parents: list[str] = field(default_factory=list)
    """Rows of the docstore that no document has."""
    keywords_in_step: bool = True
    """Does the keyword index, if one is kept, know the state of the docstore?"""

    @property
    def is_sound(self) -> bool:
        """Was nothing found?"""
        found = (self.unfinished, self.without_parents, self.without_children, self.orphans)
        return not any(found) and not self.stray_parents and self.keywords_in_step


async def sync(
    stores: Stores, documents: Iterable[Passage], scope: Mapping[str, Any] | None
) -> Synced:
    """Make the index hold these documents and, within the scope, no others."""
    kept: dict[str, Added] = {}
    for outcome in await add(stores, _in_scope(documents, scope)):
        first = kept.setdefault(outcome.identity, outcome)
        if outcome.was_written and not first.was_written:
            kept[outcome.identity] = outcome
    there = await documents_from(stores, scope)
    deleted = await remove(stores, [name for name in there if name not in kept], None)
    written = [outcome for outcome in kept.values() if outcome.was_written]
    return Synced(
        added=[outcome.identity for outcome in written if not outcome.was_there],
        changed=[outcome.identity for outcome in written if outcome.was_there],
        unchanged=[name for name, outcome in kept.items() if not outcome.was_written],
        deleted=deleted,
    )


def _in_scope(documents: Iterable[Passage], scope: Mapping[str, Any] | None) -> Iterator[Passage]:
    for document in documents:
        if not matches(document, scope):
            name = source_identity(document.text, document.metadata, document.id)
            raise ValueError(
                f"document {name!r} is outside of scope={dict(scope or {})!r}, so the next sync "
                "would not find it: widen the scope, or leave the document out"
            )
        yield document


async def verify(stores: Stores, *, repair: bool) -> Verified:
    """Compare records, parents, children and keywords; mend what does not agree."""
    found = await _checked(stores)
    if not repair or found.is_sound:
        return found
    await _finished(stores, found)
    if found.orphans:
        await stores.children.forget(found.orphans)
    await stores.rows.remove(found.stray_parents)
    if stores.keywords is not None and not await in_step(stores, stores.keywords):
        await rebuild(stores, stores.keywords)
    return found


async def _finished(stores: Stores, found: Verified) -> None:
    """Finish what was interrupted, and write anew what lacks something."""
    wanting = {*found.unfinished, *found.without_parents, *found.without_children}
    for part in parts(sorted(wanting), _GROUP_DOCUMENTS):
        records = [record for record in await records_of(stores, part) if record is not None]
        going = [record.identity for record in records if record.pending == "removing"]
        await remove(stores, going, None)
        staying = [record.document for record in records if record.pending != "removing"]
        await add(stores, staying, always=True)


async def _checked(stores: Stores) -> Verified:
    keys = [key async for key in stores.rows.keys("")]
    sources = [key for key in keys if key.startswith(SOURCES)]
    parents_there = {key for key in keys if not key.startswith((SOURCES, "state/"))}
    unfinished, no_parents, no_children = [], [], []
    listed_parents: set[str] = set()
    listed_children: set[str] = set()
    for part in parts(sources, _GROUP_DOCUMENTS):
        for row in await stores.rows.read(part):
            record = Record.from_row(row)
            if record is None:
                continue
            listed_parents.update(record.parents)
            listed_children.update(record.children)
            if record.pending:
                unfinished.append(record.identity)
                continue
            if not parents_there.issuperset(record.parents):
                no_parents.append(record.identity)
            if None in await stores.children.read(record.children, "id"):
                no_children.append(record.identity)
    return Verified(
        documents=len(sources),
        unfinished=unfinished,
        without_parents=no_parents,
        without_children=no_children,
        orphans=await _orphans(stores, listed_children),
        stray_parents=await _stray(stores, parents_there - listed_parents),
        keywords_in_step=stores.keywords is None or await in_step(stores, stores.keywords),
    )


async def _orphans(stores: Stores, listed: set[str]) -> list[str] | None:
    """Our children that no record lists; those that others wrote are not ours to judge."""
    try:
        return [
            child.id or ""
            async for child in stores.children.all()
            if SOURCE_KEY in child.metadata and child.id not in listed
        ]
    except NotImplementedError:
        return None


async def _stray(stores: Stores, keys: set[str]) -> list[str]:
    """Those of the keys under which a parent of ours is; other rows are not ours to judge."""
    found: list[str] = []
    for part in parts(sorted(keys), _GROUP_DOCUMENTS):
        rows = zip(part, await stores.rows.read(part), strict=True)
        found += [
            key
            for key, row in rows
            if row is not None and row.id == key and "chunk_index" in row.metadata
        ]
    return found
