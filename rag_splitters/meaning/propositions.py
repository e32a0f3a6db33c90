"""Propositions: reads and checks a chat model's answer about a passage."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import BaseModel, Field

from rag_splitters.errors import InputError
from rag_splitters.text.lines import LINE_BREAK

_LINE = re.compile(r"(?:[-*•][ \t]+)?(\[?\d[\d \t,;\[\]–-]*):[ \t]*(\S.*)")
_DASH = re.compile(r" ?[-–] ?")
_NUMBERS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


class Proposition(BaseModel):
    """A statement, and the sentences that it is made from."""

    evidence: list[int] = Field(description="The numbers of the sentences that it is made from.")
    text: str = Field(description="One statement that can be understood without the passage.")


class Propositions(BaseModel):
    """A passage as propositions."""

    propositions: list[Proposition]


@dataclass(frozen=True, slots=True)
class Passage:
    """Sentences of a text, by their (start, end), which the model sees together."""

    number: int
    sentences: list[tuple[int, int]]

    def place(self) -> str:
        """Name the passage in a message."""
        start, end = self.sentences[0][0], self.sentences[-1][1]
        return f"passage {self.number} (characters {start} to {end})"

    def read(self, answer: str | BaseModel) -> list[Proposition]:
        """Return the answer's propositions, checked."""
        if isinstance(answer, Propositions):
            propositions = answer.propositions
        else:
            propositions = propositions_in(str(answer))
        for index, proposition in enumerate(propositions, 1):
            if not proposition.text.strip():
                raise InputError(f"proposition {index} has no text")
            if not proposition.evidence:
                raise InputError(f"proposition {index} names no sentence")
            for number in proposition.evidence:
                if not 1 <= number <= len(self.sentences):
                    raise InputError(
                        f"proposition {index} names sentence {number}, and there are 1 to "
                        f"{len(self.sentences)}"
                    )
        return propositions


def propositions_in(answer: str) -> list[Proposition]:
    """Return the propositions in an answer of plain text.

    Raises ValueError for any other line, so that nothing is silently ignored.

    >>> [(each.evidence, each.text) for each in propositions_in("1, 3-4: Tea is hot.")]
    [([1, 3, 4], 'Tea is hot.')]
    """
    if answer.strip().rstrip(".").lower() == "none":
        return []
    propositions = []
    for line in map(str.strip, LINE_BREAK.split(answer)):
        if not line or line.startswith("```"):
            continue
        match = _LINE.fullmatch(line)
        if not match:
            raise InputError(f'{line[:40]!r} is not a line like "3-4: text"')
        propositions.append(Proposition(evidence=_evidence(match.group(1)), text=match.group(2)))
    return propositions


def _evidence(numbers: str) -> list[int]:
    """Return the numbers in "1, 3-4"."""
    plain = _DASH.sub("-", numbers.replace("[", "").replace("]", ""))
    sentences: list[int] = []
    for part in plain.replace(",", " ").replace(";", " ").split():
        match = _NUMBERS.fullmatch(part)
        first, last = (
            (int(match.group(1)), int(match.group(2) or match.group(1))) if match else (1, 0)
        )
        if last < first or last - first > 10_000:
            raise InputError(f"{numbers!r} is not a list of sentence numbers")
        sentences += range(first, last + 1)
    return sentences
