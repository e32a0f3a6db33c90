"""Limits for requests, responses to errors, and JSON responses."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from rag_splitters.errors import RagSplittersError

logger = logging.getLogger(__name__)

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


def log_failure(what: str, error: BaseException) -> str:
    """Log a bug with its traceback, and return a message by which it can be looked up."""
    number = secrets.token_hex(4)
    logger.error("%s failed (failure %s)", what, number, exc_info=error)
    return f"internal error {type(error).__name__}: see failure {number} in the server's log"


async def response_or_error(
    work: Awaitable[Response], respond: Callable[[str, int], Response], *, what: str, too_large: str
) -> Response:
    """Return the response of a server's work; an error becomes one line and a status.

    Parameters:
        respond: makes a response of a message and a status.
        what: the server, such as "the playground".
        too_large: the message for a request whose body is larger than the limit.
    """
    try:
        return await work
    except ClientDisconnect:
        return Response(status_code=400)
    except asyncio.CancelledError:
        return respond(f"{what} is being stopped", 503)
    except TooLargeError:
        return respond(too_large, 413)
    except RagSplittersError as error:
        return respond(one_line(error), 400)
    except Exception as error:
        return respond(log_failure(what, error), 500)


def error_response(message: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response `{"error": message}`."""
    return json_response({"error": message}, status, headers)


def json_response(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response in ASCII, because UTF-8 cannot hold lone surrogates."""
    content = json.dumps(content, separators=(",", ":"), default=str)
    return Response(content, status, headers, media_type="application/json")
