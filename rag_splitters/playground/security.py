"""Requests that are refused: from other hosts and origins, and with bodies that are too large."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

from rag_splitters.web.http import Message, Receive, Send, within_limit

MAX_BYTES = 16_000_000
"""Maximum size of a request's body, in bytes."""

_HOST = re.compile(r"(?:\[([\da-fA-F:.]+)\]|([^\[\]:]+))(?::\d+)?")
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


class Guard:
    """Middleware that lets only requests of the application's own page pass.

    The Host header must be localhost, an IP address or one of `hosts`: in a DNS rebinding attack it
    is the name of the attacker's site. An Origin header must match the Host, so that no other site
    can post. Every response forbids the page to load anything from elsewhere, or to send anything
    there.
    """

    def __init__(self, app: Any, hosts: Sequence[str] = ()) -> None:
        self.app, self.hosts = app, {"localhost", *(host.lower() for host in hosts)}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        if not self._allows(host):
            message = (
                f"this playground does not answer to the host name {host[:100]!r}: use its IP "
                "address or localhost, or add the name with create_app(hosts=[...])\n"
            )
            await PlainTextResponse(message, 421)(scope, receive, send_with_headers)
        elif origin is not None and origin.partition("://")[2] != host:
            message = "only the playground's own page may send requests\n"
            await PlainTextResponse(message, 403)(scope, receive, send_with_headers)
        else:
            limited = within_limit(headers.get("content-length", ""), receive, MAX_BYTES)
            await self.app(scope, limited, send_with_headers)

    def _allows(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match[1] or match[2]
        with suppress(ValueError):
            return bool(ip_address(name))
        return name.lower() in self.hosts
