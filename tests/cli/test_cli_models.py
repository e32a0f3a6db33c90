"""Models on the command line: by name, keys from the environment, one line for every mistake."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_splitters import AgenticChunker, SemanticChunker
from rag_splitters.models import HashingEmbeddings
from tests.cli.test_cli import refused, rows, run
from tests.support.cases import every_third
from tests.support.openai_server import DIMENSIONS, Fault, OpenAIServer

SECRET = "sk-very-secret-0123456789"
CATS = "The cat slept on the old sofa all day long. The cat woke up on the sofa at noon. "
TAX = "The new tax rate was raised by the council. The council will raise the tax again. "
TEXT = 5 * CATS + 5 * TAX


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder with one text in it, and no keys."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    def answer(prompt: str) -> str:
        return json.dumps({"starts": [int(each) for each in every_third(prompt).split(",")]})

    with OpenAIServer(answer) as running:
        yield running


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    return SECRET


def semantic(dimensions: int) -> list[str]:
    chunker = SemanticChunker(embeddings=HashingEmbeddings(dimensions=dimensions), chunk_size=300)
    return [chunk.text for chunk in chunker.chunk(TEXT)]


def split(*args: str) -> list[str]:
    return [row["text"] for row in rows("split", "a.txt", "--chunk-size", "300", *args)]


def headers(server: OpenAIServer) -> str:
    return str([request["headers"] for request in server.requests])


def test_split_embeds_by_hashing() -> None:
    assert split("-s", "semantic", "--embeddings", "hashing:32") == semantic(32)
    assert split("-s", "semantic", "-p", "embeddings=hashing") == semantic(1024)


def test_split_embeds_by_openai(server: OpenAIServer, key: str) -> None:
    more = ["--embeddings", "openai:text-embedding-3-small", "--base-url", server.url]
    assert split("-s", "semantic", *more) == semantic(DIMENSIONS)
    assert [request["body"]["model"] for request in server.requests] == ["text-embedding-3-small"]
    assert server.texts
    assert all(isinstance(text, str) for text in server.texts)
    assert f"Bearer {key}" in headers(server)


def test_split_needs_no_key_for_a_server_of_the_users_own(server: OpenAIServer) -> None:
    more = ["--embeddings", "openai:small", "--base-url", server.url]
    assert split("-s", "semantic", *more) == semantic(DIMENSIONS)


def test_split_embeds_by_azure(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.root)
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-06-01")
    assert split("-s", "semantic", "--embeddings", "azure:small") == semantic(DIMENSIONS)
    assert "/deployments/small/embeddings" in server.requests[0]["path"]
    assert SECRET in headers(server)


def test_split_asks_a_chat_model(server: OpenAIServer, key: str) -> None:
    wanted = [chunk.text for chunk in AgenticChunker(llm=every_third, chunk_size=300).chunk(TEXT)]
    more = ["--llm", "openai:gpt-4o-mini", "--base-url", server.url]
    assert split("-s", "agentic", *more) == wanted
    assert [request["body"]["model"] for request in server.requests] == ["gpt-4o-mini"]


def test_split_takes_a_function_of_a_module_in_the_current_folder(folder: Path) -> None:
    (folder / "my_models.py").write_text(
        "from rag_splitters.models import HashingEmbeddings\n"
        "embed = HashingEmbeddings(dimensions=32).embed_documents\n"
        "def answer(prompt): return '1'\n"
        "def double(text): return 2 * len(text)\n"
    )
    assert split("--chunk-size", "200", "--length-function", "function:my_models:double") == split(
        "--chunk-size", "100"
    )
    more = ["--embeddings", "function:my_models:embed"]
    assert split("-s", "semantic", *more) == semantic(32)
    found = rows("split", "a.txt", "-s", "agentic", "--llm", "function:my_models:answer")
    assert len(found) == len(TEXT) // 1000 + 1


def test_split_takes_models_for_nested_strategies() -> None:
    inner = {"strategy": "semantic", "embeddings": "hashing:32", "chunk_size": 300}
    found = rows("split", "a.txt", "-s", "titled", "-p", f"chunker={json.dumps(inner)}")
    assert [row["text"] for row in found] == semantic(32)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("-s semantic", "semantic needs an embedding model: pass --embeddings openai:"),
        ("-s agentic", "agentic needs a chat model: pass --llm openai:gpt-4o-mini"),
        ("-s recursive --embeddings hashing", "recursive got an unknown parameter 'embeddings'"),
        ("-s semantic --embeddings minilm", "embeddings must be hashing, openai:NAME"),
        ("-s semantic --embeddings openai:", "embeddings must be hashing, openai:NAME"),
        ("-s semantic --embeddings hashing:x", "embeddings must be hashing, openai:"),
        (
            "-s semantic --embeddings hashing:0",
            "dimensions must be a whole number of at least 1, got 0",
        ),
        ("-s semantic -p embeddings=small", "embeddings must be hashing, openai:NAME"),
        ("-s semantic -p embeddings=hashing --embeddings hashing", "embeddings is given twice"),
        ("-s semantic --embeddings openai:x", "openai:x needs OPENAI_API_KEY in the environment"),
        (
            "-s agentic --llm azure:x",
            "azure:x needs AZURE_OPENAI_API_KEY and AZURE_OPENAI_ENDPOINT and OPENAI_API_VERSION",
        ),
        ("-s agentic --llm hashing", "llm must be openai:NAME, azure:DEPLOYMENT or"),
        (
            "-s semantic --embeddings openai:x --base-url localhost",
            "base_url must begin with http:// or https://, got 'localhost'",
        ),
        ("--base-url http://localhost", "--base-url needs a model on that server"),
        (
            "-s semantic --embeddings function:no:no",
            "embeddings: function:no:no cannot be used: No module named 'no'",
        ),
        ("-s semantic --embeddings function:json", "function:json cannot be used"),
        ("-s semantic --embeddings function:json:decoder", "cannot be used: embeddings"),
    ],
)
def test_mistake_with_a_model_gives_one_line(more: str, told: str) -> None:
    assert told in refused("split", "a.txt", *shlex.split(more))


BAD_KEY = Fault(401, b'{"error": {"message": "bad key %s"}}' % SECRET.encode())


@pytest.mark.parametrize(
    "args",
    [
        ("split", "a.txt", "-s", "semantic", "--embeddings", "openai:x"),
        ("split", "a.txt", "-s", "agentic", "--llm", "openai:x"),
        ("index", "idx", "a.txt", "--embeddings", "openai:x"),
    ],
    ids=["embeddings", "llm", "index"],
)
def test_model_that_fails_gives_one_line_without_the_key(
    args: tuple[str, ...], server: OpenAIServer, key: str
) -> None:
    server.faults = [BAD_KEY] * 9
    message = refused(*args, "--base-url", server.url)
    assert "bad key ***" in message
    assert key not in message
    assert "OpenAI" in message


# An index


def indexed(*args: str) -> Any:
    result = run("index", "idx", "a.txt", *args)
    assert result.exit_code == 0, result.stderr
    return result


def test_index_and_query_embed_by_openai(server: OpenAIServer, key: str, folder: Path) -> None:
    more = ["--embeddings", "openai:small", "--base-url", server.url]
    indexed(*more)
    assert server.texts
    (found,) = rows("query", "idx", "council tax", "-k", "1", *more)
    assert "council" in found["text"]
    assert server.texts[-1] == "council tax"
    for file in folder.rglob("*"):
        if file.is_file() and file.suffix != ".bin":  # Chroma's; docs/security.md says why
            assert key.encode() not in file.read_bytes()


def test_index_keeps_to_its_model(server: OpenAIServer, key: str) -> None:
    indexed("--embeddings", "openai:small", "--base-url", server.url)
    for args in (["query", "idx", "tax"], ["index", "idx", "a.txt"]):
        message = refused(*args)
        assert "small" in message
        assert "HashingEmbeddings" in message
