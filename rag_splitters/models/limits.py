"""Division of texts into requests to an embedding model, with limits on texts and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from rag_splitters.models.clients import client_batch, is_embedding_client

Request: TypeAlias = tuple[int, int, int]
"""The number of a call, its first text, and the end of its texts."""

_PER_REQUEST = (512, 300_000)  # texts and tokens: what the usual services accept
_PER_CALL = (16_384, 8_000_000)  # for a client that divides a call into requests by itself


class Limits(NamedTuple):
    """How much to send to a model at a time.

    Parameters:
        texts: maximum number of texts in one call.
        batch: how many of these the client sends in one request.
        tokens: maximum number of tokens in one request.
    """

    texts: int
    batch: int
    tokens: int


def limits(
    model: Any, is_concurrent: bool, max_texts: int | None = None, max_tokens: int | None = None
) -> Limits:
    """Return the limits that the caller sets, or those that suit the model.

    Concurrent calls have as many texts as the client sends in one request, so that several requests
    can run at the same time.
    """
    is_client = is_embedding_client(model)
    batch = client_batch(model) if is_client else None
    texts, tokens = _PER_CALL if is_client and not is_concurrent else _PER_REQUEST
    if batch:
        tokens = _PER_REQUEST[1]
    texts = max_texts or texts
    if batch and is_concurrent:  # one request in each call, whose failure costs no other
        texts = min(max_texts or batch, batch)
    return Limits(texts, min(batch or texts, texts), max_tokens or tokens)


def requests(counts: Sequence[int], limits: Limits) -> list[Request]:
    """Divide texts into calls within the limits; a text that is too long gets its own.

    Parameters:
        counts: an upper bound for the number of tokens of each text.

    >>> requests([4, 1, 2, 4, 1], Limits(texts=2, batch=2, tokens=3))
    [(0, 0, 1), (1, 1, 3), (2, 3, 4), (3, 4, 5)]
    """
    calls: list[Request] = []
    start = batch_start = tokens = 0
    for place, count in enumerate(counts):
        if place - batch_start == limits.batch:  # here the client begins another request
            batch_start, tokens = place, 0
        is_too_much = place > batch_start and tokens + count > limits.tokens
        if place - start == limits.texts or is_too_much:
            calls.append((len(calls), start, place))
            start, batch_start, tokens = place, place, 0
        tokens += count
    return [*calls, (len(calls), start, len(counts))] if counts else []
