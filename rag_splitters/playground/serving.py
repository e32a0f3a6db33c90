"""The playground as an application, and a server for it on this machine."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_splitters.extras import needs
from rag_splitters.playground.model_set import ModelSet
from rag_splitters.web.server import run_server

if TYPE_CHECKING:
    from starlette.applications import Starlette


def create_app(
    texts: Mapping[str, str | bytes] | None = None,
    embeddings: Any = None,
    llm: Any = None,
    *,
    ner: Any = None,
    base_url: str | None = None,
    hosts: Sequence[str] = (),
) -> Starlette:
    """Return the playground as an ASGI application.

    The page can set only what its forms show: the strategies of the catalogue and some of their
    parameters. Models come from the arguments below and never from the page. Whatever would import
    code or open a file (a function, a spaCy pipeline or a tokenizer by name, a cache) is refused,
    so that a link with settings in it can do neither. A regular expression can run for ever and
    block the process. So a regular expression that comes with a link waits until the user presses a
    button, and so does every call of a chat model.

    Parameters:
        texts: texts by name, offered before the three sample texts; or the bytes of files. Of a
            PDF, the page shows the pages on which a chunk stands.
        embeddings: an embedding model of either framework, a function, or a name as on the command
            line ("openai:text-embedding-3-small"); None: `HashingEmbeddings`, which match words.
        llm: a chat model, in the same ways; None: strategies that need one say so.
        ner: the entity recogniser for `EntityChunker`, like its parameter `ner`.
        base_url: the server of models named "openai:...", if it is not OpenAI's.
        hosts: host names that the page may have besides localhost and IP addresses. Requests with
            another name in the Host header are refused, as protection against DNS rebinding.

    Returns: a Starlette application. All its addresses are relative, so you can mount it under any
    path.

    Raises: ImportError if Starlette is not installed; ValueError or TypeError if a model is not
    one.

    >>> application = create_app({"note": "A text of mine."})
    >>> type(application).__name__
    'Starlette'
    """
    with needs("the playground needs Starlette", "play"):
        from rag_splitters.playground.application import application
    return application(texts or {}, ModelSet.load(embeddings, llm, ner, base_url), hosts)


def serve(
    texts: Mapping[str, str | bytes] | None = None,
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
        host: address to listen on. If other machines can reach it, everyone on them can read the
            texts and use the models.
        port: port to listen on; 0 for any free port.
        open_browser: open the page in the browser.
        ready: called with the page's address as soon as it answers.

    Raises: ImportError if the extra `play` is not installed; OSError if the address is invalid or
    in use; and whatever `create_app` raises.
    """
    app = create_app(texts, embeddings, llm, ner=ner, base_url=base_url, hosts=[host])

    def started(address: str) -> None:
        if ready is not None:
            ready(address)
        if open_browser:
            webbrowser.open(address)

    exposure = "read the texts and use the models"
    run_server(
        app, host, port, name="the playground", extra="play", ready=started, exposure=exposure
    )
