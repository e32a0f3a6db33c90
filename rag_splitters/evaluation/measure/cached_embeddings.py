"""An embedding model that embeds each text once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.models import Embedder
from rag_splitters.models.cache import check_cache, text_cache
from rag_splitters.models.embedder import rows_of


class CachedEmbeddings:
    """An embedding model with LangChain's methods that embeds each text once.

    For strategies that embed what they cut: if several share this model, each sentence is embedded
    once for all of them.

    Parameters:
        model: a LangChain `Embeddings`, a LlamaIndex `BaseEmbedding` or a function from texts to
            vectors.
        cache: where vectors are kept for the next run, those of each request as soon as they
            arrive: the path of a folder, a LangChain `BaseStore` or a LlamaIndex `BaseKVStore`, as
            for the strategies, which may share it. None: in memory only.

    Raises TypeError if `model` is no embedding model or `cache` no cache, and ValueError for a
    cache with a model that another run would not recognise, such as a lambda.

    >>> model = CachedEmbeddings(lambda texts: [[float(len(text))] for text in texts])
    >>> model.embed_documents(["a", "bc", "a"])
    [[1.0], [2.0], [1.0]]
    """

    def __init__(self, model: Any, cache: Any = None) -> None:
        self._embedder = model if isinstance(model, Embedder) else Embedder(model)
        self._cache = None if cache is None else text_cache(cache)
        check_cache(self._cache, self._embedder)
        self._vectors: dict[str, dict[str, NDArray[np.float32]]] = {"text": {}, "question": {}}

    @property
    def description(self) -> str:
        """The model's own name."""
        return self._embedder.description

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text. Raises ModelError if the model fails."""
        return self._rows("text", texts)

    def embed_questions(self, questions: Sequence[str]) -> NDArray[np.float32]:
        """Like `embed`, for questions: uses the model's own method for them if it has one."""
        return self._rows("question" if self._embedder.has_questions else "text", questions)

    def _rows(self, kind: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts; what is missing is asked for, and remembered."""
        vectors = self._vectors[kind]
        if missing := [text for text in dict.fromkeys(texts) if text not in vectors]:
            if kind == "question":
                rows = self._embedder.embed_questions(missing, cache=self._cache)
            else:
                rows = rows_of(self._embedder.embed_each(missing, cache=self._cache))
            vectors.update(zip(missing, rows, strict=True))
        return rows_of([vectors[text] for text in texts])

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text."""
        vectors: list[list[float]] = self.embed(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        vector: list[float] = self.embed_questions([text])[0].tolist()
        return vector
