"""Keeping the keyword index in step with the docstore.

A docstore with a keyword index has one row that names its revision, and a log with one row for each
recent revision, which names the documents that it changed. Every operation writes the next revision
after it has written the children, and before it marks the documents' records as finished. A process
whose keyword index is at an older revision reads the log, and indexes the present children of the
documents named there. If the log does not go back far enough, the index is rebuilt.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rag_splitters.calls import call
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.classic import find_classic_parents, read_classic_children
from rag_splitters.parent_child.drafts import heading_context
from rag_splitters.parent_child.guard import Guard
from rag_splitters.parent_child.keyword_index import KeywordIndex, Revision
from rag_splitters.parent_child.records import (
    RECORD_PREFIX,
    STATE_PREFIX,
    Entry,
    Record,
    is_chunk_id,
    record_key,
)
from rag_splitters.parent_child.stores import AtomicDocstore, Stores

_REVISION_KEY = f"{STATE_PREFIX}keywords"
_LOG_PREFIX = f"{STATE_PREFIX}log/"
LOG_SIZE = 1024
"""How many revisions the log goes back."""

_NO_NUMBER = -1  # older versions of rag_splitters gave revisions none
_GROUP_PARENTS = 256


async def begin_changes(stores: Stores) -> None:
    """Have a keyword index that knows nothing filled before an operation changes anything.

    Then the operation need not be read from the stores again: most indexes begin empty.
    """
    keywords = stores.keywords
    if keywords is None or keywords.revision is not None or await read_revision(stores) is not None:
        return
    await rebuild_keyword_index(stores, keywords)


async def log_changes(
    stores: Stores,
    documents: Mapping[str, Sequence[Entry]],
    removed_parents: Iterable[str] = (),
    rows: Sequence[tuple[str, Entry]] = (),
) -> None:
    """Write a new revision for what an operation changed, and apply it to the keyword index.

    Another process may write a revision at the same time; each gets its own number.

    Parameters:
        documents: the children of each document, by its identity; none of one that is removed.
        removed_parents: the parents that are removed; only classic's count as documents.
        rows: the documents' final records, which are written right behind the log.
    """
    names = {record_key(identity): children for identity, children in documents.items()}
    names |= {key: () for key in removed_parents if not is_chunk_id(key)}
    while True:
        before = await read_revision(stores)
        if before is None:  # no keyword index is kept of this docstore
            if rows:
                await stores.docstore.write(rows)
            return
        after = Revision(before.number + 1, uuid.uuid4().hex)
        if await _write_revision(stores, before, after, list(names), rows):
            break
    if stores.keywords is not None and stores.keywords.revision == before:
        await _update(stores, stores.keywords, names, after)


async def _write_revision(
    stores: Stores,
    before: Revision | None,
    after: Revision,
    names: Sequence[str],
    rows: Sequence[tuple[str, Entry]] = (),
) -> bool:
    """Write a revision, its row of the log, and other rows.

    Returns False, and writes nothing, if another process has written a revision.
    """
    docstore = stores.docstore
    # The log is first: whoever finds the revision must find what it changed.
    state = [_log_row(before, after, names), _revision_row(after)]
    if not stores.is_shared or not isinstance(docstore, AtomicDocstore):
        await docstore.write([*state, *rows])
        return True
    expected = None if before is None else _revision_row(before)[1]
    is_written = await docstore.swap({_REVISION_KEY: expected}, state, [])
    if is_written and rows:
        await docstore.write(rows)
    return is_written


async def prepare_keyword_index(stores: Stores, keywords: KeywordIndex, guard: Guard) -> None:
    """Bring the keyword index in step before a search.

    While this process writes, the index is searched as it is: the operation will update it.
    """
    if await is_in_step(stores, keywords) or (guard.is_held and keywords.is_usable):
        keywords.is_usable = True
        return
    async with guard.hold():
        if not await _apply_log(stores, keywords):
            await rebuild_keyword_index(stores, keywords)
        keywords.is_usable = True


async def is_in_step(stores: Stores, keywords: KeywordIndex) -> bool:
    """Does the keyword index know the docstore's revision?"""
    revision = await read_revision(stores)
    return revision is not None and revision == keywords.revision


async def _apply_log(stores: Stores, keywords: KeywordIndex) -> bool:
    """Apply what the index missed; False if the log does not go back so far."""
    known, current = keywords.revision, await read_revision(stores)
    if known is None or current is None:
        return False
    numbers = range(known.number + 1, current.number + 1)
    if len(numbers) > LOG_SIZE or known.number > current.number:
        return False
    names: dict[str, None] = {}
    last = known.name
    for row in await stores.docstore.read([_log_key(number) for number in numbers]):
        if row is None or row.metadata["before"] != last:
            return False
        last = row.text
        names.update(dict.fromkeys(row.metadata["documents"]))
    if last != current.name:
        return False
    groups = batched(list(names), _GROUP_PARENTS) or [[]]
    for group in groups:
        keys = [name for name in group if name.startswith(RECORD_PREFIX)]
        rows = map(Record.from_row, await stores.docstore.read(keys))
        documents = await _read_documents(stores, [row for row in rows if row is not None])
        changes = {name: documents.get(name, ()) for name in group}
        # Until the last group, the index knows no more than before: a crash repeats them all.
        revision = current if group is groups[-1] else known
        await _update(stores, keywords, changes, revision)
    return True


async def rebuild_keyword_index(stores: Stores, keywords: KeywordIndex) -> None:
    """Rebuild the keyword index from the children of the documents and of classic's parents."""
    revision = await read_revision(stores)
    while revision is None:
        first = Revision(0, uuid.uuid4().hex)
        revision = (
            first if await _write_revision(stores, None, first, []) else await read_revision(stores)
        )
    # What an operation changes from here on, it logs later, and that is applied once more.
    keywords.is_usable = False
    keywords.is_rebuilt = True
    await call(keywords.clear)
    listed: set[str] = set()
    async for records in stores.read_all_records():
        documents = await _read_documents(stores, records)
        await _update(stores, keywords, documents, None)
        listed.update(parent for record in records for parent in record.parents)
    for keys in batched(await find_classic_parents(stores, listed), _GROUP_PARENTS):
        children_of = await read_classic_children(stores, keys)
        ids = [child.id or "" for children in children_of.values() for child in children]
        texts = dict(zip(ids, await stores.children.read(ids), strict=True))
        parents = {
            key: [each for child in children if (each := texts[child.id or ""]) is not None]
            for key, children in children_of.items()
        }
        await call(keywords.update, parents)
    await call(keywords.update, {}, revision)


async def _update(
    stores: Stores,
    keywords: KeywordIndex,
    documents: Mapping[str, Sequence[Entry]],
    revision: Revision | None,
) -> None:
    with_neighbours = stores.children.smoothing > 0
    await call(keywords.update, documents, revision, with_neighbours, stores.id_key)


async def _read_documents(stores: Stores, records: Sequence[Record]) -> dict[str, list[Entry]]:
    """Return the children that there are of each record, by the record's key."""
    ids = [child for record in records for child in record.children]
    children = {each.id: each for each in await stores.children.read(ids) if each is not None}
    documents: dict[str, list[Entry]] = {}
    for record in records:
        own = [children[each] for each in record.children if each in children]
        if stores.headings:
            context = heading_context(record.document)
            own = [replace(child, context=context(child)) for child in own]
        documents[record_key(record.identity)] = own
    return documents


async def read_revision(stores: Stores) -> Revision | None:
    """Return the docstore's revision; None if no keyword index is kept of it."""
    (row,) = await stores.docstore.read([_REVISION_KEY])
    return None if row is None else Revision(row.metadata.get("number", _NO_NUMBER), row.text)


def _revision_row(revision: Revision) -> tuple[str, Entry]:
    metadata = {} if revision.number == _NO_NUMBER else {"number": revision.number}
    return _REVISION_KEY, Entry(revision.name, metadata, _REVISION_KEY)


def _log_row(before: Revision | None, after: Revision, names: Sequence[str]) -> tuple[str, Entry]:
    key = _log_key(after.number)
    metadata = {"before": before and before.name, "documents": names}
    return key, Entry(after.name, metadata, key)


def _log_key(number: int) -> str:
    """Return the key of a revision's row, which a much later revision writes over."""
    return f"{_LOG_PREFIX}{number % LOG_SIZE:04}"
