"""Keeping the keyword index in step with the docstore.

A docstore has one row that names its revision, and a log with one row for each recent revision,
which names the documents that it changed. Every operation writes the next revision together with
the documents' records. A process whose keyword index is at an older revision reads the log, and
indexes the present children of the documents named there. If the log does not go back far enough,
the index is rebuilt.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_splitters.calls import call
from rag_splitters.errors import InputError
from rag_splitters.parent_child.batching import DOCUMENTS_AT_ONCE, batched
from rag_splitters.parent_child.drafts import headings_of
from rag_splitters.parent_child.errors import DamagedRowsError, LockLostError
from rag_splitters.parent_child.keywords.index import KeywordIndex, Revision
from rag_splitters.parent_child.records import (
    RECORD_PREFIX,
    STATE_PREFIX,
    Entry,
    Record,
    record_key,
)
from rag_splitters.parent_child.stores.stores import Stores
from rag_splitters.parent_child.writing import ProcessLock, process_lock

REVISION_KEY = f"{STATE_PREFIX}revision"
"""The key of the row that names the docstore's revision."""
_LOG_PREFIX = f"{STATE_PREFIX}log/"
LOG_SIZE = 1024
"""How many revisions the log goes back."""


def new_revision(before: Revision | None = None) -> Revision:
    """Return the revision that follows another one, or the first one."""
    return Revision(0 if before is None else before.number + 1, uuid.uuid4().hex)


async def commit(
    stores: Stores,
    before: Revision | None,
    documents: Mapping[str, Sequence[Entry]],
    rows: Sequence[tuple[str, Entry]],
    removed: Sequence[str],
) -> None:
    """Write what an operation changed with a new revision, all in one step if the store can.

    Then the keyword index is brought in step.

    Parameters:
        before: the docstore's revision, as it was read in this turn.
        documents: the children of each document, by its identity; none of one that is removed.
        rows: the rows to write, such as parents and records.
        removed: the keys of the rows to remove.
    """
    names = {record_key(identity): children for identity, children in documents.items()}
    while True:
        after = new_revision(before)
        log = {"before": before and before.name, "documents": list(names)}
        key = _log_key(after.number)
        # Whoever finds the revision must find the log of it, and what it changed.
        all_rows = [(key, Entry(after.name, log, key)), *rows, revision_row(after)]
        expected = {REVISION_KEY: None if before is None else revision_row(before)[1]}
        if await stores.docstore.write(all_rows, removed, expected):
            break
        again = await read_revision(stores)  # another process with the same turn was faster
        if again == before:
            raise LockLostError("another process has begun to write to this index")
        before = again
    keywords = stores.keywords
    if keywords is not None:
        async with _lock_of(keywords).hold(stores.writer.timeout):
            if keywords.revision == before:
                await call(keywords.update, names, after, stores.id_key)


async def prepare_keyword_index(stores: Stores, keywords: KeywordIndex) -> None:
    """Bring the keyword index in step before a search.

    While another operation brings it in step, it is searched as it is, if it was usable before.
    """
    lock = _lock_of(keywords)
    if await is_in_step(stores, keywords) or (lock.is_held and keywords.is_usable):
        keywords.is_usable = True
        return
    async with lock.hold(stores.writer.timeout):
        if not await _apply_log(stores, keywords):
            await _rebuild(stores, keywords)
        keywords.is_usable = True


def _lock_of(keywords: KeywordIndex) -> ProcessLock:
    """Return the lock of the file: several retrievers of a process may have it open."""
    return process_lock(f"keyword index {keywords.path or id(keywords)}")


async def is_in_step(stores: Stores, keywords: KeywordIndex) -> bool:
    """Whether the keyword index knows the docstore's revision."""
    return await read_revision(stores) == keywords.revision


async def _apply_log(stores: Stores, keywords: KeywordIndex) -> bool:
    """Apply what the index missed; False if the log does not go back so far."""
    own, current = keywords.revision, await read_revision(stores)
    if own is None or current is None:
        return False
    numbers = range(own.number + 1, current.number + 1)
    if len(numbers) > LOG_SIZE or own.number > current.number:
        return False
    names: dict[str, None] = {}
    last = own.name
    for row in await stores.docstore.read([_log_key(number) for number in numbers]):
        if row is None or row.metadata.get("before") != last:
            return False
        last = row.text
        names.update(dict.fromkeys(row.metadata["documents"]))
    if last != current.name:
        return False
    groups = batched(list(names), DOCUMENTS_AT_ONCE) or [[]]
    for group in groups:
        keys = [name for name in group if name.startswith(RECORD_PREFIX)]
        rows = map(Record.from_row, await stores.docstore.read(keys))
        documents = await _read_documents(stores, [row for row in rows if row is not None])
        changes = {name: documents.get(name, ()) for name in group}
        # Until the last group, the index knows no more than before: a crash repeats them all.
        revision = current if group is groups[-1] else own
        await call(keywords.update, changes, revision, stores.id_key)
    return True


async def rebuild_keyword_index(stores: Stores, keywords: KeywordIndex) -> None:
    """Rebuild the keyword index from the children of the documents."""
    async with _lock_of(keywords).hold(stores.writer.timeout):
        await _rebuild(stores, keywords)


async def _rebuild(stores: Stores, keywords: KeywordIndex) -> None:
    # What an operation changes from here on, it logs later, and that is applied once more.
    revision = await read_revision(stores)
    keywords.is_usable = False
    keywords.is_rebuilt = True
    await call(keywords.clear)
    async for records in stores.read_all_records():
        documents = await _read_documents(stores, records)
        await call(keywords.update, documents, None, stores.id_key)
    await call(keywords.update, {}, revision)


async def _read_documents(stores: Stores, records: Sequence[Record]) -> dict[str, list[Entry]]:
    """Return the children that there are of each record, by the record's key."""
    ids = [child for record in records for child in record.children]
    try:
        read = await stores.children.read(ids)
    except NotImplementedError:
        raise InputError(
            "search_type='hybrid' needs a vector store that returns children by their ids, from "
            "which the keyword index is filled: use search_type='similarity', or Chroma"
        ) from None
    children = {each.id: each for each in read if each is not None}
    documents: dict[str, list[Entry]] = {}
    sources = await stores.read_documents(records) if stores.headings else [None] * len(records)
    for record, source in zip(records, sources, strict=True):
        own = [children[each] for each in record.children if each in children]
        if source is not None:
            above = headings_of(source)
            own = [replace(child, context=above(child.metadata)[1]) for child in own]
        documents[record_key(record.identity)] = own
    return documents


async def read_revision(stores: Stores) -> Revision | None:
    """Return the docstore's revision; None if no document was ever added."""
    (row,) = await stores.docstore.read([REVISION_KEY])
    return revision_from_row(row)


def revision_from_row(row: Entry | None) -> Revision | None:
    """Return the revision that a row of the docstore holds.

    Raises DamagedRowsError if it is not what was written.
    """
    if row is None:
        return None
    if not isinstance(row.metadata.get("number"), int):
        raise DamagedRowsError(
            "the docstore's revision is damaged: call verify(repair=True)", [REVISION_KEY]
        )
    return Revision(row.metadata["number"], row.text)


def revision_row(revision: Revision) -> tuple[str, Entry]:
    """Return the row of the docstore that holds a revision."""
    return REVISION_KEY, Entry(revision.name, {"number": revision.number}, REVISION_KEY)


def _log_key(number: int) -> str:
    """Return the key of a revision's row, which a much later revision writes over."""
    return f"{_LOG_PREFIX}{number % LOG_SIZE:04}"
