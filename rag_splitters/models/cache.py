"""Caches for answers and embeddings, in a folder or a key-value store."""

from __future__ import annotations

import base64
import binascii
import json
import os
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, PlainSerializer
from typing_extensions import Self

from rag_splitters.calls import call, call_method
from rag_splitters.errors import FileError, InputError, InputTypeError
from rag_splitters.ids import stable_uuid
from rag_splitters.models.describing import cache_name
from rag_splitters.sqlite import Database, decode, encode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Pairs = Sequence[tuple[str, str]]
"""Keys with their texts."""

_COLLECTION = "rag_splitters_answers"  # in a store of LlamaIndex
_SCHEMA = "CREATE TABLE IF NOT EXISTS texts (key TEXT PRIMARY KEY, text BLOB NOT NULL)"
_SELECT = "SELECT key, text FROM texts WHERE key IN ({})"
_UPSERT = "INSERT INTO texts VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET text = excluded.text"


class TextCache(ABC):
    """Keeps texts under string keys; drive its coroutines with `calls.run` or `calls.arun`."""

    @abstractmethod
    async def read(self, keys: Sequence[str]) -> list[str | None]:
        """Return the text of each key, or None if there is none."""

    @abstractmethod
    async def write(self, pairs: Pairs) -> None:
        """Store all pairs."""


def text_cache(cache: Any) -> TextCache:
    """Make a cache of a user's argument.

    Parameters:
        cache: a LangChain `BaseStore`, of strings or of bytes, or one of our key-value stores
            (`mget`, `mset`); a LlamaIndex `BaseKVStore` (`get`, `put`); or the path of a folder,
            which is created when needed.

    Raises TypeError for anything else.

    >>> from langchain_core.stores import InMemoryStore
    >>> from rag_splitters.calls import run
    >>> cache = text_cache(InMemoryStore())
    >>> run(cache.write([("a", "A context.")]))
    >>> run(cache.read(["a", "b"]))
    ['A context.', None]
    """
    if isinstance(cache, TextCache):
        return cache
    if isinstance(cache, str | Path):
        return FolderCache(str(cache))
    for kind, methods in ((_LangChainCache, ("mget", "mset")), (_LlamaIndexCache, ("get", "put"))):
        if all(callable(getattr(cache, method, None)) for method in methods):
            return kind(cache)
    raise InputTypeError(
        "cache must be a LangChain BaseStore, a LlamaIndex BaseKVStore or the path of a folder, "
        f"got a {type(cache).__qualname__}"
    )


@dataclass(frozen=True)
class FolderCache(TextCache):
    """Keeps texts in a SQLite file in a folder, exactly, including lone surrogates.

    Threads and processes may share the folder. A process opens the file once.
    """

    folder: str

    async def read(self, keys: Sequence[str]) -> list[str | None]:
        return await call(self._read, keys)

    async def write(self, pairs: Pairs) -> None:
        await call(self._write, pairs)

    @property
    def _path(self) -> Path:
        return Path(self.folder) / "answers.sqlite"

    def _read(self, keys: Sequence[str]) -> list[str | None]:
        with self._explaining_errors():
            exists = self._path.exists()
            texts = dict(_database(self._path).read_in(_SELECT, keys)) if exists else {}
        return [_as_text(texts.get(key)) for key in keys]

    def _write(self, pairs: Pairs) -> None:
        rows = [(key, encode(text)) for key, text in pairs]
        with self._explaining_errors():
            _database(self._path).write_many(_UPSERT, rows)

    @contextmanager
    def _explaining_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise FileError(f"the cache {self._path} cannot be used: {error}") from error


_databases: dict[tuple[int, Path], Database] = {}
_opening = threading.Lock()


def _database(path: Path) -> Database:
    """Return this process's connection; a forked process, or a deleted file, gets a new one."""
    key = (os.getpid(), path.absolute())
    with _opening:
        if key not in _databases or not path.exists():
            _databases[key] = Database(path, _SCHEMA)
        return _databases[key]


@dataclass(frozen=True)
class _StoreCache(TextCache):
    """A store that the user passed; it may hold passwords, so it is never shown or pickled."""

    store: Any

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.store).__qualname__})"

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise InputTypeError(
            f"cache={self!r} cannot be pickled: pass the path of a folder, which processes share"
        )


class _LangChainCache(_StoreCache):
    """A LangChain `BaseStore` of strings or of bytes."""

    async def read(self, keys: Sequence[str]) -> list[str | None]:
        return [_as_text(value) for value in await call_method(self.store, "mget", list(keys))]

    async def write(self, pairs: Pairs) -> None:
        try:
            await call_method(self.store, "mset", list(pairs))
        except TypeError:
            await call_method(self.store, "mset", [(key, encode(text)) for key, text in pairs])


class _LlamaIndexCache(_StoreCache):
    """A LlamaIndex `BaseKVStore`, whose values are dictionaries."""

    async def read(self, keys: Sequence[str]) -> list[str | None]:
        rows = [await call_method(self.store, "get", key, collection=_COLLECTION) for key in keys]
        return [_as_text(row.get("text")) if isinstance(row, Mapping) else None for row in rows]

    async def write(self, pairs: Pairs) -> None:
        for key, text in pairs:
            await call_method(self.store, "put", key, {"text": text}, collection=_COLLECTION)


def _as_text(value: object) -> str | None:
    """Return a text from a store; None if it is blank or damaged."""
    if isinstance(value, bytes):
        try:
            value = decode(value)
        except UnicodeDecodeError:
            return None
    return value if isinstance(value, str) and value.strip() else None


# Keys and values


def answer_keys(model: Any, schema: type[BaseModel] | None, prompts: Sequence[str]) -> list[str]:
    """Return the keys of answers to prompts, which include the model and its parameters."""
    form = "" if schema is None else json.dumps(schema.model_json_schema(), sort_keys=True)
    name = cache_name(model)
    return [stable_uuid("answer", name, form, prompt) for prompt in prompts]


def answer_text(answer: str | BaseModel) -> str:
    """Write an answer for a cache."""
    content = answer if isinstance(answer, str) else answer.model_dump(mode="json")
    return json.dumps({"answer": content})


def read_answer(text: str | None, schema: type[BaseModel] | None) -> str | BaseModel | None:
    """Read an answer that `answer_text` wrote; None for anything else."""
    try:
        content = json.loads(text or "")["answer"]
        if isinstance(content, str):
            return content
        return None if schema is None else schema.model_validate(content)
    except (ValueError, KeyError, TypeError):
        return None


def vector_keys(model: Any, texts: Sequence[str], kind: str = "vector") -> list[str]:
    """Return the keys of vectors; `kind` is "question" if the model embeds questions apart."""
    name = cache_name(model)
    return [stable_uuid(kind, name, text) for text in texts]


def vector_text(vector: NDArray[np.float32]) -> str:
    """Write a vector for a cache."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")


def read_vector(text: str | None) -> NDArray[np.float32] | None:
    """Read a vector that `vector_text` wrote; None for anything else."""
    import numpy as np

    try:
        content = base64.b64decode(text or "", validate=True)
        vector = np.frombuffer(content, dtype="<f4").astype(np.float32)
    except (ValueError, binascii.Error):
        return None
    return vector if vector.size and np.isfinite(vector).all() else None


class CachedAnswers:
    """The answers in the user's cache, if there is one.

    Parameters:
        keys: the key in the cache of everything to ask for.
        read: reads an answer from the cache; returns None if it is damaged.
        write: writes an answer for the cache.
    """

    def __init__(
        self,
        cache: TextCache | None,
        keys: Mapping[str, str],
        read: Callable[[str | None], Any],
        write: Callable[[Any], str],
    ) -> None:
        self._cache, self._keys, self._read, self._write = cache, keys, read, write

    async def recall(self, items: Sequence[str]) -> dict[str, Any]:
        """Return the answers that exist."""
        if self._cache is None or not items:
            return {}
        texts = await self._cache.read([self._keys[item] for item in items])
        answers = zip(items, map(self._read, texts), strict=True)
        return {item: answer for item, answer in answers if answer is not None}

    async def keep(self, answers: Mapping[str, Any]) -> None:
        """Keep answers as they arrive."""
        if self._cache is not None and answers:
            pairs = [(self._keys[item], self._write(each)) for item, each in answers.items()]
            await self._cache.write(pairs)


def check_cache(cache: TextCache | None, model: Any) -> None:
    """Raise ValueError if there is a cache and the model has no stable name."""
    if cache is not None:
        cache_name(model)


def _load_cache(value: Any) -> TextCache | None:
    if isinstance(value, str):  # a configuration opens no file
        raise InputError(f"cache must be a store or a path, got a string: pass Path({value!r})")
    try:
        return None if value is None else text_cache(value)
    except TypeError as error:
        raise InputError(str(error)) from None


Cache = Annotated[Any, BeforeValidator(_load_cache), PlainSerializer(lambda value: None)]
"""A field for a cache: a store, or the `Path` of a folder. A configuration never holds it."""
