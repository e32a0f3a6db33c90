"""Limits for requests, and JSON responses."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from starlette.responses import Response

from rag_splitters.errors import RagSplittersError

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

_MAX_MESSAGE = 600  # characters


class TooLargeError(RagSplittersError):
    """The body of a request is larger than the limit."""


def within_limit(content_length: str, receive: Receive, limit: int) -> Receive:
    """Wrap `receive` so that it raises `TooLargeError` if the body is larger than `limit` bytes."""
    total, length = 0, int(content_length) if content_length.isdecimal() else 0

    async def receive_within_limit() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if max(total, length) > limit:
            raise TooLargeError
        return message

    return receive_within_limit


def one_line(error: object) -> str:
    """Return an error's message as one line of at most 600 characters."""
    message = " ".join(str(error).split()) or type(error).__name__
    return message if len(message) <= _MAX_MESSAGE else message[:_MAX_MESSAGE] + " …"


def log_failure(logger: logging.Logger, what: str, error: BaseException) -> str:
    """Log a bug with its traceback, and return a message by which it can be looked up."""
    number = secrets.token_hex(4)
    logger.error("%s (failure %s)", what, number, exc_info=error)
    return f"internal error {type(error).__name__}: see failure {number} in the server's log"


def error_response(
    error: object, status: int, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response `{"error": message}`, with the message as one line."""
    return json_response({"error": one_line(error)}, status, headers)


def json_response(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response in ASCII, because UTF-8 cannot hold lone surrogates."""
    content = json.dumps(content, separators=(",", ":"), default=str)
    return Response(content, status, headers, media_type="application/json")
