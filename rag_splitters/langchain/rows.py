"""LangChain's docstores as parent-child retrieval asks for them."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Iterator,
    Sequence,
)

from langchain_core.documents import Document
from langchain_core.load import dumps, loads
from langchain_core.stores import BaseStore, ByteStore

from rag_splitters.langchain.docstores import (
    DocumentStore,
    PostgresStore,
    RedisStore,
    SQLiteStore,
)
from rag_splitters.langchain.passages import Call, to_document, to_passage
from rag_splitters.parent_child.passages import Passage
from rag_splitters.parent_child.rows import KeyValueRows
from rag_splitters.parent_child.stores import Rows, parts

__all__ = ["ByteDocuments", "rows_in"]

_BATCH = 1000


def rows_in(docstore: BaseStore[str, Document], call: Call, asynchronous: bool) -> Rows:
    """The rows of a docstore: one of our own is read and written without documents in between."""
    ours = (DocumentStore, PostgresStore, RedisStore, SQLiteStore)
    if isinstance(docstore, DocumentStore) and type(docstore) in ours:
        return KeyValueRows(docstore.rows, call, asynchronous)
    return _DocumentRows(docstore, call, asynchronous)


class _DocumentRows:
    """Rows of a LangChain docstore; see `rag_splitters.parent_child.stores.Rows`."""

    def __init__(self, docstore: BaseStore[str, Document], call: Call, asynchronous: bool) -> None:
        self._docstore = docstore
        self._call = call
        self._asynchronous = asynchronous

    async def read(self, keys: Sequence[str]) -> list[Passage | None]:
        """Rows of the docstore."""
        found: list[Passage | None] = []
        for part in parts(keys, _BATCH):
            documents = await self._call(self._docstore, "mget", list(part))
            found += [None if each is None else to_passage(each) for each in documents]
        return found

    async def write(self, rows: Sequence[tuple[str, Passage]]) -> None:
        """Write rows of the docstore."""
        for part in parts(rows, _BATCH):
            await self._call(self._docstore, "mset", [(key, to_document(p)) for key, p in part])

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove rows of the docstore."""
        for part in parts(keys, _BATCH):
            await self._call(self._docstore, "mdelete", list(part))

    async def keys(self, prefix: str) -> AsyncIterator[str]:
        """The docstore's keys."""
        if self._asynchronous:
            async for key in self._docstore.ayield_keys(prefix=prefix or None):
                yield key
        else:
            for key in self._docstore.yield_keys(prefix=prefix or None):
                yield key


class ByteDocuments(BaseStore[str, Document]):
    """Documents in a store of bytes, written as `langchain_classic`'s `create_kv_docstore` does."""

    def __init__(self, byte_store: ByteStore) -> None:
        self._store = byte_store

    def __eq__(self, other: object) -> bool:
        """Is it over the same store?"""
        return isinstance(other, ByteDocuments) and other._store is self._store

    def __hash__(self) -> int:
        return id(self._store)

    def mget(self, keys: Sequence[str]) -> list[Document | None]:
        """The documents of the keys."""
        return [_loaded(value) for value in self._store.mget(keys)]

    async def amget(self, keys: Sequence[str]) -> list[Document | None]:
        """Asynchronous `mget`."""
        return [_loaded(value) for value in await self._store.amget(keys)]

    def mset(self, key_value_pairs: Sequence[tuple[str, Document]]) -> None:
        """Write documents."""
        self._store.mset([(key, dumps(each).encode()) for key, each in key_value_pairs])

    async def amset(self, key_value_pairs: Sequence[tuple[str, Document]]) -> None:
        """Asynchronous `mset`."""
        await self._store.amset([(key, dumps(each).encode()) for key, each in key_value_pairs])

    def mdelete(self, keys: Sequence[str]) -> None:
        """Remove documents."""
        self._store.mdelete(keys)

    async def amdelete(self, keys: Sequence[str]) -> None:
        """Asynchronous `mdelete`."""
        await self._store.amdelete(keys)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys that begin with `prefix`."""
        yield from self._store.yield_keys(prefix=prefix)

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Asynchronous `yield_keys`."""
        async for key in self._store.ayield_keys(prefix=prefix):
            yield key


def _loaded(value: bytes | None) -> Document | None:
    if value is None:
        return None
    document = loads(value.decode(), allowed_objects=[Document])
    if not isinstance(document, Document):
        raise TypeError(f"the byte store holds a {type(document).__name__} and not a document")
    return document
