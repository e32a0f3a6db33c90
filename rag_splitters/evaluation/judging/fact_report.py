"""What came of facts: told right, told wrong, or not told at all."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag_splitters.evaluation.intervals import Estimate, percent, share
from rag_splitters.evaluation.judging.answers import Failure, counted, listed, why, write_lines
from rag_splitters.evaluation.judging.facts import Fact

__all__ = ["FactReport", "FactResult"]


@dataclass(frozen=True, slots=True)
class FactResult:
    """What the model made of one fact.

    Parameters:
        fact: the statement, and whether it is true.
        texts: what was retrieved for it, best first.
        answer: did the model say that it is true? None where it failed.
        failure: why there is no answer.
    """

    fact: Fact
    texts: tuple[str, ...]
    answer: bool | None
    failure: Failure | None = None

    @property
    def is_right(self) -> bool:
        """Did the model answer, and rightly?"""
        return self.answer is self.fact.is_true

    def as_dict(self) -> dict[str, Any]:
        """The result for JSON."""
        return {
            **self.fact.as_dict(),
            "texts": self.texts,
            "answer": self.answer,
            **why(self.failure),
        }


@dataclass(frozen=True, slots=True)
class FactReport:
    """How many facts the model told right, wrong, or not at all.

    Parameters:
        model: the judge's stable name.
        results: one for each fact, in their order.
    """

    model: str
    results: tuple[FactResult, ...]

    @property
    def right(self) -> int:
        """How many facts were told right: true ones as True, false ones as False."""
        return sum(each.is_right for each in self.results)

    @property
    def wrong(self) -> int:
        """How many facts were told wrong."""
        return len(self.results) - self.right - self.failed

    @property
    def failed(self) -> int:
        """How many facts there is no answer to."""
        return sum(each.answer is None for each in self.results)

    @property
    def failures(self) -> dict[str, int]:
        """How many facts there is no answer to, by the reason."""
        return counted(each.failure for each in self.results)

    @property
    def accuracy(self) -> Estimate | None:
        """The share of right answers among the answers; None of no answers.

        The interval takes the facts as independent of each other.
        """
        return share(self.right, self.right + self.wrong)

    @property
    def accuracy_of_true(self) -> Estimate | None:
        """The accuracy over the true facts: this is what retrieval earns."""
        return self._accuracy(True)

    @property
    def accuracy_of_false(self) -> Estimate | None:
        """The accuracy over the false facts; it is high, too, where nothing of use is retrieved."""
        return self._accuracy(False)

    def _accuracy(self, is_true: bool) -> Estimate | None:
        known = [each for each in self.results if each.fact.is_true is is_true]
        answered = [each.is_right for each in known if each.answer is not None]
        return share(sum(answered), len(answered))

    def __str__(self) -> str:
        return (
            f"{len(self.results)} facts: {self.right} right, {self.wrong} wrong, "
            f"{self.failed} failed{listed('failed', self.failures)}\n"
            f"  accuracy {percent(self.accuracy)}\n"
            f"  true facts {percent(self.accuracy_of_true)}\n"
            f"  false facts {percent(self.accuracy_of_false)}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Figures and counts for JSON."""
        figures = {
            "accuracy": self.accuracy,
            "accuracy_of_true": self.accuracy_of_true,
            "accuracy_of_false": self.accuracy_of_false,
        }
        return {
            "figure": "true/false facts",
            "model": self.model,
            "facts": len(self.results),
            "right": self.right,
            "wrong": self.wrong,
            "failed": self.failed,
            "failures": self.failures,
            **{name: figure and asdict(figure) for name, figure in figures.items()},
        }

    def export(self, path: str | Path) -> None:
        """Write JSON lines: one for each fact, with what was retrieved and the answer."""
        write_lines(path, (each.as_dict() for each in self.results))
