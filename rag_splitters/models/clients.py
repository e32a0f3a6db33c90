"""What an embedding model's client offers: its calls, and how much it takes in one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

__all__ = [
    "Request",
    "async_embed_call",
    "embed_call",
    "is_awaitable",
    "is_embedding_client",
    "limits",
    "requests",
    "with_batch",
]

Request: TypeAlias = tuple[int, int, int]
"""The number of a call, and the first and the last but one of its texts."""

_DIVIDES = (16_384, 8_000_000)  # texts and characters for a client that divides them further
_DIRECT = (512, 200_000)  # for a callable: within what the usual services take in one request
_LLAMA_INDEX_DEFAULT, _LLAMA_INDEX_BATCH, _LLAMA_INDEX_MOST = 10, 100, 2048


def is_awaitable(model: Any) -> bool:
    """Is it an async function, or an object whose call is one?"""
    called = inspect.getattr_static(type(model), "__call__", None)
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(called)


def is_embedding_client(model: Any) -> bool:
    """Is it an embedding model of LangChain or LlamaIndex, or of the same shape?"""
    names = ("embed_documents", "get_text_embedding_batch")
    return any(callable(getattr(model, name, None)) for name in names)


def _own_batch(model: Any) -> int | None:
    """How many texts the model's client sends in one request, where it says so."""
    for name in ("chunk_size", "embed_batch_size"):
        value = getattr(model, name, None)
        if isinstance(value, int) and value > 0:
            is_low = name == "embed_batch_size" and value == _LLAMA_INDEX_DEFAULT
            return _LLAMA_INDEX_BATCH if is_low else value
    return None


def limits(model: Any, is_awaited: bool) -> tuple[int, int]:
    """How many texts and characters to hand to the model in one call.

    What is awaited goes in the client's own batches, so that they can go side by side.
    """
    if not is_embedding_client(model):
        return _DIRECT
    if not is_awaited:
        return _DIVIDES
    own = _own_batch(model)
    return (own, _DIVIDES[1]) if own else _DIRECT


def requests(texts: Sequence[str], most_texts: int, most_characters: int) -> list[Request]:
    """The texts in calls that keep both bounds; a text that is too long goes alone.

    >>> requests(["a", "b", "long", "c"], 2, 3)
    [(0, 0, 2), (1, 2, 3), (2, 3, 4)]
    """
    totals = [0, *accumulate(map(len, texts))]
    found: list[Request] = []
    start = 0
    for end in range(1, len(texts) + 1):
        is_full = end - start == most_texts or end == len(texts)
        if is_full or totals[end + 1] - totals[start] > most_characters:
            found.append((len(found), start, end))
            start = end
    return found


def with_batch(model: Any, wanted: int | None) -> Any:
    """The model; a LlamaIndex one as a shallow copy with the batch size that is wanted here."""
    own = getattr(model, "embed_batch_size", None)
    size = min(wanted or _own_batch(model) or 1, _LLAMA_INDEX_MOST)
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
