"""The playground: a page that shows what a strategy does to a text, two strategies side by side.

Start it with `rag-splitters play FILE...`, with `serve()`, or on a server of your own
(`uvicorn --factory rag_splitters.playground:create_app`). `static` holds the page. Needs the extra
`play`.
"""

from rag_splitters.playground.serving import create_app, serve

__all__ = ["create_app", "serve"]
