"""Retrieval as judged figures see it: a question in, texts out, whichever library finds them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

from rag_splitters.evaluation.judging.answers import Failure
from rag_splitters.models.calling import abounded, run_async
from rag_splitters.models.clients import is_awaitable
from rag_splitters.models.describing import describe_model
from rag_splitters.models.secrets import without_secrets

__all__ = ["Retrieved", "Retriever", "aretrieved", "retrieved"]

Retriever: TypeAlias = Any
"""A LangChain retriever (`invoke`), a LlamaIndex retriever (`retrieve`), or a callable from a
question to a list, sync or async. What it gives, best first: texts, LangChain documents or
LlamaIndex nodes."""

Retrieved: TypeAlias = "tuple[str, ...] | Failure"
"""What was retrieved for a question, or why nothing could be."""

_AT_ONCE = 4


def retrieved(retriever: Retriever, questions: Sequence[str]) -> list[Retrieved]:
    """The texts for each question, or why there are none, in the order of the questions.

    An error that the retriever raises is the failure of one question; the others go on.

    Raises: TypeError for what is no retriever, or gives something else than texts.

    >>> retrieved(lambda question: [question.upper()], ["who?"])
    [('WHO?',)]
    """
    ask = _asker(retriever)
    if ask is None:
        return run_async(aretrieved(retriever, questions))
    found: list[Retrieved] = []
    for question in questions:
        try:
            given = ask(question)
        except Exception as error:  # whatever a user's retriever raises
            found.append(_failure(retriever, error))
        else:
            found.append(_texts(retriever, given))
    return found


async def aretrieved(retriever: Retriever, questions: Sequence[str]) -> list[Retrieved]:
    """`retrieved` without blocking the event loop; what is async is asked four times at once."""
    ask, at_once = _async_asker(retriever)

    async def answer(question: str) -> Retrieved:
        try:
            given = await ask(question)
        except Exception as error:  # whatever a user's retriever raises
            return _failure(retriever, error)
        return _texts(retriever, given)

    return await abounded(answer, questions, at_once)


def _asker(retriever: Retriever) -> Callable[[str], Any] | None:
    """What finds texts and waits for them; None for what has to be awaited."""
    for name in ("invoke", "retrieve"):
        if callable(ask := getattr(retriever, name, None)):
            found: Callable[[str], Any] = ask
            return found
    if isinstance(retriever, type) or not callable(retriever):
        raise TypeError(
            "a retriever is a LangChain retriever, a LlamaIndex retriever or a callable "
            f"question -> list of texts, got {describe_model(retriever)}"
        )
    return None if is_awaitable(retriever) else lambda question: retriever(question)


def _async_asker(retriever: Retriever) -> tuple[Callable[[str], Awaitable[Any]], int]:
    """What finds texts, to be awaited, and how often it may be under way."""
    for name in ("ainvoke", "aretrieve"):
        if callable(ask := getattr(retriever, name, None)):
            return ask, _AT_ONCE
    waiting = _asker(retriever)
    if waiting is None:
        return lambda question: retriever(question), _AT_ONCE
    return lambda question: asyncio.to_thread(waiting, question), 1  # it may not be thread-safe


def _texts(retriever: Retriever, given: Any) -> tuple[str, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(
            f"{describe_model(retriever)} must give a list of texts, got {type(given).__name__}"
        )
    return tuple(_text(retriever, each) for each in given)


def _text(retriever: Retriever, found: Any) -> str:
    """A retrieved text, which may come as a document or a node."""
    text = getattr(found, "page_content", found)
    if callable(content := getattr(found, "get_content", None)):
        text = content()
    if not isinstance(text, str):
        raise TypeError(
            f"{describe_model(retriever)} must give texts, documents or nodes, got a "
            f"{type(found).__name__} among them"
        )
    return text


def _failure(retriever: Retriever, error: Exception) -> Failure:
    said = without_secrets(f"{type(error).__name__}: {str(error)[:500]}", retriever)
    return Failure(f"the retriever raised {type(error).__name__}", said)
