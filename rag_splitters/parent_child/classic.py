"""Parents that `langchain_classic`'s ParentDocumentRetriever wrote.

They are rows of the docstore under a random key or the user's id. No record lists them, and their
children name them, but no document. That is enough for a search. Operations that have to know
everything in an index find them here, and treat each as a document with one parent: itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from rag_splitters.errors import InputError
from rag_splitters.ids import source_identity, stable_uuid
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.records import (
    SOURCE_KEY,
    Entry,
    Record,
    is_chunk_id,
    is_own_parent,
    is_parent_key,
)
from rag_splitters.parent_child.stores import Stores, UnsupportedError

_GROUP_ROWS = 256
_HEAD = 32  # characters by which a text is looked for in another one


async def find_classic_parents(
    stores: Stores, listed: Collection[str], metadata: Mapping[str, Any] | None = None
) -> list[str]:
    """Return the keys of classic's parents that have these metadata.

    Parameters:
        listed: the parents that records list.

    Raises ValueError if there may be some, but the vector store cannot look up their children.
    """
    parents: list[str] = []
    read_again(stores)
    async for rows in _read_rows(stores, listed.__contains__):
        keys = [key for key, row in rows if has_metadata(row, metadata)]
        children = await read_classic_children(stores, keys)
        parents += [key for key in keys if children.get(key)]
    return parents


def read_again(stores: Stores) -> None:
    """Have classic's parents read again before the next addition: there may be new ones."""
    if stores.classic is not None:
        stores.classic.by_text = None


async def read_classic_children(stores: Stores, keys: Sequence[str]) -> dict[str, list[Entry]]:
    """Return the children, without text, of those of the parents that we did not write.

    A row of the docstore that has no children belongs to another program.
    """
    if not keys:
        return {}
    try:
        children = await stores.children.read_children_of(stores.id_key, keys)
    except UnsupportedError:
        raise InputError(
            f"{', '.join(keys[:5])}: these are parents and not documents that were added here, and "
            "this vector store cannot look up their children. Remove the documents that they "
            "belong to or, if langchain_classic wrote them, add the documents to a new vector "
            "store and docstore"
        ) from None
    children_of: dict[str, list[Entry]] = {key: [] for key in keys}
    for child in children:
        children_of[child.metadata[stores.id_key]].append(child)
    return {
        key: own
        for key, own in children_of.items()
        if not any(SOURCE_KEY in child.metadata for child in own)
    }


def has_metadata(document: Entry, metadata: Mapping[str, object] | None) -> bool:
    """Does the document have all of these metadata?"""
    missing = object()
    return all(document.metadata.get(k, missing) == v for k, v in (metadata or {}).items())


async def find_replaced(stores: Stores, documents: Mapping[str, Entry]) -> dict[str, Record]:
    """Return a record of what each document replaces, by the documents' identities.

    A document replaces the parent under its own id, and the parents that have its metadata and a
    text that is part of its text, white space aside. So nothing is lost, whichever splitters are
    used. Classic's parents are read once, before the first documents are added.
    """
    if stores.classic is None or not stores.children.may_hold_classic:
        return {}
    if stores.classic.by_text is None:
        stores.classic.by_text = await _read_parents(stores)
    names = [identity for identity, document in documents.items() if document.id is not None]
    rows = zip(names, await stores.docstore.read(names), strict=True)
    keys_of = {name: {name} for name, row in rows if row is not None}
    for identity, document in documents.items():
        parents = stores.classic.by_text.get(_describe_metadata(document), {})
        keys_of.setdefault(identity, set()).update(_find_parts(document, parents))
    children = await read_classic_children(stores, sorted(set().union(*keys_of.values())))
    replaced: dict[str, Record] = {}
    for identity, keys in keys_of.items():
        parent_ids = tuple(key for key in sorted(keys) if children.get(key))
        child_ids = tuple(child.id or "" for key in parent_ids for child in children[key])
        if parent_ids:
            document = documents[identity]
            replaced[identity] = Record(identity, document, "", parent_ids, child_ids, ())
    return replaced


def _find_parts(
    document: Entry, parents: Mapping[str, Sequence[tuple[int, str, str]]]
) -> Iterator[str]:
    """Find the keys of the parents that are parts of a document."""
    text = _squeeze(document.text) if parents else ""
    for size in {len(head) for head in parents}:
        for start in range(len(text) - size + 1):
            for length, digest, key in parents.get(text[start : start + size], ()):
                if stable_uuid(text[start : start + length]) == digest:
                    yield key


async def _read_parents(stores: Stores) -> dict[str, dict[str, list[tuple[int, str, str]]]]:
    by_text: dict[str, dict[str, list[tuple[int, str, str]]]] = {}
    async for rows in _read_rows(stores, is_chunk_id):
        for key, row in rows:
            if text := _squeeze(row.text):
                parents = by_text.setdefault(_describe_metadata(row), {})
                parent = len(text), stable_uuid(text), key
                parents.setdefault(text[:_HEAD], []).append(parent)
    return by_text


async def _read_rows(
    stores: Stores, is_listed: Callable[[str], bool]
) -> AsyncIterator[list[tuple[str, Entry]]]:
    """Read the rows that may be classic's parents, some at a time."""
    if not stores.children.may_hold_classic:
        return
    keys = await stores.docstore.list_keys("")
    unlisted = [key for key in keys if is_parent_key(key) and not is_listed(key)]
    for group in batched(unlisted, _GROUP_ROWS):
        rows = zip(group, await stores.docstore.read(group), strict=True)
        yield [(key, row) for key, row in rows if row is not None and not is_own_parent(key, row)]


def _describe_metadata(document: Entry) -> str:
    return source_identity("", document.without_positions().metadata)


def _squeeze(text: str) -> str:
    return "".join(text.split())
