"""Noticing that a store has lost rows, as when a server lost its volume.

A query that finds as many results as it was asked for needs no extra request. Only a query that
finds fewer, that meets a child without a parent, or that is the first of a process, checks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from rag_splitters.calls import call
from rag_splitters.parent_child.batching import DOCUMENTS_AT_ONCE, batched
from rag_splitters.parent_child.errors import MissingChildrenError, MissingParentsError
from rag_splitters.parent_child.identity import read_identity
from rag_splitters.parent_child.options import Query
from rag_splitters.parent_child.records import RECORD_PREFIX, SOURCE_KEY, Entry, Record
from rag_splitters.parent_child.stores.stores import Stores

_SAMPLE = 64
"""Documents: if one in twenty has lost children, a sample has one of them 19 times in 20."""


@dataclass(frozen=True, slots=True)
class Losses:
    """The documents of which something is not as it was written, by identity."""

    parents: list[str]
    """Documents with parents that are missing in the docstore."""
    children: list[str]
    """Documents with children that are missing in the vector store."""
    damaged: list[str]
    """Documents whose text, or whose parents, are not what was written."""


async def find_losses(
    stores: Stores, records: Sequence[Record], stored: Collection[str] | None = None
) -> Losses:
    """Find what is lost of documents with complete records.

    Parameters:
        stored: the ids of all children in the vector store, if they have been listed.
    """
    rows, unreadable = await stores.read_readable([p for each in records for p in each.parents])
    missing = {key for key, row in rows.items() if row is None}
    children = [child for record in records for child in record.children]
    missing_children = (
        await stores.children.find_missing(children)
        if stored is None
        else set(children).difference(stored)
    )

    def names(is_lost: Callable[[Record], bool]) -> list[str]:
        return [record.identity for record in records if is_lost(record)]

    return Losses(
        names(lambda record: not missing.isdisjoint(record.parents)),
        names(lambda record: not missing_children.isdisjoint(record.children)),
        names(lambda r: not r.is_intact(rows) or not set(unreadable).isdisjoint(r.parents)),
    )


async def check_first_query(stores: Stores) -> None:
    """Raise a MissingChildrenError if children are found missing before a process's first query.

    A keyword index that knows more children than there are tells exactly. One that was filled with
    what there is does not, nor can a search that has none: then a sample of the documents is read.
    """
    keywords = stores.keywords
    if keywords is None or keywords.is_rebuilt:
        await _check_sample(stores)
        return
    count = await stores.children.count()
    if count is not None and count < await call(keywords.count):
        await _check_all(stores)


async def check_few_results(stores: Stores, query: Query, results: Sequence[Entry]) -> None:
    """Raise a MissingChildrenError if a query found too little because children are missing.

    A query with a filter, a threshold or a limit often finds little. Then only an empty answer is a
    reason to look, and a sample of the documents is enough to see that everything is gone.
    """
    is_limited = (
        stores.children.has_filter
        or query.score_threshold is not None
        or query.search_type == "similarity_score_threshold"
        or query.max_children is not None
    )
    if not is_limited:
        await _check_all(stores)
    elif not results:
        await _check_sample(stores)


async def were_replaced(stores: Stores, orphans: Sequence[Entry]) -> bool:
    """Whether children have no parents because their documents were replaced during the query.

    Children of a version that is still being written, or being removed, have none either.

    Parameters:
        orphans: the children whose parents are missing.

    Raises MissingParentsError if the docstore has lost parents.
    """
    names = {
        child.metadata[stores.id_key]: child.metadata[SOURCE_KEY]
        for child in orphans
        if SOURCE_KEY in child.metadata
    }
    if not names:
        return False
    documents = list(dict.fromkeys(names.values()))
    stored = zip(documents, await stores.read_records(documents), strict=True)
    records = {name: record for name, record in stored if record is not None}
    if not records and await read_identity(stores.docstore) is None:
        raise MissingParentsError(
            f"the docstore has lost its rows: it has no parents for {len(orphans)} children that "
            "match, and no index. Restore it, or add the documents again"
        )
    current = {key: records[name] for key, name in names.items() if name in records}
    listed = [key for key, each in current.items() if each.is_complete and key in each.parents]
    rows = zip(listed, await stores.docstore.read(listed), strict=True)
    lost = [current[key] for key, row in rows if row is None]
    again = await stores.read_records([record.identity for record in lost])  # just replaced?
    if lost := [record for record, now in zip(lost, again, strict=True) if record == now]:
        raise MissingParentsError(
            "the docstore has lost parents of documents such as "
            f"{', '.join(repr(each.identity) for each in lost[:3])}: add the documents again"
        )
    return any(
        record.digest and (record.is_whole or key not in record.other_parents)
        for key, record in current.items()
    )


async def _check_sample(stores: Stores) -> None:
    """Raise a MissingChildrenError if any of some random documents has lost children."""
    list_keys = stores.docstore.list_keys
    # The keys are hashes, so those that begin alike are a sample, without listing a large docstore.
    keys = await list_keys(f"{RECORD_PREFIX}{random.randrange(256):02x}")  # noqa: S311
    if len(keys) < _SAMPLE:
        keys = await list_keys(RECORD_PREFIX)
    await _check(stores, random.sample(keys, min(len(keys), _SAMPLE)))


async def _check_all(stores: Stores) -> None:
    """Raise a MissingChildrenError if any document has lost children."""
    for keys in batched(await stores.docstore.list_keys(RECORD_PREFIX), DOCUMENTS_AT_ONCE):
        await _check(stores, keys)


async def _check(stores: Stores, keys: Sequence[str]) -> None:
    """Raise a MissingChildrenError if any of the documents with these records has lost children.

    The query may need none of the records that are damaged, and `verify` reports them.
    """
    records, _ = await stores.read_sound_records(keys)
    lost = await _find_incomplete(stores, records)
    if lost:  # another process may be replacing or removing them
        again = await stores.read_records([record.identity for record in lost])
        lost = await _find_incomplete(stores, [each for each in again if each in lost])
    if lost:
        names = ", ".join(repr(record.identity) for record in lost[:3])
        raise MissingChildrenError(
            "the vector store has lost children of documents that are in the docstore, such as "
            f"{names}: call verify(repair=True), or add the documents again"
        )


async def _find_incomplete(stores: Stores, records: Sequence[Record | None]) -> list[Record]:
    finished = [record for record in records if record is not None and record.is_complete]
    missing = await stores.children.find_missing([c for each in finished for c in each.children])
    return [record for record in finished if not missing.isdisjoint(record.children)]
