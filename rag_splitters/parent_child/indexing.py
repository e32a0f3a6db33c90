"""Adding and removing documents: what is written and removed, and in which order.

Documents are cut and embedded before the turn to write is taken. In the turn, what will be is noted
in the ledger, the document's records; then children are written; then, in one step if the docstore
can, the new parents and the final record take the place of the old ones; and at last the old
children are removed. A child without a parent is not found, so a query sees one version of a
document or the other. If the process dies, the record lists every chunk that may exist, so running
the same again finishes the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from rag_splitters.contract.groups import grouped
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.ids import source_identity
from rag_splitters.models import ModelError
from rag_splitters.parameters.checks import check_has, check_list
from rag_splitters.parameters.messages import describe_value
from rag_splitters.parent_child.batching import DOCUMENTS_AT_ONCE, batched
from rag_splitters.parent_child.drafts import draft_documents
from rag_splitters.parent_child.errors import MissingParentsError, RefusedDocumentsError
from rag_splitters.parent_child.filters import unsearchable_rows
from rag_splitters.parent_child.identity import (
    INDEX_LABEL,
    check_identity,
    ensure_identity,
    read_identity,
    refuse_classic,
    write_identity,
)
from rag_splitters.parent_child.keywords.index import Revision
from rag_splitters.parent_child.losses import find_losses
from rag_splitters.parent_child.metadata import check_values
from rag_splitters.parent_child.records import Entry, Record, is_chunk_id, is_own_parent, record_key
from rag_splitters.parent_child.revisions import REVISION_KEY, commit, revision_from_row
from rag_splitters.parent_child.stores.chroma import MODEL_LABEL
from rag_splitters.parent_child.stores.stores import Stores
from rag_splitters.parent_child.vectors import Draft, VectorsByText

Status = Literal["added", "changed", "unchanged", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What adding a document did."""

    identity: str
    """Its id; for a refused document the one that the user gave it, or nothing."""
    status: Status
    refusal: str = ""
    """Why it was refused: which document, which key."""


async def add(
    stores: Stores,
    documents: Iterable[Entry],
    *,
    always: bool = False,
    own_vectors: VectorsByText | None = None,
    tolerant: bool = False,
) -> list[Outcome]:
    """Add or replace documents, and return the outcome of each, in order.

    Unchanged documents are skipped: nothing is embedded or written. Pass `always=True` to write
    them anyway. Equal documents with the same id count as one. A document that cannot be stored is
    refused before anything of it is written.

    Parameters:
        documents: a list is checked for different documents with the same id before anything is
            written; of an iterator, the groups that were read before such a document are written.
        own_vectors: the model's vectors of texts that need not be embedded.
        tolerant: whether a document that cannot be cut is refused, too, instead of raising.

    Raises ValueError for different documents with the same id.
    """
    outcomes: list[Outcome] = []
    refusals: dict[int, str] = {}
    checked = _check_documents(stores, documents, refusals)
    for group in grouped(list(checked) if isinstance(documents, Sequence) else checked):
        identities = [
            None if number in refusals else source_identity(each.text, each.metadata, each.id)
            for number, each in enumerate(group, len(outcomes))
        ]
        pairs = list(zip(identities, group, strict=True))
        storable = {identity: document for identity, document in pairs if identity is not None}
        drafts, failures = await _draft(stores, storable, tolerant=tolerant)
        by_identity = await _add_drafts(stores, drafts, always=always, own_vectors=own_vectors)
        for identity, document in pairs:
            reason = failures[identity] if identity in failures else refusals.get(len(outcomes))
            failure = reason and Outcome(document.id or "", "failed", reason)
            outcomes.append(failure or by_identity[identity or ""])
    return outcomes


def _check_documents(
    stores: Stores, documents: Iterable[Entry], refusals: dict[int, str]
) -> Iterator[Entry]:
    """Pass documents on, and raise a ValueError for one whose id a different document has.

    Documents that are refused are left out of the comparison: nothing of them is written.

    Parameters:
        refusals: why documents are refused, by their numbers; those that are passed on are added.
    """
    versions: dict[str, tuple[int, str]] = {}
    for number, document in enumerate(documents):
        if refusal := _find_refusal(stores, document, number):
            refusals[number] = refusal
        elif document.id is not None:
            version = source_identity(document.text, document.metadata)
            first, other = versions.setdefault(document.id, (number, version))
            if version != other:
                raise InputError(
                    f"documents[{first}] and documents[{number}] are different, but have the same "
                    f"id {document.id!r}, so one would replace the other: give each document an id "
                    f"of its own, such as {f'{document.id}#1'!r}, or join the pages of a file into "
                    "one document"
                )
        yield document


async def _draft(
    stores: Stores, documents: Mapping[str, Entry], *, tolerant: bool
) -> tuple[list[Draft], dict[str, str]]:
    """Cut documents, by identity; return the drafts, and why the other documents cannot be cut.

    If the documents cannot be cut together, they are cut one by one.
    """
    try:
        return (await draft_documents(stores, documents) if documents else []), {}
    except ImportError:  # not the fault of a document
        raise
    except Exception as error:
        if not tolerant or (isinstance(error, ModelError) and error.fatal):
            raise
        if len(documents) == 1:
            ((identity, document),) = documents.items()
            name = repr(document.id) if document.id else f"(no id) {document.text[:60]!r}"
            problem = f"{type(error).__name__}: {error}"
            return [], {identity: f"document {name} could not be split: {problem}"}
    drafts: list[Draft] = []
    failures: dict[str, str] = {}
    for identity, document in documents.items():
        own_drafts, own_failures = await _draft(stores, {identity: document}, tolerant=True)
        drafts += own_drafts
        failures |= own_failures
    return drafts, failures


def _find_refusal(stores: Stores, document: Entry, number: int) -> str | None:
    """Say why a document cannot be stored, if so, naming it and the key."""
    try:
        check_values(document.metadata, "metadata", is_json=stores.docstore.is_json)
    except TypeError as error:
        is_named = document.id is not None
        name = repr(document.id) if is_named else f"number {number} ({document.text[:40]!r})"
        return f"document {name}: {error}"
    return None


def statuses(outcomes: Iterable[Outcome]) -> dict[str, Status]:
    """Return what became of the documents that were not refused, by id.

    Of equal documents, which count as one, the first was written.
    """
    result: dict[str, Status] = {}
    for outcome in outcomes:
        if not outcome.refusal:
            result.setdefault(outcome.identity, outcome.status)
    return result


def check_refusals(outcomes: Iterable[Outcome], result: object) -> None:
    """Raise a RefusedDocumentsError if documents were refused, with the result for the others."""
    refusals = [outcome.refusal for outcome in outcomes if outcome.refusal]
    if refusals:
        raise RefusedDocumentsError(refusals, result)


async def _add_drafts(
    stores: Stores,
    drafts: Sequence[Draft],
    *,
    always: bool,
    own_vectors: VectorsByText | None,
) -> dict[str, Outcome]:
    """Write documents that have been cut, and return the outcome of each by its identity."""
    names = [draft.identity for draft in drafts]
    outcomes = {name: Outcome(name, "unchanged") for name in names}
    records = await stores.read_records(names)
    own_vectors = dict(own_vectors or {})
    changed = await _embed_changed(stores, drafts, records, own_vectors, always=always)
    if not changed:
        return outcomes
    rows = (row for draft in changed for row in draft.vectors.values())
    await ensure_identity(stores, next((len(row) for row in rows), None))

    async def write(held: Stores) -> list[Draft]:
        keys = [record_key(draft.identity) for draft in changed]
        revision, *rows = await held.docstore.read([REVISION_KEY, *keys])
        pairs = list(zip(changed, map(Record.from_row, rows), strict=True))
        current = [draft for draft, record in pairs if draft.old == record]
        others = [pair for pair in pairs if pair[0].old != pair[1]]
        if others:  # another writer has changed them meanwhile
            again, records = zip(*others, strict=True)
            current += await _embed_changed(held, again, records, own_vectors, always=always)
        if current:
            await _write(held, current, revision_from_row(revision))
        return current

    for draft in await stores.in_turn(write):
        name, old = draft.identity, draft.old
        if stores.representations is not None:
            stores.representations.forget(key for key, _ in draft.representations)
        outcomes[name] = Outcome(name, "changed" if old and old.digest else "added")
    return outcomes


async def _embed_changed(
    stores: Stores,
    drafts: Sequence[Draft],
    records: Sequence[Record | None],
    own_vectors: VectorsByText,
    *,
    always: bool,
) -> list[Draft]:
    """Return the drafts that have to be written in place of these records, with their vectors."""
    for draft, record in zip(drafts, records, strict=True):
        draft.compare(record, is_new_throughout=always)
    if not always:
        unchanged = [
            draft.old
            for draft in drafts
            if draft.old and draft.old.is_finished and draft.old.digest == draft.record.digest
        ]
        losses = await find_losses(stores, unchanged)
        incomplete = {*losses.parents, *losses.children, *losses.damaged}
        whole = {record.identity for record in unchanged} - incomplete
        drafts = [draft for draft in drafts if draft.identity not in whole]
        for draft in drafts:
            draft.is_new_throughout = draft.identity in incomplete
    await stores.children.embed(drafts, own_vectors)
    return list(drafts)


async def _write(stores: Stores, drafts: Sequence[Draft], revision: Revision | None) -> None:
    records = [(each.old or Record(each.identity)).before(each.record) for each in drafts]
    state = unsearchable_rows([(each.source, each.record.child_keys) for each in drafts])
    await stores.docstore.write([*(record.to_row() for record in records), *state])
    await stores.children.write(drafts, stores.current_turn)
    records = [draft.record.after(draft.old) for draft in drafts]
    removed = [parent for record in records for parent in record.other_parents]
    documents = {draft.identity: draft.children for draft in drafts}
    rows = [row for draft in drafts for row in draft.parents_to_write()]
    await commit(stores, revision, documents, [*rows, *(r.to_row() for r in records)], removed)
    others = [child for record in records for child in record.other_children]
    finals = [
        draft.record.to_row()
        for draft, record in zip(drafts, records, strict=True)
        if not record.is_finished
    ]
    if finals:
        await remove_rows(stores, others, finals, up_to=stores.current_turn.number)


async def remove_rows(
    stores: Stores,
    children: Sequence[str],
    rows: Sequence[tuple[str, Entry]] = (),
    removed: Sequence[str] = (),
    *,
    up_to: int | None = None,
) -> None:
    """Remove children, and then write rows of the docstore and remove others.

    Parameters:
        up_to: children that a later turn wrote stay, if the vector store can tell; None: all go.

    Raises LockLostError, and removes nothing, if the turn has ended.
    """
    await stores.current_turn.confirm()
    await stores.children.remove(children, up_to)
    await stores.docstore.write(rows, removed)


async def reembed_documents(stores: Stores) -> None:
    """Embed all documents anew, if they were embedded with another model.

    If that is interrupted, the index can only be opened to do it again.
    """
    stores.writer.identity, model = None, stores.children.model
    identity = await read_identity(stores.docstore)
    if identity is None or (identity.model == model and not identity.is_reembedding):
        return
    identity = replace(identity, model=model, dimension=None, is_reembedding=True)
    await write_identity(stores, identity)
    async for records in stores.read_all_records():
        documents = await read_sources(stores, records)
        check_refusals(await add(stores, documents, always=True), None)
    await stores.children.write_labels({INDEX_LABEL: identity.id, MODEL_LABEL: identity.model})
    identity = await ensure_identity(stores)  # with the length of the new vectors
    await write_identity(stores, replace(identity, is_reembedding=False))


async def remove(stores: Stores, ids: Sequence[str] | None, source: str | None) -> list[str]:
    """Remove documents, by identity or `metadata["source"]`, with everything made of them.

    Returns the identities of those that existed.
    """
    if ids is None and source is None:
        raise InputError('delete() needs ids=[...] or source="..."')
    removed = await remove_documents(stores, list_of_ids(ids or [], "delete"))
    if source is not None:
        metadata = {"source": source}
        removed += await remove_documents(stores, await find_documents(stores, metadata), metadata)
    return removed


def list_of_ids(ids: Iterable[Any], method: str, kind: Any = str) -> list[Any]:
    """Return ids as a list.

    Raises TypeError for a single id, which Python would take for one id per character, and for ids
    that are not strings.
    """
    if isinstance(ids, str | bytes):
        raise InputTypeError(f"{method}() needs a list of ids, got {ids!r}: write [{ids!r}]")
    check_list(ids, "ids")
    listed = list(ids)
    if others := [each for each in listed if not isinstance(each, kind)]:
        raise InputTypeError(
            f"{method}() needs ids that are strings, got {describe_value(others[0])}"
        )
    return listed


async def remove_documents(
    stores: Stores, identities: Sequence[str], metadata: Mapping[str, object] | None = None
) -> list[str]:
    """Remove documents that have these metadata, and return the identities of those that existed.

    Another process may have changed a document's metadata since they were read to find it.
    """
    if await check_identity(stores) is None:
        await refuse_classic(stores)
        return []
    removed: list[str] = []
    for group in batched(list(dict.fromkeys(identities)), DOCUMENTS_AT_ONCE):
        work = partial(_remove_group, identities=group, metadata=metadata)
        removed += await stores.in_turn(work)
    return removed


async def _remove_group(
    stores: Stores, identities: Sequence[str], metadata: Mapping[str, object] | None
) -> list[str]:
    keys = [record_key(identity) for identity in identities]
    revision, *stored = await stores.docstore.read([REVISION_KEY, *keys])
    records = [record for row in stored if (record := Record.from_row(row)) is not None]
    records = [each for each in records if has_metadata(each.metadata, metadata)]
    if not records:
        return []
    parents = [parent for record in records for parent in record.all_parents]
    children = [child for record in records for child in record.all_children]
    documents: dict[str, Sequence[Entry]] = {record.identity: () for record in records}
    rows = [record.without_version().to_row() for record in records]
    await commit(stores, revision_from_row(revision), documents, rows, parents)
    keys = [record_key(record.identity) for record in records]
    await remove_rows(stores, children, removed=keys, up_to=stores.current_turn.number)
    return [record.identity for record in records if record.digest]


async def find_documents(
    stores: Stores, metadata: Mapping[str, object] | None, *, with_unfinished: bool = True
) -> list[str]:
    """Return the identities of documents with these metadata, or of all; reads every record.

    Parameters:
        with_unfinished: whether to list those that have no version, as after an interruption.
    """
    identities: list[str] = []
    async for records in stores.read_all_records():
        listed = [each for each in records if each.digest or with_unfinished]
        identities += [each.identity for each in listed if has_metadata(each.metadata, metadata)]
    return identities


def has_metadata(metadata: Mapping[str, object], expected: Mapping[str, object] | None) -> bool:
    """Whether a document's metadata have all that is expected."""
    check_has(expected or {}, "items", "scope as a dictionary")
    missing = object()
    return all(metadata.get(key, missing) == value for key, value in (expected or {}).items())


async def read_sources(stores: Stores, records: Sequence[Record | None]) -> list[Entry]:
    """Return the documents of records, as they are now; not those without a version.

    Raises MissingParentsError if a part of a text is lost.
    """
    present = [record for record in records if record is not None and record.digest]
    documents = await stores.read_documents(present)
    lost = [each for each, document in zip(present, documents, strict=True) if document is None]
    if lost:  # another process may be replacing or removing them
        again = await stores.read_records([record.identity for record in lost])
        if unchanged := [repr(each.identity) for each in again if each and each in lost]:
            raise MissingParentsError(
                f"the docstore has lost parts of the text of {', '.join(unchanged[:3])}: add the "
                "documents again"
            )
        documents += await read_sources(stores, again)
    return [document for document in documents if document is not None]


async def get(stores: Stores, ids: Sequence[str]) -> list[Entry]:
    """Return source documents as they were added, or parents by their UUIDs, in order."""
    unique = list(dict.fromkeys(list_of_ids(ids, "get")))
    records = await stores.read_records(unique)
    chunk_ids = [each for each in unique if is_chunk_id(each)]
    parents = dict(zip(chunk_ids, await stores.docstore.read(chunk_ids), strict=True))
    documents = {each.id: each for each in await read_sources(stores, records)}
    entries: list[Entry] = []
    for key in unique:
        parent = parents.get(key)
        if key in documents:
            entries.append(documents[key])
        elif parent is not None and is_own_parent(key, parent):
            entries.append(replace(parent, id=key))
    return entries
