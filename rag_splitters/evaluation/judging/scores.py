"""Scores that a judge gave to what was retrieved, question by question, and their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag_splitters.evaluation.intervals import Estimate, mean_score, percent
from rag_splitters.evaluation.judging.answers import Failure, counted, listed, why, write_lines
from rag_splitters.evaluation.questions import Question

__all__ = ["QuestionScore", "ScoreReport", "question_texts"]


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """What one question scored.

    Parameters:
        question: the question.
        texts: what was retrieved for it, best first.
        verdicts: of each text, or of each judge; None where the model failed.
        score: from 0 to 1; None where it cannot be told.
        failure: why there is no score.
    """

    question: str
    texts: tuple[str, ...]
    verdicts: tuple[int | None, ...]
    score: float | None
    failure: Failure | None = None

    def as_dict(self) -> dict[str, Any]:
        """The score for JSON."""
        return {
            "question": self.question,
            "texts": self.texts,
            "verdicts": self.verdicts,
            "score": self.score,
            **why(self.failure),
        }


@dataclass(frozen=True, slots=True)
class ScoreReport:
    """A judged figure over questions.

    Parameters:
        figure: what was judged.
        model: the judge's stable name.
        scores: one for each question, in their order.
    """

    figure: str
    model: str
    scores: tuple[QuestionScore, ...]

    @property
    def score(self) -> Estimate | None:
        """The mean over the questions that have a score."""
        return mean_score([each.score for each in self.scores if each.score is not None])

    @property
    def empty(self) -> int:
        """For how many questions nothing was retrieved; they score 0."""
        return sum(each.failure is None and not each.texts for each in self.scores)

    @property
    def partial(self) -> int:
        """How many scores stand on a part of their verdicts, as the model failed on the others."""
        return sum(each.failure is None and None in each.verdicts for each in self.scores)

    @property
    def failures(self) -> dict[str, int]:
        """How many questions have no score, by the reason."""
        return counted(each.failure for each in self.scores)

    def __str__(self) -> str:
        failed = listed("failed", self.failures)
        empty = f"\n  nothing retrieved ({self.empty})" if self.empty else ""
        partial = f"\n  by a part of the verdicts ({self.partial})" if self.partial else ""
        return f"{self.figure}: {percent(self.score)}{empty}{partial}{failed}"

    def as_dict(self) -> dict[str, Any]:
        """Figures and counts for JSON."""
        return {
            "figure": self.figure,
            "model": self.model,
            "score": self.score and asdict(self.score),
            "questions": len(self.scores),
            "empty": self.empty,
            "partial": self.partial,
            "failures": self.failures,
        }

    def export(self, path: str | Path) -> None:
        """Write JSON lines: one for each question, with what was retrieved and the verdicts."""
        write_lines(path, (each.as_dict() for each in self.scores))


def question_texts(questions: Sequence[str | Question]) -> list[str]:
    """The questions' texts.

    Raises: ValueError for a blank question, TypeError for a single text in the place of many.
    """
    if isinstance(questions, str):
        raise TypeError(f"questions must be a list of questions, got the text {questions[:60]!r}")
    texts = [each.text if isinstance(each, Question) else each for each in questions]
    for number, text in enumerate(texts):
        if not text.strip():
            raise ValueError(f"question {number} is blank")
    return texts
