"""Judged answers: what was asked, what came back, and what was made of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from rag_splitters.models import ModelError
from rag_splitters.text.ids import stable_uuid

__all__ = [
    "Failure",
    "Judgement",
    "Task",
    "answer_key",
    "chosen",
    "counted",
    "listed",
    "why",
    "write_lines",
]

Verdict = TypeVar("Verdict")

_MARKS = r"[\W_]*"
_LABEL = rf"{_MARKS}(?:(?:answer|verdict|rating|score){_MARKS})?"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no verdict.

    Parameters:
        reason: the kind of failure, by which failures are counted.
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
        return cls(f"the model raised {error.kind}", str(error))


@dataclass(frozen=True, slots=True)
class Task(Generic[Verdict]):
    """One kind of thing that a model is asked to judge.

    Parameters:
        name: the task's name, for cache keys and exports.
        version: of its prompt and of the form of its answers; a new one is judged anew.
        schema: the structured form of an answer.
        read: answer -> verdict; raises a ValueError that says what is wrong with the answer.
    """

    name: str
    version: int
    schema: type[BaseModel]
    read: Callable[[str | BaseModel], Verdict]


@dataclass(frozen=True, slots=True)
class Judgement(Generic[Verdict]):
    """A prompt, what a model answered, and the verdict or why there is none.

    Parameters:
        task: the task's name.
        version: the task's version.
        model: the model's stable name, without secrets.
        prompt: what it was asked.
        answer: what it answered: text, or the fields of a structured answer.
        verdict: what was read from the answer.
        failure: why there is no verdict; None where there is one.
    """

    task: str
    version: int
    model: str
    prompt: str
    answer: Any
    verdict: Verdict | None
    failure: Failure | None

    def as_dict(self) -> dict[str, Any]:
        """The judgement for JSON."""
        verdict = self.verdict
        return {
            "task": self.task,
            "version": self.version,
            "model": self.model,
            "prompt": self.prompt,
            "answer": self.answer,
            "verdict": verdict.model_dump() if isinstance(verdict, BaseModel) else verdict,
            **why(self.failure),
        }


def answer_key(model: str, task: str, version: int, prompt: str) -> str:
    """By what an answer is known again: a UUID of the model's name, the task and the prompt."""
    return stable_uuid(model, task, str(version), prompt)


def chosen(answer: str | BaseModel, choices: Mapping[str, Verdict]) -> Verdict:
    """Which of a few words an answer is.

    Of a structured answer, its field `verdict`. In plain text, case, punctuation and a label before
    the word are passed over; anything else beside it is not, as "not true" is no "true".

    Raises: ValueError for an answer that is none of them.

    >>> chosen("**Answer:** true.", {"true": 1, "false": 0})
    1
    """
    said = str(getattr(answer, "verdict", answer))
    for word, verdict in choices.items():
        if re.fullmatch(rf"{_LABEL}{re.escape(word)}{_MARKS}", said, re.IGNORECASE):
            return verdict
    raise ValueError(f"it is none of {', '.join(choices)}")


def counted(failures: Iterable[Failure | None]) -> dict[str, int]:
    """How often each reason occurs, the commonest first."""
    reasons = Counter(failure.reason for failure in failures if failure is not None)
    return dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])))


def listed(heading: str, counts: Mapping[str, int]) -> str:
    """Counts as lines of a report, below a line."""
    return "".join(f"\n  {heading}: {reason} ({count})" for reason, count in counts.items())


def why(failure: Failure | None) -> dict[str, str | None]:
    """A failure, or that there is none, as fields of a JSON line."""
    if failure is None:
        return {"reason": None, "error": None}
    return {"reason": failure.reason, "error": failure.detail}


def write_lines(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines, in ASCII, so that lone surrogates survive."""
    lines = [json.dumps(row, sort_keys=True) + "\n" for row in rows]
    Path(path).write_text("".join(lines), encoding="ascii", newline="\n")
