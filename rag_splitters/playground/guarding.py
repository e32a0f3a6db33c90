"""What is refused before it is read: strange hosts and origins, and bodies that are too big."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from starlette.responses import PlainTextResponse

__all__ = ["MOST_BYTES", "Guard", "TooLargeError"]

MOST_BYTES = 16_000_000
"""The most bytes of one request."""

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]

_HOST = re.compile(r"(?:\[([\da-fA-F:.]+)\]|([^\[\]:]+))(?::\d+)?")
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


class TooLargeError(Exception):
    """A request's body is larger than `MOST_BYTES`."""


class Guard:
    """Lets requests through to an application that come from its own page.

    The Host must be localhost, an IP address or one of `hosts`: a page elsewhere whose name is made
    to lead here (DNS rebinding) has a name of its own. An Origin, where there is one, must be that
    of the Host, so that no other site can post. Every answer forbids its page to load or send
    anything elsewhere.
    """

    def __init__(self, app: Any, hosts: Sequence[str] = ()) -> None:
        self.app, self.hosts = app, {"localhost", *(host.lower() for host in hosts)}

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {
            key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]
        }
        host, origin = headers.get("host", ""), headers.get("origin")

        async def sent(message: _Message) -> None:
            if message["type"] == "http.response.start":
                ours = [(key.encode(), value.encode()) for key, value in _HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *ours]
            await send(message)

        if not self._is_known(host):
            told = (
                f"the host {host[:100]!r} is not one under which this playground may be asked for: "
                "use its address or localhost, or name it in create_app(hosts=[...])\n"
            )
            await PlainTextResponse(told, 421)(scope, receive, sent)
        elif origin is not None and origin.partition("://")[2] != host:
            told = "only the playground's own page may ask\n"
            await PlainTextResponse(told, 403)(scope, receive, sent)
        else:
            await self.app(scope, _bounded(headers.get("content-length", ""), receive), sent)

    def _is_known(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found[1] or found[2]
        with suppress(ValueError):
            return bool(ip_address(name))
        return name.lower() in self.hosts


def _bounded(announced: str, receive: _Receive) -> _Receive:
    """`receive`, which raises `TooLargeError` instead of reading on."""
    total, length = 0, int(announced) if announced.isdecimal() else 0

    async def received() -> _Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if max(total, length) > MOST_BYTES:
            raise TooLargeError
        return message

    return received
