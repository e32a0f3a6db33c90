"""The skill's server: API key, limits and status codes."""

from __future__ import annotations

import hmac

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rag_splitters.azure.contract import answer_records
from rag_splitters.contract.chunker import Chunker
from rag_splitters.errors import InputError
from rag_splitters.web.http import error_response, json_response, response_or_error, within_limit


def application(chunker: Chunker, api_key: str | None, max_bytes: int) -> Starlette:
    """Create the application; see `rag_splitters.azure.create_skill_app`."""

    async def split(request: Request) -> Response:
        key = request.headers.get("api-key", "").encode()
        if api_key is not None and not hmac.compare_digest(key, api_key.encode()):
            message = "the header api-key is missing or wrong"
            return error_response(message, 401, {"WWW-Authenticate": "ApiKey"})
        too_large = f"the request is larger than {max_bytes} bytes: lower the skill's batchSize"
        return await response_or_error(
            answer(request), error_response, what="the skill", too_large=too_large
        )

    async def answer(request: Request) -> Response:
        length = request.headers.get("content-length", "")
        limited = within_limit(length, request.receive, max_bytes)
        body = await Request(request.scope, limited).body()
        query = _query_of(request)
        return json_response(await run_in_threadpool(answer_records, body, query, chunker))

    async def health(request: Request) -> Response:
        return json_response({"status": "ok"})

    return Starlette(
        routes=[Route("/split", split, methods=["POST", "PUT"]), Route("/health", health)]
    )


def _query_of(request: Request) -> dict[str, str]:
    """Return the parameters of the query string. Raises ValueError if one occurs twice."""
    query: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in query:
            raise InputError(f"the query has {name!r} twice")
        query[name] = value
    return query
