"""Keeping an index equal to a set of documents, and repairing what an interruption left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from rag_splitters.calls import call
from rag_splitters.errors import InputError
from rag_splitters.ids import source_identity
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.errors import (
    DamagedRowsError,
    LockLostError,
    MissingParentsError,
)
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
    has_version,
    remove_documents,
)
from rag_splitters.parent_child.keyword_index import Revision
from rag_splitters.parent_child.records import (
    RECORD_PREFIX,
    SOURCE_KEY,
    Entry,
    Identity,
    Record,
    is_chunk_id,
    is_own_parent,
    is_parent_key,
    record_key,
)
from rag_splitters.parent_child.revisions import (
    REVISION_KEY,
    is_in_step,
    read_revision,
    rebuild_keyword_index,
)
from rag_splitters.parent_child.stores import Stores, UnsupportedError
from rag_splitters.text.surrogates import without_surrogates

_GROUP_DOCUMENTS = 256
_GROUP_CHILDREN = 1000


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What `sync` did, by the ids of the documents."""

    added: list[str]
    changed: list[str]
    unchanged: list[str]
    deleted: list[str]


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What `verify` found; with `repair`, what it repaired."""

    documents: int
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

    def extend(self, other: VerifyReport) -> None:
        """Add what was found in other documents."""
        for each in fields(self):
            mine = getattr(self, each.name)
            if isinstance(mine, list):
                mine.extend(getattr(other, each.name) or ())
        self.failed.update(other.failed)


async def sync(
    stores: Stores, documents: Iterable[Entry], scope: Mapping[str, Any] | None
) -> SyncReport:
    """Make the index hold these documents and, within the scope, no others."""
    by_id: dict[str | int, Entry] = {}
    for document in check_scope(documents, scope):  # the last one of several with one id wins
        by_id[len(by_id) if document.id is None else document.id] = document
    all_outcomes = await add(stores, by_id.values())
    refused = {outcome.identity for outcome in all_outcomes if outcome.refusal}
    outcomes = {outcome.identity: outcome for outcome in all_outcomes if not outcome.refusal}
    identities = await find_documents(stores, scope)
    unlisted = [each for each in identities if each not in outcomes and each not in refused]
    written = [outcome for outcome in outcomes.values() if outcome.was_written]
    report = SyncReport(
        added=[each.identity for each in written if not each.existed],
        changed=[each.identity for each in written if each.existed],
        unchanged=[each.identity for each in outcomes.values() if not each.was_written],
        deleted=await remove_documents(stores, unlisted, scope),
    )
    check_refusals(all_outcomes, report)
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
    """Compare records, parents, children and keyword index, and repair what does not agree.

    Other processes may write meanwhile. So what looks wrong at first is looked at again, and
    repaired, while nobody else writes.

    Parameters:
        remove_most: whether the repair may remove more than half of the children.
    """
    if repair and remove_most:
        await forget_lost_index(stores)
    index = stores.writer.identity or await check_identity(stores)
    if index is None:
        await refuse_classic(stores)
        index = Identity("a new index", "", "")
    unreadable = await _find_unreadable_rows(stores)
    revision = None if REVISION_KEY in unreadable else await read_revision(stores)
    scan = await _scan(stores, unreadable)
    if repair and not remove_most:
        _check_removal(scan)
    report = VerifyReport(scan.documents, damaged=unreadable)
    report = replace(report, keywords_in_step=await _knows_keywords(stores, revision, scan))
    if repair and unreadable:

        async def remove_unreadable(held: Stores) -> None:
            await held.docstore.write([], unreadable)

        await stores.in_turn(index.id, remove_unreadable)
    for group in batched(sorted(scan.suspects), _GROUP_DOCUMENTS):
        settle = partial(_settle, group, scan, repair)
        report.extend(await stores.in_turn(index.id, settle))
    report = replace(report, orphans=report.orphans if scan.can_list_children else None)
    if repair and stores.keywords is not None and not report.is_sound:
        is_behind = not await is_in_step(stores, stores.keywords)
        if is_behind or not report.keywords_in_step:
            await rebuild_keyword_index(stores, stores.keywords)
    return report


def _check_removal(scan: _Scan) -> None:
    """Raise a MissingParentsError if most children belong to documents that are not listed."""
    orphans = sum(map(len, scan.orphans.values()))
    if orphans > (orphans + len(scan.listed_children)) / 2:
        raise MissingParentsError(
            f"verify(repair=True) would remove {orphans:,} children, which is most of the index, "
            f"because the docstore lists only {scan.documents:,} documents: it seems to have lost "
            "its rows. Restore it, or add the documents again and repair then; to remove the "
            "children all the same, call verify(repair=True, remove_most=True)"
        )


@dataclass(slots=True)
class _Scan:
    """What the stores list, and what looks wrong; a document may be under way in another process.

    Children keep their document's identity without lone surrogates, and are listed by that.
    """

    documents: int = 0
    listed_parents: set[str] = field(default_factory=set)
    listed_children: set[str] = field(default_factory=set)
    suspects: set[str] = field(default_factory=set)
    """The identities of documents that have to be looked at again."""
    identities: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The identities with lone surrogates, by what they are without."""
    can_list_children: bool = True
    orphans: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Children that no record lists, by document."""
    strays: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Parents that no record lists, by document."""


async def _find_unreadable_rows(stores: Stores) -> list[str]:
    """Return the keys of records, and of the revision, that nobody can read, and so not write."""
    unreadable: list[str] = []
    try:
        await read_revision(stores)
    except DamagedRowsError as error:
        unreadable += error.keys
    for keys in batched(await stores.docstore.list_keys(RECORD_PREFIX), _GROUP_DOCUMENTS):
        unreadable += (await _read_records(stores, keys))[1]
    return unreadable


async def _read_records(stores: Stores, keys: Sequence[str]) -> tuple[list[Record], list[str]]:
    """Return the records that can be read, and the keys of the others."""
    rows, damaged = await stores.read_readable(keys)
    records: list[Record] = []
    for key, row in rows.items():
        try:
            record = Record.from_row(row)
        except DamagedRowsError:
            damaged.append(key)
        else:
            records += [] if record is None else [record]
    return records, damaged


async def _scan(stores: Stores, unreadable: Collection[str]) -> _Scan:
    keys = await stores.docstore.list_keys("")
    parents = set(filter(is_parent_key, keys))
    stored = await _list_children(stores)
    scan = _Scan(documents=sum(key.startswith(RECORD_PREFIX) for key in keys))
    record_keys = await stores.docstore.list_keys(RECORD_PREFIX)
    for group in batched([key for key in record_keys if key not in unreadable], _GROUP_DOCUMENTS):
        records, _ = await _read_records(stores, group)
        findings = await _examine(stores, records, stored)
        scan.suspects.update(findings.documents_to_repair)
        for record in records:
            scan.listed_parents.update(record.all_parents)
            scan.listed_children.update(record.all_children)
            if without_surrogates(record.identity) != record.identity:
                scan.identities[without_surrogates(record.identity)].add(record.identity)
    for group in batched(sorted(parents - scan.listed_parents), _GROUP_DOCUMENTS):
        rows_by_key, damaged = await stores.read_readable(group)
        for key, row in rows_by_key.items():
            if row is not None and row.id is not None and is_own_parent(key, row):
                scan.strays[row.id].append(key)
        if own := [key for key in damaged if is_chunk_id(key)]:
            scan.strays[""] += own
    scan.can_list_children = stored is not None
    await _sort_unlisted(stores, (stored or set()) - scan.listed_children, scan)
    scan.suspects.update(scan.strays, scan.orphans)
    return scan


async def _list_children(stores: Stores) -> set[str] | None:
    """Return the ids of all children; None if the store cannot be listed."""
    try:
        return set(await stores.children.list_ids())
    except UnsupportedError:
        return None


async def _sort_unlisted(stores: Stores, ids: set[str], scan: _Scan) -> None:
    """Find the orphans among children that no record lists; other programs' are left alone."""
    for batch in batched(sorted(ids), _GROUP_CHILDREN):
        for child in await stores.children.read(batch, "metadata"):
            if child is not None and SOURCE_KEY in child.metadata:
                scan.orphans[child.metadata[SOURCE_KEY]].append(child.id or "")


async def _examine(
    stores: Stores, records: Sequence[Record], stored: Collection[str] | None
) -> VerifyReport:
    """Look at all that these records list; `stored` has the ids of all children, if known."""
    report = VerifyReport(documents=len(records))
    finished = [record for record in records if record.is_complete]
    parents = [parent for record in finished for parent in record.parents]
    children = [child for record in finished for child in record.children]
    rows, unreadable = await stores.read_readable(parents)
    missing = {parent for parent, row in rows.items() if row is None}
    if stored is None:
        missing |= await stores.children.find_missing(children)
    else:
        missing.update(child for child in children if child not in stored)
    for record in records:
        if record.pending:
            report.unfinished.append(record.identity)
        if not record.is_complete:
            continue
        if not missing.isdisjoint(record.parents):
            report.without_parents.append(record.identity)
        if not missing.isdisjoint(record.children):
            report.without_children.append(record.identity)
        if not record.is_intact(rows) or not set(unreadable).isdisjoint(record.parents):
            report.damaged.append(record.identity)
    return report


async def _settle(group: Sequence[str], scan: _Scan, repair: bool, stores: Stores) -> VerifyReport:
    """Look at documents again that are locked now, and repair them."""
    identities = {name for each in group for name in (each, *scan.identities.get(each, ()))}
    records, unreadable = await _read_records(stores, sorted(map(record_key, identities)))
    group = [each for each in group if record_key(each) not in unreadable]
    report = await _examine(stores, records, None)
    parents = {parent for record in records for parent in record.all_parents}
    children = {child for record in records for child in record.all_children}
    strays = [key for each in group for key in scan.strays.get(each, ()) if key not in parents]
    present, damaged = await stores.read_readable(strays)
    report.stray_parents.extend(key for key, row in present.items() if row is not None)
    report.stray_parents.extend(damaged)
    orphans = [i for each in group for i in scan.orphans.get(each, ()) if i not in children]
    missing = await stores.children.find_missing(orphans)
    orphans = [each for each in orphans if each not in missing]
    report = replace(report, orphans=orphans)
    if repair:
        report.failed.update(await _repair_documents(stores, records, report))
        await stores.docstore.confirm()
        await stores.children.remove(orphans)
        await stores.docstore.write([], report.stray_parents)
    return report


async def _repair_documents(
    stores: Stores, records: Sequence[Record], report: VerifyReport
) -> dict[str, str]:
    """Finish what was interrupted, and write again the documents that lack something.

    Returns the documents for which that fails, and why.
    """
    broken = {*report.documents_to_repair}
    records = [record for record in records if record.identity in broken]
    unfinished = [record.identity for record in records if not has_version(record)]
    await remove_documents(stores, unfinished)
    staying = [record for record in records if has_version(record)]
    documents = await stores.read_documents(staying)
    failed = {
        record.identity: "a part of its text in the docstore is lost: add it again"
        for record, document in zip(staying, documents, strict=True)
        if document is None
    }
    repairable = [document for document in documents if document is not None]
    try:
        return failed | await _add_again(stores, repairable)
    except (OSError, LockLostError):  # no store or server answers: no document is to blame
        raise
    except Exception:  # one of them is harmful: the others are repaired one by one
        for document in repairable:
            try:
                failed |= await _add_again(stores, [document])
            except (OSError, LockLostError):
                raise
            except Exception as error:
                failed[document.id or ""] = f"{type(error).__name__}: {error}"
    return failed


async def _add_again(stores: Stores, documents: Sequence[Entry]) -> dict[str, str]:
    outcomes = await add(stores, documents, always=True)
    return {outcome.identity: outcome.refusal for outcome in outcomes if outcome.refusal}


async def _knows_keywords(stores: Stores, revision: Revision | None, scan: _Scan) -> bool:
    """Whether the keyword index holds exactly the children that the records list.

    An index that is behind is brought in step by the next search.
    """
    keywords = stores.keywords
    if keywords is None or revision is None or keywords.revision != revision:
        return True
    if await read_revision(stores) != revision:  # something was written meanwhile
        return True
    return set(await call(keywords.list_ids)) == scan.listed_children
