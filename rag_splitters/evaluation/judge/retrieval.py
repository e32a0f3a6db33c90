"""Retrieval for judged metrics: a question in, texts out, with any library's retriever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

from rag_splitters.calls import Call, arun, run
from rag_splitters.errors import InputTypeError
from rag_splitters.evaluation.judge.judge import Failure
from rag_splitters.evaluation.measure.chunks import content_of
from rag_splitters.models.calling import abounded
from rag_splitters.models.clients import first_method, is_awaitable, retrieve_calls
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
    """Return a call for the texts that are retrieved for each question, in order.

    If the retriever raises an error, the question has a failure instead, and the others go on.
    Raises TypeError if this is not a retriever, or, when awaited, if it returns anything but texts.
    In an event loop, up to four questions run at once if the retriever is an async function.

    >>> from rag_splitters.calls import run
    >>> async def shout() -> list[Retrieved]:
    ...     return await retrieve(lambda question: [question.upper()], ["who?"])
    >>> run(shout())
    [('WHO?',)]
    """
    is_function = callable(retriever) and not isinstance(retriever, type)
    if not is_function and first_method(retriever, "invoke", "retrieve") is None:
        raise InputTypeError(
            "a retriever must be a LangChain retriever, a LlamaIndex retriever or a function from "
            f"a question to a list of texts, got {describe_model(retriever)}"
        )
    search, async_search = retrieve_calls(retriever)

    async def answer(question: str) -> Retrieved:
        try:
            result = await Call(partial(search, question), partial(async_search, question))
        except Exception as error:  # a user's retriever may raise anything
            detail = without_secrets(f"{type(error).__name__}: {str(error)[:500]}", retriever)
            return Failure(f"the retriever raised {type(error).__name__}", detail)
        if isinstance(result, str | bytes) or not isinstance(result, Iterable):
            raise InputTypeError(
                f"{describe_model(retriever)} must return a list of texts, "
                f"got {type(result).__name__}"
            )
        return tuple(content_of(each)[0] for each in result)

    limit = _MAX_CONCURRENCY if is_awaitable(retriever) else 1  # others may not be thread-safe
    return Call(
        lambda: [run(answer(question)) for question in questions],
        lambda: abounded(lambda question: arun(answer(question)), questions, limit),
    )
