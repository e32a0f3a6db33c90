"""Facts: statements that are known to be true or false."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_splitters.evaluation.judging.answers import listed, write_lines
from rag_splitters.evaluation.judging.passages import Written

__all__ = ["Fact", "Facts", "read_facts"]


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement that is known to be true or false.

    Parameters:
        statement: the statement.
        is_true: is it true by the passage?
        document: the name of the passage's document.
        start: where the passage begins.
        end: where the passage ends.
    """

    statement: str
    is_true: bool
    document: str = ""
    start: int = 0
    end: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The fact for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts(Written):
    """Facts that a model wrote about passages, and an account of what it wrote besides.

    Parameters: see `Written`, and

        facts: the statements to be used.
    """

    facts: tuple[Fact, ...]

    def __str__(self) -> str:
        true = sum(fact.is_true for fact in self.facts)
        return (
            f"{len(self.facts)} facts of {self.wanted} asked for, about {self.passages} passages: "
            f"{true} true, {len(self.facts) - true} false{listed('rejected', self.reasons)}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Facts and account for JSON."""
        return {**self.account(), "facts": [each.as_dict() for each in self.facts]}

    def export(self, path: str | Path) -> None:
        """Write the facts as JSON lines, which `read_facts` reads; edit them as you like."""
        write_lines(path, (fact.as_dict() for fact in self.facts))


def read_facts(path: str | Path) -> list[Fact]:
    """The facts that `Facts.export` wrote, or your own: JSON lines with `statement` and `is_true`.

    Raises: ValueError, which names the line, for a line that is no fact.
    """
    found = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            fact = Fact(**json.loads(line))
            if not fact.statement.strip() or not isinstance(fact.is_true, bool):
                raise ValueError("statement must be text, and is_true true or false")
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}, line {number} is no fact: {error}") from None
        found.append(fact)
    return found
