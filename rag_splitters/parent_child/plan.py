"""What parent-child retrieval writes and removes, and in which order; no framework, no store.

The order keeps two promises. A child that can be found has its parent in the docstore: parents are
written before children and removed after them. And whatever moment a process dies at, the record of
a document lists every chunk that may exist of it, so that adding or deleting it again ends in the
same state: a record is marked as pending before anything changes and is made final at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rag_splitters.parent_child.passages import (
    SOURCE_KEY,
    Draft,
    Passage,
    children_of,
    contexts,
    parents_of,
)
from rag_splitters.parent_child.records import SOURCES, Record, source_key
from rag_splitters.parent_child.state import keywords_told, stamped
from rag_splitters.parent_child.stores import Stores, parts
from rag_splitters.text.ids import source_identity, stable_uuid

__all__ = ["Added", "add", "documents_from", "get", "matches", "records_of", "remove"]

_LAYOUT = "2"  # counts up when what is stored changes, so that everything is written again
_GROUP_DOCUMENTS = 512
_GROUP_CHARACTERS = 1_500_000


@dataclass(frozen=True, slots=True)
class Added:
    """A document that was given to `add`, and what became of it."""

    identity: str
    was_there: bool
    was_written: bool


async def add(stores: Stores, documents: Iterable[Passage], *, always: bool = False) -> list[Added]:
    """Add or replace documents; what became of each is returned, in order.

    A document that is there already, unchanged, costs no write and no embedding, unless it is to be
    written `always`. Of several with one identity, the last counts.
    """
    outcomes: list[Added] = []
    for group in _groups(documents):
        named = [(source_identity(p.text, p.metadata, p.id), p) for p in group]
        done = await _add_group(stores, dict(named), always)
        outcomes.extend(done[identity] for identity, _ in named)
    return outcomes


async def _add_group(
    stores: Stores, group: Mapping[str, Passage], always: bool
) -> dict[str, Added]:
    drafts = await _drafts(stores, group)
    outcomes: dict[str, Added] = {}
    changed: list[tuple[Record, Record | None, Draft]] = []
    olds = await records_of(stores, list(group))
    for draft, old in zip(drafts, olds, strict=True):
        new = _record(draft, f"{_LAYOUT} {stores.children.smoothing:g} {stores.headings:d}")
        is_new = old is None or bool(old.pending) or old.digest != new.digest
        outcomes[draft.identity] = Added(draft.identity, old is not None, is_new or always)
        if is_new or always:
            changed.append((new, old, draft))
    if changed:
        await _write(stores, changed)
    return outcomes


async def _write(stores: Stores, changed: Sequence[tuple[Record, Record | None, Draft]]) -> None:
    pairs = [(new, new.merged(old)) for new, old, _ in changed]
    clear = stores.children.merges_metadata
    children = [
        [_cleared(child, old) if old is not None and clear else child for child in draft.children]
        for _, old, draft in changed
    ]
    gone = [i for new, old in pairs for i in _without(old.children, new.children)]
    marked = [merged.to_row() for _, merged in pairs]
    parents = [(p.id or "", p) for _, _, draft in changed for p in draft.parents]
    stamp = await stamped(stores, [*marked, *parents])  # in this order, where a store takes few
    await stores.children.index(children)
    await stores.children.forget(gone)
    await stores.rows.remove([i for new, old in pairs for i in _without(old.parents, new.parents)])
    await stores.rows.write([new.to_row() for new, _ in pairs])
    await keywords_told(stores, stamp, children, gone)


async def remove(stores: Stores, ids: Sequence[str] | None, source: str | None) -> list[str]:
    """Remove documents and all that was made of them, by identity or `metadata["source"]`.

    The identities that were there are returned.
    """
    if ids is None and source is None:
        raise ValueError("delete needs ids or source")
    named = [] if source is None else await documents_from(stores, {"source": source})
    removed: list[str] = []
    for part in parts(list(dict.fromkeys([*(ids or ()), *named])), _GROUP_DOCUMENTS):
        found = dict(zip(part, await records_of(stores, part), strict=True))
        removed += await _remove_loose(stores, [i for i, record in found.items() if record is None])
        records = [record for record in found.values() if record is not None]
        if not records:
            continue
        children = [child for record in records for child in record.children]
        # Marked first: were the process to die now, adding the document again must not skip it.
        marked = [replace(record, pending="removing").to_row() for record in records]
        stamp = await stamped(stores, marked)
        await stores.children.forget(children)
        await stores.rows.remove([parent for record in records for parent in record.parents])
        await stores.rows.remove([source_key(record.identity) for record in records])
        await keywords_told(stores, stamp, [], children)
        removed.extend(record.identity for record in records)
    return removed


async def _remove_loose(stores: Stores, ids: Sequence[str]) -> list[str]:
    """Remove parents that were written without a record, as `langchain_classic` does."""
    rows = zip(ids, await stores.rows.read(ids), strict=True)
    there = [name for name, row in rows if row is not None]
    if not there:
        return []
    try:
        children = await stores.children.of_parents(stores.id_key, there)
    except NotImplementedError:
        raise ValueError(
            f"{', '.join(there[:5])}: no documents that were added here, but parents; they cannot "
            "be removed, as this vector store cannot tell their children: remove their documents"
        ) from None
    ours = {child.metadata[stores.id_key] for child in children if SOURCE_KEY in child.metadata}
    loose = [name for name in there if name not in ours]
    gone = [c.id or "" for c in children if c.metadata[stores.id_key] not in ours]
    stamp = await stamped(stores, [])
    await stores.children.forget(gone)
    await stores.rows.remove(loose)
    await keywords_told(stores, stamp, [], gone)
    return loose


async def documents_from(stores: Stores, wanted: Mapping[str, object] | None) -> list[str]:
    """The documents with these metadata, or all; reads every record."""
    keys = [key async for key in stores.rows.keys(SOURCES)]
    found: list[str] = []
    for part in parts(keys, _GROUP_DOCUMENTS):
        for row in await stores.rows.read(part):
            record = Record.from_row(row)
            if record is not None and matches(record.document, wanted):
                found.append(record.identity)
    return found


def matches(document: Passage, wanted: Mapping[str, object] | None) -> bool:
    """Has the document all of these metadata?"""
    missing = object()
    return all(document.metadata.get(k, missing) == v for k, v in (wanted or {}).items())


async def records_of(stores: Stores, identities: Sequence[str]) -> list[Record | None]:
    """The record of each document, or None."""
    rows = await stores.rows.read([source_key(identity) for identity in identities])
    pairs = zip(rows, identities, strict=True)
    return [Record.from_row(row, identity) for row, identity in pairs]


async def get(stores: Stores, ids: Sequence[str]) -> list[Passage]:
    """Source documents as they were added, by identity, or parents by their UUIDs; in order."""
    unique = list(dict.fromkeys(ids))
    records = await records_of(stores, unique)
    parents = await stores.rows.read(unique)
    pairs = zip(records, parents, strict=True)
    found = (parent if record is None else record.document for record, parent in pairs)
    return [passage for passage in found if passage is not None]


async def _drafts(stores: Stores, group: Mapping[str, Passage]) -> list[Draft]:
    """The parents and children of each document, by one call of each splitter for all of them."""
    chunks = await stores.split("parents", [p.unplaced() for p in group.values()])
    lists: list[list[Passage] | None] = [None] * len(group) if chunks is None else [*chunks]
    sources = list(zip(group.items(), lists, strict=True))
    parents = [parents_of(identity, source, chunks) for (identity, source), chunks in sources]
    whole = [parent.passage.unplaced() for places in parents for parent in places]
    split = iter(await stores.split("children", whole) or [])
    drafts = []
    for (identity, source), places in zip(group.items(), parents, strict=True):
        pieces = [next(split) for _ in places]
        above = {"context": contexts(source)} if stores.headings else {}
        drafts.append(
            children_of(identity, source, places, pieces, stores.id_key, stores.inherited, **above)
        )
    return drafts


def _record(draft: Draft, how: str) -> Record:
    content = source_identity(draft.source.text, draft.source.metadata)
    parents = tuple(parent.id or "" for parent in draft.parents)
    children = tuple(child.id or "" for child in draft.children)
    rows = json.dumps([child.metadata for child in draft.children], sort_keys=True)
    digest = stable_uuid(how, content, *parents, "", *children, rows)
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
