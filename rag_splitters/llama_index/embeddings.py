"""HashingEmbedding: `HashingEmbeddings` as a LlamaIndex embedding model."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_splitters.models import HashingEmbeddings


class HashingEmbedding(BaseEmbedding):
    """`rag_splitters.models.HashingEmbeddings` as a LlamaIndex embedding model.

    Use it for `Settings.embed_model` and wherever else LlamaIndex accepts only subclasses of its
    own `BaseEmbedding`. The vectors and the name are those of `HashingEmbeddings`, so that both can
    open the same index.

    Parameters:
        dimensions: number of dimensions of a vector; with fewer, more words collide.
        options: options of LlamaIndex's `BaseEmbedding`.

    Raises ValueError if `dimensions` is not a whole number of at least 1.

    >>> len(HashingEmbedding(dimensions=256).get_text_embedding("A text."))
    256
    """

    dimensions: int = 1024

    def __init__(self, dimensions: int = 1024, **options: Any) -> None:
        name = repr(HashingEmbeddings(dimensions=dimensions))
        super().__init__(**{"dimensions": dimensions, "model_name": name, **options})

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class in LlamaIndex's dictionaries."""
        return "HashingEmbedding"

    @property
    def description(self) -> str:
        """The name that `rag_splitters.models.describe_model` gives it."""
        return self._model.description

    @property
    def _model(self) -> HashingEmbeddings:
        return HashingEmbeddings(dimensions=self.dimensions)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._model.embed_query(text)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._model.embed_documents(texts)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._model.embed_query(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)
