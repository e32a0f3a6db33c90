"""Keeping an index equal to a set of documents, and repairing what an interruption left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rag_splitters.calls import call
from rag_splitters.errors import InputError
from rag_splitters.ids import source_identity
from rag_splitters.parent_child.batching import CHILDREN_AT_ONCE, DOCUMENTS_AT_ONCE, batched
from rag_splitters.parent_child.errors import DamagedRowsError, LockLostError, MissingParentsError
from rag_splitters.parent_child.identity import (
    check_identity,
    forget_lost_index,
    refuse_classic,
)
from rag_splitters.parent_child.indexing import (
    add,
    check_refusals,
    find_documents,
    has_metadata,
    remove_documents,
    remove_rows,
    statuses,
)
from rag_splitters.parent_child.losses import find_losses
from rag_splitters.parent_child.records import (
    RECORD_PREFIX,
    SOURCE_KEY,
    Entry,
    is_chunk_id,
    is_own_parent,
    is_parent_key,
    record_key,
)
from rag_splitters.parent_child.revisions import is_in_step, read_revision, rebuild_keyword_index
from rag_splitters.parent_child.stores.stores import Stores


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What `sync` did, by the ids of the documents."""

    added: list[str]
    changed: list[str]
    unchanged: list[str]
    deleted: list[str]


@dataclass(slots=True)
class VerifyReport:
    """What `verify` found; with `repair`, what it repaired."""

    documents: int = 0
    """How many documents the index has."""
    unfinished: list[str] = field(default_factory=list)
    """Documents whose adding or removing was interrupted."""
    without_parents: list[str] = field(default_factory=list)
    """Documents with parents that are missing in the docstore."""
    without_children: list[str] = field(default_factory=list)
    """Documents with children that are missing in the vector store."""
    orphans: list[str] | None = field(default_factory=list)
    """Children in the vector store that belong to no document; None if it cannot be listed."""
    stray_parents: list[str] = field(default_factory=list)
    """Parents in the docstore that belong to no document."""
    keywords_in_step: bool = True
    """Whether the keyword index has what it should have. One that is only behind, because it is new
    or another process wrote, counts as in step: the next search brings it up to date."""
    damaged: list[str] = field(default_factory=list)
    """Documents whose text, or whose parents, are not what was written; for a record that cannot be
    read at all, its key in the docstore. With `repair`, such a record is removed with all that
    belongs to it: add the document again. The key "state/revision" is the row by which keyword
    indexes are brought in step; `repair` begins a new one."""
    failed: dict[str, str] = field(default_factory=dict)
    """With `repair`, the documents that could not be repaired, and why."""

    @property
    def is_sound(self) -> bool:
        """Whether there is nothing to repair."""
        problems = (self.documents_to_repair, self.orphans, self.stray_parents)
        return not any(problems) and self.keywords_in_step

    @property
    def documents_to_repair(self) -> list[str]:
        """The documents with which something is wrong."""
        groups = (self.unfinished, self.without_parents, self.without_children, self.damaged)
        return list(dict.fromkeys(identity for group in groups for identity in group))


async def sync(
    stores: Stores, documents: Iterable[Entry], scope: Mapping[str, Any] | None
) -> SyncReport:
    """Make the index hold these documents and, within the scope, no others."""
    outcomes = await add(stores, list(check_scope(documents, scope)))
    listed = {outcome.identity for outcome in outcomes}
    unlisted = [each for each in await find_documents(stores, scope) if each not in listed]
    by_status: dict[str, list[str]] = {"added": [], "changed": [], "unchanged": []}
    for identity, status in statuses(outcomes).items():
        by_status[status].append(identity)
    report = SyncReport(
        **by_status,
        deleted=await remove_documents(stores, unlisted, scope),
    )
    check_refusals(outcomes, report)
    return report


def check_scope(documents: Iterable[Entry], scope: Mapping[str, Any] | None) -> Iterator[Entry]:
    """Pass documents on, and raise a ValueError for one that lies outside of the scope."""
    for document in documents:
        if not has_metadata(document.metadata, scope):
            name = source_identity(document.text, document.metadata, document.id)
            raise InputError(
                f"document {name!r} is outside of scope={dict(scope or {})!r}, so the next sync "
                "would not find it: widen the scope, or leave the document out"
            )
        yield document


async def verify(stores: Stores, *, repair: bool, remove_most: bool) -> VerifyReport:
    """Compare records, parents, children and keyword index, and repair what does not agree."""
    if repair and remove_most:
        await stores.in_turn(forget_lost_index)
    if await check_identity(stores) is None:
        await refuse_classic(stores)
    inspect = partial(_inspect, repair=repair, remove_most=remove_most)
    report = await stores.in_turn(inspect)
    if repair:
        for group in batched(report.documents_to_repair, DOCUMENTS_AT_ONCE):
            work = partial(_repair_documents, identities=group)
            report.failed.update(await stores.in_turn(work))
        if report.unfinished:  # the last request of a writer that died may have arrived since
            await stores.in_turn(inspect)
        if stores.keywords is not None and not report.is_sound:
            is_behind = not await is_in_step(stores, stores.keywords)
            if is_behind or not report.keywords_in_step:
                await rebuild_keyword_index(stores, stores.keywords)
    return report


async def _inspect(stores: Stores, *, repair: bool, remove_most: bool) -> VerifyReport:
    """Report what does not agree; with `repair`, remove what belongs to no document."""
    report, unreadable = VerifyReport(), list[str]()
    try:
        revision = await read_revision(stores)
    except DamagedRowsError as error:
        unreadable, revision = error.keys, None
    ids = await stores.children.list_ids()
    stored = None if ids is None else set(ids)
    keys = await stores.docstore.list_keys("")
    parents, children = set[str](), set[str]()
    for group in batched([key for key in keys if key.startswith(RECORD_PREFIX)], DOCUMENTS_AT_ONCE):
        records, damaged = await stores.read_sound_records(group)
        unreadable += damaged
        report.documents += len(group)
        parents.update(each for record in records for each in record.all_parents)
        children.update(each for record in records for each in record.all_children)
        report.unfinished += [each.identity for each in records if not each.is_finished]
        losses = await find_losses(stores, [each for each in records if each.is_complete], stored)
        report.without_parents += losses.parents
        report.without_children += losses.children
        report.damaged += losses.damaged
    report.damaged[:0] = unreadable
    others = sorted({key for key in keys if is_parent_key(key)} - parents)
    report.stray_parents += await _find_strays(stores, others)
    report.orphans = None
    if stored is not None:
        report.orphans = await _find_orphans(
            stores, stored - children, [] if repair else unreadable
        )
    keywords = stores.keywords
    if keywords is not None and revision is not None and keywords.revision == revision:
        report.keywords_in_step = set(await call(keywords.list_ids)) == children
    if repair:
        if not remove_most:
            _check_removal(report, len(children))
        await stores.children.adopt(stores.current_turn)
        removed = [*unreadable, *report.stray_parents]
        await remove_rows(stores, report.orphans or [], removed=removed)
    return report


def _check_removal(report: VerifyReport, listed: int) -> None:
    """Raise a MissingParentsError if most children belong to documents that are not listed."""
    orphans = len(report.orphans or ())
    if orphans > (orphans + listed) / 2:
        raise MissingParentsError(
            f"verify(repair=True) would remove {orphans:,} children, which is most of the index, "
            f"because the docstore lists only {report.documents:,} documents: it seems to have "
            "lost its rows. Restore it, or add the documents again and repair then; to remove the "
            "children all the same, call verify(repair=True, remove_most=True)"
        )


async def _find_strays(stores: Stores, keys: Sequence[str]) -> list[str]:
    """Return those of the rows that are parents of ours; other programs' are left alone."""
    strays: list[str] = []
    for group in batched(keys, DOCUMENTS_AT_ONCE):
        rows, damaged = await stores.read_readable(group)
        strays += [key for key, row in rows.items() if row is not None and is_own_parent(key, row)]
        strays += filter(is_chunk_id, damaged)
    return strays


async def _find_orphans(
    stores: Stores, ids: Collection[str], unreadable: Collection[str]
) -> list[str]:
    """Return our children that belong to no document.

    Children of unreadable records are left out.
    """
    orphans: list[str] = []
    for batch in batched(sorted(ids), CHILDREN_AT_ONCE):
        for child in await stores.children.read(batch, "metadata"):
            source = None if child is None else child.metadata.get(SOURCE_KEY)
            if child is not None and source is not None and record_key(source) not in unreadable:
                orphans.append(child.id or "")
    return orphans


async def _repair_documents(stores: Stores, identities: Sequence[str]) -> dict[str, str]:
    """Finish what was interrupted, and write again the documents that lack something.

    Returns the documents for which that fails, and why.
    """
    records = [each for each in await stores.read_records(identities) if each is not None]
    unfinished = [record.identity for record in records if not record.digest]
    await remove_documents(stores, unfinished)
    staying = [record for record in records if record.digest]
    documents = await stores.read_documents(staying)
    failed = {
        record.identity: "a part of its text in the docstore is lost: add it again"
        for record, document in zip(staying, documents, strict=True)
        if document is None
    }
    repairable = [document for document in documents if document is not None]
    try:
        outcomes = await add(stores, repairable, always=True)
        return failed | {each.identity: each.refusal for each in outcomes if each.refusal}
    except (OSError, LockLostError):  # no store or server answers: no document is to blame
        raise
    except Exception as error:  # one of them is harmful: the others are repaired one by one
        if len(identities) == 1:
            return {identities[0]: f"{type(error).__name__}: {error}"}
        for document in repairable:
            failed |= await _repair_documents(stores, [document.id or ""])
    return failed
