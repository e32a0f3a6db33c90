"""Where contexts are kept: LangChain's and LlamaIndex's key-value stores, or a folder."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import BeforeValidator, PlainSerializer
from typing_extensions import Self

__all__ = ["Cache", "ContextCache", "FolderCache", "Pairs", "context_cache", "without_context"]

Pairs = Sequence[tuple[str, str]]
"""Keys with their contexts."""

_MOST_VARIABLES = 500  # well under the limit of the oldest SQLite, which is 999
_SCHEMA = "CREATE TABLE IF NOT EXISTS contexts (key TEXT PRIMARY KEY, context BLOB NOT NULL)"
_UPSERT = (
    "INSERT INTO contexts VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET context = excluded.context"
)


class ContextCache(Protocol):
    """What `ContextualChunker` asks of a cache."""

    def get(self, keys: Sequence[str]) -> list[str | None]:
        """The contexts of the keys, in their order; None where there is none."""

    def put(self, pairs: Pairs) -> None:
        """Keep all the pairs."""

    async def aget(self, keys: Sequence[str]) -> list[str | None]:
        """`get` without blocking the event loop."""

    async def aput(self, pairs: Pairs) -> None:
        """`put` without blocking the event loop."""


def context_cache(cache: Any, name: str = "contexts") -> ContextCache:
    """The cache behind whatever the user handed in.

    Parameters:
        cache: a LangChain `BaseStore`, of strings or of bytes (`mget`, `mset`); a LlamaIndex
            `BaseKVStore` (`get`, `put`); or the path of a folder, which is made where it is needed.
        name: what is kept, for the name of the folder's file and of a LlamaIndex collection.

    Raises: TypeError for anything else.

    >>> from langchain_core.stores import InMemoryStore
    >>> cache = context_cache(InMemoryStore())
    >>> cache.put([("a", "A context.")])
    >>> cache.get(["a", "b"])
    ['A context.', None]
    """
    if isinstance(cache, FolderCache | _LangChainStore | _LlamaIndexStore):
        return cache
    if isinstance(cache, str | Path):
        return FolderCache(str(cache), name)
    for kind, names in ((_LangChainStore, ("mget", "mset")), (_LlamaIndexStore, ("get", "put"))):
        if all(callable(getattr(cache, name, None)) for name in names):
            return kind(cache, name)
    raise TypeError(
        "cache must be a LangChain BaseStore, a LlamaIndex BaseKVStore or the path of a folder, "
        f"got a {type(cache).__qualname__}"
    )


def without_context(content: str, metadata: Mapping[str, Any]) -> str:
    """A contextual chunk's own text: its content without the context that stands before it.

    >>> without_context("About tea.\\n\\nIt is hot.", {"context": "About tea."})
    'It is hot.'
    """
    context = metadata.get("context")
    return content.removeprefix(f"{context}\n\n") if isinstance(context, str) else content


@dataclass(frozen=True)
class FolderCache:
    """Contexts, or other short texts, in one SQLite file of a folder.

    The file is opened for each call alone, so that threads and processes may share the folder.
    Contexts are kept exactly, lone surrogates included.
    """

    folder: str
    name: str = "contexts"

    def get(self, keys: Sequence[str]) -> list[str | None]:
        found: dict[str, bytes] = {}
        if self._path.exists():
            with closing(self._opened()) as connection:
                for start in range(0, len(keys), _MOST_VARIABLES):
                    part = keys[start : start + _MOST_VARIABLES]
                    places = ", ".join("?" * len(part))
                    query = f"SELECT key, context FROM contexts WHERE key IN ({places})"  # noqa: S608
                    found.update(connection.execute(query, part).fetchall())
        return [_context(found.get(key)) for key in keys]

    def put(self, pairs: Pairs) -> None:
        rows = [(key, context.encode("utf-8", "surrogatepass")) for key, context in pairs]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(self._opened()) as connection, connection:
            connection.executemany(_UPSERT, rows)

    async def aget(self, keys: Sequence[str]) -> list[str | None]:
        return await asyncio.to_thread(self.get, keys)

    async def aput(self, pairs: Pairs) -> None:
        await asyncio.to_thread(self.put, pairs)

    @property
    def _path(self) -> Path:
        return Path(self.folder) / f"{self.name}.sqlite"

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=60)
        connection.execute(_SCHEMA)
        return connection


@dataclass(frozen=True)
class _Store:
    """A store that the user handed in; it may know passwords, so it is not shown or pickled."""

    store: Any
    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.store).__qualname__})"

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError(
            f"cache={self!r} cannot be pickled: give the path of a folder, which processes share"
        )


class _LangChainStore(_Store):
    """A LangChain `BaseStore`; one that takes no strings is given bytes."""

    def get(self, keys: Sequence[str]) -> list[str | None]:
        return [_context(value) for value in self.store.mget(list(keys))]

    def put(self, pairs: Pairs) -> None:
        try:
            self.store.mset(list(pairs))
        except TypeError:
            self.store.mset(_as_bytes(pairs))

    async def aget(self, keys: Sequence[str]) -> list[str | None]:
        return [_context(value) for value in await self.store.amget(list(keys))]

    async def aput(self, pairs: Pairs) -> None:
        try:
            await self.store.amset(list(pairs))
        except TypeError:
            await self.store.amset(_as_bytes(pairs))


class _LlamaIndexStore(_Store):
    """A LlamaIndex `BaseKVStore`, whose values are dictionaries."""

    def get(self, keys: Sequence[str]) -> list[str | None]:
        return [_value(self.store.get(key, collection=self._collection)) for key in keys]

    def put(self, pairs: Pairs) -> None:
        for key, context in pairs:
            self.store.put(key, {"context": context}, collection=self._collection)

    async def aget(self, keys: Sequence[str]) -> list[str | None]:
        return [_value(await self.store.aget(key, collection=self._collection)) for key in keys]

    async def aput(self, pairs: Pairs) -> None:
        for key, context in pairs:
            await self.store.aput(key, {"context": context}, collection=self._collection)

    @property
    def _collection(self) -> str:
        return f"rag_splitters_{self.name}"


def _as_bytes(pairs: Pairs) -> list[tuple[str, bytes]]:
    return [(key, context.encode("utf-8", "surrogatepass")) for key, context in pairs]


def _context(value: object) -> str | None:
    """The context that a store gave back; None for what is none, as after a write that failed."""
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return None
    return value if isinstance(value, str) and value.strip() else None


def _value(row: object) -> str | None:
    return _context(row.get("context")) if isinstance(row, Mapping) else None


def _load(value: Any) -> ContextCache | None:
    try:
        return None if value is None else context_cache(value)
    except TypeError as error:
        raise ValueError(str(error)) from None


Cache = Annotated[
    Any,
    BeforeValidator(_load),
    PlainSerializer(lambda value: value.folder if isinstance(value, FolderCache) else None),
]
"""A field that holds a cache: any that `context_cache` takes; only a folder is written down."""
