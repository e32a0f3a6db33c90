"""A cache of texts that models wrote: in a folder, or in a key-value store of either framework."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer
from typing_extensions import Self

from rag_splitters.calls import Call, call
from rag_splitters.sqlite import Database, decode, encode

Pairs = Sequence[tuple[str, str]]
"""Keys with their texts."""

_SCHEMA = "CREATE TABLE IF NOT EXISTS texts (key TEXT PRIMARY KEY, text BLOB NOT NULL)"
_SELECT = "SELECT key, text FROM texts WHERE key IN ({})"
_UPSERT = "INSERT INTO texts VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET text = excluded.text"


class TextCache(ABC):
    """Keeps texts under string keys; drive its coroutines with `calls.run` or `calls.arun`."""

    @abstractmethod
    async def read(self, keys: Sequence[str]) -> list[str | None]:
        """Return the texts of the keys, in their order; None where there is none."""

    @abstractmethod
    async def write(self, pairs: Pairs) -> None:
        """Keep all the pairs."""


def text_cache(cache: Any, name: str) -> TextCache:
    """Return the cache that a user's argument stands for.

    Parameters:
        cache: a LangChain `BaseStore`, of strings or of bytes (`mget`, `mset`); a LlamaIndex
            `BaseKVStore` (`get`, `put`); or the path of a folder, which is created when needed.
        name: what is kept; used to name the folder's file and the LlamaIndex collection.

    Raises TypeError for anything else.

    >>> from langchain_core.stores import InMemoryStore
    >>> from rag_splitters.calls import run
    >>> cache = text_cache(InMemoryStore(), "contexts")
    >>> run(cache.write([("a", "A context.")]))
    >>> run(cache.read(["a", "b"]))
    ['A context.', None]
    """
    if isinstance(cache, TextCache):
        return cache
    if isinstance(cache, str | Path):
        return FolderCache(str(cache), name)
    for kind, methods in ((_LangChainCache, ("mget", "mset")), (_LlamaIndexCache, ("get", "put"))):
        if all(callable(getattr(cache, method, None)) for method in methods):
            return kind(cache, name)
    raise TypeError(
        "cache must be a LangChain BaseStore, a LlamaIndex BaseKVStore or the path of a folder, "
        f"got a {type(cache).__qualname__}"
    )


@dataclass(frozen=True)
class FolderCache(TextCache):
    """Keeps texts in one SQLite file of a folder, exactly, lone surrogates included.

    The file is opened for each call alone, so threads and processes may share the folder.
    """

    folder: str
    name: str = "contexts"

    async def read(self, keys: Sequence[str]) -> list[str | None]:
        return await call(self._read, keys)

    async def write(self, pairs: Pairs) -> None:
        await call(self._write, pairs)

    @property
    def _path(self) -> Path:
        return Path(self.folder) / f"{self.name}.sqlite"

    def _read(self, keys: Sequence[str]) -> list[str | None]:
        if not self._path.exists():
            return [None] * len(keys)
        with closing(Database(self._path, _SCHEMA)) as database:
            texts = dict(database.read_in(_SELECT, keys))
        return [_as_text(texts.get(key)) for key in keys]

    def _write(self, pairs: Pairs) -> None:
        with closing(Database(self._path, _SCHEMA)) as database:
            database.write_many(_UPSERT, [(key, encode(text)) for key, text in pairs])


@dataclass(frozen=True)
class _StoreCache(TextCache):
    """A store that the user passed in; it may hold passwords, so it is not shown or pickled."""

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

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Call[Any]:
        """Call a method of the store, or its asynchronous twin."""
        function, twin = getattr(self.store, method), getattr(self.store, f"a{method}")
        return Call(partial(function, *args, **kwargs), partial(twin, *args, **kwargs))


class _LangChainCache(_StoreCache):
    """A LangChain `BaseStore`; one that takes no strings is given bytes."""

    async def read(self, keys: Sequence[str]) -> list[str | None]:
        return [_as_text(value) for value in await self._call("mget", list(keys))]

    async def write(self, pairs: Pairs) -> None:
        try:
            await self._call("mset", list(pairs))
        except TypeError:
            await self._call("mset", [(key, encode(text)) for key, text in pairs])


class _LlamaIndexCache(_StoreCache):
    """A LlamaIndex `BaseKVStore`, whose values are dictionaries."""

    async def read(self, keys: Sequence[str]) -> list[str | None]:
        rows = [await self._call("get", key, collection=self._collection) for key in keys]
        return [_as_text(row.get("text")) if isinstance(row, Mapping) else None for row in rows]

    async def write(self, pairs: Pairs) -> None:
        for key, text in pairs:
            await self._call("put", key, {"text": text}, collection=self._collection)

    @property
    def _collection(self) -> str:
        return f"rag_splitters_{self.name}"


def _as_text(value: object) -> str | None:
    """Return the text that a store gave back; None for a blank or damaged one."""
    if isinstance(value, bytes):
        try:
            value = decode(value)
        except UnicodeDecodeError:
            return None
    return value if isinstance(value, str) and value.strip() else None


def _load_cache(value: Any) -> TextCache | None:
    try:
        return None if value is None else text_cache(value, "contexts")
    except TypeError as error:
        raise ValueError(str(error)) from None


Cache = Annotated[
    Any,
    BeforeValidator(_load_cache),
    PlainSerializer(lambda value: value.folder if isinstance(value, FolderCache) else None),
]
"""A field that holds a cache: anything that `text_cache` takes. Only a folder is serialised."""
