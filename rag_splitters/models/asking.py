"""Functions for strategies to await in `plan`: `embed` for vectors, `ask` for a model's answers.

After an invalid answer, the model is told what was wrong and asked again. Answers are cached as
soon as they arrive, and no request is sent twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from rag_splitters.calls import Batch, Call, arun, run
from rag_splitters.errors import InputError
from rag_splitters.models.cache import (
    CachedAnswers,
    TextCache,
    answer_keys,
    answer_text,
    read_answer,
)
from rag_splitters.models.calling import for_each
from rag_splitters.models.chat import Asking, ChatModel
from rag_splitters.models.embedder import Embedder, Row, TextPosition, rows_of
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


async def embed(
    model: Embedder,
    texts: Sequence[str],
    places: Sequence[TextPosition] | None = None,
    *,
    cache: TextCache | None = None,
) -> NDArray[np.float32]:
    """Embed texts: await this in a plan to get an array with one row for each text.

    Parameters:
        model: the value of a field of type `Embeddings`.
        texts: the texts, of any number of documents; none may be blank.
        places: document number and offset of each text, for error messages.
        cache: the value of a field of type `Cache`.

    Raises ModelError if the model fails, or does not answer with one valid vector for each text.
    """
    return rows_of(await embed_each(model, texts, places, cache=cache))


def embed_each(
    model: Embedder,
    texts: Sequence[str],
    places: Sequence[TextPosition] | None = None,
    *,
    cache: TextCache | None = None,
) -> Call[list[Row]]:
    """Embed texts: await this in a plan to get a vector or an error for each text."""

    def arguments(items: Sequence[tuple[str, TextPosition | None]]) -> tuple[Any, Any, Any]:
        own_places = [place for _, place in items]
        return [text for text, _ in items], None if None in own_places else own_places, cache

    own: Sequence[TextPosition | None] = [None] * len(texts) if places is None else places
    return Batch(
        (embed_each, id(model.model), id(cache)),
        list(zip(texts, own, strict=True)),
        lambda items: model.embed_each(*arguments(items)),
        lambda items: model.aembed_each(*arguments(items)),
    )


async def ask(
    model: ChatModel,
    prompts: Sequence[str],
    schema: type[BaseModel] | None = None,
    *,
    cache: TextCache | None = None,
) -> list[Any]:
    """Ask a chat model: await this in a plan to get an answer to each prompt.

    Parameters:
        model: the value of a field of type `Llm`.
        prompts: the prompts, which are sent concurrently.
        schema: the pydantic model of an answer. None gives text, as does a plain function.
        cache: the value of a field of type `Cache`.

    Raises ModelError if the model fails on a prompt.
    """
    answers = await ask_each(model, prompts, schema, lambda _, answer: answer, 0, cache=cache)
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
    *,
    cache: TextCache | None = None,
    keys: Sequence[str] | None = None,
) -> list[Result | ModelError]:
    """Ask a chat model, and return what `read` makes of each answer, or the error instead.

    Equal prompts are sent once. After an error that would affect every prompt, such as a rejected
    key, no more prompts are sent.

    Parameters:
        read: (number of the prompt, answer) -> result; raises a ValueError that says what is wrong.
        max_retries: how often to ask again after an invalid answer.
        cache: the cache to which each valid answer is written as soon as it arrives.
        keys: the keys of the answers in the cache; prompts that can share an answer have equal
            keys. None: keys made from the model and the prompt.
    """
    if keys is None:
        keys = prompts if cache is None else answer_keys(model, schema, prompts)
    pairs = zip(prompts, keys, strict=True)
    questions = [_Question(index, *pair, read) for index, pair in enumerate(pairs)]

    answer_all = partial(_answer_all, model, schema, max_retries, cache)
    answers = await Batch(
        (ask_each, id(model.model), model.max_concurrency, schema, max_retries, id(cache)),
        questions,
        lambda questions: run(answer_all(questions)),
        lambda questions: arun(answer_all(questions)),
    )
    return [_result(read, index, answer) for index, answer in enumerate(answers)]


def _result(
    read: Read[Result], index: int, answer: str | BaseModel | ModelError
) -> Result | ModelError:
    if isinstance(answer, ModelError):
        return answer
    try:
        return read(index, answer)
    except ValueError as error:  # an equal prompt can be about another place in the text
        return ModelError(f"invalid answer: {error}", index=index, answered=True)


@dataclass(frozen=True, slots=True)
class _Question:
    """A prompt, its number among those of its strategy, and the function that reads its answer."""

    index: int
    prompt: str
    key: str
    read: Read[Any]

    def problem_of(self, answer: str | BaseModel) -> str:
        """Say what is wrong with an answer; empty if it is valid."""
        try:
            self.read(self.index, answer)
        except ValueError as error:
            return f"{error}; it began {beginning(answer)}"
        return ""

    def error(self, problem: str, model: ChatModel) -> ModelError:
        """Return the error about its last answer."""
        message = f"invalid answer: {problem}"
        return ModelError(message, model=model.description, index=self.index, answered=True)


async def _answer_all(
    model: ChatModel,
    schema: type[BaseModel] | None,
    max_retries: int,
    cache: TextCache | None,
    questions: Sequence[_Question],
) -> list[str | BaseModel | ModelError]:
    """Ask questions until each has a valid answer or an error; equal ones are asked once."""
    first: dict[str, _Question] = {}
    for question in questions:
        first.setdefault(question.key, question)
    read = partial(read_answer, schema=schema)
    cached = CachedAnswers(cache, {key: key for key in first}, read, answer_text)
    recalled = await cached.recall(list(first))
    answers = {k: answer for k, answer in recalled.items() if not first[k].problem_of(answer)}
    missing = [question for key, question in first.items() if key not in answers]
    if missing:
        asking = Asking(model, schema)
        ask_one = partial(_ask_until_valid, asking, model, max_retries, cached)
        received = await for_each(ask_one, missing, model.max_concurrency or 1)
        answers |= zip((question.key for question in missing), received, strict=True)
    return [answers[question.key] for question in questions]


async def _ask_until_valid(
    asking: Asking, model: ChatModel, retries: int, cached: CachedAnswers, question: _Question
) -> str | BaseModel | ModelError:
    """Ask a question, and ask it again as often after an invalid answer."""
    prompt = question.prompt
    while True:
        answer = await asking.answer(prompt, question.index, "the prompt")
        if isinstance(answer, ModelError):
            error, problem = answer, "it does not have the form that is asked for"
        elif problem := question.problem_of(answer):
            error = question.error(problem, model)
        else:
            await cached.keep({question.key: answer})
            return answer
        if not error.answered or not retries:
            return error
        retries -= 1
        prompt = fill(_AGAIN, prompt=question.prompt, problem=problem)


_LONG = 200  # characters: shorter texts may be labels, which end without a full stop
_SENTENCE_END = re.compile(r"[.!?。！？؟।]['\"”’»)\]]*\s")


def check_whole(prose: str) -> str:
    """Return a model's prose. Raises ValueError if it seems to be cut off.

    It seems to be if it is long, has sentences, and the last one does not end. The answer of a
    plain function comes without the service's response, so only the text can be examined.
    """
    text = prose.rstrip()
    if len(text) > _LONG and text[-1].isalnum() and _SENTENCE_END.search(text):
        raise InputError(f"it ends in the middle, with {text[-40:]!r}")
    return prose
