"""Filters on metadata: a key that no child stores is an error, never an empty answer."""

from __future__ import annotations

from collections.abc import Sequence

from rag_splitters.errors import InputError
from rag_splitters.ids import stable_uuid
from rag_splitters.parent_child.metadata import (
    MAX_CHARACTERS,
    MAX_VALUES,
    is_storable_key,
    storable,
)
from rag_splitters.parent_child.records import STATE_PREFIX, Entry, Record
from rag_splitters.parent_child.stores.stores import Stores

_PREFIX = f"{STATE_PREFIX}unsearchable/"


def unsearchable_rows(
    documents: Sequence[tuple[Entry, Sequence[str]]],
) -> list[tuple[str, Entry]]:
    """Return rows of the docstore that name the metadata keys which no child has.

    Parameters:
        documents: each document, with the metadata keys of its children.
    """
    with_children = [(document, set(own)) for document, own in documents if own]
    keys = {key for document, own in with_children for key in document.metadata.keys() - own}
    return [_row(key) for key in sorted(keys)]


async def check_filter(stores: Stores, searchable: set[str]) -> None:
    """Raise a ValueError if the filter names a key that documents have and no child stores.

    Parameters:
        searchable: keys that children are known to store; others that they store are added.
    """
    keys = sorted(stores.children.filter_keys - searchable)
    if not keys:
        return
    rows = await stores.docstore.read([_row(key)[0] for key in keys])
    suspects = {key for key, row in zip(keys, rows, strict=True) if row is not None}
    owners: dict[str, Record] = {}
    if suspects:
        async for records in stores.read_all_records():
            for record in records:
                searchable |= suspects.intersection(record.child_keys)
                for key in suspects.intersection(record.metadata if record.children else ()):
                    owners.setdefault(key, record)
            if suspects <= searchable:
                return
    for key, owner in owners.items():
        if key not in searchable:
            raise InputError(f"the filter cannot find {key!r}: {_reason(stores, key, owner)}")


def _reason(stores: Stores, key: str, owner: Record) -> str:
    if stores.inherited_keys is not None and key not in stores.inherited_keys:
        return "child_metadata_fields leaves it out. Add it there, and add the documents again"
    if not is_storable_key(key):
        return "no key that is empty, begins with '$', '#' or 'chroma:', or is ours can be searched"
    if storable(owner.metadata[key]) is not None:
        return (
            f"document {owner.identity!r} has more metadata than the {MAX_VALUES} values and "
            f"{MAX_CHARACTERS:,} characters that can be searched. Filter on a key that stands "
            "before it, or leave others out"
        )
    kind = type(owner.metadata[key]).__name__
    return (
        f"document {owner.identity!r} has a {kind} there, and only strings, finite numbers, "
        "booleans and lists of one kind of them can be searched. Add a key that holds one of these"
    )


def _row(key: str) -> tuple[str, Entry]:
    name = _PREFIX + stable_uuid(key)
    return name, Entry(key, {}, name)
