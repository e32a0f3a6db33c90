"""Stores of LangChain documents in SQLite, Redis and PostgreSQL, as LangChain's `BaseStore`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.stores import BaseStore

from rag_splitters.parent_child.keyvalue import KeyValueStore, check_json
from rag_splitters.parent_child.postgres import PostgresKeyValueStore
from rag_splitters.parent_child.redis import RedisKeyValueStore
from rag_splitters.parent_child.sqlite import SQLiteKeyValueStore

__all__ = ["DocumentStore", "PostgresStore", "RedisStore", "SQLiteStore"]


class DocumentStore(BaseStore[str, Document]):
    """Keeps LangChain documents in a key-value store of JSON.

    Text, id and metadata come back exactly, and are not pickled; metadata that JSON lacks (a date,
    a UUID, bytes, a set) raises a TypeError that names the key, before anything is written. What
    the store cannot do raises a `StoreError` (an OSError).

    Use `SQLiteStore`, `RedisStore` or `PostgresStore`, or give it a `KeyValueStore` of your own.
    """

    def __init__(self, rows: KeyValueStore) -> None:
        self.rows = rows

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rows!r})"

    def mget(self, keys: Sequence[str]) -> list[Document | None]:
        """The documents under the keys, in their order; None where there is none."""
        return [_document(row) for row in self.rows.mget(keys)]

    async def amget(self, keys: Sequence[str]) -> list[Document | None]:
        """Asynchronous `mget`."""
        return [_document(row) for row in await self.rows.amget(keys)]

    def mset(self, key_value_pairs: Sequence[tuple[str, Document]]) -> None:
        """Write all the documents or, where one of them cannot be written, none."""
        self.rows.mset([_row(key, document) for key, document in key_value_pairs])

    async def amset(self, key_value_pairs: Sequence[tuple[str, Document]]) -> None:
        """Asynchronous `mset`."""
        await self.rows.amset([_row(key, document) for key, document in key_value_pairs])

    def mdelete(self, keys: Sequence[str]) -> None:
        """Remove all the keys at once; those that are not there are passed over."""
        self.rows.mdelete(keys)

    async def amdelete(self, keys: Sequence[str]) -> None:
        """Asynchronous `mdelete`."""
        await self.rows.amdelete(keys)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys that begin with `prefix`, in order."""
        return self.rows.yield_keys(prefix)

    def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Asynchronous `yield_keys`."""
        return self.rows.ayield_keys(prefix)

    def close(self) -> None:
        """Close the store; it cannot be used afterwards."""
        self.rows.close()


class SQLiteStore(DocumentStore):
    """Keeps LangChain documents in one SQLite file.

    The docstore of a folder; of use wherever a `BaseStore[str, Document]` is. `DocumentStore` says
    how documents are kept, `SQLiteKeyValueStore` how safely.

    >>> import tempfile
    >>> store = SQLiteStore(Path(tempfile.mkdtemp()) / "documents.sqlite")
    >>> store.mset([("a", Document(page_content="text", metadata={"nested": {"page": 1}}))])
    >>> store.mget(["a", "b"])
    [Document(metadata={'nested': {'page': 1}}, page_content='text'), None]
    """

    def __init__(self, path: str | Path) -> None:
        """Open the file at `path`; it and its folder are made where they do not exist."""
        super().__init__(SQLiteKeyValueStore(path))


class RedisStore(DocumentStore):
    """Keeps LangChain documents in Redis (langchain-redis has no `BaseStore`).

    For parents that several processes or machines share. `DocumentStore` says how documents are
    kept; `RedisKeyValueStore` has the parameters, and says what the server must be set to.
    """

    def __init__(
        self, url: str, *, namespace: str = "rag_splitters", timeout: float = 30.0
    ) -> None:
        super().__init__(RedisKeyValueStore(url, namespace=namespace, timeout=timeout))


class PostgresStore(DocumentStore):
    """Keeps LangChain documents in a table of PostgreSQL (langchain-postgres has no `BaseStore`).

    For parents that several processes or machines share. `DocumentStore` says how documents are
    kept; `PostgresKeyValueStore` has the parameters.
    """

    def __init__(self, url: str, *, table: str = "rag_splitters", timeout: float = 30.0) -> None:
        super().__init__(PostgresKeyValueStore(url, table=table, timeout=timeout))


def _row(key: str, document: Document) -> tuple[str, dict[str, Any]]:
    check_json(document.metadata, f"document {key!r}: metadata")
    return key, {"text": document.page_content, "metadata": document.metadata, "id": document.id}


def _document(row: dict[str, Any] | None) -> Document | None:
    if row is None:
        return None
    return Document(page_content=row["text"], metadata=row["metadata"], id=row["id"])
