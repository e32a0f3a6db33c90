"""`rag-splitters play`: the playground in the browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rag_splitters.cli.options import (
    BaseUrlOption,
    EmbeddingsOption,
    HostOption,
    LlmOption,
    PortOption,
)
from rag_splitters.cli.views import console
from rag_splitters.reading.files import file_bytes


def play(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE...]", help="Files to look at, besides three sample texts."),
    ] = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8000,
    embeddings: EmbeddingsOption = None,
    llm: LlmOption = None,
    base_url: BaseUrlOption = None,
    open_browser: Annotated[
        bool | None,
        typer.Option("--open/--no-open", help="Open the browser; the default at a terminal."),
    ] = None,
) -> None:
    """Show in the browser what the strategies do to a text, two of them side by side.

    Nothing leaves this machine unless you name a model that runs elsewhere. Without --embeddings,
    the built-in embeddings are used, which match words, not meaning. Strategies that need a chat
    model need --llm.
    """
    from rag_splitters.playground import serve

    texts = {path.as_posix(): file_bytes(path) for path in files or ()}
    out = console(error=True)
    serve(
        texts,
        embeddings,
        llm,
        base_url=base_url,
        host=host,
        port=port,
        open_browser=sys.stdout.isatty() if open_browser is None else open_browser,
        ready=lambda address: out.print(f"The playground runs at {address} (stop it with Ctrl-C)"),
    )
