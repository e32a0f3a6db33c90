"""Models by name: "hashing", "openai:gpt-4o-mini", "azure:my-deployment", "function:module:name".

API keys are read from the environment variables that the clients use; no option holds one, and no
message shows one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any, TypeVar

from rag_splitters.errors import InputError
from rag_splitters.models import ChatModel, Embedder, HashingEmbeddings, chat_model
from rag_splitters.models.secrets import without_secrets

T = TypeVar("T")

_VARIABLES = {
    "openai": ["OPENAI_API_KEY"],
    "azure": ["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION"],
}
_KINDS = "openai:NAME, azure:DEPLOYMENT or function:MODULE:NAME"


def load_embeddings(name: str, base_url: str | None = None) -> Embedder:
    """Create the embedding model of this name.

    Raises: ValueError if there is no such model, or if its API key is not in the environment.

    >>> load_embeddings("hashing:256")
    Embedder(HashingEmbeddings(dimensions=256) version 1)
    """
    kind, _, rest = name.partition(":")
    if kind == "hashing" and (rest.isdecimal() or not rest):
        return Embedder(HashingEmbeddings(dimensions=int(rest or 1024)))
    if kind == "function":
        return load_function(name, "embeddings", Embedder)
    if kind not in _VARIABLES or not rest:
        raise InputError(f"embeddings must be hashing, {_KINDS}, got {name!r}")
    from langchain_openai import AzureOpenAIEmbeddings, OpenAIEmbeddings

    # Send texts: to send token numbers, the client would download a vocabulary first.
    options = {**_client_options(name, base_url), "check_embedding_ctx_length": False}
    return Embedder((OpenAIEmbeddings if kind == "openai" else AzureOpenAIEmbeddings)(**options))


def load_llm(name: str, base_url: str | None = None) -> ChatModel:
    """Create the chat model of this name.

    Raises: ValueError if there is no such model, or if its API key is not in the environment.
    """
    kind, _, rest = name.partition(":")
    if kind == "function":
        return load_function(name, "llm", chat_model)
    if kind not in _VARIABLES or not rest:
        raise InputError(f"llm must be {_KINDS}, got {name!r}")
    from langchain_openai import AzureChatOpenAI, ChatOpenAI

    client = ChatOpenAI if kind == "openai" else AzureChatOpenAI
    return chat_model(client(**_client_options(name, base_url)))


def _client_options(name: str, base_url: str | None) -> Mapping[str, Any]:
    """Return the client's arguments; it reads the others from the environment."""
    kind, _, model = name.partition(":")
    missing = [variable for variable in _VARIABLES[kind] if not os.environ.get(variable)]
    if kind == "openai" and base_url is not None:
        if not base_url.startswith(("http://", "https://")):
            shown = without_secrets(base_url)
            raise InputError(f"base_url must begin with http:// or https://, got {shown!r}")
        # Self-hosted servers often need no key, but the client does.
        return {"model": model, "base_url": base_url, **({"api_key": "none"} if missing else {})}
    if missing:
        raise InputError(f"{name} needs {' and '.join(missing)} in the environment")
    return {"azure_deployment" if kind == "azure" else "model": model}


def load_function(name: str, parameter: str, wrap: Callable[[Any], T]) -> T:
    """Import the user's function "function:module:name", and wrap it.

    Use it only for names that the user typed, as on the command line, because it imports the
    module, which may be in the current folder. Configurations name registered functions instead.

    Raises: ValueError if the function cannot be imported or wrapped.
    """
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return wrap(resolve_name(name.removeprefix("function:")))
    except Exception as error:  # the user's module may raise anything
        raise InputError(f"{parameter}: {name} cannot be used: {error}") from error
