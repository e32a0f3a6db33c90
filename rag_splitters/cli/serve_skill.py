"""`rag-splitters serve-skill`: a custom skill for Azure AI Search."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from rag_splitters.cli.options import (
    BaseUrlOption,
    EmbeddingsOption,
    HostOption,
    LlmOption,
    ParameterOption,
    PortOption,
    StrategyOption,
    chunker_from_options,
    models_from_options,
    read_parameters,
)
from rag_splitters.cli.views import console


def serve_skill(
    strategy: StrategyOption = "auto",
    pairs: ParameterOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    max_bytes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Maximum size of a request in bytes.")
    ] = 64_000_000,
    embeddings: EmbeddingsOption = None,
    llm: LlmOption = None,
    base_url: BaseUrlOption = None,
) -> None:
    """Serve a custom skill for Azure AI Search, in place of the Text Split skill.

    The address of the skill is /split. Without --param chunk_size=..., chunks have at most 5000
    characters, as in Text Split. The parameters of Text Split in a skillset override the sizes.
    Requests must have the key of the environment variable RAG_SPLITTERS_API_KEY, if it is set, in
    their header api-key.
    """
    from rag_splitters.azure import serve_skill

    parameters = read_parameters(strategy, pairs or ())
    if strategy == "auto" and "chunk_size" not in parameters:
        parameters["chunk_size"] = 5000
    chunker = chunker_from_options(
        strategy, {**parameters, **models_from_options(embeddings, llm, base_url)}
    )
    out = console(error=True)
    serve_skill(
        chunker,
        api_key=os.environ.get("RAG_SPLITTERS_API_KEY"),
        max_bytes=max_bytes,
        host=host,
        port=port,
        ready=lambda address: out.print(f"The skill runs at {address} (stop it with Ctrl-C)"),
    )
