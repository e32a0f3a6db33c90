"""Embeddings that are asked for once: kept by text and model, in memory or in a folder."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.models import Embedder, describe_model, embedding_model
from rag_splitters.models.calling import call, client_retries, model_error, sendable
from rag_splitters.models.vectors import as_vectors

__all__ = ["CachedEmbeddings", "EmbeddingCache"]

_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"
_GET = "SELECT vector FROM vectors WHERE key = ?"
_PUT = "INSERT OR REPLACE INTO vectors VALUES (?, ?)"


class EmbeddingCache:
    """Keeps the embedding of each distinct text of each model.

    In a folder, what was embedded stays for the next run, also for one that follows an
    interruption: every batch is on disk before the next is asked for.

    Parameters:
        folder: where to keep them; None keeps them in memory.
        batch: how many texts to embed before they are written.

    >>> cache = EmbeddingCache()
    >>> vectors = cache.embed(lambda texts: [[float(len(text))] for text in texts], ["a", "bc"])
    >>> vectors.tolist()
    [[1.0], [2.0]]
    """

    def __init__(self, folder: str | Path | None = None, *, batch: int = 256) -> None:
        if batch < 1:
            raise ValueError(f"batch must be at least 1, got {batch}")
        self.folder, self.batch = folder, batch
        where = ":memory:"
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
            where = str(Path(folder) / "embeddings.sqlite")
        self._lock, self._unnamed = threading.RLock(), dict[int, Any]()
        self._connection = sqlite3.connect(
            where, timeout=60, isolation_level=None, check_same_thread=False
        )
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(_SCHEMA)

    def embed(
        self, model: Any, texts: Sequence[str], track: Callable[[Any], Iterable[Any]] = iter
    ) -> NDArray[np.float32]:
        """A row for each text, from the cache or from the model.

        Parameters:
            model: a LangChain `Embeddings`, a LlamaIndex `BaseEmbedding` or a callable from texts
                to vectors.
            texts: the texts; equal ones are embedded once.
            track: what to iterate over the batches with, for a progress bar.

        Raises: ModelError for a model that fails; ValueError for a model without a name of its own
        where the cache is in a folder.
        """
        embedder = model if isinstance(model, Embedder) else Embedder(model)
        return self._embed(embedder.model, "text", texts, embedder.embed, track)

    def embed_questions(
        self, model: Any, questions: Sequence[str], track: Callable[[Any], Iterable[Any]] = iter
    ) -> NDArray[np.float32]:
        """`embed` for questions, by the model's own method for them where it has one."""
        source = model.model if isinstance(model, Embedder) else model
        ask = getattr(embedding_model(source), "embed_query", None)
        if ask is None or not _is_client(source):
            return self.embed(model, questions, track)
        retries = 0 if client_retries(source) else 4

        def embedded(texts: list[str]) -> NDArray[np.float32]:
            try:
                rows = [call(ask, sendable(text), retries=retries) for text in texts]
                return as_vectors(rows, len(texts), lambda row: f"the question {texts[row]!r}")
            except Exception as error:  # whatever a client raises
                raise model_error(source, "failed on a question", error)  # noqa: B904

        return self._embed(source, "question", questions, embedded, track)

    def close(self) -> None:
        """Close the file; the cache cannot be used afterwards."""
        self._connection.close()

    def _embed(
        self,
        model: Any,
        kind: str,
        texts: Sequence[str],
        ask: Callable[[list[str]], NDArray[np.float32]],
        track: Callable[[Any], Iterable[Any]],
    ) -> NDArray[np.float32]:
        name = self._name(model)
        keys = {text: _key(name, kind, text) for text in texts}
        found = {text: self._vector(key) for text, key in keys.items()}
        known = {text: vector for text, vector in found.items() if vector is not None}
        missing = [text for text in found if text not in known]
        batches = range(0, len(missing), self.batch)
        for start in track(batches) if missing else ():
            batch = missing[start : start + self.batch]
            vectors = np.ascontiguousarray(ask(batch), dtype=np.float32)
            rows = [(keys[text], row.tobytes()) for text, row in zip(batch, vectors, strict=True)]
            self._write(rows)
            known.update(zip(batch, vectors, strict=True))
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        return np.stack([known[text] for text in texts])

    def _vector(self, key: bytes) -> NDArray[np.float32] | None:
        with self._lock:
            row = self._connection.execute(_GET, (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0], dtype=np.float32)

    def _write(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(_PUT, rows)
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise

    def _name(self, model: Any) -> str:
        """The model's name; in memory, that of the object where the name says too little."""
        name = describe_model(model)
        if "<" not in name:
            return name
        if self.folder is not None:
            raise ValueError(
                f"{name} cannot be known again in another run: use a function at the top level of "
                "a module, or give the model a description"
            )
        self._unnamed[id(model)] = model  # so that no other object is given its place
        return f"{name} at {id(model)}"


class CachedEmbeddings:
    """An embedding model that asks another one for each text once, under LangChain's names.

    For strategies that embed what they cut: with the same cache, a comparison of several of them
    embeds each sentence once.

    >>> model = CachedEmbeddings(EmbeddingCache(), lambda texts: [[1.0]] * len(texts))
    >>> model.embed_documents(["a", "a"])
    [[1.0], [1.0]]
    """

    def __init__(self, cache: EmbeddingCache, model: Any) -> None:
        self.cache, self.model = cache, model

    @property
    def description(self) -> str:
        """The model's own name."""
        return describe_model(self.model)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text."""
        vectors: list[list[float]] = self.cache.embed(self.model, texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        vector: list[float] = self.cache.embed_questions(self.model, [text])[0].tolist()
        return vector


def _is_client(model: Any) -> bool:
    return hasattr(model, "embed_query") or hasattr(model, "get_query_embedding")


def _key(name: str, kind: str, text: str) -> bytes:
    content = "\0".join((name, kind, text)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).digest()
