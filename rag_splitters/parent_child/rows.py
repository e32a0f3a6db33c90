"""Rows of parent-child retrieval in one of our own key-value stores, for either framework."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from rag_splitters.parent_child.keyvalue import KeyValueStore
from rag_splitters.parent_child.passages import Passage
from rag_splitters.parent_child.stores import parts

__all__ = ["KeyValueRows", "from_value", "to_value"]

_BATCH = 1000


class KeyValueRows:
    """Rows of a store that both frameworks write and read; see `parent_child.stores.Rows`."""

    def __init__(
        self, store: KeyValueStore, call: Callable[..., Awaitable[Any]], asynchronous: bool
    ) -> None:
        self._store = store
        self._call = call
        self._asynchronous = asynchronous

    async def read(self, keys: Sequence[str]) -> list[Passage | None]:
        """Rows of the store."""
        values = await self._call(self._store, "mget", list(keys))
        return [None if value is None else from_value(value) for value in values]

    async def write(self, rows: Sequence[tuple[str, Passage]]) -> None:
        """Write rows."""
        for part in parts(rows, _BATCH):
            await self._call(self._store, "mset", [(key, to_value(p)) for key, p in part])

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove rows."""
        for part in parts(keys, _BATCH):
            await self._call(self._store, "mdelete", list(part))

    async def keys(self, prefix: str) -> AsyncIterator[str]:
        """The keys that begin so."""
        if self._asynchronous:
            async for key in self._store.ayield_keys(prefix):
                yield key
        else:
            for key in self._store.yield_keys(prefix):
                yield key


def to_value(passage: Passage) -> dict[str, Any]:
    """The row as a store of JSON keeps it."""
    return {"text": passage.text, "metadata": passage.metadata, "id": passage.id}


def from_value(value: Mapping[str, Any]) -> Passage:
    """The row that a store of JSON kept."""
    return Passage(value["text"], dict(value["metadata"]), value["id"])
