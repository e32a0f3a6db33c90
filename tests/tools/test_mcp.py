"""The MCP server, started as a process and spoken to with the SDK's own client."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from rag_splitters.cli import app
from rag_splitters.tools import index_tools
from tests.support.processes import ROOT

pytest.importorskip("mcp")

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

from rag_splitters.langchain import FileLoader, parent_document_retriever

COMMAND = ["-m", "rag_splitters", "mcp"]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search", {"question": "What may others do with the package?", "max_tokens": 400}),
    ("search", {"question": "licence", "filters": {"source": "nowhere"}}),
    ("grep", {"pattern": "without limitation"}),
    ("outline", {}),
    ("read", {"document": "LICENSE", "start": 1, "end": 3}),
    ("read", {"document": "LICENCE"}),
    ("expand", {"document": "LICENSE", "start": 100, "end": 200}),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mcp") / "index"
    documents = [
        document
        for name in ("LICENSE", "SECURITY.md")
        for document in FileLoader(ROOT / name).load()
    ]
    for document in documents:
        document.id = document.metadata["source"] = Path(document.metadata["source"]).name
    with parent_document_retriever(documents, path=folder):
        pass
    return folder


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[str]:
    with parent_document_retriever(path=folder) as retriever:
        tools = {tool.name: tool.function for tool in index_tools(retriever)}
        return [tools[name](**arguments) for name, arguments in CALLS]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@asynccontextmanager
async def session(streams: Any) -> AsyncIterator[ClientSession]:
    async with streams as (read, write, *_), ClientSession(read, write) as client:
        await client.initialize()
        yield client


async def answers(client: ClientSession) -> list[str]:
    results = [await client.call_tool(name, arguments) for name, arguments in CALLS]
    assert not any(result.isError for result in results)
    return [result.content[0].text for result in results]  # type: ignore[union-attr]


@pytest.mark.slow
async def test_stdio_gives_the_same_answers(folder: Path, expected: list[str]) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=[*COMMAND, str(folder)], env=environment()
    )
    async with session(stdio_client(parameters)) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["search", "grep", "outline", "read", "expand"]
        for tool in tools:
            assert tool.annotations
            assert tool.annotations.readOnlyHint
            assert tool.description
            assert all(each["description"] for each in tool.inputSchema["properties"].values())
        assert await answers(client) == expected
        wrong = await client.call_tool("read", {"document": "LICENSE", "start": "no number"})
        assert wrong.isError


@pytest.fixture
def served(folder: Path, expected: list[str]) -> Iterator[tuple[str, str]]:
    """The address of a server and the token that it printed."""
    process = subprocess.Popen(
        [sys.executable, *COMMAND, str(folder), "--http", "--port", "0"],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "MCP server" in line)
        match = re.search(r"at (\S+) with the token (\S+) ", line)
        assert match, line
        yield match[1], match[2]
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.slow
async def test_http_needs_the_token_and_its_own_host(
    served: tuple[str, str], expected: list[str]
) -> None:
    address, token = served
    assert address.startswith("http://127.0.0.1:")
    headers = {"Authorization": f"Bearer {token}"}
    async with session(streamablehttp_client(address, headers=headers)) as client:
        assert await answers(client) == expected

    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient() as http:

        async def status(**extra: str) -> int:
            return (await http.post(address, json=message, headers=accept | extra)).status_code

        assert await status(**headers) == 200
        assert await status() == 401
        assert await status(Authorization=f"Bearer {token}x") == 401
        assert await status(Authorization=f"Basic {token}") == 401
        assert await status(Host="rebound.example", **headers) == 421
        assert await status(Origin="https://other.example", **headers) == 403


def test_token_comes_from_the_environment_and_is_not_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask_without_and_with_token(app: Any, host: str, port: int, ready: Any, **_: Any) -> None:
        ready("http://127.0.0.1:8000/")
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accept = {"Accept": "application/json, text/event-stream"}
        authorization = {"Authorization": "Bearer from-the-environment"}
        with TestClient(app, base_url="http://127.0.0.1:8000") as client:
            for headers, status in ((accept, 401), (accept | authorization, 200)):
                assert client.post("/mcp", json=message, headers=headers).status_code == status

    monkeypatch.setattr("rag_splitters.web.server.run_server", ask_without_and_with_token)
    monkeypatch.setenv("RAG_SPLITTERS_MCP_TOKEN", "from-the-environment")
    result = CliRunner().invoke(app, ["mcp", str(folder), "--http"])
    assert result.exit_code == 0, result.exception
    assert result.stderr == "MCP server at http://127.0.0.1:8000/mcp (Ctrl-C ends it)\n"
