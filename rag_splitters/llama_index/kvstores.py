"""Key-value stores in SQLite, Redis and PostgreSQL, as LlamaIndex's `BaseKVStore`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.storage.kvstore.types import DEFAULT_COLLECTION, BaseKVStore

from rag_splitters.calls import arun, run
from rag_splitters.errors import InputError
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.keyvalue import KeyValueStore, SQLiteKeyValueStore
from rag_splitters.parent_child.postgres import PostgresKeyValueStore
from rag_splitters.parent_child.redis import RedisKeyValueStore

_READ_BATCH = 500
_SEPARATOR = "\0"  # after a collection's name, so that no other collection has the same prefix


class JSONKVStore(BaseKVStore):
    """Keeps LlamaIndex's collections in a key-value store of JSON, each under a prefix of keys.

    For ingestion pipelines and the `AutoMergingRetriever`, LlamaIndex's
    `KVDocumentStore(SQLiteKVStore(path), batch_size=100)` makes a docstore of it. Values are stored
    exactly, and never pickled; one that JSON cannot represent raises a TypeError that names its
    place, before anything is written. If the store fails, a `StoreError` (an OSError) is raised.

    Use `SQLiteKVStore`, `RedisKVStore` or `PostgresKVStore`, or pass a `KeyValueStore` of your own.
    The attribute `rows` is that store, which our document stores for LangChain use as well.
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
        """Write all values, or none; `batch_size` has no effect."""
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
        """Return the value of a key, or None."""
        (value,) = self.rows.mget([_key(collection, key)])
        return value  # type: ignore[no-any-return]

    async def aget(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """Asynchronous `get`."""
        (value,) = await self.rows.amget([_key(collection, key)])
        return value  # type: ignore[no-any-return]

    def get_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """Return all the values of a collection by their keys, in the keys' order."""
        return run(self._read_all(collection))

    async def aget_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """Asynchronous `get_all`."""
        return await arun(self._read_all(collection))

    def delete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Remove a key, and return whether it existed."""
        return self.rows.mdelete([_key(collection, key)]) > 0

    async def adelete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Asynchronous `delete`."""
        return await self.rows.amdelete([_key(collection, key)]) > 0

    def close(self) -> None:
        """Close the store; it cannot be used afterwards."""
        self.rows.close()

    async def _read_all(self, collection: str) -> dict[str, dict[str, Any]]:
        prefix = _key(collection, "")
        values: dict[str, dict[str, Any]] = {}
        for keys in batched(await self.rows.list_keys(prefix), _READ_BATCH):
            pairs = zip(keys, await self.rows.read(keys), strict=True)
            # A value may have been removed since its key was read.
            values.update((key.removeprefix(prefix), v) for key, v in pairs if v is not None)
        return values


class SQLiteKVStore(JSONKVStore):
    """A LlamaIndex key-value store in one SQLite file.

    LlamaIndex's own `SimpleKVStore` is in memory, and written to a file only on request. See
    `SQLiteKeyValueStore` for how safely rows are stored.

    >>> import tempfile
    >>> store = SQLiteKVStore(Path(tempfile.mkdtemp()) / "nodes.sqlite")
    >>> store.put_all([("b", {"page": 2}), ("a", {"page": 1})], collection="pages")
    >>> store.get("a", collection="pages"), store.get("a"), store.get_all("pages")
    ({'page': 1}, None, {'a': {'page': 1}, 'b': {'page': 2}})
    """

    def __init__(self, path: str | Path) -> None:
        """Open the file at `path`, which is created with its folder if it does not exist."""
        super().__init__(SQLiteKeyValueStore(path))


class RedisKVStore(JSONKVStore):
    """A LlamaIndex key-value store in Redis.

    Unlike llama-index-storage-kvstore-redis (0.6), its `put_all` and `aput_all` write everything or
    nothing, it works with several event loops in turn, and it accepts any key. See
    `RedisKeyValueStore` for the parameters and the settings that the server needs.
    """

    def __init__(
        self, url: str, *, namespace: str = "rag_splitters", timeout: float = 30.0
    ) -> None:
        super().__init__(RedisKeyValueStore(url, namespace=namespace, timeout=timeout))


class PostgresKVStore(JSONKVStore):
    """A LlamaIndex key-value store in a table of PostgreSQL.

    Unlike llama-index-storage-kvstore-postgres (0.6), it needs one driver instead of three
    packages, its `put_all` writes everything or nothing, it works with several event loops in turn,
    and it accepts any key. See `PostgresKeyValueStore` for the parameters.
    """

    def __init__(self, url: str, *, table: str = "rag_splitters", timeout: float = 30.0) -> None:
        super().__init__(PostgresKeyValueStore(url, table=table, timeout=timeout))


def _key(collection: str, key: str) -> str:
    if _SEPARATOR in collection:
        raise InputError(f"the name of a collection must not contain NUL, got {collection!r}")
    return f"{collection}{_SEPARATOR}{key}"
