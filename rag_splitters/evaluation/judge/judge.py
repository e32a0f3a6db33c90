"""Judge: a chat model whose answers are checked and cached."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel

from rag_splitters.errors import InputError
from rag_splitters.models import ModelError, chat_model
from rag_splitters.models.asking import ask_each
from rag_splitters.models.cache import check_cache, text_cache
from rag_splitters.models.prompts import Form
from rag_splitters.parameters.checks import whole_number

Verdict = TypeVar("Verdict")

_MARKS = r"[\W_]*"
_LABEL = rf"{_MARKS}(?:(?:answer|verdict|rating|score){_MARKS})?"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no verdict.

    Parameters:
        reason: the kind of failure; failures are counted by it.
        detail: what happened, in full.
    """

    reason: str
    detail: str

    def __str__(self) -> str:
        return self.detail

    @classmethod
    def of(cls, error: ModelError) -> Failure:
        """A model's error as a failure."""
        if error.answered:
            return cls("the answer could not be used", str(error))
        reason = f"the model raised {error.kind}" if error.kind else "the answer is not whole"
        return cls(reason, str(error))


class Judgement(NamedTuple, Generic[Verdict]):
    """A model's answer to a prompt: text or the fields of an object, and the verdict in it."""

    answer: Any = None
    verdict: Verdict | None = None
    failure: Failure | None = None


class Judge:
    """Asks a chat model for verdicts. With a cache, the next run asks only for what failed.

    Parameters:
        llm: a LangChain chat model, a LlamaIndex LLM, or a function from prompt to answer, sync or
            async. LangChain and LlamaIndex models are asked for structured output.
        cache: where the answers are kept, as for the strategies: a LangChain `BaseStore`, a
            LlamaIndex `BaseKVStore`, or the path of a folder. A cached answer is checked again.
        max_concurrency: maximum number of calls at once; None: 4, or 1 for a function that is not
            async.
        max_retries: how often the model is asked again, with what is wrong, if its answer cannot be
            used. Rate limits and timeouts are retried as well, by the model's client or by us.

    Raises: TypeError if `llm` is not a chat model, or `cache` not a cache; ValueError for a cache
    with a model that has no stable name.

    >>> judge = Judge(lambda prompt: "True")
    >>> judge.model
    'function:rag_splitters.evaluation.judge.judge:<lambda>'
    """

    def __init__(
        self,
        llm: Any,
        *,
        cache: Any = None,
        max_concurrency: int | None = None,
        max_retries: int = 2,
    ) -> None:
        self._max_retries = whole_number(max_retries, "max_retries", 0)
        self._chat = chat_model(llm, max_concurrency=max_concurrency)
        self._cache = None if cache is None else text_cache(cache, "answers")
        check_cache(self._cache, self._chat)

    @property
    def model(self) -> str:
        """The model's stable name, without secrets."""
        return self._chat.description

    def form(self, form: Form) -> str:
        """How the judge's model is told to answer."""
        return form.instruction(is_structured=self._chat.is_structured)

    async def judge(
        self,
        groups: Sequence[Sequence[str]],
        schema: type[BaseModel],
        read: Callable[[str | BaseModel], Verdict],
    ) -> list[list[Judgement[Verdict]]]:
        """The judgements of groups of prompts. Run it by `calls.run` or `arun`.

        Parameters:
            groups: the prompts of each group, which may be empty.
            schema: the structured form of an answer.
            read: answer -> verdict; raises a ValueError that says what is wrong with the answer.
        """

        def judgement(_: int, answer: str | BaseModel) -> Judgement[Verdict]:
            content = answer if isinstance(answer, str) else answer.model_dump(mode="json")
            return Judgement(content, read(answer))

        prompts = [prompt for group in groups for prompt in group]
        answers = iter(
            await ask_each(
                self._chat, prompts, schema, judgement, self._max_retries, cache=self._cache
            )
        )
        return [[_judgement_of(next(answers)) for _ in group] for group in groups]


def _judgement_of(answer: Judgement[Verdict] | ModelError) -> Judgement[Verdict]:
    return Judgement(failure=Failure.of(answer)) if isinstance(answer, ModelError) else answer


def as_judge(judge: Any) -> Judge:
    """The judge itself, or a judge for a chat model."""
    return judge if isinstance(judge, Judge) else Judge(judge)


# Reading answers, and reporting failures


def reasoned(verdicts: str) -> Form:
    """The form of an answer that gives its reason before its verdict.

    A model that has to say why first judges better than one that defends what it has said.

    >>> reasoned("yes or no").structured
    'Give your reason first, in one short sentence, and then the verdict: yes or no.'
    """
    return Form(
        text="Give your reason first, in one short line, and below it a line with the verdict "
        f"alone: {verdicts}.",
        structured="Give your reason first, in one short sentence, and then the verdict: "
        f"{verdicts}.",
    )


def read_choice(answer: str | BaseModel, choices: Mapping[str, Verdict]) -> Verdict:
    """The verdict of an answer that must be one of a few words.

    Of a structured answer, the field `verdict` is read, and of plain text, the last line. Case,
    punctuation and a label before the word are ignored. Any other word makes the answer invalid,
    because "not true" does not mean "true".

    Raises: ValueError if the answer is none of the words.

    >>> read_choice("The passage says so.\\n**Answer:** true.", {"true": 1, "false": 0})
    1
    """
    lines = re.findall(r".*\w.*", str(getattr(answer, "verdict", answer)))
    text = lines[-1] if lines else ""
    for word, verdict in choices.items():
        if re.fullmatch(rf"{_LABEL}{re.escape(word)}{_MARKS}", text, re.IGNORECASE):
            return verdict
    raise InputError(f"it is none of {', '.join(choices)}")


def write_lines(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines, in ASCII, so that lone surrogates survive."""
    lines = [json.dumps(row, sort_keys=True) + "\n" for row in rows]
    Path(path).write_text("".join(lines), encoding="ascii", newline="\n")
