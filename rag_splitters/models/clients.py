"""What an embedding model's client offers: its calls, and how much it takes in one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from rag_splitters.text.sizing import Sizer, sizer

__all__ = [
    "Limits",
    "Request",
    "async_embed_call",
    "embed_call",
    "is_awaitable",
    "is_embedding_client",
    "limits",
    "requests",
    "token_counts",
    "with_batch",
]

Request: TypeAlias = tuple[int, int, int]
"""The number of a call, and the first and the last but one of its texts."""

_DIRECT = (512, 300_000)  # texts and tokens of a request: within what the usual services take
_DIVIDES = (16_384, 8_000_000)  # of a call, for a client that divides it by means of its own
_LLAMA_INDEX_DEFAULT, _LLAMA_INDEX_BATCH, _LLAMA_INDEX_MOST = 10, 100, 2048


class Limits(NamedTuple):
    """How much a model is handed at a time.

    Parameters:
        texts: the most texts in one call.
        batch: of these, how many its client sends in one request.
        tokens: the most tokens in one request.
    """

    texts: int
    batch: int
    tokens: int


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


def limits(
    model: Any, is_awaited: bool, max_texts: int | None = None, max_tokens: int | None = None
) -> Limits:
    """The limits that are asked for, else those that suit the model.

    What is awaited goes in the client's own batches, so that they can go side by side.
    """
    is_client = is_embedding_client(model)
    own = _own_batch(model) if is_client else None
    texts, tokens = _DIVIDES if is_client and not is_awaited else _DIRECT
    if own:
        texts, tokens = own if is_awaited else texts, _DIRECT[1]
    texts = max_texts or texts
    return Limits(texts, min(own or texts, texts), max_tokens or tokens)


def token_counts(model: Any, texts: Sequence[str], most: int) -> list[int]:
    """At least as many tokens as each of the texts has.

    Its bytes in UTF-8 are as many, whatever the tokenizer, and cost nothing to count. Where that
    is more than `most` in all, and the model is one of OpenAI's, whose tokenizer is at hand, tokens
    are counted, so that English does not go in four times the requests that it needs.
    """
    counts = [len(text.encode()) for text in texts]
    if sum(counts) > most and (measure := _tokens_of(model)):
        counts = [measure(text).length(0, len(text)) for text in texts]
    return counts


def _tokens_of(model: Any) -> Sizer | None:
    """What counts the model's tokens, where its name is one of OpenAI's."""
    from tiktoken.model import encoding_name_for_model

    for name in (getattr(model, "model_name", None), getattr(model, "model", None)):
        if isinstance(name, str):
            try:
                return sizer(f"tokens:{encoding_name_for_model(name)}")
            except (KeyError, ValueError):  # not OpenAI's, or its vocabulary is not at hand
                continue
    return None


def requests(counts: Sequence[int], limits: Limits) -> list[Request]:
    """The texts, of so many tokens each, in calls that keep the limits; a long text goes alone.

    >>> requests([1, 1, 4, 1], Limits(texts=2, batch=2, tokens=3))
    [(0, 0, 2), (1, 2, 3), (2, 3, 4)]
    """
    found: list[Request] = []
    start = begin = total = 0
    for place, count in enumerate(counts):
        if place - begin == limits.batch:  # the client begins another request by itself
            begin, total = place, 0
        is_too_much = place > begin and total + count > limits.tokens
        if place - start == limits.texts or is_too_much:
            found.append((len(found), start, place))
            start, begin, total = place, place, 0
        total += count
    return [*found, (len(found), start, len(counts))] if counts else []


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
