"""Embedder: any embedding model, in few requests, whose answers are checked."""

from __future__ import annotations

import asyncio
import math
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from langchain_openai import OpenAIEmbeddings
from llama_index.core import Document

from rag_splitters.llama_index import SemanticNodeParser
from rag_splitters.models import Embedder, HashingEmbeddings, ModelError
from rag_splitters.models.calling import retry_after
from rag_splitters.models.embedder import rows_of
from rag_splitters.text.encodings import load_encoding
from tests.support.embedding_doubles import (
    MODEL,
    CountingEmbeddings,
    LangChainEmbedder,
    LlamaIndexEmbedder,
    embed,
)
from tests.support.openai_clients import openai_options
from tests.support.openai_server import Fault, OpenAIServer

TEXTS = ["Cats sleep.", "Taxes rise.", "日本語の文章", "x" * 50]
SENDING_TEXTS = {"check_embedding_ctx_length": False, "timeout": 5}


async def awaited(texts: list[str]) -> list[list[float]]:
    return embed(texts)


KINDS: dict[str, Callable[[], Any]] = {
    "hashing": lambda: MODEL,
    "langchain": LangChainEmbedder,
    "llama_index": LlamaIndexEmbedder,
    "function": lambda: embed,
    "async_function": lambda: awaited,
    "array": lambda: lambda texts: np.array(embed(texts)),
    "list_of_arrays": lambda: lambda texts: list(np.array(embed(texts), dtype=np.float16)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_embedder_gives_the_same_vectors_whatever_the_model_came_in(kind: str) -> None:
    embedder = Embedder(KINDS[kind]())
    wanted = MODEL.embed_documents(TEXTS)
    tolerance = 1e-3 if kind == "list_of_arrays" else 1e-6

    async def inside_a_loop() -> Any:
        return embedder.embed(TEXTS)

    for found in (
        embedder.embed(TEXTS),
        asyncio.run(embedder.aembed(TEXTS)),
        asyncio.run(inside_a_loop()),
    ):
        assert found.dtype == np.float32
        assert np.allclose(found, wanted, atol=tolerance)
    assert len(embedder.embed([])) == 0


def test_embedder_embeds_equal_texts_once() -> None:
    model = LangChainEmbedder()
    texts = [f"text {number % 700}" for number in range(3000)]
    vectors = Embedder(model).embed(texts)
    assert [len(call) for call in model.calls] == [512, 188]
    assert np.allclose(vectors[650], vectors[1350])
    assert np.allclose(vectors[2999], MODEL.embed_query(texts[2999]), atol=1e-6)


@pytest.mark.parametrize(("given", "wanted"), [(10, 100), (25, 25), (200, 200)])
def test_embedder_raises_the_small_default_batch_of_llama_index(given: int, wanted: int) -> None:
    model = LlamaIndexEmbedder(embed_batch_size=given, calls=[])
    texts = [f"text {number}" for number in range(250)]
    Embedder(model).embed(texts)
    assert max(map(len, model.calls)) == min(wanted, 250)
    assert model.embed_batch_size == given
    model.calls.clear()
    Embedder(model, max_texts=7).embed(texts)
    assert max(map(len, model.calls)) == 7


@pytest.mark.parametrize("is_async", [False, True])
def test_embedder_keeps_both_bounds_of_a_request(is_async: bool) -> None:
    model = CountingEmbeddings()
    texts = [f"{number} " + "word " * (number % 13) for number in range(90)] + ["y" * 500]
    embedder = Embedder(model, max_texts=8, max_tokens=200)
    found = asyncio.run(embedder.aembed(texts)) if is_async else embedder.embed(texts)
    assert np.allclose(found, model.model.embed_documents(texts), atol=1e-6)
    assert sorted(model.texts) == sorted(texts)
    for call in model.calls:
        assert len(call) <= 8
        assert len("".join(call).encode()) <= 200 or call == ["y" * 500]


def test_embedder_has_bounds_without_being_asked() -> None:
    model = CountingEmbeddings()
    Embedder(model).embed([str(number) for number in range(1200)])
    Embedder(model).embed([f"{number} " + "\u6c34" * 30_000 for number in range(7)])
    assert [len(call) for call in model.calls] == [512, 512, 176, 3, 3, 1]


def sent(server: OpenAIServer) -> list[tuple[int, int]]:
    """Texts and OpenAI's tokens of each request."""
    encode = load_encoding("cl100k_base").encode_ordinary
    inputs = [request["body"]["input"] for request in server.requests]
    return [(len(texts), sum(len(encode(text)) for text in texts)) for texts in inputs]


@pytest.mark.parametrize(
    ("is_async", "limits"), enumerate([{"max_tokens": 800}, {"max_tokens": 800, "max_texts": 30}])
)
def test_embedder_bounds_what_a_client_sends(
    limits: dict[str, int], is_async: bool, server: OpenAIServer
) -> None:
    """The client divides the calls by `chunk_size`, and knows no tokens where it sends texts."""
    texts = [f"{number} " + "word " * (40 if number % 50 == 7 else 3) for number in range(400)]
    texts[200:240] = ["\u9f98" * (number + 1) for number in range(40)]
    embedder = Embedder(openai(server, chunk_size=100), **limits)
    found = asyncio.run(embedder.aembed(texts)) if is_async else embedder.embed(texts)
    assert np.allclose(found, HashingEmbeddings(dimensions=64).embed_documents(texts), atol=1e-6)
    assert sum(count for count, _ in sent(server)) == 400
    assert all(count <= limits.get("max_texts", 100) for count, _ in sent(server))
    assert all(tokens <= 800 for _, tokens in sent(server))


def test_embedder_bounds_the_tokens_of_a_client_without_being_asked(server: OpenAIServer) -> None:
    texts = [f"{number} " + "\u9f98" * 1000 for number in range(300)]
    Embedder(openai(server)).embed(texts)
    assert sum(tokens for _, tokens in sent(server)) > 600_000
    assert all(tokens <= 300_000 for _, tokens in sent(server))


@pytest.mark.parametrize("is_async", [False, True])
def test_embedder_shows_requests_only_where_asked(is_async: bool, capsys: Any) -> None:
    parser = SemanticNodeParser(embeddings=Embedder(embed, max_texts=2))
    documents = [Document(text="A sentence that is long enough to be a unit by itself. " * 5)]
    for shown in (True, False):
        if is_async:
            asyncio.run(parser.aget_nodes_from_documents(documents, show_progress=shown))
        else:
            parser.get_nodes_from_documents(documents, show_progress=shown)
        assert ("Asking the model: 100%" in capsys.readouterr().err) is shown


class Flaky:
    """Fails so many times before it answers."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures, self.error, self.calls = failures, error, 0

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return [[1.0]] * len(texts)


class RateLimitError(Exception):
    """As the OpenAI client and others name it."""

    retry_after = 0.01


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "failures"),
    [
        (RateLimitError("slow down"), 2),
        (RuntimeError("Already borrowed"), 1),  # a tokenizer that two threads use
    ],
)
def test_embedder_tries_again_after_a_transient_error(
    error: Exception, failures: int, is_async: bool
) -> None:
    model = Flaky(failures, error)
    embedder = Embedder(model)
    found = asyncio.run(in_many_threads(embedder)) if is_async else embedder.embed(["a"])
    assert (len(found), model.calls) == (1, failures + 1)


async def in_many_threads(embedder: Embedder) -> Any:
    """Embed a text, each step in a thread of its own, as it may happen in any event loop."""

    class ManyThreads(ThreadPoolExecutor):
        def submit(self, *args: Any, **kwargs: Any) -> Any:
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(*args, **kwargs)

    asyncio.get_running_loop().set_default_executor(ManyThreads())
    return await embedder.aembed(["a"])


@pytest.mark.parametrize(
    ("error", "retries", "calls"),
    [
        (RateLimitError("slow down"), 1, 2),
        (RateLimitError("slow down"), 0, 1),
        (ConnectionError("reset"), 0, 1),
        (RuntimeError("a bug"), 4, 1),
    ],
)
def test_embedder_gives_up(error: Exception, retries: int, calls: int) -> None:
    model = Flaky(99, error)
    with pytest.raises(ModelError, match=str(error)) as caught:
        Embedder(model, max_retries=retries).embed(["a"])
    assert model.calls == calls
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        ("99999", 120.0),
        ("-1", 0.0),
        ("soon", None),
        ("nan", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        (timedelta(seconds=3), None),
        (10**400, None),
    ],
)
def test_retry_after_reads_numbers_and_dates(header: Any, wanted: float | None) -> None:
    error, other = RuntimeError("slow down"), RuntimeError("slow down")
    error.response = SimpleNamespace(headers={"retry-after": header})  # type: ignore[attr-defined]
    other.retry_after = header  # type: ignore[attr-defined]
    assert retry_after(error) == retry_after(other) == wanted


def changed(row: int, value: Any) -> Callable[[list[str]], Any]:
    def model(texts: list[str]) -> Any:
        return [value if text == "abcd"[row] else [1.0, 2.0] for text in texts]

    return model


WRONG: dict[str, tuple[Any, str]] = {
    "too_many": (lambda texts: [[1.0]] * 5, "answered with 5 vectors for 1 texts"),
    "nothing": (lambda texts: None, "answered with NoneType instead of vectors"),
    "nan": (changed(2, [1.0, math.nan]), r"not finite for text 3 \(document 1, offset 20\)"),
    "infinite": (changed(1, [math.inf, 1.0]), r"not finite for text 1 \(document 0, offset 10\)"),
    "zeros": (changed(3, [0.0, 0.0]), r"zeros for text 4 \(document 1, offset 30\)"),
    "length": (changed(2, [1.0]), r"vector of 1 numbers for text 3 .*, and of 2 for text 0"),
    "missing": (changed(2, None), r"NoneType instead of numbers for text 3 \(document 1"),
    "text": (changed(0, "ab"), r"str instead of numbers for text 0 \(document 0, offset 0\)"),
    "words": (changed(1, ["a", "b"]), r"instead of numbers for text 1"),
    "empty": (lambda texts: [[] for _ in texts], "an empty vector for text 0"),
    "flat": (lambda texts: [1.0] * len(texts), "float instead of numbers for text 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_embedder_names_what_is_wrong_with_an_answer(name: str) -> None:
    model, message = WRONG[name]
    embedder = Embedder(model)
    texts = ["a", "b", "a", "c", "d"]  # the third is not embedded again
    places = [(0, 0), (0, 10), (1, 0), (1, 20), (1, 30)]
    with pytest.raises(ModelError, match=f"call 1 of 1.* text.*{message}"):
        rows_of(embedder.embed_each(texts, places))


def test_embedder_names_the_documents_of_a_call_that_failed() -> None:
    embedder = Embedder(Flaky(99, ConnectionError("reset")), max_retries=0)
    with pytest.raises(ModelError, match=r"call 1 of 1 \(2 texts of documents 3 to 8\)"):
        rows_of(embedder.embed_each(["a", "b"], [(3, 0), (8, 0)]))


def test_embedder_finds_the_text_that_a_model_gives_no_vector_for() -> None:
    calls: list[list[str]] = []

    def model(texts: list[str]) -> list[list[float]]:
        calls.append(texts)
        return [[1.0] for text in texts if text != "text 77"]

    texts = [f"text {number}" for number in range(200)]
    rows = Embedder(model).embed_each(texts)
    errors = [row for row in rows if isinstance(row, ModelError)]
    assert [rows.index(error) for error in errors] == [77]
    assert "call 1 of 1, text 77: answered with 0 vectors for 1 texts" in str(errors[0])
    assert len(calls) <= 2 * 8 + 1


def test_embedder_does_not_ask_about_every_text_when_all_fail() -> None:
    calls: list[int] = []

    def model(texts: list[str]) -> list[list[float]]:
        calls.append(len(texts))
        raise KeyError("a bug")

    rows = Embedder(model).embed_each([f"text {number}" for number in range(500)])
    assert all(isinstance(row, ModelError) for row in rows)
    assert len(calls) < 30


def test_embedder_refuses_calls_that_answer_in_different_lengths() -> None:
    with pytest.raises(ModelError, match=r"answered call 2 with vectors of 2 numbers, .* 1"):
        Embedder(lambda texts: [[1.0] * len(texts[0])], max_texts=1).embed(["a", "bb"])


@pytest.mark.parametrize("model", ["text-embedding-3-small", 3, None, dict])
def test_embedder_refuses_what_is_no_model(model: object) -> None:
    with pytest.raises(TypeError, match="embeddings must be a LangChain Embeddings"):
        Embedder(model)


@pytest.mark.parametrize("name", ["max_texts", "max_tokens", "max_concurrency"])
def test_embedder_refuses_bounds_of_nothing(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, got 0"):
        Embedder(MODEL, **{name: 0})


def test_embedder_sends_no_lone_surrogates() -> None:
    model = LangChainEmbedder()
    Embedder(model).embed(["a \ud800 b", "\U0001f600"])
    assert model.calls == [["a \ufffd b", "\U0001f600"]]


# What is said of a model, and where its secrets go


def openai(server: OpenAIServer, **others: Any) -> OpenAIEmbeddings:
    model = "text-embedding-3-small"
    return OpenAIEmbeddings(**openai_options(server, **{**SENDING_TEXTS, "model": model, **others}))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (MODEL, "HashingEmbeddings(dimensions=32) version 1"),
        (embed, "function:tests.support.embedding_doubles:embed"),
        (LangChainEmbedder(), "tests.LangChainEmbedder"),
        (LlamaIndexEmbedder(model_name="small"), "small"),
    ],
)
def test_embedder_description_is_stable_and_survives_pickling(model: Any, name: str) -> None:
    embedder = Embedder(model, max_texts=5)
    assert embedder.description == name
    again = pickle.loads(pickle.dumps(embedder))
    assert (again.description, again.max_texts) == (name, 5)
    assert "0x" not in repr(again)


# The real OpenAI clients


def test_embedder_retries_for_a_client_that_was_told_not_to(server: OpenAIServer) -> None:
    server.faults = [Fault(429, b"{}", {"Retry-After": "0"})] * 3
    assert len(Embedder(openai(server, max_retries=0)).embed(TEXTS)) == 4
    assert len(server.requests) == 4


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("options", "busiest"), [({}, 4), ({"max_concurrency": 3}, 3), ({"max_concurrency": 1}, 1)]
)
def test_openai_requests_go_side_by_side(
    options: dict[str, int], busiest: int, is_async: bool, server: OpenAIServer
) -> None:
    server.faults = [Fault(delay=0.05)] * 10
    texts = [f"text {number}" for number in range(100)]
    embedder = Embedder(openai(server, chunk_size=10), **options)
    rows = asyncio.run(embedder.aembed(texts)) if is_async else embedder.embed(texts)
    assert (len(rows), len(server.requests)) == (100, 10)
    assert server.busiest == busiest
    assert sorted(server.texts) == sorted(texts)
