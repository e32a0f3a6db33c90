"""Asking a chat model until its answers are of use."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from pydantic import BaseModel

from rag_splitters.models.calling import ModelError
from rag_splitters.models.chat import Answer, ChatModel

__all__ = ["Read", "aasked", "asked", "check_prompt", "filled", "first_failure"]

Result = TypeVar("Result")
Read = Callable[[int, str | BaseModel], Result]
"""(number of the prompt, answer) -> result, or a ValueError that says what is wrong with it."""

_AGAIN = """{prompt}

You have answered this before, and the answer could not be used: {problem}.
Answer again, in the form that is asked for above."""


def check_prompt(template: str, *names: str) -> str:
    """The template, or ValueError where it lacks one of the places in braces."""
    for name in names:
        if f"{{{name}}}" not in template:
            raise ValueError(f"prompt must hold {{{name}}}, got {_beginning(template)}")
    return template


def filled(template: str, **parts: str) -> str:
    """The template with its places filled in; other braces, and those in the parts, stay.

    >>> filled('{"a": {text}}', text="{text}")
    '{"a": {text}}'
    """
    pattern = "|".join(re.escape(f"{{{name}}}") for name in parts)
    return re.sub(pattern, lambda match: parts[match.group()[1:-1]], template)


def _beginning(answer: object) -> str:
    """The beginning of an answer, for a message."""
    content = str(answer)
    return repr(content if len(content) <= 80 else content[:80] + "...")


def first_failure(chunker: type, failures: Sequence[tuple[int, str, ModelError]]) -> ModelError:
    """The error to raise for several failures.

    Parameters:
        chunker: the class that asked.
        failures: number of the document, place in it, and what happened there.
    """
    document, place, error = failures[0]
    others = f" (and {len(failures) - 1} more failed)" if len(failures) > 1 else ""
    message = f"{chunker.__name__}: document {document}, {place}: {error}{others}"
    raised = ModelError(
        message, model=error.model, index=document, answered=error.answered, kind=error.kind
    )
    raised.__cause__ = error.__cause__
    return raised


class _Dialogue(Generic[Result]):
    """Prompts, and what came of them: a result, an error, or nothing usable yet."""

    def __init__(self, model: ChatModel, prompts: Sequence[str], read: Read[Result]) -> None:
        self._model, self._prompts, self._read = model.description, prompts, read
        self._open: dict[int, str] = dict(enumerate(prompts))
        self.results: dict[int, Result | ModelError] = {}

    def prompts(self) -> list[str]:
        """What is to be asked next."""
        return list(self._open.values())

    def all_results(self) -> list[Result | ModelError]:
        """The results in the order of the prompts, once they have been asked."""
        return [self.results[index] for index in range(len(self._prompts))]

    def hear(self, answers: Sequence[Answer]) -> None:
        """Read the answers to `prompts()`; the unusable ones stay open, with a new prompt."""
        asked, self._open = list(self._open), {}
        for index, answer in zip(asked, answers, strict=True):
            if isinstance(answer, ModelError):
                self.results[index] = answer
                if answer.answered:
                    self._ask_again(index, "it does not have the form that is asked for")
                continue
            try:
                self.results[index] = self._read(index, answer)
            except ValueError as error:
                problem = f"{error}; it began {_beginning(answer)}"
                self.results[index] = ModelError(
                    f"the answer cannot be used: {problem}",
                    model=self._model,
                    index=index,
                    answered=True,
                )
                self._ask_again(index, problem)

    def _ask_again(self, index: int, problem: str) -> None:
        prompt = self._prompts[index]
        self._open[index] = filled(_AGAIN, prompt=prompt, problem=problem)


def asked(
    model: ChatModel,
    prompts: Sequence[str],
    schema: type[BaseModel] | None,
    read: Read[Result],
    max_retries: int,
) -> list[Result | ModelError]:
    """What was read from the model's answers; unusable ones are asked for again.

    Parameters:
        model: the chat model, which is asked all prompts at once.
        prompts: the prompts.
        schema: the structured form of an answer.
        read: (number of the prompt, answer) -> result; raises a ValueError that says what is wrong.
        max_retries: how often an unusable answer is asked for again.

    Returns: for each prompt the result, or the error that was left in the end.
    """
    dialogue = _Dialogue[Result](model, prompts, read)
    for _ in range(max_retries + 1):
        if prompts := dialogue.prompts():
            dialogue.hear(model.ask(prompts, schema))
    return dialogue.all_results()


async def aasked(
    model: ChatModel,
    prompts: Sequence[str],
    schema: type[BaseModel] | None,
    read: Read[Result],
    max_retries: int,
) -> list[Result | ModelError]:
    """`asked` without blocking the event loop."""
    dialogue = _Dialogue[Result](model, prompts, read)
    for _ in range(max_retries + 1):
        if prompts := dialogue.prompts():
            dialogue.hear(await model.aask(prompts, schema))
    return dialogue.all_results()
