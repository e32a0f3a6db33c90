"""`rag-splitters mcp`: an index's tools for agents, as an MCP server."""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_splitters.cli.options import BaseUrlOption, EmbeddingsOption, PortOption
from rag_splitters.cli.stored_index import existing_index
from rag_splitters.extras import needs

if TYPE_CHECKING:
    from mcp.server.fastmcp import FastMCP

_LOOPBACK = "127.0.0.1"
_TOKEN = "RAG_SPLITTERS_MCP_TOKEN"  # noqa: S105  (the name of a variable)
_INSTRUCTIONS = (
    "Tools to read a collection of documents. Begin with search or outline. Cite what you use by "
    "the label above it."
)


def mcp(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Folder of the index.")],
    http: Annotated[
        bool,
        typer.Option("--http", help="Serve streamable HTTP on 127.0.0.1 and --port, not stdio."),
    ] = False,
    port: PortOption = 8000,
    embeddings: EmbeddingsOption = None,
    base_url: BaseUrlOption = None,
) -> None:
    """Serve the index to agents by the Model Context Protocol: search, grep, outline, read, expand.

    The tools only read. Pass the same --embeddings as for `index`. With --http, requests need the
    token of the environment variable RAG_SPLITTERS_MCP_TOKEN, or the one that is printed at the
    start, in a header: Authorization: Bearer TOKEN.
    """
    with existing_index(folder, embeddings, base_url) as retriever:
        server = _server(retriever)
        if http:
            _serve_http(server, port)
        else:
            server.run("stdio")


def _server(retriever: Any) -> FastMCP:
    """Return an MCP server with the tools over an index."""
    from rag_splitters.tools import index_tools

    with needs("the MCP server needs the package mcp", "mcp"):
        from mcp.server.fastmcp import FastMCP
        from mcp.types import ToolAnnotations
    # With this host, the SDK refuses requests that name another one in Host or Origin.
    server = FastMCP(
        "rag_splitters", _INSTRUCTIONS, host=_LOOPBACK, stateless_http=True, log_level="WARNING"
    )
    read_only = ToolAnnotations(readOnlyHint=True, idempotentHint=True, openWorldHint=False)
    for tool in index_tools(retriever):
        server.add_tool(
            tool.async_function,
            tool.name,
            description=tool.description,
            annotations=read_only,
            structured_output=False,
        )
    return server


def _serve_http(server: FastMCP, port: int) -> None:
    from rag_splitters.web.server import run_server

    token = os.environ.get(_TOKEN) or secrets.token_urlsafe(32)
    hint = "" if os.environ.get(_TOKEN) else f" with the token {token}"
    run_server(
        _with_token(server.streamable_http_app(), token),
        _LOOPBACK,
        port,
        name="the MCP server",
        extra="mcp",
        ready=lambda url: typer.echo(f"MCP server at {url}mcp{hint} (Ctrl-C ends it)", err=True),
    )


def _with_token(app: Any, token: str) -> Any:
    """Return the application behind a check of the bearer token, in constant time."""
    from starlette.datastructures import Headers
    from starlette.responses import PlainTextResponse

    expected = f"Bearer {token}".encode()

    async def check_token(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            authorization = Headers(scope=scope).get("authorization", "").encode()
            if not hmac.compare_digest(authorization, expected):
                message = f"the header Authorization must be: Bearer TOKEN, see {_TOKEN}\n"
                refusal = PlainTextResponse(message, 401, {"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
        await app(scope, receive, send)

    return check_token
