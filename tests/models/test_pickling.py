"""Pickled models: the copy talks to the same server, and the pickle holds no secret."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
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
from langchain_openai import AzureChatOpenAI, AzureOpenAIEmbeddings, ChatOpenAI, OpenAIEmbeddings
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.llms.openai import OpenAI as LlamaIndexOpenAI

import rag_splitters.langchain
import rag_splitters.llama_index
from rag_splitters import Chunker, SemanticChunker, Span, TitledChunker
from rag_splitters.distributed import TableSplitter
from rag_splitters.distributed.columns import load
from rag_splitters.langchain import SemanticTextSplitter
from rag_splitters.llama_index import SemanticNodeParser
from rag_splitters.models import Embedder, HashingEmbeddings, Llm, chat_model, describe_model
from tests.support.openai_server import OpenAIServer

KEY, PASSWORD, HEADER = "sk-very-secret", "pass-very-secret", "header-very-secret"
KEYS = {
    "OPENAI_API_KEY": "key-of-the-environment",
    "AZURE_OPENAI_API_KEY": "key-of-the-environment",
}


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


def azure(server: OpenAIServer) -> dict[str, Any]:
    return {
        "azure_endpoint": with_login(server.root),
        "api_key": KEY,
        "api_version": "2024-06-01",
        "azure_deployment": "small",
    }


def chat(server: OpenAIServer, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        **{"model": "m", "base_url": with_login(server.url), "api_key": KEY, **options}
    )


def embedding(server: OpenAIServer, **options: Any) -> OpenAIEmbeddings:
    options = {"base_url": with_login(server.url), "api_key": KEY, **options}
    return OpenAIEmbeddings(model="m", check_embedding_ctx_length=False, **options)


def sent_header(server: OpenAIServer, name: str) -> list[str | None]:
    """A header of all requests."""
    requests = [
        {key.lower(): value for key, value in r["headers"].items()} for r in server.requests
    ]
    return [headers.get(name.lower()) for headers in requests]


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


# Models that survive their own pickling


class OwnServer:
    """An embedding model of the user's own, which is nothing but its settings."""

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self.url, self.headers = url, headers or {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.embed(texts)

    def embed(self, texts: list[str]) -> list[list[float]]:
        answer = httpx.post(f"{self.url}/embeddings", json={"input": texts}, headers=self.headers)
        return [each["embedding"] for each in answer.json()["data"]]


class Forgetful(OwnServer):
    """Leaves its headers behind."""

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "headers": {}}


class FromEnvironment(OwnServer):
    """Reads its address from the environment, also where it is unpickled."""

    def __init__(self) -> None:
        super().__init__(os.environ["GATEWAY"])

    def __reduce__(self) -> Any:
        return FromEnvironment, ()


def hash_texts(texts: list[str]) -> list[list[float]]:
    return make_hashing().embed_documents(texts)


def test_copy_that_would_talk_to_another_server_is_refused(
    server: OpenAIServer, default_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY", server.url)
    pickled = pickle.dumps(Embedder(FromEnvironment()))
    assert len(pickle.loads(pickled).embed(["a"])) == 1
    monkeypatch.setenv("GATEWAY", default_server.url)
    with pytest.raises(ValueError, match=r"unpickled with another server.*\(another url\)"):
        pickle.loads(pickled)
    assert default_server.requests == []


CLIENT = httpx.Client()


class Holder:
    def __init__(self) -> None:
        self.token = KEY

    def __call__(self, texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]

    embed = __call__


def refused(server: OpenAIServer) -> dict[str, tuple[Any, str]]:
    """Models that must not be pickled, and what the error says."""
    own_client = openai.OpenAI(base_url="http://elsewhere/v1", api_key=KEY)
    headers = {"X-Secret": HEADER, "User-Agent": "mine"}
    secret = "its pickle would hold a secret"
    return {
        "key": (chat(server), r"functools\.partial\(ChatOpenAI, \.\.\.\)"),
        "Azure": (AzureChatOpenAI(**azure(server)), "partial"),
        "embeddings": (embedding(server), "partial"),
        "proxy": (chat(server, openai_proxy=with_login("http://proxy:1/")), "partial"),
        "client": (chat(server, client=own_client.chat.completions), "partial"),
        "headers": (chat(server, default_headers=headers), "partial"),
        "bound": (chat(server).bind(stop=["x"]), "because TypeError"),
        "sequence": (chat(server) | StrOutputParser(), "because TypeError"),
        "method": (embedding(server).embed_documents, "because TypeError"),
        "closure": (
            lambda texts: CLIENT.post(server.url),
            "because AttributeError: Can't (pickle|get) local object",
        ),
        "LlamaIndex with a key": (LlamaIndexOpenAI("gpt-4o", api_key=KEY), secret),
        "header in metadata": (
            FakeListChatModel(responses=["a"], metadata={"headers": headers}),
            secret,
        ),
        "object with a key": (Holder(), secret),
        "partial with a key": (partial(max, key=1, api_key=KEY), secret),
        "lost headers": (Forgetful(server.url, {"X-Team": "mine"}), "its copy has another headers"),
    }


def test_other_models_are_refused_with_the_factory_to_pass(server: OpenAIServer) -> None:
    for name, (model, message) in refused(server).items():
        wrapped = (Embedder if hasattr(model, "embed_documents") else chat_model)(model)
        with pytest.raises(TypeError, match=message) as caught:
            pickle.dumps(wrapped)
        assert "pass a factory instead of the model" in str(caught.value), name
        for secret in (KEY, PASSWORD, HEADER):
            assert secret not in f"{caught.value} {wrapped!r} {describe_model(wrapped)}", name
    assert server.requests == []


def test_model_that_loses_its_client_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """LlamaIndex drops what cannot be pickled: the copy would not go through the proxy."""
    monkeypatch.delenv("OPENAI_API_KEY")
    plain = LlamaIndexOpenAI("gpt-4o")
    assert pickle.loads(pickle.dumps(chat_model(plain))).description == "gpt-4o(temperature=0.1)"
    with pytest.raises(TypeError, match="its copy has another _http_client"):
        pickle.dumps(chat_model(LlamaIndexOpenAI("gpt-4o", http_client=CLIENT)))


def test_parser_shows_the_factory_to_pass(server: OpenAIServer) -> None:
    for front_end in (SemanticNodeParser, SemanticTextSplitter):
        parser = front_end(embeddings=embedding(server))
        with pytest.raises(TypeError, match=r"functools.partial\(OpenAIEmbeddings, "):
            pickle.dumps(parser)


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
def test_models_talk_to_the_same_server_where_they_are_unpickled(
    address: str, server: OpenAIServer, default_server: OpenAIServer
) -> None:
    own = OwnServer(address, {"User-Agent": "mine"})
    options: dict[str, Any] = {"model": "m", "base_url": address}
    azure = {"azure_endpoint": server.root, "azure_deployment": "m", "api_version": "2024-06-01"}
    unchecked = {"check_embedding_ctx_length": False}
    models = {
        "object": Embedder(own),
        "method": Embedder(own.embed),
        "function": Embedder(hash_texts),
        "chat factory": chat_model(make_llm),
        "factory": Embedder(make_embeddings),
        "factory with an argument": Embedder(partial(make_embeddings, header="other")),
        "ChatOpenAI": chat_model(partial(ChatOpenAI, **options)),
        "OpenAIEmbeddings": Embedder(partial(OpenAIEmbeddings, **options, **unchecked)),
        "AzureChatOpenAI": chat_model(partial(AzureChatOpenAI, **azure)),
        "AzureOpenAIEmbeddings": Embedder(partial(AzureOpenAIEmbeddings, **azure, **unchecked)),
        "LlamaIndexOpenAI": chat_model(partial(LlamaIndexOpenAI, "gpt-4o", api_base=address)),
        "OpenAIEmbedding": Embedder(partial(OpenAIEmbedding, api_base=address)),
    }
    pickles = {name: pickle.dumps(model) for name, model in models.items()}
    for secret in (HEADER, *KEYS.values()):
        assert secret.encode() not in b"".join(pickles.values())
    shown = load_elsewhere(pickles, OPENAI_BASE_URL=default_server.url)
    for name in models:
        assert f"{name} (1, 64)\n" in shown or f"{name} ['A']\n" in shown, shown
    assert len(server.requests) == len(models) - 1, "the function needs none"
    assert default_server.requests == []
    assert sent_header(server, "User-Agent").count("mine") == 2
    assert [each for each in sent_header(server, "X-Secret") if each] == [HEADER, HEADER, "other"]


def test_model_of_a_factory_has_the_name_of_its_model() -> None:
    model = Embedder(make_hashing)
    assert model.description == "HashingEmbeddings(dimensions=64) version 1"
    assert repr(model) == f"Embedder({model.description})"
    assert chat_model(chat_model(make_chat), max_concurrency=2).factory is make_chat
    with pytest.raises(TypeError, match="holds a secret: let it read keys") as caught:
        pickle.dumps(chat_model(partial(ChatOpenAI, model="m", api_key=KEY)))
    assert KEY not in str(caught.value)


def make_chat() -> FakeListChatModel:
    return FakeListChatModel(responses=["a"])


@pytest.mark.parametrize("package", ["ray.cloudpickle", "pyspark.cloudpickle"])
def test_workers_of_ray_and_spark_get_the_factory(
    package: str, address: str, server: OpenAIServer
) -> None:
    cloudpickle = pytest.importorskip(package)
    chunker = SemanticChunker(embeddings=make_embeddings)
    pickled = cloudpickle.dumps(TableSplitter(chunker, batch_size=len(package)))
    table = pa.table({"text": ["One sentence. Another one. " * 100]})
    assert load(pickled).split_table(table).num_rows
    assert server.requests
    with pytest.raises(TypeError, match="pass a factory instead"):
        cloudpickle.dumps(SemanticChunker(embeddings=embedding(server)))


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


def test_factory_must_return_a_model() -> None:
    with pytest.raises(TypeError, match="a function without parameters that returns one of them"):
        Embedder(lambda: 3)
    with pytest.raises(ValueError, match="a function without parameters that returns one of them"):
        SemanticChunker(embeddings=dict)
