"""Awaiting a model never blocks the event loop: asserted by the thread that runs the call."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings as LangChainEmbeddings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM, CompletionResponse, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from pydantic import BaseModel

from rag_splitters.models import Embedder, chat_model
from rag_splitters.models.clients import HOOKS, blocks_when_awaited
from tests.support.chat_doubles import LangChainDouble, LlamaIndexDouble

THREADS: list[threading.Thread] = []
"""The thread of each call of a model."""


class Verdict(BaseModel):
    """A structured answer."""

    number: int


def embed(texts: list[str]) -> list[list[float]]:
    THREADS.append(threading.current_thread())
    return [[1.0, float(len(text))] for text in texts]


async def async_embed(texts: list[str]) -> list[list[float]]:
    return embed(texts)


class LangChainModel(LangChainEmbeddings):
    """Has only the synchronous methods."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts)

    def embed_query(self, text: str) -> list[float]:
        return embed([text])[0]


class AsyncLangChainModel(LangChainModel):
    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return embed([text])[0]


class LlamaIndexModel(BaseEmbedding):
    """Has only the synchronous methods, but for the one that LlamaIndex demands."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed([text])[0]


class DisguisedLlamaIndexModel(LlamaIndexModel):
    """Overrides the asynchronous methods, as many integrations do, but awaits nothing."""

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embedding(text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._get_text_embeddings(texts)


class AsyncLlamaIndexModel(LlamaIndexModel):
    async def _aget_text_embedding(self, text: str) -> list[float]:
        await asyncio.sleep(0)
        return embed([text])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await self._aget_text_embedding(query)


class AsyncBatchLlamaIndexModel(AsyncLlamaIndexModel):
    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return embed(texts)


def answer(prompt: str) -> str:
    THREADS.append(threading.current_thread())
    return json.dumps({"number": 1})


async def async_answer(prompt: str) -> str:
    return answer(prompt)


class DisguisedLlamaIndexDouble(LlamaIndexDouble):
    """Overrides the asynchronous method, but awaits nothing."""

    @llm_completion_callback()
    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        return self.complete(prompt)


class AsyncLlamaIndexDouble(LlamaIndexDouble):
    @llm_completion_callback()
    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        await asyncio.sleep(0)
        return self.complete(prompt)


class AsyncChatLlamaIndexDouble(AsyncLlamaIndexDouble):
    """Answers structured prompts by `achat`, which it inherits."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted", is_chat_model=True)


def ran_on_loop(work: Callable[[], Awaitable[Any]]) -> set[bool]:
    """Whether the model's calls ran on the event loop's thread."""
    THREADS.clear()

    async def main() -> set[bool]:
        await work()
        return {thread is threading.current_thread() for thread in THREADS}

    return asyncio.run(main())


@pytest.mark.parametrize("is_question", [False, True])
@pytest.mark.parametrize(
    ("model", "is_awaited"),
    [
        (embed, False),
        (async_embed, False),  # on the background loop
        (LangChainModel, False),
        (AsyncLangChainModel, True),
        (LlamaIndexModel, False),
        (DisguisedLlamaIndexModel, False),
        (AsyncLlamaIndexModel, True),
        (AsyncBatchLlamaIndexModel, True),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_embedding_model_blocks_only_a_thread(
    model: Any, is_awaited: bool, is_question: bool
) -> None:
    embedder = Embedder(model() if isinstance(model, type) else model)
    awaited = embedder.aembed_questions if is_question else embedder.aembed
    assert ran_on_loop(lambda: awaited(["one", "two"])) == {is_awaited}


@pytest.mark.parametrize("schema", [None, Verdict])
@pytest.mark.parametrize(
    ("model", "is_awaited"),
    [
        (answer, False),
        (async_answer, False),  # on the background loop
        (LangChainDouble, False),
        (LlamaIndexDouble, False),
        (DisguisedLlamaIndexDouble, False),
        (AsyncLlamaIndexDouble, True),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_chat_model_blocks_only_a_thread(model: Any, is_awaited: bool, schema: Any) -> None:
    llm = chat_model(model(script=answer) if isinstance(model, type) else model)
    assert ran_on_loop(lambda: llm.aask(["one", "two"], schema)) == {is_awaited}


def test_chat_model_with_an_inherited_achat_blocks_only_a_thread() -> None:
    for schema, is_awaited in ((None, True), (Verdict, False)):
        model = chat_model(AsyncChatLlamaIndexDouble(script=answer))
        assert ran_on_loop(partial(model.aask, ["one"], schema)) == {is_awaited}


def test_llama_index_still_has_the_methods_that_block() -> None:
    """Fails when LlamaIndex renames what `blocks_when_awaited` looks at."""
    hooks = {name for method, names in HOOKS.items() for name in (method, *names)}
    assert {name for name in hooks if hasattr(BaseEmbedding, name) or hasattr(LLM, name)} == hooks
    default = BaseEmbedding._aget_text_embeddings
    assert default.__qualname__ == "BaseEmbedding._aget_text_embeddings"
    assert blocks_when_awaited(LlamaIndexModel(), "aget_text_embedding_batch")
    assert blocks_when_awaited(LlamaIndexDouble(script=answer), "acomplete")
    assert blocks_when_awaited(LlamaIndexDouble(script=answer), "achat")
    assert not blocks_when_awaited(AsyncLlamaIndexModel(), "aget_text_embedding_batch")
