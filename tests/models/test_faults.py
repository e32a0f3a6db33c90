"""What 19 faults of a server do to a strategy, through the real clients and plain functions."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_openai import AzureChatOpenAI, AzureOpenAIEmbeddings, ChatOpenAI, OpenAIEmbeddings
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.llms.openai import OpenAI as LlamaIndexOpenAI
from pydantic import BaseModel

from rag_splitters import AgenticChunker, EmbeddingChunker, RecursiveChunker, Span
from rag_splitters.models import (
    Embedder,
    HashingEmbeddings,
    ModelError,
    chat_model,
    collect_failures,
)
from tests.support.chat_doubles import LlamaIndexChat
from tests.support.embedding_doubles import LlamaIndexEmbedder
from tests.support.logs import own_messages
from tests.support.openai_server import (
    SECRET,
    TIMEOUT,
    Fault,
    OpenAIServer,
    azure_options,
    message_of,
    openai_options,
    post,
)
from tests.support.splitting import split_either

WORDS = ("tea", "rain", "bad", "snow", "iron")
LONG = "This long sentence says that the"
TEXTS = [f"{LONG} {word} is here. {LONG} {word} was there." for word in WORDS]
BAD = WORDS.index("bad")
AT_ONCE = {"Retry-After": "0"}


class Starts(BaseModel):
    starts: list[int]


def body(message: str, code: str = "") -> bytes:
    error = {"message": f"{message} {SECRET}", "type": code, "code": code}
    return json.dumps({"error": error}).encode()


PASSING = {
    "rate limit": Fault(429, b"{}", AT_ONCE),
    "server error": Fault(500, b"oops", AT_ONCE),
    "overloaded": Fault(503, b"{}", AT_ONCE),
    "time-out": Fault(delay=2 * TIMEOUT),
    "connection cut": Fault(cut=True),
}
"""Faults of the first request; the next attempt succeeds."""

FATAL = {
    "key refused": Fault(401, body("Incorrect API key provided", "invalid_api_key")),
    "forbidden": Fault(403, body("You may not use this")),
    "no such model": Fault(404, body("The model `m` does not exist", "model_not_found")),
    "no quota": Fault(429, body("You exceeded your quota", "insufficient_quota"), AT_ONCE),
}
"""Faults that every request would share."""


def unfinished(reason: str, content: str = "1,") -> Callable[[dict[str, Any]], None]:
    """Without half of a text; of a structured answer, what came is valid by itself."""

    def change(answer: dict[str, Any]) -> None:
        answer["choices"][0]["finish_reason"] = reason
        if content != "1," or not message_of(answer)["content"].startswith("{"):
            message_of(answer)["content"] = content

    return change


def half(answer: dict[str, Any]) -> None:
    content = message_of(answer)["content"]
    message_of(answer)["content"] = content[: 2 if content[0] == "1" else -3]


def saying(content: str | None) -> Callable[[dict[str, Any]], None]:
    return lambda answer: message_of(answer).update(content=content)


def refusing(answer: dict[str, Any]) -> None:
    message_of(answer).update(content=None, refusal="I will not.")


CHAT_FAULTS = {
    "bad request": Fault(400, body("This text is too long")),
    "malformed body": Fault(body=b"{not json"),
    "empty body": Fault(body=b""),
    "no text": Fault(change=saying("")),
    "null": Fault(change=saying(None)),
    "cut off": Fault(change=unfinished("length")),
    "filtered": Fault(change=unfinished("content_filter")),
    "half an answer": Fault(change=half),
    "no such sentence": Fault(change=saying('{"starts": [1, 99]}')),
    "refusal": Fault(change=refusing),
}
"""Faults of every request about the bad document."""


def vectors_of(answer: dict[str, Any]) -> Any:
    return answer["data"]


def numbers(value: Any) -> Callable[[dict[str, Any]], None]:
    """The last vector replaced."""
    return lambda answer: vectors_of(answer)[-1].update(embedding=value)


EMBEDDING_FAULTS = {
    "bad request": Fault(400, body("This text is too long")),
    "malformed body": Fault(body=b"{not json"),
    "empty body": Fault(body=b""),
    "no vectors": Fault(change=lambda answer: answer.update(data=[])),
    "a vector too few": Fault(change=lambda answer: vectors_of(answer).pop()),
    "a vector too many": Fault(change=lambda a: vectors_of(a).append({**vectors_of(a)[-1]})),
    "not finite": Fault(change=numbers([float("nan")] * 64)),
    "zeros": Fault(change=numbers([0.0] * 64)),
    "words": Fault(change=numbers(["a"] * 64)),
    "null": Fault(change=numbers(None)),
}

assert len(PASSING) + len(FATAL) + len(CHAT_FAULTS) == 19


# The clients


def plain_chat(server: OpenAIServer) -> Any:
    def ask(prompt: str) -> Any:
        answer = post(server.url, "chat/completions", {"messages": [{"content": prompt}]})
        return message_of(answer)["content"]

    return ask


def async_chat(server: OpenAIServer) -> Any:
    """A function over one client, which would fail on a second event loop."""
    client = httpx.AsyncClient(timeout=TIMEOUT, headers={"Authorization": f"Bearer {SECRET}"})

    async def ask(prompt: str) -> Any:
        content = {"messages": [{"content": prompt}]}
        response = await client.post(f"{server.url}/chat/completions", json=content)
        response.raise_for_status()
        return message_of(response.json())["content"]

    return ask


def plain_embeddings(server: OpenAIServer) -> Any:
    def embed(texts: list[str]) -> Any:
        answer = post(server.url, "embeddings", {"input": texts})
        return [each["embedding"] for each in answer["data"]]

    return embed


def llama_index_options(server: OpenAIServer) -> dict[str, Any]:
    return {"api_base": server.url, "api_key": SECRET, "timeout": TIMEOUT, "max_retries": 1}


CHATS: dict[str, Callable[[OpenAIServer], Any]] = {
    "openai": lambda server: ChatOpenAI(**openai_options(server)),
    "azure": lambda server: AzureChatOpenAI(**azure_options(server)),
    "llama_index": lambda server: LlamaIndexChat(url=server.url),
    "llama_index_openai": lambda server: LlamaIndexOpenAI(
        model="gpt-4o", **llama_index_options(server)
    ),
    "function": plain_chat,
    "async function": async_chat,
}
EMBEDDINGS: dict[str, Callable[[OpenAIServer], Any]] = {
    "openai": lambda server: OpenAIEmbeddings(
        **openai_options(server), check_embedding_ctx_length=False
    ),
    "azure": lambda server: AzureOpenAIEmbeddings(
        **azure_options(server), check_embedding_ctx_length=False
    ),
    "llama_index": lambda server: LlamaIndexEmbedder(
        model_name="m", function=plain_embeddings(server)
    ),
    "llama_index_openai": lambda server: OpenAIEmbedding(**llama_index_options(server)),
    "function": plain_embeddings,
}
CLIENTS = {"openai": 2, "azure": 2, "llama_index_openai": 1}
"""Clients that are asked for a form by a schema, and how often one call repeats a request."""


def answer(prompt: str) -> str:
    """As JSON, where the form is asked for by other means than the prompt or by a schema in it."""
    return "1, 2" if "separated by" in prompt and "JSON" not in prompt else '{"starts": [1, 2]}'


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(answer) as running:
        yield running


def split(chunker: Any, is_async: bool) -> list[list[Span]]:
    return split_either(chunker, TEXTS, is_async)


def agentic(kind: str, server: OpenAIServer, **others: Any) -> AgenticChunker:
    form = "Where do chunks begin? Numbers, separated by commas.\n\n{sentences}"
    if kind in CLIENTS:
        form = "Where do chunks begin?\n\n{sentences}"
    llm = chat_model(CHATS[kind](server), max_concurrency=1)
    return AgenticChunker(llm=llm, prompt=form, max_retries=1, **others)


def embedding(
    kind: str, server: OpenAIServer, max_texts: int | None = None, **others: Any
) -> EmbeddingChunker:
    model = Embedder(EMBEDDINGS[kind](server), max_texts=max_texts, max_concurrency=1)
    return EmbeddingChunker(embeddings=model, chunk_size=25, min_chunk_size=0, **others)


def each_fault(faults: Iterable[str], *tasks: str) -> Any:
    """Each fault of each task through OpenAI's client, asynchronously, which runs by default; and
    as well synchronously and through two of the others in turn, so that each meets all sorts."""
    rows = []
    for task in tasks:
        others = [name for name in (CHATS if task == "chat" else EMBEDDINGS) if name != "openai"]
        for number, fault in enumerate(faults):
            first, second = (others[(2 * number + step) % len(others)] for step in (0, 1))
            ways = [("openai", False), (first, bool(number % 2)), (second, not number % 2)]
            rows.append((task, "openai", True, fault))
            rows += [pytest.param(task, *way, fault, marks=pytest.mark.slow) for way in ways]
    return pytest.mark.parametrize(("task", "kind", "is_async", "fault"), rows)


CHUNKERS = {"chat": agentic, "embedding": embedding}
REQUESTS = {"chat": len(TEXTS), "embedding": 1}
"""How many requests each task needs where nothing goes wrong."""
FIRST = {"chat": "document 0, window 0 .*fail", "embedding": "document 0, offset 0"}
"""What each task says of where the first request failed."""


def whole(task: str) -> list[list[Span]]:
    """What a model that answers always makes of the texts."""
    if task == "embedding":
        hashing = HashingEmbeddings(dimensions=64)
        return split(EmbeddingChunker(embeddings=hashing, chunk_size=25, min_chunk_size=0), False)
    return [[Span(0, text.index(".") + 1), Span(text.index(".") + 2, len(text))] for text in TEXTS]


@each_fault(PASSING, "chat", "embedding")
def test_a_passing_fault_costs_one_more_request(
    task: str, kind: str, fault: str, is_async: bool, server: OpenAIServer
) -> None:
    server.faults = [PASSING[fault]]
    assert split(CHUNKERS[task](kind, server), is_async) == whole(task)
    assert len(server.requests) == REQUESTS[task] + 1


@each_fault(FATAL, "chat", "embedding")
def test_work_stops_at_once_where_all_would_fail(
    task: str, kind: str, fault: str, is_async: bool, server: OpenAIServer
) -> None:
    server.fault_of = lambda body: FATAL[fault]
    for on_error in ("raise", "skip", RecursiveChunker()):
        server.requests.clear()
        with pytest.raises(ModelError, match=FIRST[task]) as caught:
            split(CHUNKERS[task](kind, server, on_error=on_error), is_async)
        assert caught.value.fatal
        check_no_secret(caught.value)
        retried = kind in CLIENTS and fault == "no quota"
        assert len(server.requests) == 1 + (CLIENTS[kind] if retried else 0)


@each_fault(CHAT_FAULTS, "chat")
def test_chat_loses_nothing_to_one_bad_document(
    task: str, kind: str, fault: str, is_async: bool, server: OpenAIServer, tmp_path: Path
) -> None:
    server.fault_of = lambda body: CHAT_FAULTS[fault] if "bad" in body else None
    cached = {} if "function" in kind else {"cache": tmp_path}
    chunker = agentic(kind, server, **cached)
    with pytest.raises(ModelError, match=rf"document {BAD}, window 0 ") as caught:
        split(chunker, is_async)
    check_no_secret(caught.value)
    expected = whole(task)
    assert caught.value.results == [None if i == BAD else s for i, s in enumerate(expected)]
    assert caught.value.index == BAD
    others = [request for request in server.requests if "bad" not in json.dumps(request["body"])]
    assert len(others) == len(TEXTS) - 1
    if cached:
        server.fault_of = lambda body: None
        server.requests.clear()
        assert split(chunker, is_async) == expected
        assert len(server.requests) == 1  # only what had failed: nothing unfinished was kept


@pytest.mark.parametrize("schema", [None, Starts])
@pytest.mark.parametrize("kind", ["openai", "llama_index_openai"])
@pytest.mark.parametrize(
    ("change", "reason"),
    [(refusing, r"withheld it \(refusal\)"), (unfinished("length", '{"starts": [1,'), "length")],
)
def test_message_says_why_an_answer_is_incomplete(
    change: Any, reason: str, kind: str, schema: Any, server: OpenAIServer
) -> None:
    server.fault_of = lambda body: Fault(change=change)
    [error] = chat_model(CHATS[kind](server)).ask(["Where?"], schema)
    assert isinstance(error, ModelError)
    assert re.search(reason, str(error))
    assert not error.answered  # asking again would give the same answer


@pytest.mark.parametrize(("kind", "is_async"), [("openai", True), ("llama_index", False)])
def test_chat_goes_on_and_reports(
    kind: str, is_async: bool, server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.fault_of = lambda body: CHAT_FAULTS["bad request"] if "bad" in body else None
    assert split(agentic(kind, server, on_error="skip"), is_async) == [
        [] if i == BAD else spans for i, spans in enumerate(whole("chat"))
    ]
    fallen = split(agentic(kind, server, on_error=RecursiveChunker()), is_async)
    assert [span.metadata for span in fallen[BAD]] == [{"fallback": "RecursiveChunker"}]
    with collect_failures() as failures:
        found = split(agentic(kind, server), is_async)
    assert [spans == [] for spans in found] == [i == BAD for i in range(len(TEXTS))]
    assert [failure.index for failure in failures] == [BAD]
    assert [f"document {BAD}, window 0" in each for each in own_messages(caplog)] == [True] * 2
    assert SECRET not in caplog.text


def only_the_last(fault: Fault) -> Callable[[str], Fault | None]:
    """The fault for requests whose last text is about the bad document, as they change that one."""

    def find(request: str) -> Fault | None:
        texts = json.loads(request)["input"]
        is_bad = any("bad" in text for text in texts)
        is_last = "bad" in texts[-1]
        return fault if (is_bad if fault.change is None else is_last) else None

    return find


@each_fault(EMBEDDING_FAULTS, "embedding")
def test_embedding_finds_the_bad_text_and_keeps_the_others(
    task: str, kind: str, fault: str, is_async: bool, server: OpenAIServer, tmp_path: Path
) -> None:
    server.encoding = "float"
    server.fault_of = only_the_last(EMBEDDING_FAULTS[fault])
    cached = {} if kind == "function" else {"cache": tmp_path}
    chunker = embedding(kind, server, max_texts=6, **cached)
    with pytest.raises(ModelError, match=rf"document {BAD}, offset") as caught:
        split(chunker, is_async)
    check_no_secret(caught.value)
    assert {error.index for error in caught.value.failures} == {BAD}
    expected = whole(task)
    assert caught.value.results == [None if i == BAD else s for i, s in enumerate(expected)]
    if cached:
        server.fault_of = lambda body: None
        server.requests.clear()
        assert split(chunker, is_async) == expected
        assert all("bad" in text for text in server.texts)


def check_no_secret(error: BaseException) -> None:
    """An error, what a traceback shows with it, and its pickle hold no key."""
    shown: BaseException | None = error
    while shown is not None:
        assert SECRET not in str(shown) + repr(shown)
        shown = shown.__cause__
    assert SECRET.encode() not in pickle.dumps(error)


@pytest.mark.parametrize("kind", [httpx.ReadTimeout, httpx.ConnectError])
def test_an_error_of_httpx_without_its_request_is_passing(kind: type[httpx.RequestError]) -> None:
    """A user's own function may raise one; it has a `request`, and to read that raises."""
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        if len(prompts) == 1:
            raise kind("no answer")
        return prompt

    assert chat_model(model, max_retries=1).ask(["tea"]) == ["tea"]
