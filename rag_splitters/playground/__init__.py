"""The playground: a page that shows what a strategy does to a text, two strategies side by side.

Start it with `rag-splitters play FILE...`, with `serve()`, or on a server of your own
(`uvicorn rag_splitters.playground:app`). `static` holds the page. Needs the extra `play`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_splitters.playground.serving import create_app, serve

if TYPE_CHECKING:
    from starlette.applications import Starlette

    app: Starlette

__all__ = ["app", "create_app", "serve"]


def __getattr__(name: str) -> Any:
    if name == "app":  # created at first use, so that importing this does not need Starlette
        globals()["app"] = application = create_app()
        return application
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
