"""Keeping the keyword index in step with the docstore.

Once a keyword index is kept of it, the docstore has one row that names its revision. Every
operation writes a new revision before anything else changes, and gives the keyword index the same
one at the end. If the two differ (another process wrote, or an operation did not finish), the
keyword index is rebuilt before it is searched.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_splitters.calls import call
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.classic import find_classic_parents, read_classic_children
from rag_splitters.parent_child.drafts import heading_context
from rag_splitters.parent_child.guard import Guard
from rag_splitters.parent_child.keyword_index import KeywordIndex
from rag_splitters.parent_child.records import STATE_PREFIX, Entry, Record
from rag_splitters.parent_child.stores import AtomicDocstore, Stores

_REVISION_KEY = f"{STATE_PREFIX}keywords"

_GROUP_PARENTS = 256


@dataclass(frozen=True, slots=True)
class Revision:
    """The docstore's revision that an operation began."""

    name: str
    was_in_step: bool
    """Did the keyword index know the revision before this one?"""


async def begin_revision(stores: Stores, rows: Sequence[tuple[str, Entry]]) -> Revision | None:
    """Write a new revision, and then the first rows of an operation in their order.

    Returns None if no keyword index is kept of the docstore.
    """
    while True:
        before = await read_revision(stores)
        if before is None:
            if stores.keywords is None:
                await stores.docstore.write(rows)
                return None
            before = await rebuild_keyword_index(stores, stores.keywords)
        was_in_step = stores.keywords is not None and stores.keywords.revision == before
        name = uuid.uuid4().hex
        if await _replace_revision(stores, before, name, rows):
            return Revision(name, was_in_step)


async def _replace_revision(
    stores: Stores, before: str, name: str, rows: Sequence[tuple[str, Entry]]
) -> bool:
    """Write a revision and rows; False if another process wrote a revision meanwhile.

    That one may have finished since the keyword index was compared with the revision before it.
    """
    docstore = stores.docstore
    if not stores.is_shared or not isinstance(docstore, AtomicDocstore):
        await docstore.write([_revision_row(name), *rows])
        return True
    expected = dict([_revision_row(before)])
    if not await docstore.swap(expected, [_revision_row(name)], []):
        return False
    await docstore.write(rows)
    return True


async def update_keyword_index(
    stores: Stores,
    revision: Revision | None,
    documents: Sequence[Sequence[Entry]],
    removed_ids: Sequence[str],
) -> None:
    """Apply an operation to the keyword index, if that knew the revision before it.

    Parameters:
        documents: the children that the operation wrote, for each document.
        removed_ids: the children that it removed.
    """
    if revision is None:
        return
    if await read_revision(stores) != revision.name:
        # Another process wrote meanwhile, and may take its own keyword index for complete.
        await stores.docstore.write([_revision_row(uuid.uuid4().hex)])
    elif revision.was_in_step and stores.keywords is not None:
        texts = [[(each.id or "", each.searched_text) for each in doc] for doc in documents]
        with_neighbours = stores.children.smoothing > 0
        await call(stores.keywords.update, texts, removed_ids, revision.name, with_neighbours)


async def prepare_keyword_index(stores: Stores, keywords: KeywordIndex, guard: Guard) -> None:
    """Bring the keyword index in step before a search.

    While this process writes, the index is searched as it is: the operation will update it.
    """
    if await is_in_step(stores, keywords) or (guard.is_held and keywords.is_usable):
        keywords.is_usable = True
        return
    async with guard.hold():
        if not await is_in_step(stores, keywords):
            await rebuild_keyword_index(stores, keywords)
        keywords.is_usable = True


async def is_in_step(stores: Stores, keywords: KeywordIndex) -> bool:
    """Does the keyword index know the docstore's revision?"""
    revision = await read_revision(stores)
    return revision is not None and revision == keywords.revision


async def rebuild_keyword_index(stores: Stores, keywords: KeywordIndex) -> str:
    """Rebuild the keyword index from the children of the documents and of classic's parents.

    Returns the revision that the index knows afterwards, unless another process wrote meanwhile.
    """
    revision = await read_revision(stores)
    # The end of an operation that is under way must be noticed: give it another revision to find.
    if revision is None or not await _fill(stores, keywords):
        revision = uuid.uuid4().hex
        await stores.docstore.write([_revision_row(revision)])
        await _fill(stores, keywords)
    if await read_revision(stores) == revision:
        await call(keywords.update, [], [], revision)
    return revision


async def _fill(stores: Stores, keywords: KeywordIndex) -> bool:
    """Fill the index with all children, and return whether no operation was under way."""
    is_quiet = True
    listed: set[str] = set()
    keywords.is_usable = False
    await call(keywords.clear)
    async for records in stores.read_all_records():
        is_quiet = is_quiet and not any(record.pending for record in records)
        ids = [child for record in records for child in record.children]
        children = {each.id: each for each in await stores.children.read(ids) if each is not None}
        documents = [
            _searched_texts(
                stores, record, [children[each] for each in record.children if each in children]
            )
            for record in records
        ]
        await call(keywords.update, documents, [], None, stores.children.smoothing > 0)
        listed.update(parent for record in records for parent in record.parents)
    for keys in batched(await find_classic_parents(stores, listed), _GROUP_PARENTS):
        parents = (await read_classic_children(stores, keys)).values()
        ids = [child.id or "" for children in parents for child in children]
        texts = [each for each in await stores.children.read(ids) if each is not None]
        await call(keywords.update, [[(each.id or "", each.text)] for each in texts], [])
    return is_quiet


def _searched_texts(
    stores: Stores, record: Record, children: Sequence[Entry]
) -> list[tuple[str, str]]:
    """Return id and searched text of a document's children."""
    if stores.headings:
        context = heading_context(record.document)
        children = [replace(child, context=context(child)) for child in children]
    return [(child.id or "", child.searched_text) for child in children]


async def read_revision(stores: Stores) -> str | None:
    """Return the docstore's revision; None if no keyword index is kept of it."""
    (row,) = await stores.docstore.read([_REVISION_KEY])
    return None if row is None else row.text


def _revision_row(name: str) -> tuple[str, Entry]:
    return _REVISION_KEY, Entry(name, {}, _REVISION_KEY)
