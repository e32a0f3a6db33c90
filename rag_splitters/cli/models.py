"""Models as the command line names them: hashing, OpenAI's, Azure's, or a function of the user's.

Keys are read from the environment, by the client's own names; none is an option, and none is shown.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from rag_splitters.models import ChatModel, Embedder, HashingEmbeddings, chat_model
from rag_splitters.models.describing import load_model

__all__ = [
    "BaseUrlOption",
    "EmbeddingsOption",
    "LlmOption",
    "load_embeddings",
    "load_llm",
    "models",
]

EmbeddingsOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="openai:NAME, azure:DEPLOYMENT, function:MODULE:NAME or hashing. Keys are taken from "
        "the environment: OPENAI_API_KEY; AZURE_OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT and "
        "OPENAI_API_VERSION.",
    ),
]
LlmOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="openai:NAME, azure:DEPLOYMENT or function:MODULE:NAME; keys likewise.",
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Where openai: models are, if not at OpenAI; needs no key there."
    ),
]

_NEEDED = {
    "openai": ["OPENAI_API_KEY"],
    "azure": ["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION"],
}


def models(embeddings: str | None, llm: str | None, base_url: str | None) -> dict[str, Any]:
    """The models of the options that were given, by the names of the strategies' parameters.

    Raises: ValueError in one line for what is no model, or has no key.
    """
    found: dict[str, Any] = {}
    if embeddings is not None:
        found["embeddings"] = load_embeddings(embeddings, base_url)
    if llm is not None:
        found["llm"] = load_llm(llm, base_url)
    if base_url is not None and not any(str(x).startswith("openai:") for x in (embeddings, llm)):
        raise ValueError("--base-url says where an openai: model is, and none is named")
    return found


def load_embeddings(name: str, base_url: str | None = None) -> Embedder:
    """The embedding model of this name.

    Raises: ValueError in one line for what is no model, or has no key.

    >>> load_embeddings("hashing:256")
    Embedder(HashingEmbeddings(dimensions=256))
    """
    kind, _, rest = name.partition(":")
    if kind == "hashing" and (rest.isdecimal() or not rest):
        return Embedder(HashingEmbeddings(dimensions=int(rest or 1024)))
    if kind == "function":
        own: Embedder = _own(name, "embeddings", Embedder)
        return own
    if kind not in _NEEDED or not rest:
        raise _unknown("embeddings", name, "hashing, ")
    from langchain_openai import AzureOpenAIEmbeddings, OpenAIEmbeddings

    # Texts are sent, and not numbers of tokens, for which a vocabulary would be downloaded.
    options = {**_options(name, base_url), "check_embedding_ctx_length": False}
    return Embedder((OpenAIEmbeddings if kind == "openai" else AzureOpenAIEmbeddings)(**options))


def load_llm(name: str, base_url: str | None = None) -> ChatModel:
    """The chat model of this name.

    Raises: ValueError in one line for what is no model, or has no key.
    """
    kind, _, rest = name.partition(":")
    if kind == "function":
        own: ChatModel = _own(name, "llm", chat_model)
        return own
    if kind not in _NEEDED or not rest:
        raise _unknown("llm", name)
    from langchain_openai import AzureChatOpenAI, ChatOpenAI

    return chat_model(
        (ChatOpenAI if kind == "openai" else AzureChatOpenAI)(**_options(name, base_url))
    )


def _options(name: str, base_url: str | None) -> Mapping[str, Any]:
    """What the client is made with; the rest it finds in the environment."""
    kind, _, model = name.partition(":")
    missing = [variable for variable in _NEEDED[kind] if not os.environ.get(variable)]
    if kind == "azure":
        options = {"azure_deployment": model}
    else:
        options = {"model": model}
        if base_url is not None:
            if not base_url.startswith(("http://", "https://")):
                raise ValueError(
                    f"--base-url must begin with http:// or https://, got {base_url!r}"
                )
            options |= {"base_url": base_url, **({"api_key": "none"} if missing else {})}
            missing = []
    if missing:
        raise ValueError(f"{name} needs {' and '.join(missing)} in the environment")
    return options


def _own(name: str, parameter: str, wrap: Any) -> Any:
    """The user's own function, from the current folder too."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return load_model(name, parameter, "a function", wrap)
    except Exception as error:  # whatever the user's module raises
        raise ValueError(f"{parameter}: {name} cannot be used: {error}") from error


def _unknown(parameter: str, name: str, others: str = "") -> ValueError:
    kinds = f"{others}openai:NAME, azure:DEPLOYMENT or function:MODULE:NAME"
    return ValueError(f"{parameter} must be {kinds}, got {name!r}")
