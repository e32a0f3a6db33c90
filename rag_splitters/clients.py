"""What a model's client offers: which calls it has, whether they are awaited, its batch size."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = [
    "async_embed_call",
    "embed_call",
    "is_awaitable",
    "is_embedding_client",
    "own_batch",
    "with_batch",
]

_LLAMA_INDEX_DEFAULT, _LLAMA_INDEX_BATCH, _LLAMA_INDEX_MOST = 10, 100, 2048


def is_awaitable(model: Any) -> bool:
    """Is it an async function, or an object whose call is one?"""
    called = inspect.getattr_static(type(model), "__call__", None)
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(called)


def is_embedding_client(model: Any) -> bool:
    """Is it an embedding model of LangChain or LlamaIndex, or of the same shape?"""
    names = ("embed_documents", "get_text_embedding_batch")
    return any(callable(getattr(model, name, None)) for name in names)


def own_batch(model: Any) -> int | None:
    """How many texts the model's client sends in one request, where it says so."""
    for name in ("chunk_size", "embed_batch_size"):
        value = getattr(model, name, None)
        if isinstance(value, int) and value > 0:
            is_low = name == "embed_batch_size" and value == _LLAMA_INDEX_DEFAULT
            return _LLAMA_INDEX_BATCH if is_low else value
    return None


def with_batch(model: Any, wanted: int | None) -> Any:
    """The model; a LlamaIndex one as a shallow copy with the batch size that is wanted here."""
    own = getattr(model, "embed_batch_size", None)
    size = min(wanted or own_batch(model) or 1, _LLAMA_INDEX_MOST)
    if isinstance(own, int) and own != size and hasattr(model, "model_copy"):
        return model.model_copy(update={"embed_batch_size": size})
    return model


def embed_call(model: Any) -> Callable[[list[str]], Any]:
    """What embeds a list of texts."""
    for name in ("embed_documents", "get_text_embedding_batch"):
        if callable(ask := getattr(model, name, None)):
            found: Callable[[list[str]], Any] = ask
            return found
    return lambda texts: model(texts)


def async_embed_call(model: Any) -> Callable[[list[str]], Awaitable[Any]]:
    """What embeds a list of texts, to be awaited."""
    for name in ("aembed_documents", "aget_text_embedding_batch"):
        if callable(ask := getattr(model, name, None)):
            found: Callable[[list[str]], Awaitable[Any]] = ask
            return found
    if is_awaitable(model):
        return lambda texts: model(texts)
    return lambda texts: asyncio.to_thread(embed_call(model), texts)
