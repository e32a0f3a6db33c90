"""What a judged run reports: one kind of record, scores over records, and generated test data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from rag_splitters.errors import InputError
from rag_splitters.evaluation.judge.judge import Failure
from rag_splitters.evaluation.measure.questions import Question, read_lines
from rag_splitters.evaluation.measure.uncertainty import Estimate, mean_score

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What came of one question, statement or passage.

    Parameters:
        text: the question or statement; empty if a model failed on a whole passage.
        score: from 0 to 1; None if there is none.
        failure: why there is no score, or why the text is not used.
        texts: the texts that were retrieved for it, the best first.
        verdicts: the model's verdicts; None for one on which it failed.
        explanations: its reasons for them.
        group: the group in which it is scored as well, if there are groups.
        document: the name of the document that it is about, if it is known.
        start: where the passage that it is about begins.
        end: where the passage ends.
    """

    text: str
    score: float | None = None
    failure: Failure | None = None
    texts: tuple[str, ...] = ()
    verdicts: tuple[int | None, ...] = ()
    explanations: tuple[str | None, ...] = ()
    group: str = ""
    document: str = ""
    start: int = 0
    end: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON; a failure becomes `reason` and `error`, else None."""
        row = {each.name: getattr(self, each.name) for each in fields(self)}
        failure = row.pop("failure")
        return row | {"reason": failure and failure.reason, "error": failure and failure.detail}


@dataclass(frozen=True, slots=True)
class ScoreReport:
    """A judged metric over questions or facts.

    If the model failed on one of its prompts, or the retriever failed, a record has no score, and
    is counted in `failures` by reason.

    Parameters:
        metric: the name of the metric.
        model: the judge's stable name.
        records: one for each question or fact, in order.
    """

    metric: str
    model: str
    records: tuple[Record, ...]

    @property
    def score(self) -> Estimate | None:
        """The mean of all scores, with its interval."""
        return mean_score([each.score for each in self.records if each.score is not None])

    @property
    def groups(self) -> dict[str, Estimate | None]:
        """The mean score of each group, such as "true facts"."""
        scores: dict[str, list[float]] = {}
        for each in self.records:
            scores.setdefault(each.group, []).extend(() if each.score is None else [each.score])
        return {group: mean_score(values) for group, values in scores.items() if group}

    @property
    def empty(self) -> int:
        """The number of records that score 0 because nothing was retrieved."""
        return sum(each.failure is None and not each.texts for each in self.records)

    @property
    def failures(self) -> dict[str, int]:
        """The number of records without a score, by reason."""
        return _count_reasons(self.records)

    def __str__(self) -> str:
        scores = {self.metric: self.score, **self.groups}
        lines = [
            f"{name}: {score.percent() if score else 'no score'}" for name, score in scores.items()
        ]
        lines += [f"nothing retrieved ({self.empty})"] if self.empty else []
        lines += [f"failed: {reason} ({count})" for reason, count in self.failures.items()]
        return "\n  ".join(lines)

    def export(self, path: str | Path) -> None:
        """Write JSON lines: one for each record, with texts, verdicts and explanations."""
        _write_lines(path, (each.as_dict() for each in self.records))


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement that is known to be true or false.

    Parameters:
        statement: the statement.
        is_true: whether it is true according to the passage.
        document: the name of the passage's document.
        start: where the passage begins.
        end: where the passage ends.
    """

    statement: str
    is_true: bool
    document: str = ""
    start: int = 0
    end: int = 0


class Generated(list[Item]):
    """A list of questions or facts that a model wrote, with an account of what else it wrote.

    Parameters:
        items: those that can be used.
        rejected: those that cannot be used, and why.
        passages: number of passages that the model was shown.
        requested: number of items that it was asked for.
    """

    def __init__(
        self, items: Iterable[Item], rejected: Sequence[Record], passages: int, requested: int
    ) -> None:
        super().__init__(items)
        self.rejected, self.passages, self.requested = rejected, passages, requested

    @property
    def reasons(self) -> dict[str, int]:
        """The number of rejected items and passages, by reason."""
        return _count_reasons(self.rejected)

    def __str__(self) -> str:
        lines = [f"{len(self)} of {self.requested} requested, about {self.passages} passages"]
        lines += [f"rejected: {reason} ({count})" for reason, count in self.reasons.items()]
        return "\n  ".join(lines)

    def export(self, path: str | Path) -> None:
        """Write the items as JSON lines, for `read_questions` or `read_facts`."""
        _write_lines(path, map(_row, self))


def _row(item: Any) -> dict[str, Any]:
    """Return a fact or a question as a line of JSON."""
    if not isinstance(item, Question):
        return asdict(item)
    references = [{"start": start, "end": end} for start, end in item.references]
    return {"question": item.text, "document": item.document, "references": references}


def _write_lines(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines, in ASCII, so that lone surrogates survive."""
    lines = [json.dumps(row, sort_keys=True) + "\n" for row in rows]
    Path(path).write_text("".join(lines), encoding="ascii", newline="\n")


def _count_reasons(records: Iterable[Record]) -> dict[str, int]:
    """Return how often each reason of a failure occurs, the most frequent first."""
    reasons = Counter(each.failure.reason for each in records if each.failure is not None)
    return dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])))


def read_facts(path: str | Path) -> list[Fact]:
    """Read facts, your own or exported ones: JSON lines with `statement` and `is_true`.

    Raises: ValueError that names all lines that are not facts.
    """
    return read_lines(path, _fact)


def _fact(line: str) -> Fact:
    try:
        fact = Fact(**json.loads(line))
        if not fact.statement.strip() or not isinstance(fact.is_true, bool):
            raise InputError("statement must be text, and is_true true or false")
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"this is not a fact: {error}") from None
    return fact
