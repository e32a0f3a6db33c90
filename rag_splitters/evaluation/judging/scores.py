"""Judged scores: of each question, and their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_splitters.evaluation.intervals import Estimate, mean_score, percent
from rag_splitters.evaluation.judging.judge import (
    Failure,
    Row,
    count_reasons,
    reasons_text,
    write_lines,
)
from rag_splitters.evaluation.questions import Question


@dataclass(frozen=True, slots=True)
class QuestionScore(Row):
    """The score of one question.

    Parameters:
        question: the question.
        texts: the retrieved texts, the best first.
        verdicts: one for each text or each judging role; None if the model failed.
        score: from 0 to 1; None if there is none.
        failure: why there is no score.
    """

    question: str
    texts: tuple[str, ...]
    verdicts: tuple[int | None, ...]
    score: float | None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ScoreReport:
    """A judged metric over questions.

    Parameters:
        metric: the name of the metric.
        model: the judge's stable name.
        scores: one for each question, in order.
    """

    metric: str
    model: str
    scores: tuple[QuestionScore, ...]

    @property
    def score(self) -> Estimate | None:
        """The mean of all scores."""
        return mean_score([each.score for each in self.scores if each.score is not None])

    @property
    def empty(self) -> int:
        """The number of questions for which nothing was retrieved; they score 0."""
        return sum(each.failure is None and not each.texts for each in self.scores)

    @property
    def partial(self) -> int:
        """The number of scores without all verdicts, because the model failed on some."""
        return sum(each.failure is None and None in each.verdicts for each in self.scores)

    @property
    def failures(self) -> dict[str, int]:
        """The number of questions without a score, by reason."""
        return count_reasons(each.failure for each in self.scores)

    def __str__(self) -> str:
        failed = reasons_text("failed", self.failures)
        empty = f"\n  nothing retrieved ({self.empty})" if self.empty else ""
        partial = f"\n  only some verdicts ({self.partial})" if self.partial else ""
        return f"{self.metric}: {percent(self.score)}{empty}{partial}{failed}"

    def as_dict(self) -> dict[str, Any]:
        """The score and the counts for JSON."""
        return {
            "metric": self.metric,
            "model": self.model,
            "score": self.score and self.score._asdict(),
            "questions": len(self.scores),
            "empty": self.empty,
            "partial": self.partial,
            "failures": self.failures,
        }

    def export(self, path: str | Path) -> None:
        """Write JSON lines: one for each question, with the retrieved texts and the verdicts."""
        write_lines(path, (each.as_dict() for each in self.scores))


def question_texts(questions: Sequence[str | Question]) -> list[str]:
    """The questions' texts.

    Raises: ValueError if a question is blank; TypeError for a single string.
    """
    if isinstance(questions, str):
        raise TypeError(f"questions must be a list of questions, got the text {questions[:60]!r}")
    texts = [each.text if isinstance(each, Question) else each for each in questions]
    for number, text in enumerate(texts):
        if not text.strip():
            raise ValueError(f"question {number} is blank")
    return texts
