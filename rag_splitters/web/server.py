"""Runs an application with uvicorn."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING

from rag_splitters.errors import FileError
from rag_splitters.extras import needs

if TYPE_CHECKING:
    from starlette.applications import Starlette

logger = logging.getLogger(__name__)


def run_server(
    app: Starlette,
    host: str,
    port: int,
    *,
    name: str,
    extra: str,
    ready: Callable[[str], None] | None,
    exposure: str = "",
    seconds_to_finish: int = 1,
) -> None:
    """Run an application until it is interrupted. Requests are not logged.

    Parameters:
        host: address to listen on.
        port: port to listen on; 0 for any free port.
        name: what it is, such as "the playground", for the error if uvicorn is not installed.
        extra: the extra that installs uvicorn.
        ready: called with the server's address as soon as it answers.
        exposure: what everyone who can reach the address may do; a warning says so in the log if
            other machines can.
        seconds_to_finish: how long to wait for open requests when the server is stopped.

    Raises: ImportError if uvicorn is not installed; OSError if the address is invalid or in use.
    """
    with needs(f"{name} needs uvicorn", extra):
        import uvicorn
    with listen(host, port) as listener:
        url_host = f"[{host}]" if ":" in host else host
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            ws="none",
            timeout_graceful_shutdown=seconds_to_finish,
        )
        address = f"http://{url_host}:{listener.getsockname()[1]}/"
        if exposure and not is_local(host):
            logger.warning("everyone who can reach %s can %s", address, exposure)
        if ready is not None:
            ready(address)
        uvicorn.Server(config).run(sockets=[listener])


def is_local(host: str) -> bool:
    """Whether only this machine can reach the address.

    >>> [is_local(host) for host in ("127.0.0.1", "localhost", "0.0.0.0")]
    [True, True, False]
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """Open a socket that already accepts connections; they wait until the server is up.

    Raises: OSError if the address is invalid or in use.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server(addresses[0][4], family=addresses[0][0])
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(
            f"cannot listen on {host}, port {port}: {reason}; choose another address with --host "
            "and --port, or any free port with --port 0"
        ) from error
