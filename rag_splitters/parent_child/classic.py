"""Taking over an index that `langchain_classic`'s ParentDocumentRetriever wrote.

Its parents are rows of the docstore under a random key or the user's id, and its children name
their parent, but no document. That is enough for a search. Before anything is written, they are
imported: each parent becomes a document with its key as id.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from rag_splitters.errors import InputError
from rag_splitters.parent_child.batching import CHILDREN_AT_ONCE, DOCUMENTS_AT_ONCE, batched
from rag_splitters.parent_child.errors import wrong_id_key
from rag_splitters.parent_child.identity import check_identity, classic_children, ensure_identity
from rag_splitters.parent_child.indexing import add, check_refusals, remove_rows
from rag_splitters.parent_child.records import Entry, is_own_parent, is_parent_key
from rag_splitters.parent_child.stores.stores import Stores


async def import_classic(stores: Stores) -> list[str]:
    """Turn the parents that `langchain_classic` wrote into documents, and return their ids.

    Raises InputError, and begins no index, if children name their parents under another key.
    """
    children_of = await _list_children(stores)
    if not children_of:
        some = await stores.children.read_some()
        if some and await check_identity(stores) is None:
            raise wrong_id_key([child.metadata for child in some], stores.id_key)
        return []
    await ensure_identity(stores, may_be_classic=True)
    imported: list[str] = []
    parents = list(filter(is_parent_key, await stores.docstore.list_keys("")))
    for keys in batched(parents, DOCUMENTS_AT_ONCE):
        rows = zip(keys, await stores.docstore.read(keys), strict=True)
        documents = {
            key: Entry(row.text, row.metadata, key)
            for key, row in rows
            if row is not None and key in children_of and not is_own_parent(key, row)
        }
        children = [child for key in documents for child in children_of[key]]
        vectors = await stores.children.read_vectors(children)
        stored = zip(children, await stores.children.read(children), strict=True)
        own_vectors = {
            child.text: vectors[name] for name, child in stored if child and name in vectors
        }
        check_refusals(await add(stores, documents.values(), own_vectors=own_vectors), imported)
        remove = partial(remove_rows, children=children, removed=list(documents))
        await stores.in_turn(remove)
        imported += documents
    return imported


async def _list_children(stores: Stores) -> dict[str, list[str]]:
    """Return the ids of the children that `langchain_classic` wrote, by their parents' keys."""
    ids = await stores.children.list_ids()
    if ids is None:
        raise InputError(
            "this vector store cannot list its children, so they cannot be imported: add the "
            "documents to a new vector store and docstore"
        )
    children_of: dict[str, list[str]] = defaultdict(list)
    for batch in batched(ids, CHILDREN_AT_ONCE):
        children = await stores.children.read(batch, "metadata")
        for child in classic_children(stores, [each for each in children if each is not None]):
            children_of[child.metadata[stores.id_key]].append(child.id or "")
    return children_of
