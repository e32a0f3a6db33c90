"""One of several requests fails: what was answered is kept, and paid for again is one request."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from rag_splitters import (
    AgenticChunker,
    ClusterChunker,
    ContextualChunker,
    EmbeddingChunker,
    PropositionChunker,
    SemanticChunker,
    SentenceChunker,
)
from rag_splitters.calls import run, together
from rag_splitters.models import Embedder, ModelError, ask, chat_model
from tests.support.chat_doubles import Function
from tests.support.front_ends import FrontEnd, Page, every_front_end
from tests.support.openai_server import Fault, OpenAIServer
from tests.support.splitting import split_either, split_texts

TEXTS = [
    " ".join(f"Keeper {number} of tower {text} wrote of ships." for number in range(12))
    for text in range(6)
]
OVERLOADED = Fault(503, b"{}", {"Retry-After": "0"})


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(answer) as running:
        yield running


def answer(prompt: str) -> str:
    return "1: It says something." if "proposition" in prompt else "1, 2"


def client(server: OpenAIServer, batch: int, retries: int) -> OpenAIEmbeddings:
    return OpenAIEmbeddings(
        base_url=server.url,
        api_key="sk-any",
        chunk_size=batch,
        max_retries=retries,
        check_embedding_ctx_length=False,
    )


def embedder(server: OpenAIServer, batch: int = 6) -> Embedder:
    return Embedder(client(server, batch, 0), max_retries=0)


def llm(server: OpenAIServer) -> Any:
    model = ChatOpenAI(base_url=server.url, api_key="sk-any", max_retries=0)
    return chat_model(lambda prompt: model.invoke(prompt).text, max_concurrency=4, max_retries=0)


STRATEGIES: dict[str, Callable[[OpenAIServer], Any]] = {
    "semantic": lambda server: SemanticChunker(embeddings=embedder(server), buffer_size=0),
    "embedding": lambda server: EmbeddingChunker(embeddings=embedder(server)),
    "cluster": lambda server: ClusterChunker(embeddings=embedder(server)),
    "agentic": lambda server: AgenticChunker(llm=llm(server), max_retries=0),
    "proposition": lambda server: PropositionChunker(llm=llm(server), max_retries=0),
    "contextual": lambda server: ContextualChunker(
        llm=llm(server), chunker=SentenceChunker(chunk_size=200)
    ),
}


def fail(server: OpenAIServer, word: str, times: int = 1) -> None:
    """Let the server fail on the first requests that hold a word."""
    lock, failures = threading.Lock(), [OVERLOADED] * times

    def fault_of(body: str) -> Fault | None:
        with lock:
            return failures.pop() if failures and word in body else None

    server.fault_of = fault_of


@pytest.mark.slow
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_second_attempt_of_a_strategy_sends_one_request(
    strategy: str, is_async: bool, server: OpenAIServer
) -> None:
    expected = split_either(STRATEGIES[strategy](server), TEXTS, is_async)
    count = len(server.requests)
    chunker = STRATEGIES[strategy](server)
    fail(server, "tower 3")
    with pytest.raises(ModelError):
        split_either(chunker, TEXTS, is_async)
    assert len(server.requests) == 2 * count
    assert split_either(chunker, TEXTS, is_async) == expected
    assert len(server.requests) == 2 * count + 1
    assert split_either(chunker, TEXTS, is_async) == expected
    assert len(server.requests) == 3 * count + 1, "without a failure, every run asks the model"


def test_earlier_groups_of_documents_are_not_paid_for_again(server: OpenAIServer) -> None:
    texts = [
        " ".join(f"Keeper {n} of tower {part} wrote of ships." for part in range(8))
        for n in range(600)
    ]
    chunker = SemanticChunker(embeddings=embedder(server, 500), buffer_size=0)
    fail(server, "Keeper 590 of")
    with pytest.raises(ModelError):
        split_texts(chunker, texts)
    count = len(server.requests)
    assert count >= 4
    split_texts(chunker, texts)
    assert len(server.requests) == count + 1


def test_questions_that_were_answered_are_kept(server: OpenAIServer) -> None:
    model = embedder(server)
    questions = [f"Who kept tower {number}?" for number in range(9)]
    fail(server, "tower 8")
    with pytest.raises(ModelError):
        model.embed_questions(questions)
    assert len(model.embed_questions(questions)) == 9
    assert len(server.requests) == 10


def test_answers_before_a_cancellation_are_kept(server: OpenAIServer) -> None:
    server.faults = [Fault()] * 3 + [Fault(delay=1)]
    model = embedder(server)
    texts = [f"text {number}" for number in range(24)]

    async def cancel() -> None:
        task = asyncio.create_task(model.aembed(texts))
        while len(server.requests) < 4:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert len(server.requests) == 4
    assert len(model.embed(texts)) == 24
    assert len(server.requests) <= 5


# The index


@pytest.mark.slow
@every_front_end
def test_second_attempt_of_an_index_sends_one_request(
    front: FrontEnd, server: OpenAIServer, tmp_path: Path
) -> None:
    """A group of 360 children, in requests of 10."""
    words = [f"Keeper {n} of the tower by the sea wrote of ship number {n}." for n in range(360)]
    pages: list[Page] = [(f"d{at}", " ".join(words[at : at + 36]), {}) for at in range(0, 360, 36)]
    fail(server, "Keeper 183 ", times=2)  # the client makes two attempts
    with closing(front.build(path=tmp_path, embeddings=client(server, 10, 1))) as index:
        with pytest.raises(ModelError):
            front.do(index, "add_documents", front.documents(pages))
        assert len(front.do(index, "add_documents", front.documents(pages))) == 10
        count = len(server.requests)
        repeated = [text for text, times in Counter(server.texts).items() if times > 1]
        assert len(repeated) == 10, "the texts of the request that failed"
        assert front.do(index, "verify").is_sound
        front.do(index, "add_documents", front.documents(pages))
        assert len(server.requests) == count


def test_equal_prompts_of_several_plans_are_sent_once() -> None:
    answer = Function(str.upper)
    model = chat_model(answer)
    plans = [ask(model, ["tea", "rain"]), ask(model, ["rain", "tea", "rain"])]
    assert run(together(plans)) == [["TEA", "RAIN"], ["RAIN", "TEA", "RAIN"]]
    assert sorted(answer.prompts) == ["rain", "tea"]
