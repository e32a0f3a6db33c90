"""Ordering results anew by a function that scores texts against the question."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rag_splitters.parent_child.passages import Passage
from rag_splitters.parent_child.stores import threaded

__all__ = ["Reranker", "reranked"]

Reranker = Callable[[str, list[str]], Any]
"""(question, texts) -> a score for each text, higher is better; a coroutine function will do."""


async def reranked(
    reranker: Reranker, question: str, passages: Sequence[Passage], *, asynchronous: bool
) -> list[Passage]:
    """The passages by the scores that the function gives them, which take the place of their own.

    Raises: ValueError where the function does not give one score for each text; TypeError for a
    coroutine function in a synchronous call.

    >>> from rag_splitters.parent_child.stores import run
    >>> found = [Passage("a", {}), Passage("abc", {})]
    >>> longest = lambda question, texts: [len(text) for text in texts]
    >>> [p.text for p in run(reranked(longest, "", found, asynchronous=False))]
    ['abc', 'a']
    """
    if not passages:
        return []
    if not asynchronous and inspect.iscoroutinefunction(reranker):
        raise TypeError("the reranker is asynchronous: ask with await, or hand in a plain function")
    call = threaded(asynchronous and not inspect.iscoroutinefunction(reranker))
    scores: Any = await call(reranker, question, [passage.text for passage in passages])
    if inspect.isawaitable(scores):
        scores = await scores
    told = [float(score) for score in scores]
    if len(told) != len(passages):
        raise ValueError(
            f"the reranker must give a score for each of {len(passages)} texts, gave {len(told)}"
        )
    order = sorted(range(len(told)), key=lambda number: -told[number])
    return [
        replace(passages[n], metadata={**passages[n].metadata, "score": told[n]}) for n in order
    ]
