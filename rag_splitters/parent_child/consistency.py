"""Keeping an index equal to a set of documents, and repairing what an interruption left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rag_splitters.calls import call
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.classic import has_metadata, is_stray, read_again
from rag_splitters.parent_child.indexing import (
    Outcome,
    add,
    check_refusals,
    find_documents,
    remove_documents,
)
from rag_splitters.parent_child.locks import remove_stale_locks
from rag_splitters.parent_child.records import (
    RECORD_PREFIX,
    SOURCE_KEY,
    Entry,
    Record,
    is_parent_key,
)
from rag_splitters.parent_child.revisions import is_in_step, rebuild_keyword_index
from rag_splitters.parent_child.stores import Stores, UnsupportedError
from rag_splitters.text.ids import source_identity

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
    """Children in the vector store that belong to no document and to no parent of
    `langchain_classic`'s; None if the store cannot be listed."""
    stray_parents: list[str] = field(default_factory=list)
    """Parents in the docstore that belong to no document."""
    keywords_in_step: bool = True
    """Does the keyword index, if one is kept, know all that is in the stores?"""
    classic_parents: int = 0
    """How many parents `langchain_classic` wrote that no document has replaced."""
    failed: dict[str, str] = field(default_factory=dict)
    """With `repair`, the documents that could not be repaired, and why."""

    @property
    def is_sound(self) -> bool:
        """Is there nothing to repair?"""
        problems = (self.unfinished, self.without_parents, self.without_children, self.orphans)
        return not any(problems) and not self.stray_parents and self.keywords_in_step


async def sync(
    stores: Stores, documents: Iterable[Entry], scope: Mapping[str, Any] | None
) -> SyncReport:
    """Make the index hold these documents and, within the scope, no others."""
    outcomes: dict[str, Outcome] = {}
    all_outcomes = await add(stores, _check_scope(documents, scope))
    refused = {outcome.identity for outcome in all_outcomes if outcome.refusal}
    for outcome in all_outcomes:
        if outcome.refusal:
            continue
        first = outcomes.setdefault(outcome.identity, outcome)
        if outcome.was_written and not first.was_written:
            outcomes[outcome.identity] = outcome
    identities = await find_documents(stores, scope)
    unlisted = [each for each in identities if each not in outcomes and each not in refused]
    report = SyncReport(
        added=[
            each.identity for each in outcomes.values() if each.was_written and not each.existed
        ],
        changed=[each.identity for each in outcomes.values() if each.was_written and each.existed],
        unchanged=[each.identity for each in outcomes.values() if not each.was_written],
        deleted=await remove_documents(stores, unlisted, scope),
    )
    check_refusals(all_outcomes, report)
    return report


def _check_scope(documents: Iterable[Entry], scope: Mapping[str, Any] | None) -> Iterator[Entry]:
    for document in documents:
        if not has_metadata(document, scope):
            name = source_identity(document.text, document.metadata, document.id)
            raise ValueError(
                f"document {name!r} is outside of scope={dict(scope or {})!r}, so the next sync "
                "would not find it: widen the scope, or leave the document out"
            )
        yield document


async def verify(stores: Stores, *, repair: bool) -> VerifyReport:
    """Compare records, parents, children and keyword index, and repair what does not agree."""
    report = await _compare(stores)
    if repair:
        await remove_stale_locks(stores.docstore)
    if not repair or report.is_sound:
        return report
    report = replace(report, failed=await _repair_documents(stores, report))
    if report.orphans:
        await stores.children.remove(report.orphans)
    await stores.docstore.remove(report.stray_parents)
    if stores.keywords is not None and not (
        report.keywords_in_step and await is_in_step(stores, stores.keywords)
    ):
        await rebuild_keyword_index(stores, stores.keywords)
    return report


async def _repair_documents(stores: Stores, report: VerifyReport) -> dict[str, str]:
    """Finish what was interrupted, and write again the documents that lack something.

    Returns the documents for which that fails, and why.
    """
    failed: dict[str, str] = {}
    damaged = {*report.unfinished, *report.without_parents, *report.without_children}
    for group in batched(sorted(damaged), _GROUP_DOCUMENTS):
        records = [record for record in await stores.read_records(group) if record is not None]
        try:
            failed |= await _repair_records(stores, records)
        except OSError:  # no store or server answers: no document is to blame
            raise
        except Exception:  # one of them is harmful: the others are repaired one by one
            for record in records:
                try:
                    failed |= await _repair_records(stores, [record])
                except Exception as error:
                    failed[record.identity] = f"{type(error).__name__}: {error}"
    return failed


async def _repair_records(stores: Stores, records: Sequence[Record]) -> dict[str, str]:
    leaving = [record.identity for record in records if record.pending == "removing"]
    await remove_documents(stores, leaving)
    staying = [record.document for record in records if record.pending != "removing"]
    outcomes = await add(stores, staying, always=True)
    return {outcome.identity: outcome.refusal for outcome in outcomes if outcome.refusal}


async def _compare(stores: Stores) -> VerifyReport:
    read_again(stores)
    keys = await stores.docstore.list_keys("")
    parents = set(filter(is_parent_key, keys))
    stored = await _list_children(stores)
    unfinished, without_parents, without_children = [], [], []
    listed_parents: set[str] = set()
    listed_children: set[str] = set()
    async for records in stores.read_all_records():
        children = [child for record in records for child in record.children]
        present = stored if stored is not None else await _find_present(stores, children)
        for record in records:
            if record.pending:
                unfinished.append(record.identity)
                continue
            if not parents.issuperset(record.parents):
                without_parents.append(record.identity)
            if not present.issuperset(record.children):
                without_children.append(record.identity)
        listed_parents.update(parent for record in records for parent in record.parents)
        listed_children.update(children)
    classic: dict[str, list[str]] = {}
    orphans = None
    if stored is not None:
        orphans, classic = await _sort_unlisted(stores, stored - listed_children, parents)
    return VerifyReport(
        documents=sum(key.startswith(RECORD_PREFIX) for key in keys),
        unfinished=unfinished,
        without_parents=without_parents,
        without_children=without_children,
        orphans=orphans,
        stray_parents=await _find_stray_parents(stores, parents - listed_parents),
        keywords_in_step=await _knows_keywords(stores, classic),
        classic_parents=len(classic),
    )


async def _list_children(stores: Stores) -> set[str] | None:
    """Return the ids of all children; None if the store cannot be listed."""
    try:
        return set(await stores.children.list_ids())
    except UnsupportedError:
        return None


async def _find_present(stores: Stores, ids: Sequence[str]) -> set[str]:
    """Return those of the ids that are children."""
    children = await stores.children.read(ids, "id")
    return {child.id or "" for child in children if child is not None}


async def _sort_unlisted(
    stores: Stores, ids: set[str], parents: set[str]
) -> tuple[list[str], dict[str, list[str]]]:
    """Return the orphans among children that no record lists, and those of classic's parents.

    Classic's children without a parent are orphans only if this docstore has other parents of
    classic's: otherwise they belong to another docstore. Other programs' children are left alone.
    """
    orphans: list[str] = []
    orphans_of_classic: list[str] = []
    classic: dict[str, list[str]] = defaultdict(list)
    for batch in batched(sorted(ids), _GROUP_CHILDREN):
        for child in await stores.children.read(batch, "metadata"):
            if child is None:
                continue
            parent, child_id = child.metadata.get(stores.id_key), child.id or ""
            if SOURCE_KEY in child.metadata:
                orphans.append(child_id)
            elif parent in parents:
                classic[parent].append(child_id)
            elif parent is not None:
                orphans_of_classic.append(child_id)
    return orphans + (orphans_of_classic if classic else []), classic


async def _knows_keywords(stores: Stores, classic: Mapping[str, Sequence[str]]) -> bool:
    """Does the keyword index, if one is kept, know all children, those of classic's too?"""
    if stores.keywords is None:
        return True
    ids = {child for children in classic.values() for child in children}
    is_complete = not ids or ids.issubset(await call(stores.keywords.list_ids))
    return is_complete and await is_in_step(stores, stores.keywords)


async def _find_stray_parents(stores: Stores, keys: set[str]) -> list[str]:
    """Return the keys that hold a parent of ours; rows of other programs are left alone."""
    strays: list[str] = []
    for group in batched(sorted(keys), _GROUP_DOCUMENTS):
        rows = zip(group, await stores.docstore.read(group), strict=True)
        strays += [key for key, row in rows if row is not None and is_stray(key, row)]
    return strays
