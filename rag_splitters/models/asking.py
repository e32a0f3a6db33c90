"""What a strategy awaits in its `plan`: vectors from an embedding model, answers from a chat model.

An answer that cannot be used is asked for again, with what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from rag_splitters.calls import Batch, Call
from rag_splitters.models.chat import Answer, ChatModel
from rag_splitters.models.embedder import Embedder, Place
from rag_splitters.models.errors import ModelError
from rag_splitters.models.prompts import beginning, fill

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Result = TypeVar("Result")
Read = Callable[[int, "str | BaseModel"], Result]
"""(number of the prompt, answer) -> result, or a ValueError that says what is wrong with it."""

_AGAIN = """{prompt}

You have answered this before, and the answer could not be used: {problem}.
Answer again, in the form that is asked for above."""


def embed(
    model: Embedder, texts: Sequence[str], places: Sequence[Place] | None = None
) -> Call[NDArray[np.float32]]:
    """The vectors of some texts, to be awaited in a plan: one row for each text.

    Parameters:
        model: the value of a field of type `Embeddings`.
        texts: the texts, of any number of documents; none may be blank.
        places: document number and offset of each text, for error messages.

    Awaiting raises ModelError if the model fails or answers with anything but one usable vector
    for each text.
    """

    def arguments(items: Sequence[tuple[str, Place | None]]) -> tuple[Any, Any]:
        own_places = [place for _, place in items]
        return [text for text, _ in items], None if None in own_places else own_places

    own: Sequence[Place | None] = [None] * len(texts) if places is None else places
    items = list(zip(texts, own, strict=True))
    return Batch(
        (embed, id(model.model)),
        items,
        lambda items: model.embed(*arguments(items)),
        lambda items: model.aembed(*arguments(items)),
    )


async def ask(
    model: ChatModel, prompts: Sequence[str], schema: type[BaseModel] | None = None
) -> list[Any]:
    """The model's answers to some prompts, to be awaited in a plan.

    Parameters:
        model: the value of a field of type `Llm`.
        prompts: the prompts, which are sent side by side.
        schema: the pydantic model of an answer; None, or a plain function as the model: text.

    Raises ModelError if the model fails on a prompt.
    """
    answers = await _answers(model, prompts, schema)
    for answer in answers:
        if isinstance(answer, ModelError):
            raise answer
    return answers


async def ask_each(
    model: ChatModel,
    prompts: Sequence[str],
    schema: type[BaseModel] | None,
    read: Read[Result],
    max_retries: int,
) -> list[Result | ModelError]:
    """What was read from the model's answers, or the error in its place.

    Parameters:
        read: (number of the prompt, answer) -> result; raises a ValueError that says what is wrong.
        max_retries: how often an answer that cannot be used is asked for again.
    """
    results: dict[int, Result | ModelError] = {}
    pending = dict(enumerate(prompts))
    for _ in range(max_retries + 1):
        answers = await _answers(model, list(pending.values()), schema) if pending else []
        problems: dict[int, str] = {}
        for index, answer in zip(pending, answers, strict=True):
            results[index], problem = _read_answer(model, read, index, answer)
            if problem:
                problems[index] = problem
        pending = {
            index: fill(_AGAIN, prompt=prompts[index], problem=problem)
            for index, problem in problems.items()
        }
    return [results[index] for index in range(len(prompts))]


def _read_answer(
    model: ChatModel, read: Read[Result], index: int, answer: Answer
) -> tuple[Result | ModelError, str]:
    """The result of an answer or its error, and what to tell the model if it is asked again."""
    if isinstance(answer, ModelError):
        return answer, "it does not have the form that is asked for" if answer.answered else ""
    try:
        return read(index, answer), ""
    except ValueError as error:
        problem = f"{error}; it began {beginning(answer)}"
    message = f"the answer cannot be used: {problem}"
    return ModelError(message, model=model.description, index=index, answered=True), problem


def _answers(
    model: ChatModel, prompts: Sequence[str], schema: type[BaseModel] | None
) -> Call[list[Answer]]:
    return Batch(
        (ask, id(model.model), schema),
        prompts,
        lambda prompts: model.ask(prompts, schema),
        lambda prompts: model.aask(prompts, schema),
    )


def first_failure(chunker: type, failures: Sequence[tuple[int, str, ModelError]]) -> ModelError:
    """The error to raise for several failures.

    Parameters:
        chunker: the class that asked.
        failures: for each the number of the document, the place in it, and the error.
    """
    document, place, error = failures[0]
    others = f" (and {len(failures) - 1} more failed)" if len(failures) > 1 else ""
    message = f"{chunker.__name__}: document {document}, {place}: {error}{others}"
    failure = ModelError(
        message, model=error.model, index=document, answered=error.answered, kind=error.kind
    )
    failure.__cause__ = error.__cause__
    return failure
