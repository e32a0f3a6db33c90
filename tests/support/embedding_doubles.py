"""Embedding models that keep what they are asked: functions, LangChain's and LlamaIndex's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from langchain_core.embeddings import Embeddings
from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import Field

from rag_splitters.models import HashingEmbeddings

MODEL = HashingEmbeddings(dimensions=32)


def embed(texts: list[str]) -> list[list[float]]:
    """Return the vectors of a small model, which says the same everywhere."""
    return MODEL.embed_documents(texts)


class CountingEmbeddings:
    """An embedding function that keeps the texts of each call."""

    model_name = "counting"

    def __init__(self) -> None:
        self.model = HashingEmbeddings(dimensions=256)
        self.calls: list[list[str]] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        return self.model.embed_documents(texts)

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call]

    def count(self) -> int:
        """How many texts there were, which are then forgotten."""
        count = len(self.texts)
        self.calls.clear()
        return count


class LangChainEmbedder(Embeddings):
    """A model with only the synchronous methods, whose calls are counted."""

    def __init__(self, function: Callable[[list[str]], Any] = embed) -> None:
        self.function = function
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> Any:
        self.calls.append(texts)
        return self.function(texts)

    def embed_query(self, text: str) -> Any:
        return self.function([text])[0]


class AsyncLangChainEmbedder(LangChainEmbedder):
    """The same with asynchronous methods."""

    async def aembed_documents(self, texts: list[str]) -> Any:
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> Any:
        return self.embed_query(text)


class LlamaIndexEmbedder(BaseEmbedding):
    """A model with only the synchronous methods, but for the one that LlamaIndex demands."""

    function: Any = embed
    calls: list[list[str]] = Field(default_factory=list)

    def _get_query_embedding(self, query: str) -> Any:
        return self.function([query])[0]

    async def _aget_query_embedding(self, query: str) -> Any:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> Any:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> Any:
        self.calls.append(texts)
        return self.function(texts)


class AsyncLlamaIndexEmbedder(LlamaIndexEmbedder):
    """The same with asynchronous methods."""

    async def _aget_text_embedding(self, text: str) -> Any:
        await asyncio.sleep(0)
        return self._get_text_embedding(text)

    async def _aget_query_embedding(self, query: str) -> Any:
        return await self._aget_text_embedding(query)
