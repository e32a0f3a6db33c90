"""`rag-splitters play`: the playground, on texts of the user's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rag_splitters.cli.models import BaseUrlOption, EmbeddingsOption, LlmOption
from rag_splitters.cli.views import console
from rag_splitters.reading.files import read_text

__all__ = ["play"]


def play(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Files to look at, besides three bundled texts."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 8000,
    embeddings: EmbeddingsOption = None,
    llm: LlmOption = None,
    base_url: BaseUrlOption = None,
    open_browser: Annotated[
        bool | None,
        typer.Option("--open/--no-open", help="Open the browser; at a terminal by default."),
    ] = None,
) -> None:
    """See in the browser what the strategies do to a text, two of them side by side.

    Nothing leaves this machine unless a model is named that does. Without --embeddings, the
    built-in ones match words, not meaning; without --llm, strategies that ask a chat model say so.
    """
    from rag_splitters.playground import serve

    texts = {path.as_posix(): read_text(path) for path in files or ()}
    out = console(error=True)
    serve(
        texts,
        embeddings,
        llm,
        base_url=base_url,
        host=host,
        port=port,
        open_browser=sys.stdout.isatty() if open_browser is None else open_browser,
        ready=lambda address: out.print(f"The playground is at {address}  (Ctrl-C ends it)"),
    )
