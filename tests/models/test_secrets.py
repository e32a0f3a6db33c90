"""No secret gets out: not into pickles, representations, errors or logs, whatever its name is."""

from __future__ import annotations

import logging
import pickle
from functools import partial
from itertools import cycle
from typing import Any

import httpx
import pytest
from langchain_openai import AzureChatOpenAI, ChatOpenAI

from rag_splitters import AgenticChunker, SemanticChunker
from rag_splitters.models import Embedder, ModelError, chat_model
from rag_splitters.models.named import load_llm
from rag_splitters.models.secrets import secrets_of, without_secrets

KEY = "0f9e8d7c6b5a4938271605f4e3d2c1b0"
NAMES = (
    *("Ocp-Apim-Subscription-Key", "X-Functions-Key", "x-goog-api-key", "X-Gateway-Pass"),
    *("Authorization", "Cookie", "X-My-Company-Ticket"),
)


class Plain:
    """A client of the user's own, with the key in its headers."""

    def __init__(self, headers: Any) -> None:
        self.headers = headers

    def __call__(self, prompt: Any) -> Any:
        raise RuntimeError(f"refused: {dict(self.headers)}")


class Nested:
    """A client that keeps its connection one level deeper."""

    def __init__(self, headers: Any) -> None:
        self.session = httpx.Client(headers=headers)

    def __call__(self, prompt: Any) -> Any:
        raise RuntimeError(f"refused {next(v for v in self.session.headers.values() if KEY in v)}")


def closure(headers: Any) -> Any:
    def ask(prompt: Any) -> Any:
        raise RuntimeError(f"refused {headers}")

    return ask


def with_default(headers: Any) -> Any:
    def ask(prompt: Any, headers: Any = headers) -> Any:
        raise RuntimeError(f"refused {headers}")

    return ask


def refuse(headers: Any, prompt: Any) -> Any:
    raise RuntimeError(f"refused {headers}")


def bound(headers: Any) -> Any:
    return partial(_call_with, headers=headers)


def _call_with(prompt: Any, headers: Any = None) -> Any:
    raise RuntimeError(f"refused {headers}")


KINDS = {
    "plain": Plain,
    "nested": Nested,
    "closure": closure,
    "default": with_default,
    "partial": bound,
}


@pytest.mark.parametrize(("name", "kind"), zip(NAMES, cycle(KINDS), strict=False))
def test_headers_of_any_name_stay_inside(name: str, kind: str) -> None:
    model = KINDS[kind]({name: KEY})
    llm, embedder = chat_model(model), Embedder(model)
    (error,) = llm.ask(["a"])
    assert isinstance(error, ModelError)
    with pytest.raises(ModelError) as caught:
        embedder.embed(["a"])
    for each in (error, caught.value):
        assert "***" in str(each)
        assert KEY not in str(each) + repr(each) + repr(each.__cause__)
        assert KEY.encode() not in pickle.dumps(each)
    chunkers = [AgenticChunker(llm=model), SemanticChunker(embeddings=model)]
    for holder in (llm, embedder, *chunkers):
        assert KEY not in repr(holder)
        with pytest.raises((TypeError, AttributeError, pickle.PicklingError)) as refused:
            pickle.dumps(holder)
        assert KEY not in str(refused.value)


@pytest.mark.parametrize("name", NAMES)
def test_headers_of_clients_stay_inside(name: str) -> None:
    options: dict[str, Any] = {"api_key": "sk-any", "default_headers": {name: KEY}}
    azure = {"azure_endpoint": "http://127.0.0.1:1", "api_version": "1", "azure_deployment": "m"}
    for client in (ChatOpenAI(model="m", **options), AzureChatOpenAI(**azure, **options)):
        with pytest.raises(TypeError, match="pass a factory") as refused:
            pickle.dumps(chat_model(client))
        assert KEY not in str(refused.value)
        assert KEY in set(secrets_of(client))


@pytest.mark.parametrize("package", ["cloudpickle", "ray.cloudpickle", "pyspark.cloudpickle"])
def test_functions_with_a_closure_are_not_pickled(package: str) -> None:
    """They may hold a secret, or a client that is not the same elsewhere; a factory may not."""
    cloudpickle = pytest.importorskip(package)
    token = "hf_" + KEY
    for function in (lambda prompt: token, closure({"X-Key": KEY}), with_default({"X-Key": KEY})):
        with pytest.raises(TypeError, match="pass a factory") as refused:
            cloudpickle.dumps(AgenticChunker(llm=function))
        assert KEY not in str(refused.value)
    with pytest.raises(TypeError, match="holds a secret: let it read keys") as refused:
        cloudpickle.dumps(AgenticChunker(llm=lambda: [len, token][0]))
    assert KEY not in str(refused.value)
    assert cloudpickle.dumps(AgenticChunker(llm=lambda: len))


@pytest.mark.parametrize(
    "message",
    [
        f"Incorrect API key provided: {KEY}. You can find it at https://example.com",
        f"401 for https://example.com/v1?key={KEY}&alt=json",
        f"headers={{'Authorization': 'Bearer {KEY}'}}",
        f"Bearer {KEY} was refused",
        f"cannot reach https://user:{KEY}@example.com/v1",
        f'{{"Ocp-Apim-Subscription-Key": "{KEY}"}}',
        f"token sk-proj-{KEY} is expired",
        f"password={KEY} is wrong",
    ],
)
def test_text_of_an_exception_is_masked(message: str) -> None:
    def model(prompt: str) -> str:
        raise RuntimeError(message)

    (error,) = chat_model(model).ask(["a"])
    assert isinstance(error, ModelError)
    assert KEY not in str(error)
    assert "***" in str(error)
    assert error.__cause__ is None


def test_keys_of_the_environment_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("plain words as a key", "8 digits"):
        monkeypatch.setenv("MY_SERVICE_API_KEY", key)
        assert without_secrets(f"it said {key}") == "it said ***"


def test_ordinary_messages_are_not_changed() -> None:
    for message in (
        "max_tokens: 4096 is too large for this model",
        "maximum context length is 8192 tokens, got 9000",
        "Connection to 127.0.0.1:8080 refused",
        "basic assumptions failed in skill-based-routing",
        "the key 'text' is missing from {'id': 12345678}",
    ):
        assert without_secrets(message, Plain({"Content-Type": "json"})) == message


def test_address_of_a_server_is_shown_without_its_password() -> None:
    with pytest.raises(ValueError, match=r"got 'ftp://user:\*\*\*@host'") as caught:
        load_llm("openai:gpt-4o-mini", f"ftp://user:{KEY}@host")
    assert KEY not in str(caught.value)


def test_secrets_stay_out_of_logs(caplog: pytest.LogCaptureFixture) -> None:
    class RateLimitError(Exception):
        retry_after = 0.0

    def model(prompt: str) -> str:
        raise RateLimitError(f"Bearer {KEY} may not do so much")

    caplog.set_level(logging.DEBUG)
    chunker = AgenticChunker(llm=chat_model(model, max_retries=2), on_error="skip")
    assert chunker.chunk("One thing. Another thing.") == []
    assert "retrying after RateLimitError" in caplog.text
    assert "it has no chunks" in caplog.text
    assert KEY not in caplog.text
