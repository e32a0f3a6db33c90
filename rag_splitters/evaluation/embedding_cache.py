"""A cache of embeddings by text and model, in memory or in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.fields import whole_number
from rag_splitters.models import Embedder, describe_model
from rag_splitters.sqlite import Database, encode

_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"
_SELECT = "SELECT key, vector FROM vectors WHERE key IN ({})"
_UPSERT = "INSERT OR REPLACE INTO vectors VALUES (?, ?)"


class EmbeddingCache:
    """Keeps the embedding of each distinct text of each model.

    With a folder, the next run reuses the embeddings, also after an interruption: every batch is
    written to disk before the next one is embedded.

    Parameters:
        folder: where to keep the embeddings; None keeps them in memory.
        batch: how many texts to embed before they are written.

    >>> cache = EmbeddingCache()
    >>> vectors = cache.embed(lambda texts: [[float(len(text))] for text in texts], ["a", "bc"])
    >>> vectors.tolist()
    [[1.0], [2.0]]
    """

    def __init__(self, folder: str | Path | None = None, *, batch: int = 256) -> None:
        whole_number(batch, "batch", 1)
        self.folder, self.batch = folder, batch
        path = None if folder is None else Path(folder) / "embeddings.sqlite"
        self._database = Database(path, _SCHEMA)
        self._unnamed: dict[int, Any] = {}

    def embed(
        self, model: Any, texts: Sequence[str], track: Callable[[Any], Iterable[Any]] = iter
    ) -> NDArray[np.float32]:
        """Return a row for each text, from the cache or from the model.

        Parameters:
            model: a LangChain `Embeddings`, a LlamaIndex `BaseEmbedding` or a callable from texts
                to vectors.
            texts: the texts; equal ones are embedded once.
            track: wraps the iteration over the batches, for a progress bar.

        Raises ModelError if the model fails, and ValueError if the cache is in a folder and the
        model has no name by which the next run would recognise it.
        """
        embedder = model if isinstance(model, Embedder) else Embedder(model)
        return self._embed(embedder.model, "text", texts, embedder.embed, track)

    def embed_questions(
        self, model: Any, questions: Sequence[str], track: Callable[[Any], Iterable[Any]] = iter
    ) -> NDArray[np.float32]:
        """Like `embed`, for questions: uses the model's own method for them if it has one."""
        embedder = model if isinstance(model, Embedder) else Embedder(model)
        if not embedder.has_questions:
            return self.embed(embedder, questions, track)
        return self._embed(embedder.model, "question", questions, embedder.embed_questions, track)

    def close(self) -> None:
        """Close the file; the cache cannot be used afterwards."""
        self._database.close()

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
        contents = dict(self._database.read_in(_SELECT, list(keys.values())))
        vectors: dict[str, NDArray[np.float32]] = {
            text: np.frombuffer(contents[key], dtype=np.float32)
            for text, key in keys.items()
            if key in contents
        }
        missing = [text for text in keys if text not in vectors]
        batches = range(0, len(missing), self.batch)
        for start in track(batches) if missing else ():
            batch = missing[start : start + self.batch]
            rows = np.ascontiguousarray(ask(batch), dtype=np.float32)
            new_vectors = dict(zip(batch, rows, strict=True))
            pairs = [(keys[text], vector.tobytes()) for text, vector in new_vectors.items()]
            self._database.write_many(_UPSERT, pairs)
            vectors.update(new_vectors)
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        return np.stack([vectors[text] for text in texts])

    def _name(self, model: Any) -> str:
        """Return the model's name or, if that is ambiguous and we are in memory, the object's."""
        name = describe_model(model)
        if "<" not in name:
            return name
        if self.folder is not None:
            raise ValueError(
                f"{name} cannot be recognised in another run: use a function at the top level of "
                "a module, or give the model a description"
            )
        self._unnamed[id(model)] = model  # keeps the object alive, so that its id is not reused
        return f"{name} at {id(model)}"


class CachedEmbeddings:
    """An embedding model with LangChain's methods that embeds each text once.

    For strategies that embed what they cut: if several strategies share a cache, each sentence is
    embedded once for all of them.

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
        """Return a vector for each text."""
        vectors: list[list[float]] = self.cache.embed(self.model, texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        vector: list[float] = self.cache.embed_questions(self.model, [text])[0].tolist()
        return vector


def _key(name: str, kind: str, text: str) -> bytes:
    return hashlib.sha256(encode("\0".join((name, kind, text)))).digest()
