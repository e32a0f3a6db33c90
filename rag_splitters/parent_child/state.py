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


async def stamped(stores: Stores, rows: Sequence[tuple[str, Passage]]) -> str | None:
    """Write an operation's first rows, together with a new name for the docstore's state.

    Returns: the name, if the keyword index knew the state before; else None.
    """
    before = await _state(stores)
    if before is None and stores.keywords is None:
        await stores.rows.write(rows)
        return None
    if before is None and stores.keywords is not None:
        before = await rebuild(stores, stores.keywords)
    after = uuid.uuid4().hex
    await stores.rows.write([_row(after), *rows])
    return after if stores.keywords is not None and stores.keywords.stamp == before else None


async def keywords_told(
    stores: Stores,
    stamp: str | None,
    documents: Sequence[Sequence[Passage]],
    gone: Sequence[str],
) -> None:
    """Give the keyword index what an operation wrote and removed, if it knew the state before."""
    if stores.keywords is None or stamp is None:
        return
    if await _state(stores) == stamp:
        rows = [[(each.id or "", each.searched) for each in children] for children in documents]
        await stores.call(stores.keywords.update, rows, gone, stamp)
    else:  # another process wrote meanwhile, and may take its own index for complete
        await stores.rows.write([_row(uuid.uuid4().hex)])


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
    stamp = uuid.uuid4().hex
    keywords.is_usable = False
    await stores.rows.write([_row(stamp)])
    await stores.call(keywords.clear)
    keys = [key async for key in stores.rows.keys(SOURCES)]
    for part in parts(keys, _GROUP_DOCUMENTS):
        records = [Record.from_row(row) for row in await stores.rows.read(part)]
        ids = [child for record in records if record is not None for child in record.children]
        children = await stores.children.read(ids, filtered=False)
        found = {child.id: child for child in children if child is not None}
        documents = [
            _searched(record, [found[name] for name in record.children if name in found], stores)
            for record in records
            if record is not None
        ]
        await stores.call(keywords.update, documents, [])
    if await _state(stores) == stamp:
        await stores.call(keywords.update, [], [], stamp)
    return stamp


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
