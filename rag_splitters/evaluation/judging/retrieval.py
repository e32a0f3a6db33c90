"""Retrieval for judged metrics: a question in, texts out, with any library's retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

from rag_splitters.calls import Call
from rag_splitters.evaluation.judging.judge import Failure
from rag_splitters.models.calling import abounded, run_async
from rag_splitters.models.clients import is_awaitable
from rag_splitters.models.describing import describe_model
from rag_splitters.models.secrets import without_secrets

Retriever: TypeAlias = Any
"""A LangChain retriever (`invoke`), a LlamaIndex retriever (`retrieve`), or a function from a
question to a list, sync or async. The list holds texts, LangChain documents or LlamaIndex nodes,
the best first."""

Retrieved: TypeAlias = "tuple[str, ...] | Failure"
"""The texts retrieved for a question, or why there are none."""

_MAX_CONCURRENCY = 4


def retrieve(retriever: Retriever, questions: Sequence[str]) -> Call[list[Retrieved]]:
    """A call for the texts that are retrieved for each question, in order.

    If the retriever raises an error, the question has a failure instead, and the others go on.
    Awaiting the call raises TypeError if this is not a retriever, or if it returns anything but
    texts. In an event loop, up to four questions run at once if the retriever is async.

    >>> from rag_splitters.calls import run
    >>> async def shout() -> list[Retrieved]:
    ...     return await retrieve(lambda question: [question.upper()], ["who?"])
    >>> run(shout())
    [('WHO?',)]
    """
    return Call(partial(_retrieve, retriever, questions), partial(_aretrieve, retriever, questions))


def _retrieve(retriever: Retriever, questions: Sequence[str]) -> list[Retrieved]:
    search = _search_function(retriever)
    if search is None:
        return run_async(_aretrieve(retriever, questions))
    results: list[Retrieved] = []
    for question in questions:
        try:
            result = search(question)
        except Exception as error:  # a user's retriever may raise anything
            results.append(_failure(retriever, error))
        else:
            results.append(_texts(retriever, result))
    return results


async def _aretrieve(retriever: Retriever, questions: Sequence[str]) -> list[Retrieved]:
    search, max_concurrency = _async_search_function(retriever)

    async def answer(question: str) -> Retrieved:
        try:
            result = await search(question)
        except Exception as error:  # a user's retriever may raise anything
            return _failure(retriever, error)
        return _texts(retriever, result)

    return await abounded(answer, questions, max_concurrency)


def _search_function(retriever: Retriever) -> Callable[[str], Any] | None:
    """The retriever's blocking function; None if it has only an async one."""
    for name in ("invoke", "retrieve"):
        if callable(method := getattr(retriever, name, None)):
            search: Callable[[str], Any] = method
            return search
    if isinstance(retriever, type) or not callable(retriever):
        raise TypeError(
            "a retriever must be a LangChain retriever, a LlamaIndex retriever or a function from "
            f"a question to a list of texts, got {describe_model(retriever)}"
        )
    return None if is_awaitable(retriever) else lambda question: retriever(question)


def _async_search_function(retriever: Retriever) -> tuple[Callable[[str], Awaitable[Any]], int]:
    """The retriever's async function, and how many of its calls may run at once."""
    for name in ("ainvoke", "aretrieve"):
        if callable(method := getattr(retriever, name, None)):
            return method, _MAX_CONCURRENCY
    search = _search_function(retriever)
    if search is None:
        return lambda question: retriever(question), _MAX_CONCURRENCY
    # One at a time: a blocking function may not be thread-safe.
    return lambda question: asyncio.to_thread(search, question), 1


def _texts(retriever: Retriever, result: Any) -> tuple[str, ...]:
    if isinstance(result, str | bytes) or not isinstance(result, Iterable):
        raise TypeError(
            f"{describe_model(retriever)} must return a list of texts, got {type(result).__name__}"
        )
    return tuple(_text(retriever, each) for each in result)


def _text(retriever: Retriever, item: Any) -> str:
    """The text of a retrieved item: a string, a document or a node."""
    text = getattr(item, "page_content", item)
    if callable(get_content := getattr(item, "get_content", None)):
        text = get_content()
    if not isinstance(text, str):
        raise TypeError(
            f"{describe_model(retriever)} must return texts, documents or nodes, got a "
            f"{type(item).__name__} among them"
        )
    return text


def _failure(retriever: Retriever, error: Exception) -> Failure:
    detail = without_secrets(f"{type(error).__name__}: {str(error)[:500]}", retriever)
    return Failure(f"the retriever raised {type(error).__name__}", detail)
