"""Judge: a chat model whose answers are checked, kept, and asked for only once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from rag_splitters.errors import InputError
from rag_splitters.ids import stable_uuid
from rag_splitters.models import ModelError, chat_model
from rag_splitters.models.asking import ask_each
from rag_splitters.models.cache import text_cache
from rag_splitters.models.describing import cache_name, stable_name
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


@dataclass(frozen=True, slots=True)
class Task(Generic[Verdict]):
    """One kind of question that a model is asked.

    Parameters:
        name: the task's name, for cache keys and exports.
        version: version of the prompt and of the form of its answers; answers to another version
            are not reused.
        schema: the structured form of an answer.
        read: answer -> verdict; raises a ValueError that says what is wrong with the answer.
    """

    name: str
    version: int
    schema: type[BaseModel]
    read: Callable[[str | BaseModel], Verdict]


@dataclass(frozen=True, slots=True)
class Judgement(Generic[Verdict]):
    """A prompt, the model's answer, and the verdict or the reason why there is none.

    Parameters:
        task: the task's name.
        version: the task's version.
        model: the model's stable name, without secrets.
        prompt: the prompt.
        answer: the answer: text, or the fields of a structured answer.
        verdict: what was read from the answer.
        failure: why there is no verdict; None if there is one.
    """

    task: str
    version: int
    model: str
    prompt: str
    answer: Any
    verdict: Verdict | None
    failure: Failure | None

    def as_dict(self) -> dict[str, Any]:
        """The fields for JSON; a failure becomes `reason` and `error`, which are None without."""
        row = {each.name: getattr(self, each.name) for each in fields(self)}
        if isinstance(self.verdict, BaseModel):
            row["verdict"] = self.verdict.model_dump()
        return flat(row)


class Judge:
    """Asks a chat model for verdicts, and keeps them, so that no prompt is sent twice.

    With a `cache`, the same run on another day calls the model only for what failed. Answers are
    cached by the model's name, the task with its version, and the prompt. A cached answer is read
    and checked again. `export` writes all judgements for an audit.

    Parameters:
        llm: a LangChain chat model, a LlamaIndex LLM, or a function from prompt to answer, sync or
            async. LangChain and LlamaIndex models are asked for structured output.
        cache: a LangChain `BaseStore`, a LlamaIndex `BaseKVStore`, or the path of a folder, in
            which `judgements.sqlite` is created.
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
        self._cache = None if cache is None else text_cache(cache, "judgements")
        if cache is not None:
            stable_name(self._chat)
        self._judgements: dict[str, Judgement[Any]] = {}

    @property
    def model(self) -> str:
        """The model's stable name."""
        return self._chat.description

    def form(self, form: Form) -> str:
        """How the judge's model is told to answer."""
        return form.instruction(is_structured=self._chat.is_structured)

    @property
    def judgements(self) -> list[Judgement[Any]]:
        """All judgements so far, one per prompt, in the order of the prompts."""
        return list(self._judgements.values())

    async def judge(
        self, task: Task[Verdict], groups: Sequence[Sequence[str]]
    ) -> list[list[Judgement[Verdict]]]:
        """The judgements of groups of prompts, some of which may be empty.

        If the model fails on a prompt, its judgement says why. Run it by `calls.run` or `arun`.
        """
        prompts = {self._key(task, prompt): prompt for group in groups for prompt in group}
        earlier = {key: self._judgements[key] for key in prompts if key in self._judgements}
        judgements = {key: each for key, each in earlier.items() if each.failure is None}

        def read(index: int, answer: str | BaseModel) -> tuple[Any, Verdict]:
            content = answer if isinstance(answer, str) else answer.model_dump(mode="json")
            return content, task.read(answer)

        missing = [key for key in prompts if key not in judgements]
        answers = await ask_each(
            self._chat,
            [prompts[key] for key in missing],
            task.schema,
            read,
            self._max_retries,
            cache=self._cache,
            keys=None if self._cache is None else self._cache_keys(missing),
        )
        for key, answer in zip(missing, answers, strict=True):
            judgements[key] = self._judgement(task, prompts[key], answer)
        self._judgements |= {key: judgements[key] for key in prompts}  # in the prompts' order
        return [[judgements[self._key(task, prompt)] for prompt in group] for group in groups]

    def export(self, path: str | Path) -> None:
        """Write all judgements as JSON lines, each with its prompt, answer, verdict and model.

        A run that is repeated from a cache writes the same file again.
        """
        write_lines(path, (each.as_dict() for each in self.judgements))

    def _cache_keys(self, keys: Sequence[str]) -> list[str]:
        name = cache_name(self._chat)
        return [stable_uuid("judgement", name, key) for key in keys]

    def _key(self, task: Task[Any], prompt: str) -> str:
        return stable_uuid(self.model, task.name, str(task.version), prompt)

    def _judgement(
        self, task: Task[Verdict], prompt: str, answer: tuple[Any, Verdict] | ModelError
    ) -> Judgement[Verdict]:
        failure = Failure.of(answer) if isinstance(answer, ModelError) else None
        content, verdict = (None, None) if isinstance(answer, ModelError) else answer
        return Judgement(task.name, task.version, self.model, prompt, content, verdict, failure)


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


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row for JSON with its failure as `reason` and `error`, which are None without one."""
    failure = row.pop("failure")
    return row | {"reason": failure and failure.reason, "error": failure and failure.detail}


def write_lines(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines, in ASCII, so that lone surrogates survive."""
    lines = [json.dumps(row, sort_keys=True) + "\n" for row in rows]
    Path(path).write_text("".join(lines), encoding="ascii", newline="\n")
