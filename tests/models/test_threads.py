"""Awaiting a model never blocks the event loop: asserted by the thread that runs the call."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from llama_index.core.llms import CompletionResponse
from llama_index.core.llms.callbacks import llm_completion_callback
from pydantic import BaseModel

from rag_splitters.models import Embedder, chat_model
from tests.support.chat_doubles import LangChainDouble, LlamaIndexDouble
from tests.support.embedding_doubles import (
    AsyncLangChainEmbedder,
    AsyncLlamaIndexEmbedder,
    LangChainEmbedder,
    LlamaIndexEmbedder,
)

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


def answer(prompt: str) -> str:
    THREADS.append(threading.current_thread())
    return json.dumps({"number": 1})


async def async_answer(prompt: str) -> str:
    return answer(prompt)


class AsyncLlamaIndexDouble(LlamaIndexDouble):
    @llm_completion_callback()
    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        return self.complete(prompt)


def ran_on_loop(work: Callable[[], Awaitable[Any]]) -> set[bool]:
    """Whether the model's calls ran on the event loop's thread."""
    THREADS.clear()

    async def main() -> set[bool]:
        await work()
        return {thread is threading.current_thread() for thread in THREADS}

    return asyncio.run(main())


@pytest.mark.parametrize(
    "model",
    [
        embed,
        async_embed,
        LangChainEmbedder,
        AsyncLangChainEmbedder,
        LlamaIndexEmbedder,
        AsyncLlamaIndexEmbedder,
    ],
    ids=lambda model: model.__name__,
)
def test_embedding_model_blocks_only_a_thread(model: Any) -> None:
    embedder = Embedder(model(function=embed) if isinstance(model, type) else model)
    for awaited in (embedder.aembed, embedder.aembed_questions):
        assert ran_on_loop(lambda awaited=awaited: awaited(["one", "two"])) == {False}


@pytest.mark.parametrize(
    "model",
    [answer, async_answer, LangChainDouble, LlamaIndexDouble, AsyncLlamaIndexDouble],
    ids=lambda model: model.__name__,
)
def test_chat_model_blocks_only_a_thread(model: Any) -> None:
    llm = chat_model(model(script=answer) if isinstance(model, type) else model)
    for schema in (None, Verdict):
        assert ran_on_loop(lambda schema=schema: llm.aask(["one", "two"], schema)) == {False}


def test_many_calls_are_awaited_at_once() -> None:
    """More than asyncio has threads for on this machine."""
    together = threading.Barrier(40, timeout=30)

    def wait(prompt: str) -> str:
        together.wait()
        return prompt

    model = chat_model(wait, max_concurrency=40)
    prompts = [f"prompt {number}" for number in range(40)]
    assert asyncio.run(model.aask(prompts)) == prompts
