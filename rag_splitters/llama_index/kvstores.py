"""Collections in SQLite, Redis and PostgreSQL, as LlamaIndex's `BaseKVStore`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.storage.kvstore.types import DEFAULT_COLLECTION, BaseKVStore

from rag_splitters.calls import in_both_forms
from rag_splitters.errors import InputError
from rag_splitters.parent_child.batching import MAX_ROWS, batched
from rag_splitters.parent_child.stores.keyvalue import KeyValueStore, checked

_SEPARATOR = "\0"  # after a collection's name, so that no other collection has the same prefix


class JSONKVStore(BaseKVStore):
    """Keeps LlamaIndex's collections in a `SQLiteStore`, `RedisStore` or `PostgresStore`.

    The retriever takes these stores as they are; this is for ingestion pipelines and the
    `AutoMergingRetriever`, with `KVDocumentStore(JSONKVStore(...), batch_size=100)`. Unlike
    LlamaIndex's own stores, it writes everything or nothing with `put_all`, works with several
    event loops in turn, and accepts any key. Values are stored exactly, and never pickled; one that
    JSON cannot represent raises a TypeError that names its place, before anything is written. If
    the store fails, a `StoreError` (an OSError) is raised.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from rag_splitters.llama_index import SQLiteStore
    >>> store = JSONKVStore(SQLiteStore(Path(tempfile.mkdtemp()) / "nodes.sqlite"))
    >>> store.put_all([("b", {"page": 2}), ("a", {"page": 1})], collection="pages")
    >>> store.get("a", collection="pages"), store.get("a"), store.get_all("pages")
    ({'page': 1}, None, {'a': {'page': 1}, 'b': {'page': 2}})
    """

    def __init__(self, rows: KeyValueStore) -> None:
        self.rows = rows

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rows!r})"

    async def _put(
        self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION
    ) -> None:
        """Write a value."""
        await self._put_all([(key, val)], collection)

    async def _put_all(
        self,
        kv_pairs: Sequence[tuple[str, dict[str, Any]]],
        collection: str = DEFAULT_COLLECTION,
        batch_size: int | None = None,
    ) -> None:
        """Write all values, or none; `batch_size` has no effect."""
        await self.rows.write([checked((_key(collection, key), value)) for key, value in kv_pairs])

    async def _get(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """Return the value of a key, or None."""
        (value,) = await self.rows.read([_key(collection, key)])
        return value  # type: ignore[no-any-return]

    async def _get_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """Return all the values of a collection by their keys, in the keys' order."""
        prefix = _key(collection, "")
        values: dict[str, dict[str, Any]] = {}
        for keys in batched(await self.rows.list_keys(prefix), MAX_ROWS):
            pairs = zip(keys, await self.rows.read(keys), strict=True)
            # A value may have been removed since its key was read.
            values.update((key.removeprefix(prefix), v) for key, v in pairs if v is not None)
        return values

    async def _delete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Remove a key, and return whether it existed."""
        return bool(await self.rows.write([], [_key(collection, key)]))

    put, aput = in_both_forms(_put)
    put_all, aput_all = in_both_forms(_put_all)
    get, aget = in_both_forms(_get)
    get_all, aget_all = in_both_forms(_get_all)
    delete, adelete = in_both_forms(_delete)

    def close(self) -> None:
        """Close the store; it cannot be used afterwards."""
        self.rows.close()


def _key(collection: str, key: str) -> str:
    if _SEPARATOR in collection:
        raise InputError(f"the name of a collection must not contain NUL, got {collection!r}")
    return f"{collection}{_SEPARATOR}{key}"
