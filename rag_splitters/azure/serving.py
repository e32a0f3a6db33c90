"""The skill as an application, and a server for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rag_splitters.chunkers.auto import AutoChunker
from rag_splitters.contract.chunker import Chunker
from rag_splitters.errors import InputError
from rag_splitters.extras import needs
from rag_splitters.parameters.checks import check_kind, whole_number
from rag_splitters.web.server import run_server

if TYPE_CHECKING:
    from starlette.applications import Starlette

MAX_BYTES = 64_000_000
"""Default maximum size of a request, in bytes."""


def create_skill_app(
    chunker: Chunker | None = None, *, api_key: str | None = None, max_bytes: int = MAX_BYTES
) -> Starlette:
    """Create a custom skill for Azure AI Search, as an ASGI application.

    `POST /split` (or `PUT`) accepts and returns the JSON of a Custom Web API skill: each record has
    the input `text` and gets the outputs `textItems`, `offsets`, `lengths` and `ordinalPositions`,
    as from the Text Split skill, and `headings`, `pages`, `tables` and `chunks`. The Text Split
    skill's parameters override the chunker's sizes; pass them in the query string, or as constant
    inputs. Any other input is metadata of the document, such as `file_name`, for strategies that
    read it. `GET /health` needs no key.

    The status is 200 even if records failed: their `errors` say why. The status is 400 if the
    request is not the skill's JSON or a parameter in the query is wrong, 401 if the key is missing
    or wrong, and 413 if the request is too large.

    Parameters:
        chunker: the strategy; None: `AutoChunker(chunk_size=5000)`, the Text Split skill's size.
        api_key: the key that requests need in their header `api-key`; None: no key is needed.
        max_bytes: maximum size of a request.

    Raises: ImportError if Starlette is not installed; TypeError if the chunker is not one;
    ValueError if the key is not valid in a header or `max_bytes` is not a positive number.

    >>> from starlette.testclient import TestClient
    >>> client = TestClient(create_skill_app())
    >>> values = [{"recordId": "1", "data": {"text": "It rains."}}]
    >>> answer = client.post("/split", json={"values": values}).json()
    >>> answer["values"][0]["data"]["textItems"]
    ['It rains.']
    """
    with needs("the Azure skill needs Starlette", "azure"):
        from rag_splitters.azure.application import application
    chunker = AutoChunker(chunk_size=5000) if chunker is None else chunker
    check_kind(chunker, Chunker, "chunker")
    max_bytes = whole_number(max_bytes, "max_bytes", 1)
    if api_key is not None and not (api_key.isascii() and api_key.isprintable() and api_key):
        raise InputError("api_key must have printable ASCII characters only, and at least one")
    if api_key is not None and api_key != api_key.strip():
        raise InputError("api_key must not begin or end with a space")
    return application(chunker, api_key, max_bytes)


def serve_skill(
    chunker: Chunker | None = None,
    *,
    api_key: str | None = None,
    max_bytes: int = MAX_BYTES,
    host: str = "127.0.0.1",
    port: int = 8080,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Run the skill until it is interrupted.

    Azure AI Search only calls https addresses, so let a proxy or the platform (Container Apps, App
    Service) terminate TLS in front of it.

    Parameters:
        chunker, api_key, max_bytes: as for `create_skill_app`.
        host: address to listen on.
        port: port to listen on; 0 for any free port.
        ready: called with the skill's address as soon as it answers.

    Raises: ImportError if the extra `azure` is not installed; OSError if the address is invalid or
    in use; and whatever `create_skill_app` raises.
    """
    app = create_skill_app(chunker, api_key=api_key, max_bytes=max_bytes)

    run_server(
        app,
        host,
        port,
        name="the Azure skill",
        extra="azure",
        ready=None if ready is None else lambda address: ready(f"{address}split"),
        exposure="" if api_key else "use the skill: set an API key",
        seconds_to_finish=30,
    )
