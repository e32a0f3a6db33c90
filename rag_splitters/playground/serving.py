"""Running the playground on this machine."""

from __future__ import annotations

import logging
import socket
import webbrowser
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any

__all__ = ["is_local", "serve"]

logger = logging.getLogger(__name__)


def serve(
    texts: Mapping[str, str] | None = None,
    embeddings: Any = None,
    llm: Any = None,
    *,
    ner: Any = None,
    base_url: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    open_browser: bool = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Run the playground until it is interrupted.

    Parameters:
        texts, embeddings, llm, ner, base_url: as for `create_app`.
        host: the address to listen at; with one that is not of this machine alone, whoever reaches
            it can read the texts and use the models.
        port: the port; 0 takes a free one.
        open_browser: open the page in the browser.
        ready: called with the page's address once it can be asked for.

    Raises: ImportError without the extra `play`; OSError for an address that is taken or is none;
    what `create_app` raises.
    """
    from rag_splitters.playground import create_app

    app = create_app(texts, embeddings, llm, ner=ner, base_url=base_url, hosts=[host])
    try:
        import uvicorn
    except ImportError as error:
        raise ImportError(
            "the playground needs uvicorn: pip install 'rag-splitters[play]'"
        ) from error
    with _listening(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}/"
        if not is_local(host):
            logger.warning("whoever reaches %s can read the texts and use the models", address)
        config = uvicorn.Config(
            app, log_level="warning", lifespan="off", ws="none", timeout_graceful_shutdown=1
        )
        if ready is not None:
            ready(address)
        if open_browser:
            webbrowser.open(address)
        uvicorn.Server(config).run(sockets=[listener])


def is_local(host: str) -> bool:
    """Can only this machine reach the address?

    >>> is_local("127.0.0.1"), is_local("0.0.0.0")
    (True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _listening(host: str, port: int) -> socket.socket:
    """A socket that takes connections, which wait until the server is up."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server(found[0][4][:2], family=found[0][0])
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OSError(
            f"cannot listen at {host}, port {port}: {reason}; name another with --host and --port, "
            "or take any free port with --port 0"
        ) from error
