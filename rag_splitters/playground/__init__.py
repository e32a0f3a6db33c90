"""The playground: a page that shows what a strategy does to a text, two of them side by side.

`rag-splitters play FILE...` on the command line, `serve()` here, or `create_app()` for a server of
your own (`uvicorn rag_splitters.playground:app`). It needs the extra `play`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_splitters.playground.models import Models
from rag_splitters.playground.serving import serve

if TYPE_CHECKING:
    from starlette.applications import Starlette

    app: Starlette

__all__ = ["app", "create_app", "serve"]


def create_app(
    texts: Mapping[str, str] | None = None,
    embeddings: Any = None,
    llm: Any = None,
    *,
    ner: Any = None,
    base_url: str | None = None,
    hosts: Sequence[str] = (),
) -> Starlette:
    """The playground as an ASGI application.

    What the page may ask for is a list, not a rule with exceptions: strategies of the catalogue,
    and of their parameters those that its form shows. Models come from here and never from the
    page, and what would import code or open a file (a function, a spaCy pipeline or a tokenizer by
    name, a cache) is refused, so that a link with settings in it can do neither. A regular
    expression can run without end, and hold the process while it does: one that comes with a link,
    like every question to a chat model, waits until the user presses a button.

    Parameters:
        texts: texts by name, offered before the three bundled ones.
        embeddings: an embedding model of either framework, a callable, or a name as on the command
            line ("openai:text-embedding-3-small"); None: `HashingEmbeddings`, which match words.
        llm: a chat model likewise; None: strategies that need one say so.
        ner: what finds entities, for `EntityChunker`; as its parameter `ner`.
        base_url: where models that are named "openai:..." are, if not at OpenAI.
        hosts: names under which the page may be asked for besides localhost and IP addresses, which
            always may; another name in the Host header is refused, against DNS rebinding.

    Returns: a Starlette application; its addresses are relative, so it can be mounted under a path.

    Raises: ImportError without Starlette; ValueError or TypeError for what is no model.

    >>> application = create_app({"note": "A text of mine."})
    >>> type(application).__name__
    'Starlette'
    """
    try:
        from rag_splitters.playground.application import application
    except ImportError as error:
        raise ImportError(
            "the playground needs Starlette: pip install 'rag-splitters[play]'"
        ) from error
    return application(texts or {}, Models.of(embeddings, llm, ner, base_url), hosts)


def __getattr__(name: str) -> Any:
    if name == "app":  # made at first use, so that importing this needs no Starlette
        globals()["app"] = made = create_app()
        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
