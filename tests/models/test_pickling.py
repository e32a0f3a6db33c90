"""Pickled models: the copy talks to the same server, and the pickle holds no secret."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import openai
import pyarrow as pa
import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_openai import (
    AzureChatOpenAI,
    AzureOpenAIEmbeddings,
    ChatOpenAI,
    OpenAIEmbeddings,
)
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from pydantic import Field, PrivateAttr

import rag_splitters.langchain
import rag_splitters.llama_index
from rag_splitters import Chunker, SemanticChunker, SentenceChunker, Span, TitledChunker
from rag_splitters.distributed import TableSplitter
from rag_splitters.distributed.splitter import load_splitter
from rag_splitters.evaluation import Question, compare
from rag_splitters.langchain import SemanticTextSplitter
from rag_splitters.llama_index import SemanticNodeParser
from rag_splitters.models import ChatModel, Embedder, HashingEmbeddings, Llm, chat_model
from tests.support.openai_server import OpenAIServer

KEY, PASSWORD, HEADER = "sk-very-secret", "pass-very-secret", "header-very-secret"
KEYS = {
    "OPENAI_API_KEY": "key-of-the-environment",
    "AZURE_OPENAI_API_KEY": "key-of-the-environment",
}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def default_server() -> Iterator[OpenAIServer]:
    """The server that models talk to if they do not name another one."""
    with OpenAIServer() as running:
        yield running


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def with_login(address: str) -> str:
    return address.replace("://", f"://user:{PASSWORD}@")


# LlamaIndex's OpenAI and OpenAIEmbedding, which are packages of their own: the same settings


def post(model: Any, path: str, body: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {model.api_key}", **(model.default_headers or {})}
    return httpx.post(f"{model.api_base}/{path}", json=body, headers=headers).json()


def credentials(api_key: str | None, api_base: str | None) -> dict[str, Any]:
    default = os.environ.get("OPENAI_API_BASE", "https://api.openai.com/v1")
    return {
        "api_key": api_key or os.environ.get("OPENAI_API_KEY", ""),
        "api_base": api_base or default,
    }


class LlamaIndexOpenAI(CustomLLM):
    model: str
    api_key: str
    api_base: str
    default_headers: dict[str, str] | None = None
    additional_kwargs: dict[str, Any] = Field(default_factory=dict)
    _http_client: Any = PrivateAttr()

    def __init__(
        self,
        model: str = "m",
        api_key: str | None = None,
        api_base: str | None = None,
        http_client: Any = None,
        **others: Any,
    ) -> None:
        super().__init__(model=model, **credentials(api_key, api_base), **others)
        self._http_client = http_client

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self.model)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        answer = post(self, "chat/completions", {"messages": [{"content": prompt}]})
        return CompletionResponse(text=answer["choices"][0]["message"]["content"])

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class LlamaIndexOpenAIEmbedding(BaseEmbedding):
    api_key: str
    api_base: str
    default_headers: dict[str, str] | None = None

    def __init__(
        self, api_key: str | None = None, api_base: str | None = None, **others: Any
    ) -> None:
        super().__init__(**credentials(api_key, api_base), **others)

    def _get_text_embedding(self, text: str) -> list[float]:
        answer = post(self, "embeddings", {"input": [text]})
        return list(answer["data"][0]["embedding"])

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def azure(server: OpenAIServer) -> dict[str, Any]:
    return {
        "azure_endpoint": with_login(server.root),
        "api_key": KEY,
        "api_version": "2024-06-01",
        "azure_deployment": "small",
    }


def chat(server: OpenAIServer, **options: Any) -> ChatOpenAI:
    options = {"base_url": with_login(server.url), "api_key": KEY, **options}
    return ChatOpenAI(model="m", **options)


def embedding(server: OpenAIServer, **options: Any) -> OpenAIEmbeddings:
    options = {"base_url": with_login(server.url), "api_key": KEY, **options}
    return OpenAIEmbeddings(model="m", check_embedding_ctx_length=False, **options)


def sent_header(server: OpenAIServer, name: str) -> list[str | None]:
    """A header of all requests."""
    requests = [
        {key.lower(): value for key, value in r["headers"].items()} for r in server.requests
    ]
    return [headers.get(name.lower()) for headers in requests]


def shout(message: Any) -> str:
    return str(message.text).upper()


MODELS: dict[str, Callable[[OpenAIServer], Embedder | ChatModel]] = {
    "ChatOpenAI": lambda server: chat_model(chat(server)),
    "OpenAIEmbeddings": lambda server: Embedder(embedding(server)),
    "AzureChatOpenAI": lambda server: chat_model(AzureChatOpenAI(**azure(server))),
    "AzureOpenAIEmbeddings": lambda server: Embedder(
        AzureOpenAIEmbeddings(**azure(server), check_embedding_ctx_length=False)
    ),
    "LlamaIndex OpenAI": lambda server: chat_model(
        LlamaIndexOpenAI(api_base=with_login(server.url), api_key=KEY)
    ),
    "LlamaIndex OpenAIEmbedding": lambda server: Embedder(
        LlamaIndexOpenAIEmbedding(api_base=with_login(server.url), api_key=KEY)
    ),
    "safe settings": lambda server: chat_model(
        chat(
            server,
            temperature=0,
            timeout=httpx.Timeout(9),
            default_headers={"User-Agent": "mine", "OpenAI-Project": "p"},
            extra_body={"top_k": 3},
        )
    ),
    "bind": lambda server: chat_model(chat(server).bind(stop=["x"])),
    "with_config": lambda server: chat_model(chat(server).with_config(tags=["mine"])),
    "with_retry": lambda server: chat_model(chat(server).with_retry(stop_after_attempt=2)),
    "with_fallbacks": lambda server: chat_model(chat(server).with_fallbacks([chat(server)])),
    "sequence": lambda server: chat_model(chat(server) | StrOutputParser()),
    "sequence with a function": lambda server: chat_model(chat(server).bind(n=1) | shout),
    "method": lambda server: Embedder(embedding(server).embed_documents),
    "partial": lambda server: Embedder(partial(embedding(server).embed_documents, chunk_size=9)),
}

LOAD = """
import pickle, sys, traceback
from rag_splitters.models import Embedder
for name, pickled in pickle.load(sys.stdin.buffer).items():
    try:
        model = pickle.loads(pickled)
        print(name, model.embed(["a"]).shape if isinstance(model, Embedder) else model.ask(["a"]))
    except ValueError:
        traceback.print_exc()
"""


def load_elsewhere(pickles: dict[str, bytes], **environment: str) -> str:
    """What models answer after they were unpickled in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", LOAD],
        input=pickle.dumps(pickles),
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )
    return done.stdout.decode() + done.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize("family", ["OpenAI", "Azure"])
def test_copies_talk_to_the_same_server(
    family: str, server: OpenAIServer, default_server: OpenAIServer
) -> None:
    names = [name for name in MODELS if ("Azure" in name) == (family == "Azure")]
    pickles = {name: pickle.dumps(MODELS[name](server)) for name in names}
    for secret in (KEY, PASSWORD, "user", *KEYS.values()):
        assert secret.encode() not in b"".join(pickles.values())
    shown = load_elsewhere(
        pickles,
        **{"AZURE_OPENAI_ENDPOINT": default_server.root}
        if family == "Azure"
        else {"OPENAI_API_BASE": default_server.url, "OPENAI_BASE_URL": default_server.url},
    )
    for name in names:
        assert f"{name} (1, 64)\n" in shown or f"{name} ['A']\n" in shown, shown
    assert default_server.requests == []
    assert len(server.requests) == len(names)
    assert all(KEYS["OPENAI_API_KEY"] in json.dumps(each["headers"]) for each in server.requests)
    is_safe = [agent == "mine" for agent in sent_header(server, "User-Agent")]
    bodies = [request["body"] for request in server.requests]
    assert is_safe == ["top_k" in body and body["temperature"] == 0 for body in bodies]
    assert any(is_safe) == (family == "OpenAI")


def test_login_comes_back_from_the_environment(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_GATEWAY", with_login(server.url) + "/")
    copies = [pickle.loads(pickle.dumps(MODELS[name](server))) for name in ("ChatOpenAI", "bind")]
    assert [each.ask(["a"]) for each in copies] == [["A"], ["A"]]
    assert all(str(each).startswith("Basic ") for each in sent_header(server, "Authorization"))


def test_copy_that_would_talk_to_another_server_is_refused(
    server: OpenAIServer, default_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The openai package itself reads OPENAI_BASE_URL, which is then no setting of the model."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    pickled = pickle.dumps(chat_model(ChatOpenAI(model="m")))
    assert pickle.loads(pickled).ask(["a"]) == ["A"]
    monkeypatch.setenv("OPENAI_BASE_URL", default_server.url)
    with pytest.raises(ValueError, match=f"server {server.url}, and .* to {default_server.url}"):
        pickle.loads(pickled)
    assert default_server.requests == []


def test_missing_key_is_named(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pickled = pickle.dumps(chat_model(chat(server)))
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ValueError, match=r"holds no keys .* in the environment .*OPENAI_API_KEY"):
        pickle.loads(pickled)


CLIENT = httpx.Client()


class Holder:
    def __init__(self) -> None:
        self.token = KEY

    def __call__(self, texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]

    embed = __call__


def refused(server: OpenAIServer) -> dict[str, tuple[Any, str]]:
    secret = {"X-Secret": HEADER, "User-Agent": "mine"}
    address = with_login("http://proxy:1/")
    own_client = openai.OpenAI(base_url="http://elsewhere/v1", api_key=KEY)
    openai_model = partial(chat, server, base_url=server.url)
    return {
        "proxy": (openai_model(openai_proxy=address), "openai_proxy"),
        "http_client": (openai_model(http_client=CLIENT), "http_client"),
        "client": (openai_model(client=own_client.chat.completions), "client"),
        "headers": (openai_model(default_headers=secret), "default_headers['X-Secret']"),
        "query": (openai_model(default_query={"key": HEADER}), "default_query"),
        "address with a query": (
            openai_model(base_url=f"{server.url}?key={HEADER}"),
            "the query in openai_api_base",
        ),
        "nested headers": (
            openai_model(model_kwargs={"extra_headers": secret}),
            "model_kwargs.extra_headers['X-Secret']",
        ),
        "nested key": (openai_model(extra_body={"a": [{"api_key": HEADER}]}), ".a.0.api_key"),
        "nested address": (openai_model(metadata={"a": address}), "metadata.a"),
        "bound headers": (
            openai_model().bind(extra_headers=secret),
            "kwargs.extra_headers['X-Secret']",
        ),
        "fallback": (
            openai_model().with_fallbacks([openai_model(http_client=CLIENT)]),
            "fallbacks.0.http_client",
        ),
        "sequence": (openai_model(http_client=CLIENT) | StrOutputParser(), "first.http_client"),
        "lambda": (openai_model() | (lambda message: message.text), "last"),
        "LlamaIndex": (LlamaIndexOpenAI(http_client=CLIENT), "http_client"),
        "LlamaIndex headers": (
            LlamaIndexOpenAI(default_headers=secret),
            "default_headers['X-Secret']",
        ),
        "no key": (
            FakeListChatModel(responses=["a"], metadata={"headers": secret}),
            "metadata.headers['X-Secret']",
        ),
        "method of an object with a secret": (Holder().embed, "a secret among its attributes"),
        "partial with a secret": (partial(max, key=1, api_key=KEY), "api_key"),
    }


def test_other_settings_are_refused_by_name(server: OpenAIServer) -> None:
    for name, (model, setting) in refused(server).items():
        with pytest.raises(TypeError, match="pass a factory instead of the model") as caught:
            pickle.dumps(chat_model(model))
        assert f"{setting}:" in str(caught.value) or f"{setting}," in str(caught.value), name
        for secret in (KEY, PASSWORD, HEADER):
            assert secret not in str(caught.value)


def test_parser_names_the_setting(server: OpenAIServer) -> None:
    for front_end in (SemanticNodeParser, SemanticTextSplitter):
        parser = front_end(embeddings=embedding(server, default_query={"a": "b"}))
        with pytest.raises(TypeError, match="because of default_query: pass a factory"):
            pickle.dumps(parser)


@pytest.mark.parametrize("package", ["ray.cloudpickle", "pyspark.cloudpickle"])
def test_workers_of_ray_and_spark_get_the_same_server(package: str, server: OpenAIServer) -> None:
    cloudpickle = pytest.importorskip(package)
    splitter = TableSplitter(SemanticChunker(embeddings=embedding(server)))
    pickled = cloudpickle.dumps(splitter)
    assert KEY.encode() not in pickled
    assert PASSWORD.encode() not in pickled
    table = pa.table({"text": ["One sentence. Another one. " * 100]})
    assert load_splitter(pickled).split_table(table).num_rows
    assert server.requests
    with pytest.raises(TypeError, match="because of default_query: pass a factory"):
        cloudpickle.dumps(SemanticChunker(embeddings=embedding(server, default_query={"a": "b"})))


def test_copies_in_one_process_keep_the_model(server: OpenAIServer) -> None:
    for model in (chat_model(chat(server)), Embedder(embedding(server, default_query={"a": "b"}))):
        assert copy.copy(model) is copy.deepcopy(model) is model
    chunker = SemanticChunker(embeddings=embedding(server))
    assert copy.deepcopy(chunker).embeddings is chunker.embeddings


# Factories

FACTORY_ADDRESS = "RAG_SPLITTERS_TEST_ADDRESS"


def make_embeddings(*, header: str = HEADER) -> OpenAIEmbeddings:
    return OpenAIEmbeddings(
        model="m",
        base_url=os.environ[FACTORY_ADDRESS],
        default_headers={"X-Secret": header},
        check_embedding_ctx_length=False,
    )


def make_llm() -> ChatOpenAI:
    headers = {"X-Secret": HEADER}
    return ChatOpenAI(model="m", base_url=os.environ[FACTORY_ADDRESS], default_headers=headers)


class Asking(Chunker):
    llm: Llm

    def spans(self, text: str) -> list[Span]:
        return [Span(0, len(text))] if self.llm.ask([text]) else []


@pytest.fixture
def address(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(FACTORY_ADDRESS, server.url)
    return server.url


@pytest.mark.slow
def test_factory_makes_the_model_here_and_where_it_is_unpickled(
    address: str, server: OpenAIServer
) -> None:
    factories = (make_llm, make_embeddings, partial(make_embeddings, header="other"))
    pickles: dict[str, bytes] = {}
    for factory in factories:
        model = chat_model(factory) if factory is make_llm else Embedder(factory)
        assert model.description == "m"
        assert repr(model) == f"{type(model).__name__}(m)"
        pickles[str(factory)] = pickle.dumps(model)
    assert HEADER.encode() not in b"".join(pickles.values())
    shown = load_elsewhere(pickles)
    assert shown.count("(1, 64)") == 2, shown
    assert sent_header(server, "X-Secret") == [HEADER, HEADER, "other"]
    assert chat_model(chat_model(make_llm), max_concurrency=2).factory is make_llm


@pytest.mark.usefixtures("address")
def test_factory_works_wherever_a_model_does(server: OpenAIServer) -> None:
    text = "One sentence. Another one. " * 100
    for front_end in (SemanticChunker, SemanticTextSplitter, SemanticNodeParser):
        chunker = front_end(embeddings=make_embeddings)
        assert chunker.spans_of(text) if hasattr(chunker, "spans_of") else chunker.chunk(text)
        again = pickle.loads(pickle.dumps(TitledChunker(chunker=chunker)))
        assert again.chunk(text)
        assert chunker.model_dump()["embeddings"] == "m"
    assert pickle.loads(pickle.dumps(Asking(llm=make_llm))).chunk(text)
    assert set(sent_header(server, "X-Secret")) == {HEADER}


def make_hashing() -> HashingEmbeddings:
    return HashingEmbeddings(dimensions=64)


def test_index_of_a_factory_is_an_index_of_its_model(tmp_path: Path) -> None:
    openers: list[tuple[Any, str]] = [
        (rag_splitters.langchain.parent_document_retriever, "embeddings"),
        (rag_splitters.llama_index.parent_document_retriever, "embed_model"),
    ]
    for number, (open_retriever, parameter) in enumerate(openers):
        for model in (make_hashing, make_hashing()):
            with closing(
                open_retriever(path=tmp_path / str(number), **{parameter: model})
            ) as found:
                assert found.verify() is not None


def test_comparison_names_the_model_of_a_factory() -> None:
    questions = [Question("Where is the lamp?", "tale", ((12, 23),))]
    documents = {"tale": "The lamp is in the hall."}
    report = compare([SentenceChunker()], documents, questions, make_hashing, k=1)
    assert report.settings.model == "HashingEmbeddings(dimensions=64)"


def test_factory_must_return_a_model() -> None:
    with pytest.raises(TypeError, match="a function without parameters that returns one of them"):
        Embedder(lambda: 3)
    with pytest.raises(ValueError, match="a function without parameters that returns one of them"):
        SemanticChunker(embeddings=dict)
