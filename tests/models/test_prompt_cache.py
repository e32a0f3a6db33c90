"""ContextualChunker and the provider's prompt cache: each window of a document is read once."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from llama_index.core.llms import ChatMessage, ChatResponse
from pydantic import BaseModel, Field

from rag_splitters import ContextualChunker, RecursiveChunker
from rag_splitters.models import chat_model
from rag_splitters.models.prompts import Prompt
from tests.support.chat_doubles import Function, LangChainDouble, LlamaIndexDouble, part
from tests.support.prompt_cache import CachingServer, document, text_of
from tests.support.splitting import asplit_texts, split_either, split_texts


def about(prompt: str) -> str:
    return "About the turbine."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("window", "share", "concurrency", "is_async"),
    [
        (20_000, 0.9, 4, False),
        (20_000, 0.9, 16, True),
        (8_000, 0.78, 16, False),
        (8_000, 0.78, 4, True),
    ],
)
def test_windows_are_in_the_cache_before_their_other_chunks_come(
    window: int, share: float, concurrency: int, is_async: bool
) -> None:
    text = document(100_000)
    with CachingServer(about, delay=0.01) as server:
        llm = ChatOpenAI(model="gpt-4o", base_url=server.url, api_key="sk-any", max_retries=0)
        chunker = ContextualChunker(llm=llm, max_concurrency=concurrency, document_window=window)
        (spans,) = split_either(chunker, [text], is_async)
        assert len(spans) == len(server.requests) > 100
        assert server.busiest >= 4
        assert server.cached >= share * server.tokens
        prompts = [text_of(each["body"]["messages"][-1]["content"]) for each in server.requests]
    assert all("The Zephyr Turbine" in prompt for prompt in prompts)


def test_first_chunk_of_each_window_is_asked_about_first() -> None:
    llm = Function(about)
    ContextualChunker(llm=llm, document_window=4000).chunk(document(30_000))
    windows = [part(prompt, "document") for prompt in llm.prompts]
    distinct = list(dict.fromkeys(windows))
    assert len(distinct) > 10
    assert windows[: len(distinct)] == distinct


def test_what_no_provider_caches_is_asked_in_one_go() -> None:
    """Short documents, and windows of one chunk: nothing is gained by waiting for the first."""
    llm = Function(about)
    chunker = ContextualChunker(llm=llm, chunker=RecursiveChunker(chunk_size=100))
    split_texts(chunker, [f"{number}. {document(200)}" for number in range(5)])
    assert all(not prompt.shared for prompt in llm.prompts)
    windows = [part(prompt, "document") for prompt in llm.prompts]
    assert windows == sorted(windows)


def test_prompts_share_all_that_stands_before_headings_and_chunk() -> None:
    llm = Function(about)
    chunker = ContextualChunker(llm=llm, document_window=None)
    chunker.chunk("Tea comes first.\n\n" + document(15_000))
    shared = {prompt.parts[0] for prompt in llm.prompts}
    assert len(shared) == 1
    assert shared.pop().endswith("\n</document>\n\n")
    rest = [prompt.parts[1] for prompt in llm.prompts]
    assert {each.startswith("<headings>\nThe Zephyr") for each in rest} == {True, False}


def test_prompt_is_text_with_a_mark_and_survives_copies() -> None:
    prompt = Prompt("shared and own", 7)
    assert pickle.loads(pickle.dumps(prompt)).parts == ("shared ", "and own")
    assert json.dumps(prompt) == '"shared and own"'


# Anthropic's models, which have to be told what to keep


class ScriptedAnthropic(LangChainDouble):
    """Stands for LangChain's ChatAnthropic, which passes its blocks on as they are."""

    contents: list[Any] = Field(default_factory=list)

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        self.contents.append(messages[-1].content)
        return str(self.script(text_of(messages[-1].content)))


class ScriptedLlamaIndexAnthropic(LlamaIndexDouble):
    """Stands for LlamaIndex's Anthropic."""

    messages: list[Any] = Field(default_factory=list)

    def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        self.messages.extend(messages)
        text = "".join(getattr(block, "text", "") for block in messages[-1].blocks)
        return ChatResponse(message=ChatMessage(role="assistant", content=self.script(text)))

    async def achat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        return self.chat(messages)


def longest(prompt: str) -> str:
    return f"A part of {len(prompt)}."


def plain_contexts(text: str) -> list[Any]:
    return [span.context for span in ContextualChunker(llm=longest).spans(text)]


@pytest.mark.parametrize(
    "wrap", [lambda llm: llm, lambda llm: llm | RunnableLambda(lambda m: m.text)]
)
def test_langchain_anthropic_is_told_what_to_cache(wrap: Any) -> None:
    text = document(5_000)
    llm = ScriptedAnthropic(script=longest)
    chunker = ContextualChunker(llm=wrap(llm))
    assert [span.context for span in chunker.spans(text)] == plain_contexts(text)
    asyncio.run(asplit_texts(chunker, [text]))
    assert len(llm.contents) > 4
    shared = set()
    for marked, rest in llm.contents:
        assert marked["cache_control"] == {"type": "ephemeral"}
        assert "cache_control" not in rest
        assert rest["text"].startswith(("<headings>", "<chunk>"))
        shared.add(marked["text"])
    assert len(shared) == 1
    llm.contents.clear()
    ContextualChunker(llm=llm).chunk("One chunk alone.")
    assert all(isinstance(each, str) for each in llm.contents)  # writing to the cache costs more


def test_llama_index_anthropic_is_told_what_to_cache() -> None:
    text = document(5_000)
    llm = ScriptedLlamaIndexAnthropic(script=longest)
    chunker = ContextualChunker(llm=llm)
    assert [span.context for span in chunker.spans(text)] == plain_contexts(text)
    asyncio.run(asplit_texts(chunker, [text]))
    for message in llm.messages:
        assert [block.block_type for block in message.blocks] == ["text", "cache", "text"]
        assert message.blocks[1].cache_control.type == "ephemeral"


class Answer(BaseModel):
    """What a structured answer looks like."""

    verdict: str


def test_other_prompts_and_other_models_are_sent_as_text() -> None:
    llm = ScriptedAnthropic(script=str.upper)
    assert chat_model(llm).ask(["a", Prompt("b", 0)]) == ["A", "B"]
    assert sorted(llm.contents) == ["a", "b"]
    usual = LangChainDouble(script=str.upper)
    assert chat_model(usual).ask([Prompt("a and b", 4)]) == ["A AND B"]
    assert usual.prompts == ["a and b"]
    llama = ScriptedLlamaIndexAnthropic(script=lambda prompt: '{"verdict": "yes"}')
    assert chat_model(llama).ask(["a"], Answer) == [Answer(verdict="yes")]


class _Messages(BaseHTTPRequestHandler):
    """Anthropic's API, as far as a client needs it to get an answer."""

    bodies: list[dict[str, Any]]

    def do_POST(self) -> None:
        self.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        answer = {
            "id": "1",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": [{"type": "text", "text": "About the turbine."}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def anthropic() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    bodies: list[dict[str, Any]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (_Messages,), {"bodies": bodies}))
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
@pytest.mark.parametrize("is_async", [False, True])
def test_real_client_sends_the_mark(
    is_async: bool, anthropic: tuple[str, list[dict[str, Any]]]
) -> None:
    clients = pytest.importorskip("langchain_anthropic")
    url, bodies = anthropic
    llm = clients.ChatAnthropic(model="claude-sonnet-4-5", api_key="sk-any", base_url=url)
    chunker, text = ContextualChunker(llm=llm), document(5_000)
    (spans,) = split_either(chunker, [text], is_async)
    assert {span.context for span in spans} == {"About the turbine."}
    assert len(bodies) == len(spans)
    for body in bodies:
        marked, rest = body["messages"][-1]["content"]
        assert marked["cache_control"]["type"] == "ephemeral"
        assert "cache_control" not in rest
