"""Asynchronous models on one event loop, and retries that do not multiply."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI

from rag_splitters import AgenticChunker, EntityChunker, SemanticChunker
from rag_splitters.models import ModelError, chat_model
from rag_splitters.models.loop import run_async
from tests.support.openai_server import Fault, OpenAIServer
from tests.support.splitting import asplit_texts, split_texts

TEXTS = [f"Text {number} is here. It is number {number}." for number in range(3)]


class Loops:
    """An asynchronous model that notes the loops on which it is awaited."""

    def __init__(self) -> None:
        self.loops: list[asyncio.AbstractEventLoop] = []

    async def chat(self, prompt: str) -> str:
        self.loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0.001)
        return "1, 2"

    async def embed(self, texts: list[str]) -> list[list[float]]:
        self.loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0.001)
        return [[1.0, float(len(text))] for text in texts]


def chunkers(loops: Loops) -> list[Any]:
    return [AgenticChunker(llm=loops.chat), SemanticChunker(embeddings=loops.embed, buffer_size=0)]


def test_async_function_is_awaited_on_one_loop_whoever_calls() -> None:
    loops = Loops()

    async def inside() -> None:
        for chunker in chunkers(loops):
            split_texts(chunker, TEXTS)
            await asplit_texts(chunker, TEXTS)

    for chunker in chunkers(loops):
        split_texts(chunker, TEXTS)
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(split_texts, [chunker] * 3, [TEXTS] * 3))
        asyncio.run(asplit_texts(chunker, TEXTS))
    asyncio.run(inside())
    asyncio.run(inside())
    assert len(loops.loops) > 20
    assert len({id(loop) for loop in loops.loops}) == 1


def test_what_only_returns_something_to_await_is_awaited() -> None:
    async def chat(prompt: str) -> str:
        return prompt.upper()

    for model in (lambda prompt: chat(prompt), RunnableLambda(chat)):
        llm = chat_model(model)
        assert llm.ask(["a"]) == asyncio.run(llm.aask(["a"])) == ["A"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_process_has_a_loop_of_its_own() -> None:
    model = chat_model(Loops().chat)
    assert model.ask(["a"]) == ["1, 2"]
    pid = os.fork()
    if not pid:
        os._exit(0 if model.ask(["a"]) == ["1, 2"] else 1)
    deadline = time.monotonic() + 60
    while (done := os.waitpid(pid, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if done == (0, 0):
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    assert done == (pid, 0)
    assert model.ask(["a"]) == ["1, 2"]


def test_cancelling_cancels_what_runs_on_the_loop() -> None:
    events: list[str] = []

    async def chat(prompt: str) -> str:
        events.append("began")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            events.append("cancelled")
            raise
        return prompt

    async def main() -> None:
        task = asyncio.create_task(chat_model(chat).aask(["a"]))
        while not events:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while len(events) < 2:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 30))
    assert events == ["began", "cancelled"]


def test_loop_does_not_wait_for_itself() -> None:
    async def nested() -> Any:
        return chat_model(Loops().chat).ask(["a"])

    (error,) = run_async(nested())
    assert "await the asynchronous method instead" in str(error)


async def recogniser(text: str) -> list[tuple[int, int, str]]:
    await asyncio.sleep(0)
    return [(0, 4, "TEXT")]


def test_recogniser_may_be_asynchronous() -> None:
    chunker = EntityChunker(ner=recogniser)
    spans = split_texts(chunker, TEXTS)
    assert asyncio.run(asplit_texts(chunker, TEXTS)) == spans
    assert spans[0][0].metadata["entities"][0]["text"] == "Text"


def test_error_of_a_recogniser_names_the_document() -> None:
    def failing(text: str) -> list[Any]:
        if "number 1" in text:
            raise RuntimeError("no entities today")
        return []

    with pytest.raises(ValueError, match=r"EntityChunker: document 1: .*no entities today"):
        split_texts(EntityChunker(ner=failing), TEXTS)

    def outside(text: str) -> list[Any]:
        return [(0, 999, "X")] if "number 2" in text else []

    with pytest.raises(ValueError, match=r"EntityChunker: document 2: .*999"):
        split_texts(EntityChunker(ner=outside), TEXTS)


# Retries


def options(server: OpenAIServer) -> dict[str, Any]:
    return {"model": "m", "base_url": server.url, "api_key": "any"}


def function_over(server: OpenAIServer) -> Any:
    client = ChatOpenAI(**options(server))
    return lambda prompt: client.invoke(prompt).text


class Around:
    """An object of the user's own around a client, which makes the client when it is called."""

    def __init__(self, server: OpenAIServer) -> None:
        self.server = server

    def __call__(self, prompt: str) -> str:
        return ChatOpenAI(**options(self.server)).invoke(prompt).text


MODELS: dict[str, Callable[[OpenAIServer], Any]] = {
    "client": lambda server: ChatOpenAI(**options(server)),
    "sequence": lambda server: ChatOpenAI(**options(server)) | StrOutputParser(),
    "function": function_over,
    "object": Around,
    "runnable function": lambda server: RunnableLambda(function_over(server)),
}


@pytest.mark.parametrize("name", MODELS)
def test_retries_do_not_multiply(name: str, server: OpenAIServer) -> None:
    server.faults = [Fault(503, b"{}", {"Retry-After": "0"})] * 20
    (error,) = chat_model(MODELS[name](server)).ask(["a"])
    assert isinstance(error, ModelError)
    assert len(server.requests) == 3


def test_we_retry_for_a_function_over_a_client_that_does_not(server: OpenAIServer) -> None:
    client = ChatOpenAI(**options(server), max_retries=0)
    server.faults = [Fault(503, b"{}", {"Retry-After": "0"})] * 3
    assert chat_model(lambda prompt: client.invoke(prompt).text).ask(["a"]) == ["A"]
    assert len(server.requests) == 4


def test_dead_server_is_not_asked_about_everything() -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        raise ConnectionError("nobody is there")

    answers = chat_model(model, max_retries=0).ask([f"prompt {number}" for number in range(100)])
    assert all(isinstance(answer, ModelError) for answer in answers)
    assert "not sent, because" in str(answers[-1])
    assert len(asked) == 8
