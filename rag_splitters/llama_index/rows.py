"""LlamaIndex's docstores as parent-child retrieval asks for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from llama_index.core.schema import (
    TextNode,
)
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.storage.kvstore.types import BaseKVStore

from rag_splitters.llama_index.nodes import text_of
from rag_splitters.llama_index.passages import Call
from rag_splitters.parent_child.passages import Passage, copied
from rag_splitters.parent_child.rows import from_value, to_value
from rag_splitters.parent_child.stores import parts

__all__ = ["DocumentStoreRows", "KVStoreRows"]

_BATCH = 1000


_COLLECTION = "parent_child"


_ROW_ID = "_row_id"


class KVStoreRows:
    """Rows of a LlamaIndex key-value store, in a collection of their own."""

    def __init__(self, store: BaseKVStore, call: Call) -> None:
        self._store = store
        self._call = call

    async def read(self, keys: Sequence[str]) -> list[Passage | None]:
        """Rows of the store."""
        values = [await self._call(self._store, "get", key, _COLLECTION) for key in keys]
        return [None if value is None else from_value(value) for value in values]

    async def write(self, rows: Sequence[tuple[str, Passage]]) -> None:
        """Write rows, one by one: not every store takes several."""
        for key, passage in rows:
            await self._call(self._store, "put", key, to_value(passage), _COLLECTION)

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove rows."""
        for key in keys:
            await self._call(self._store, "delete", key, _COLLECTION)

    async def keys(self, prefix: str) -> AsyncIterator[str]:
        """The keys that begin so; the store can only give all rows."""
        for key in await self._call(self._store, "get_all", _COLLECTION):
            if key.startswith(prefix):
                yield key


class DocumentStoreRows:
    """Rows of a LlamaIndex docstore, as nodes."""

    def __init__(self, store: BaseDocumentStore, call: Call) -> None:
        self._store = store
        self._call = call

    async def read(self, keys: Sequence[str]) -> list[Passage | None]:
        """Rows of the docstore."""
        found: list[Passage | None] = []
        for key in keys:
            node = await self._call(self._store, "get_document", key, raise_error=False)
            if node is None:
                found.append(None)
                continue
            metadata = dict(node.metadata)
            found.append(Passage(text_of(node), metadata, metadata.pop(_ROW_ID, key)))
        return found

    async def write(self, rows: Sequence[tuple[str, Passage]]) -> None:
        """Write rows."""
        nodes = [
            TextNode(
                id_=key,
                text=passage.text,
                metadata=copied(passage.metadata)
                | ({} if passage.id == key else {_ROW_ID: passage.id}),
            )
            for key, passage in rows
        ]
        for part in parts(nodes, _BATCH):
            await self._call(self._store, "add_documents", list(part), allow_update=True)

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove rows."""
        for key in keys:
            await self._call(self._store, "delete_document", key, raise_error=False)

    async def keys(self, prefix: str) -> AsyncIterator[str]:
        """The keys that begin so; the docstore can only give all documents."""
        for key in self._store.docs:
            if key.startswith(prefix):
                yield key
