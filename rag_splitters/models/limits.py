"""Division of texts into requests to an embedding model, with limits on texts and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Request: TypeAlias = tuple[int, int, int]
"""The number of a call, its first text, and the end of its texts."""

MAX_TEXTS, MAX_TOKENS = 512, 300_000
"""How many texts and tokens a request has at most: what the usual services accept."""


def requests(counts: Sequence[int], max_texts: int, max_tokens: int) -> list[Request]:
    """Divide texts into calls within the limits; a text that is too long gets its own.

    Parameters:
        counts: an upper bound for the number of tokens of each text.

    >>> requests([4, 1, 2, 4, 1], max_texts=2, max_tokens=3)
    [(0, 0, 1), (1, 1, 3), (2, 3, 4), (3, 4, 5)]
    """
    calls: list[Request] = []
    start = tokens = 0
    for place, count in enumerate(counts):
        is_too_much = place > start and tokens + count > max_tokens
        if place - start == max_texts or is_too_much:
            calls.append((len(calls), start, place))
            start, tokens = place, 0
        tokens += count
    return [*calls, (len(calls), start, len(counts))] if counts else []
