"""Adding and removing documents: what is written and removed, and in which order.

The order keeps two promises. A child that can be found has its parent in the docstore: parents are
written before their children and removed after them. And indexing is crash-safe: if the process
dies, the record of a document lists every chunk that may exist, so running the same again finishes
the job. A record is marked as pending before anything changes, and made final at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rag_splitters.contract.groups import grouped
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.ids import source_identity, stable_uuid
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.classic import (
    find_classic_parents,
    find_replaced,
    has_metadata,
    read_classic_children,
)
from rag_splitters.parent_child.drafts import Draft, draft_documents, heading_context
from rag_splitters.parent_child.errors import RefusedDocumentsError
from rag_splitters.parent_child.filters import unsearchable_rows
from rag_splitters.parent_child.known_vectors import Edition
from rag_splitters.parent_child.locks import run_locked
from rag_splitters.parent_child.records import (
    FORMAT,
    Entry,
    Record,
    check_metadata,
    checksum,
    is_own_parent,
    parent_row,
    record_key,
)
from rag_splitters.parent_child.revisions import begin_changes, log_changes
from rag_splitters.parent_child.stores import Stores

_GROUP_DOCUMENTS = 512


@dataclass(frozen=True, slots=True)
class Outcome:
    """What adding a document did."""

    identity: str
    """Its id; for a refused document the one that the user gave it, or nothing."""
    existed: bool
    was_written: bool
    refusal: str = ""
    """Why it was refused: which document, which key."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A document to write: its draft, its new record, and the one that it replaces."""

    draft: Draft
    new: Record
    old: Record | None
    is_new_throughout: bool = False
    """Is everything embedded and written again, whatever was there?"""

    @property
    def base(self) -> Record | None:
        """The record of a complete version, embedded in the same way, of which much may stay."""
        if self.old is None or self.is_new_throughout or self.old.pending:
            return None
        return self.old if self.old.settings == self.new.settings else None


async def add(stores: Stores, documents: Iterable[Entry], *, always: bool = False) -> list[Outcome]:
    """Add or replace documents, and return the outcome of each, in order.

    Unchanged documents are skipped: nothing is embedded or written. Pass `always=True` to write
    them anyway. If several documents share an identity, the last one wins. A document that cannot
    be stored is refused before anything of it is written.
    """
    outcomes: list[Outcome] = []
    for group in grouped(documents):
        refusals = [
            find_refusal(stores, document, number)
            for number, document in enumerate(group, len(outcomes))
        ]
        identities = [
            source_identity(each.text, each.metadata, each.id) if refusal is None else None
            for each, refusal in zip(group, refusals, strict=True)
        ]
        pairs = zip(identities, group, strict=True)
        storable = {identity: document for identity, document in pairs if identity is not None}
        by_identity = await _add_group(stores, storable, always=always) if storable else {}
        for identity, document, refusal in zip(identities, group, refusals, strict=True):
            if identity is None:
                outcomes.append(Outcome(document.id or "", False, False, refusal or ""))
            else:
                outcomes.append(by_identity[identity])
    return outcomes


def find_refusal(stores: Stores, document: Entry, number: int) -> str | None:
    """Say why a document cannot be stored, if so, naming it and the key."""
    try:
        check_metadata(document.metadata)
        stores.docstore.check(document.metadata)
    except TypeError as error:
        is_named = document.id is not None
        name = repr(document.id) if is_named else f"number {number} ({document.text[:40]!r})"
        return f"document {name}: {error}"
    return None


def check_refusals(outcomes: Iterable[Outcome], result: object) -> None:
    """Raise a RefusedDocumentsError if documents were refused, with the result for the others."""
    refusals = [outcome.refusal for outcome in outcomes if outcome.refusal]
    if refusals:
        raise RefusedDocumentsError(refusals, result)


async def _add_group(
    stores: Stores, documents: Mapping[str, Entry], *, always: bool
) -> dict[str, Outcome]:
    replaced = await find_replaced(stores, documents)
    drafts = await draft_documents(stores, documents)
    return await add_drafts(stores, drafts, replaced, always=always)


async def add_drafts(
    stores: Stores,
    drafts: Sequence[Draft],
    replaced: Mapping[str, Record] | None = None,
    *,
    always: bool = False,
) -> dict[str, Outcome]:
    """Write documents that have been cut, and return the outcome of each by its identity.

    Parameters:
        replaced: what documents replace of `langchain_classic`'s; see `find_replaced`.
        always: whether unchanged documents are written, too.
    """
    replaced = replaced or {}
    old_records = await stores.read_records([draft.identity for draft in drafts])
    outcomes = {
        draft.identity: Outcome(draft.identity, existed=old is not None, was_written=False)
        for draft, old in zip(drafts, old_records, strict=True)
    }
    changes = await _find_changes(stores, drafts, old_records, replaced, always=always)

    async def write(locked: Stores) -> list[_Change]:
        current = changes
        if stores.is_shared:  # others may have written before the documents were locked
            drafts = [change.draft for change in changes]
            records = await locked.read_records([draft.identity for draft in drafts])
            current = await _find_changes(locked, drafts, records, replaced, always=always)
        if current:
            await _write(locked, current)
        return current

    if changes:
        for change in await run_locked(stores, [each.draft.identity for each in changes], write):
            identity = change.draft.identity
            outcomes[identity] = Outcome(identity, change.old is not None, was_written=True)
    return outcomes


async def find_changed(stores: Stores, drafts: Sequence[Draft]) -> dict[str, bool]:
    """Return which documents are not in the stores as they are cut now, and whether each existed.

    A document with missing or damaged parents, or with missing children, is one of them.
    """
    records = await stores.read_records([draft.identity for draft in drafts])
    changes = await _find_changes(stores, drafts, records, {}, always=False)
    return {change.draft.identity: change.old is not None for change in changes}


def digest_of(stores: Stores, draft: Draft) -> str:
    """Return the digest that a document's record has if nothing about the document has changed.

    It is made of the document's text and metadata, the ids and metadata of all that it is cut into,
    and the settings of the index. The ids are made of positions and texts, so they stand for the
    splitters.
    """
    return _make_record(stores, draft).digest


async def _find_changes(
    stores: Stores,
    drafts: Sequence[Draft],
    records: Sequence[Record | None],
    replaced: Mapping[str, Record],
    *,
    always: bool,
) -> list[_Change]:
    """Return what has to be written of these drafts, whose documents have these records."""
    changes: list[_Change] = []
    unchanged: list[_Change] = []
    for draft, record in zip(drafts, records, strict=True):
        new, old = _make_record(stores, draft), record
        if draft.identity in replaced:
            old = replaced[draft.identity].pending_after(old)
        is_changed = old is None or bool(old.pending) or old.digest != new.digest
        change = _Change(draft, new, old, is_new_throughout=always)
        (changes if is_changed or always else unchanged).append(change)
    if unchanged:
        incomplete = await _find_incomplete(stores, [each.old for each in unchanged if each.old])
        damaged = [each for each in unchanged if each.new.identity in incomplete]
        changes += [replace(change, is_new_throughout=True) for change in damaged]
    return changes


async def _find_incomplete(stores: Stores, records: Sequence[Record]) -> set[str]:
    """Return the identities of the records whose parents or children are not as they were."""
    parents = [parent for record in records for parent in record.parents]
    children = [child for record in records for child in record.children]
    rows = dict(zip(parents, await stores.docstore.read(parents), strict=True))
    missing = await stores.children.find_missing(children)
    return {
        record.identity
        for record in records
        if None in [rows[parent] for parent in record.parents]
        or not missing.isdisjoint(record.children)
        or not record.is_intact(rows)
    }


async def _write(stores: Stores, changes: Sequence[_Change]) -> None:
    editions = [_make_edition(stores, change) for change in changes]
    pending_records: list[tuple[str, Entry]] = []
    removed_children, removed_parents = [], []
    for change in changes:
        pending = change.new.pending_after(change.old)
        pending_records.append(pending.to_row())
        removed_children += _removed_ids(pending.children, change.new.children)
        removed_parents += _removed_ids(pending.parents, change.new.parents)
    parents = await _parents_to_write(stores, changes)
    state = unsearchable_rows([(each.draft.source, each.new.child_keys) for each in changes])
    await begin_changes(stores)
    # Records first: a store may write a few rows at a time, and the process die in between.
    await stores.docstore.write([*pending_records, *parents, *state])
    await stores.children.write(editions)
    await stores.children.remove(removed_children)
    await stores.docstore.remove(removed_parents)
    documents = {each.draft.identity: each.draft.children for each in changes}
    records = [change.new.to_row() for change in changes]
    await log_changes(stores, documents, removed_parents, records)


async def _parents_to_write(stores: Stores, changes: Sequence[_Change]) -> list[tuple[str, Entry]]:
    """Return the rows of the parents that the docstore does not hold as they are."""
    parents = dict(
        parent_row(parent, each.draft.identity) for each in changes for parent in each.draft.parents
    )
    old_ids = {parent for each in changes if each.base for parent in each.base.parents}
    ids = [name for name in parents if name in old_ids]
    rows = await stores.docstore.read(ids) if ids else []
    old = dict(zip(ids, rows, strict=True))
    return [(name, parent) for name, parent in parents.items() if old.get(name) != parent]


async def remove(stores: Stores, ids: Sequence[str] | None, source: str | None) -> list[str]:
    """Remove documents, by identity or `metadata["source"]`, with everything made of them.

    Returns the identities of those that existed.
    """
    if ids is None and source is None:
        raise InputError('delete() needs ids=[...] or source="..."')
    check_ids(ids, "delete")
    removed = await remove_documents(stores, ids or [])
    if source is not None:
        metadata = {"source": source}
        removed += await remove_documents(stores, await find_documents(stores, metadata), metadata)
    return removed


def check_ids(ids: Sequence[str] | None, method: str) -> None:
    """Raise a TypeError for a single id, which Python would take for one id per character."""
    if isinstance(ids, str | bytes):
        raise InputTypeError(f"{method}() needs a list of ids, got {ids!r}: write [{ids!r}]")


async def remove_documents(
    stores: Stores, identities: Sequence[str], metadata: Mapping[str, object] | None = None
) -> list[str]:
    """Remove documents that have these metadata, and return the identities of those that existed.

    Another process may have changed a document's metadata since they were read to find it.
    """
    removed: list[str] = []
    for group in batched(list(dict.fromkeys(identities)), _GROUP_DOCUMENTS):
        work = partial(_remove_group, identities=group, metadata=metadata)
        removed += await run_locked(stores, group, work)
    return removed


async def _remove_group(
    stores: Stores, identities: Sequence[str], metadata: Mapping[str, object] | None
) -> list[str]:
    records = dict(zip(identities, await stores.read_records(identities), strict=True))
    removed = await _remove_parents(stores, [i for i, each in records.items() if each is None])
    removable = [
        each for each in records.values() if each and has_metadata(each.document, metadata)
    ]
    return removed + await _remove_records(stores, removable)


async def _remove_records(stores: Stores, records: Sequence[Record]) -> list[str]:
    if not records:
        return []
    children = [child for record in records for child in record.children]
    # Mark the records first, so that a crash between here and the end is repaired by adding or
    # removing the documents again.
    pending = [replace(record, pending="removing").to_row() for record in records]
    await begin_changes(stores)
    await stores.docstore.write(pending)
    await stores.children.remove(children)
    parents = [parent for record in records for parent in record.parents]
    await stores.docstore.remove(parents)
    await log_changes(stores, {record.identity: () for record in records}, parents)
    await stores.docstore.remove([record_key(record.identity) for record in records])
    return [record.identity for record in records]


async def _remove_parents(stores: Stores, ids: Sequence[str]) -> list[str]:
    """Remove parents of `langchain_classic`'s."""
    rows = zip(ids, await stores.docstore.read(ids), strict=True)
    parents = [parent for parent, row in rows if row is not None]
    children_of = await read_classic_children(stores, parents)
    if not children_of:
        return []
    children = [child.id or "" for children in children_of.values() for child in children]
    await begin_changes(stores)
    await stores.children.remove(children)
    await stores.docstore.remove(list(children_of))
    await log_changes(stores, {}, list(children_of))
    return list(children_of)


async def find_documents(stores: Stores, metadata: Mapping[str, object] | None) -> list[str]:
    """Return the identities of documents with these metadata, or of all; reads every record.

    The keys of classic's parents are among them.
    """
    identities: list[str] = []
    listed: set[str] = set()
    async for records in stores.read_all_records():
        for record in records:
            listed.update(record.parents)
            if has_metadata(record.document, metadata):
                identities.append(record.identity)
    return identities + await find_classic_parents(stores, listed, metadata)


async def get(stores: Stores, ids: Sequence[str]) -> list[Entry]:
    """Return source documents as they were added, or parents by their UUIDs, in order."""
    check_ids(ids, "get")
    unique = list(dict.fromkeys(ids))
    records = await stores.read_records(unique)
    parents = await stores.docstore.read(unique)
    entries: list[Entry] = []
    for key, record, parent in zip(unique, records, parents, strict=True):
        if record is not None:
            entries.append(record.document)
        elif parent is not None:
            entries.append(replace(parent, id=key) if is_own_parent(key, parent) else parent)
    return entries


def settings_of(stores: Stores) -> str:
    """Return the settings that decide, with the splitters and the model, what is stored."""
    return f"{FORMAT} {stores.children.smoothing:g} {stores.headings:d}"


def _make_record(stores: Stores, draft: Draft) -> Record:
    settings = settings_of(stores)
    embedding = f"{settings} {stores.children.model}"
    content = source_identity(draft.source.text, draft.source.metadata)
    parents = tuple(parent.id or "" for parent in draft.parents)
    children = tuple(child.id or "" for child in draft.children)
    metadata = json.dumps([child.metadata for child in draft.children], sort_keys=True)
    digest = stable_uuid(settings, content, *parents, "", *children, metadata)
    keys = tuple(sorted({key for child in draft.children for key in child.metadata}))
    checksums = tuple(map(checksum, [draft.source, *draft.parents]))
    return Record(
        draft.identity, draft.source, digest, parents, children, keys, embedding, checksums
    )


def _make_edition(stores: Stores, change: _Change) -> Edition:
    """Return the children, with None under old metadata keys if the store would keep those."""
    children, old, base = change.draft.children, change.old, change.base
    if old is not None and stores.children.merges_metadata:
        children = [
            replace(
                child,
                metadata=child.metadata
                | dict.fromkeys(key for key in old.child_keys if key not in child.metadata),
            )
            for child in children
        ]
    if base is None:
        return Edition(children)
    if not stores.headings:
        return Edition(children, base.children)
    return Edition(children, base.children, heading_context(base.document))


def _removed_ids(before: tuple[str, ...], after: tuple[str, ...]) -> list[str]:
    remaining = set(after)
    return [each for each in before if each not in remaining]
