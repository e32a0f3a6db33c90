"""Key-value stores in SQLite, Redis and PostgreSQL, as LlamaIndex's `BaseKVStore`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.storage.kvstore.types import DEFAULT_COLLECTION, BaseKVStore

from rag_splitters.parent_child.keyvalue import KeyValueStore
from rag_splitters.parent_child.postgres import PostgresKeyValueStore
from rag_splitters.parent_child.redis import RedisKeyValueStore
from rag_splitters.parent_child.sqlite import SQLiteKeyValueStore
from rag_splitters.parent_child.stores import parts

__all__ = ["JSONKVStore", "PostgresKVStore", "RedisKVStore", "SQLiteKVStore"]

_MOST_VALUES = 500
_END = "\0"  # of a collection's name, so that no key of another begins as this one's do


class JSONKVStore(BaseKVStore):
    """LlamaIndex's collections in a key-value store of JSON; a collection is a prefix of keys.

    `KVDocumentStore(SQLiteKVStore(path), batch_size=100)`, of LlamaIndex, is a docstore on it for
    ingestion pipelines and the `AutoMergingRetriever`. Values come back exactly, and are not
    pickled; one that JSON lacks raises a TypeError that names its place, before anything is
    written. What the store cannot do raises a `StoreError` (an OSError).

    Use `SQLiteKVStore`, `RedisKVStore` or `PostgresKVStore`, or give it a `KeyValueStore` of your
    own. `rows` is the store itself, where LangChain's `SQLiteStore` and its kin have their rows.
    """

    def __init__(self, rows: KeyValueStore) -> None:
        self.rows = rows

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rows!r})"

    def put(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        """Write a value."""
        self.rows.mset([(_key(collection, key), val)])

    async def aput(
        self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION
    ) -> None:
        """Asynchronous `put`."""
        await self.rows.amset([(_key(collection, key), val)])

    def put_all(
        self,
        kv_pairs: Sequence[tuple[str, dict[str, Any]]],
        collection: str = DEFAULT_COLLECTION,
        batch_size: int | None = None,
    ) -> None:
        """Write all the values or none; there is no need for batches."""
        self.rows.mset([(_key(collection, key), value) for key, value in kv_pairs])

    async def aput_all(
        self,
        kv_pairs: Sequence[tuple[str, dict[str, Any]]],
        collection: str = DEFAULT_COLLECTION,
        batch_size: int | None = None,
    ) -> None:
        """Asynchronous `put_all`."""
        await self.rows.amset([(_key(collection, key), value) for key, value in kv_pairs])

    def get(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """The value of a key, or None."""
        (value,) = self.rows.mget([_key(collection, key)])
        return value  # type: ignore[no-any-return]

    async def aget(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """Asynchronous `get`."""
        (value,) = await self.rows.amget([_key(collection, key)])
        return value  # type: ignore[no-any-return]

    def get_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """All the values of a collection by their keys, in the keys' order."""
        prefix = _key(collection, "")
        found: dict[str, dict[str, Any]] = {}
        for part in parts(list(self.rows.yield_keys(prefix)), _MOST_VALUES):
            found.update(_without_prefix(prefix, part, self.rows.mget(part)))
        return found

    async def aget_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """Asynchronous `get_all`."""
        prefix = _key(collection, "")
        found: dict[str, dict[str, Any]] = {}
        keys = [key async for key in self.rows.ayield_keys(prefix)]
        for part in parts(keys, _MOST_VALUES):
            found.update(_without_prefix(prefix, part, await self.rows.amget(part)))
        return found

    def delete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Remove a key; whether it was there."""
        return self.rows.mdelete([_key(collection, key)]) > 0

    async def adelete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Asynchronous `delete`."""
        return await self.rows.amdelete([_key(collection, key)]) > 0

    def close(self) -> None:
        """Close the store; it cannot be used afterwards."""
        self.rows.close()


class SQLiteKVStore(JSONKVStore):
    """LlamaIndex's key-value store in one SQLite file.

    LlamaIndex's own `SimpleKVStore` is in memory, and written as one file when told to.
    `SQLiteKeyValueStore` says how safely rows are kept here.

    >>> import tempfile
    >>> store = SQLiteKVStore(Path(tempfile.mkdtemp()) / "nodes.sqlite")
    >>> store.put_all([("b", {"page": 2}), ("a", {"page": 1})], collection="pages")
    >>> store.get("a", collection="pages"), store.get("a"), store.get_all("pages")
    ({'page': 1}, None, {'a': {'page': 1}, 'b': {'page': 2}})
    """

    def __init__(self, path: str | Path) -> None:
        """Open the file at `path`; it and its folder are made where they do not exist."""
        super().__init__(SQLiteKeyValueStore(path))


class RedisKVStore(JSONKVStore):
    """LlamaIndex's key-value store in Redis.

    Beside llama-index-storage-kvstore-redis (0.6) it writes `put_all` as a whole or not at all,
    has the asynchronous one too, works over several event loops in turn, and takes every key.
    `RedisKeyValueStore` has the parameters, and says what the server must be set to.
    """

    def __init__(
        self, url: str, *, namespace: str = "rag_splitters", timeout: float = 30.0
    ) -> None:
        super().__init__(RedisKeyValueStore(url, namespace=namespace, timeout=timeout))


class PostgresKVStore(JSONKVStore):
    """LlamaIndex's key-value store in a table of PostgreSQL.

    Beside llama-index-storage-kvstore-postgres (0.6) it needs one driver and not three packages,
    writes `put_all` as a whole or not at all, works over several event loops in turn, and takes
    every key. `PostgresKeyValueStore` has the parameters.
    """

    def __init__(self, url: str, *, table: str = "rag_splitters", timeout: float = 30.0) -> None:
        super().__init__(PostgresKeyValueStore(url, table=table, timeout=timeout))


def _key(collection: str, key: str) -> str:
    if _END in collection:
        raise ValueError(f"the name of a collection must be without NUL, got {collection!r}")
    return f"{collection}{_END}{key}"


def _without_prefix(
    prefix: str, keys: Sequence[str], values: Sequence[Any]
) -> dict[str, dict[str, Any]]:
    """The values by key; one that was removed since its key was read is passed over."""
    pairs = zip(keys, values, strict=True)
    return {key.removeprefix(prefix): value for key, value in pairs if value is not None}
