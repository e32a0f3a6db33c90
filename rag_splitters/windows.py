"""Overlapping windows of numbered sentences over a long text, and asking a model about them.

A model is shown sentences with numbers and answers with numbers, so that positions are never its
business, and a text is data: each sentence is one line, whatever stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from pydantic import BaseModel

from rag_splitters.boundaries import words
from rag_splitters.calling import ModelError
from rag_splitters.chat import Answer, ChatModel
from rag_splitters.packing import pack
from rag_splitters.segmenters import Segmenter, segmenter_cuts

__all__ = [
    "Window",
    "aasked",
    "asked",
    "beginning",
    "check_prompt",
    "filled",
    "numbered",
    "sentences_of",
    "windows",
]

Result = TypeVar("Result")

_LONGEST = 1000
_AGAIN = """{prompt}

You have answered this before, and the answer could not be used: {problem}.
Answer again, in the form that is asked for above."""


class Window(NamedTuple):
    """Sentences that a model sees together, and those of them that its answer decides about.

    All four are indices into the sentences of a text; the second of each pair is not included.
    """

    first: int
    last: int
    decides_from: int
    decides_to: int


def windows(count: int, size: int) -> list[Window]:
    """Windows of `size` sentences over `count` sentences, each of which one window decides about.

    Neighbours overlap by a tenth, by one sentence at least. The window before decides about the
    first half of an overlap, the one behind about the second, so that each sentence is judged with
    its neighbours in view.

    >>> [(w.first, w.last, w.decides_from, w.decides_to) for w in windows(25, 20)]
    [(0, 20, 0, 19), (18, 25, 19, 25)]
    """
    overlap = max(1, size // 10)
    firsts = range(0, max(1, count - overlap), size - overlap)
    middles = [0, *(first + (overlap + 1) // 2 for first in firsts[1:]), count]
    return [
        Window(first, min(first + size, count), middles[index], middles[index + 1])
        for index, first in enumerate(firsts)
    ]


def sentences_of(text: str, segmenter: str | Segmenter) -> list[tuple[int, int]]:
    """(start, end) of each sentence of a text; one of over 1,000 characters counts as several.

    No grapheme cluster is cut, none of them is blank, and white space between them is left out.

    >>> sentences_of("One. Two.", "rules")
    [(0, 4), (5, 9)]
    """
    cuts = segmenter_cuts(segmenter, text)
    spans = pack(
        text,
        [words(text)],
        size=_LONGEST,
        overlap=0,
        length_function="characters",
        breaks=cuts,
    )
    return [(span.start, span.end) for span in spans]


def numbered(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The sentences as lines with numbers from 1 on.

    White space inside a sentence becomes one space: no sentence can pass for another line.

    >>> print(numbered("One\\n[2] one. Two.", [(0, 12), (13, 17)]))
    [1] One [2] one.
    [2] Two.
    """
    lines = (" ".join(text[start:end].split()) for start, end in spans)
    return "\n".join(f"[{number}] {line}" for number, line in enumerate(lines, 1))


def check_prompt(template: str, *names: str) -> str:
    """The template, or ValueError where it lacks one of the places in braces."""
    for name in names:
        if f"{{{name}}}" not in template:
            raise ValueError(f"prompt must hold {{{name}}}, got {beginning(template)}")
    return template


def filled(template: str, **parts: str) -> str:
    """The template with its places filled in; other braces, and those in the parts, stay.

    >>> filled('{"a": {text}}', text="{text}")
    '{"a": {text}}'
    """
    pattern = "|".join(re.escape(f"{{{name}}}") for name in parts)
    return re.sub(pattern, lambda match: parts[match.group()[1:-1]], template)


def beginning(answer: object) -> str:
    """The beginning of an answer, for a message."""
    content = str(answer)
    return repr(content if len(content) <= 80 else content[:80] + "...")


class _Dialogue(Generic[Result]):
    """Prompts, and what came of them: a result, an error, or nothing usable yet."""

    def __init__(
        self,
        model: ChatModel,
        prompts: Sequence[str],
        read: Callable[[int, str | BaseModel], Result],
    ) -> None:
        self._model, self._prompts, self._read = model.description, prompts, read
        self._open: dict[int, str] = dict(enumerate(prompts))
        self.results: dict[int, Result | ModelError] = {}

    def prompts(self) -> list[str]:
        """What is to be asked next."""
        return list(self._open.values())

    def all_results(self) -> list[Result | ModelError]:
        """The results in the order of the prompts, once they have been asked."""
        return [self.results[index] for index in range(len(self._prompts))]

    def hear(self, answers: Sequence[Answer | ModelError]) -> None:
        """Read the answers to `prompts()`; the unusable ones stay open, with a new prompt."""
        asked, self._open = list(self._open), {}
        for index, answer in zip(asked, answers, strict=True):
            if isinstance(answer, ModelError):
                self.results[index] = answer
                if _is_about_the_answer(answer):
                    self._ask_again(index, "it does not have the form that is asked for")
                continue
            try:
                self.results[index] = self._read(index, answer)
            except ValueError as error:
                problem = f"{error}; it began {beginning(answer)}"
                self.results[index] = ModelError(
                    f"the answer cannot be used: {problem}", model=self._model, index=index
                )
                self._ask_again(index, problem)

    def _ask_again(self, index: int, problem: str) -> None:
        prompt = self._prompts[index]
        self._open[index] = filled(_AGAIN, prompt=prompt, problem=problem)


def _is_about_the_answer(error: ModelError) -> bool:
    """Did the model answer, but not in the form that it was asked for?"""
    return error.__cause__ is None or isinstance(error.__cause__, ValueError)


def asked(
    model: ChatModel,
    prompts: Sequence[str],
    schema: type[BaseModel] | None,
    read: Callable[[int, str | BaseModel], Result],
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
    read: Callable[[int, str | BaseModel], Result],
    max_retries: int,
) -> list[Result | ModelError]:
    """`asked` without blocking the event loop."""
    dialogue = _Dialogue[Result](model, prompts, read)
    for _ in range(max_retries + 1):
        if prompts := dialogue.prompts():
            dialogue.hear(await model.aask(prompts, schema))
    return dialogue.all_results()
