"""Keeping the keyword index in step with the docstore.

The docstore has one row that names its state, once a keyword index is kept of it. Every operation
gives it a new name before anything else changes, and gives the same name to the keyword index at
the end. Where the two differ (another process wrote, or an operation did not come to its end), the
index is built again before it is searched.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from rag_splitters.parent_child.guard import Guard
from rag_splitters.parent_child.keywords import KeywordIndex
from rag_splitters.parent_child.passages import Passage, contexts
from rag_splitters.parent_child.records import SOURCES, Record
from rag_splitters.parent_child.stores import Stores, parts

__all__ = ["in_step", "keywords_told", "ready", "rebuild", "stamped"]

_STATE = "state/keywords"
_GROUP_DOCUMENTS = 256


async def stamped(stores: Stores, rows: Sequence[tuple[str, Passage]]) -> tuple[str, bool] | None:
    """Write an operation's first rows, in their order, after a new name for the docstore's state.

    Returns: the name, and whether the keyword index knew the state before; None where no keyword
    index is kept of the docstore.
    """
    before = await _state(stores)
    if before is None and stores.keywords is None:
        await stores.rows.write(rows)
        return None
    if before is None and stores.keywords is not None:
        before = await rebuild(stores, stores.keywords)
    after = uuid.uuid4().hex
    await stores.rows.write([_row(after), *rows])
    return after, stores.keywords is not None and stores.keywords.stamp == before


async def keywords_told(
    stores: Stores,
    stamp: tuple[str, bool] | None,
    documents: Sequence[Sequence[Passage]],
    gone: Sequence[str],
) -> None:
    """Give the keyword index what an operation wrote and removed, if it knew the state before."""
    if stamp is None:
        return
    name, was_in_step = stamp
    if await _state(stores) != name:  # another process may take its own index for complete
        await stores.rows.write([_row(uuid.uuid4().hex)])
    elif was_in_step and stores.keywords is not None:
        rows = [[(each.id or "", each.searched) for each in children] for children in documents]
        await stores.call(stores.keywords.update, rows, gone, name)


async def ready(
    stores: Stores, keywords: KeywordIndex, guard: Guard, *, asynchronous: bool
) -> None:
    """Have the index in step before a search.

    While this process writes, the index is searched as it is: the operation brings it up to date.
    """
    if await in_step(stores, keywords) or (guard.is_held and keywords.is_usable):
        keywords.is_usable = True
        return
    async with guard.held(asynchronous=asynchronous):
        if not await in_step(stores, keywords):
            await rebuild(stores, keywords)
        keywords.is_usable = True


async def in_step(stores: Stores, keywords: KeywordIndex) -> bool:
    """Does the index know the docstore's state?"""
    state = await _state(stores)
    return state is not None and state == keywords.stamp


async def rebuild(stores: Stores, keywords: KeywordIndex) -> str:
    """Build the index again from the children that the docstore's records list.

    Returns: the name of the state that the index knows then, unless another process wrote
    meanwhile.
    """
    stamp = await _state(stores)
    # While an operation is under way, its end must not go unnoticed: it finds another name then.
    if stamp is None or not await _filled(stores, keywords):
        stamp = uuid.uuid4().hex
        await stores.rows.write([_row(stamp)])
        await _filled(stores, keywords)
    if await _state(stores) == stamp:
        await stores.call(keywords.update, [], [], stamp)
    return stamp


async def _filled(stores: Stores, keywords: KeywordIndex) -> bool:
    """Fill the index with all children; was no operation under way?"""
    is_quiet = True
    keywords.is_usable = False
    await stores.call(keywords.clear)
    keys = [key async for key in stores.rows.keys(SOURCES)]
    for part in parts(keys, _GROUP_DOCUMENTS):
        rows = [Record.from_row(row) for row in await stores.rows.read(part)]
        records = [record for record in rows if record is not None]
        is_quiet = is_quiet and not any(record.pending for record in records)
        ids = [child for record in records for child in record.children]
        children = await stores.children.read(ids)
        found = {child.id: child for child in children if child is not None}
        documents = [
            _searched(record, [found[name] for name in record.children if name in found], stores)
            for record in records
        ]
        await stores.call(keywords.update, documents, [])
    return is_quiet


def _searched(record: Record, children: Sequence[Passage], stores: Stores) -> list[tuple[str, str]]:
    """Id and searched text of a document's children."""
    context = contexts(record.document) if stores.headings else None
    told = [replace(child, context=context(child)) if context else child for child in children]
    return [(child.id or "", child.searched) for child in told]


async def _state(stores: Stores) -> str | None:
    (row,) = await stores.rows.read([_STATE])
    return None if row is None else row.text


def _row(stamp: str) -> tuple[str, Passage]:
    return _STATE, Passage(stamp, {}, _STATE)
