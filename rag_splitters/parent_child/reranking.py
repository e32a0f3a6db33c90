"""Rerankers: a user's function, or what a framework's reranker answers, in one form."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Any

from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.models.calling import with_retries
from rag_splitters.models.clients import ask_calls
from rag_splitters.parameters.messages import describe_value
from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.search import Rerank

Reranker = Callable[[str, list[str]], Any]
"""(question, texts) -> a score for each text, higher is better; may be a coroutine function."""


def rerank_with(reranker: Reranker) -> Rerank:
    """Return a `Rerank` that asks a user's function.

    It raises TypeError if the function returns anything but numbers, and ValueError if it does not
    return a finite one for each text.

    >>> from rag_splitters.calls import run
    >>> by_length = rerank_with(lambda question, texts: [len(text) for text in texts])
    >>> run(by_length("", [Entry("a", {}), Entry("abc", {})]))
    [(1, 3.0), (0, 1.0)]
    """

    if not callable(reranker):
        expected = "a function from a question and texts to scores"
        raise InputTypeError(f"the reranker must be {expected}, got {describe_value(reranker)}")

    async def rerank(question: str, children: Sequence[Entry]) -> list[tuple[int, float | None]]:
        texts = [child.text for child in children]
        answer = await with_retries(*ask_calls(partial(reranker, question), None), texts, 0)
        try:
            scores = [float(each) for each in answer]
        except (TypeError, ValueError):
            raise InputTypeError(
                "the reranker must return a number for each text, and returned "
                f"{describe_value(answer)}"
            ) from None
        if len(scores) != len(texts):
            raise InputError(
                f"the reranker must return a score for each of {len(texts)} texts, "
                f"and returned {len(scores)}"
            )
        if others := [score for score in scores if not math.isfinite(score)]:
            raise InputError(f"the reranker must return finite numbers, and returned {others[0]}")
        order = sorted(range(len(scores)), key=lambda number: -scores[number])
        return [(number, scores[number]) for number in order]

    return rerank


def read_order(
    children: Sequence[Entry], answer: Sequence[tuple[str, Any]]
) -> list[tuple[int, float | None]]:
    """Return the order in which a framework's reranker returned children, and their scores.

    Children are known by their text, because some rerankers drop ids.

    Parameters:
        answer: the text of each child that was returned, and its score, unless that is no number.

    >>> read_order([Entry("tea", {}), Entry("rain", {})], [("rain", 0.9), ("tea", math.nan)])
    [(1, 0.9), (0, None)]
    """
    numbers = {child.text: number for number, child in enumerate(children)}
    for text, _ in answer:
        if text not in numbers:
            raise InputError(
                f"the reranker returned a text that it was not given, {text[:80]!r}: a reranker "
                "orders chunks and may leave some out; apply what rewrites texts to the results"
            )
    return [
        (numbers[text], float(score) if isinstance(score, Real) and math.isfinite(score) else None)
        for text, score in answer
    ]
