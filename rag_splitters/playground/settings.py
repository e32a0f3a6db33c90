"""What is set on the page: the text, the strategies and the question, which its URL holds too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from rag_splitters.playground.fields import read_strategy, sizes_of, write_fields
from rag_splitters.playground.texts import Text, Texts
from rag_splitters.reading.samples import SAMPLE_ANSWERS, SAMPLE_QUESTIONS

LETTERS = ("a", "b")
TABS = {
    "chunk": "Chunk",
    "langchain": "LangChain",
    "llama_index": "LlamaIndex",
    "python": "Python",
}
_MAX_K = 50
_MAX_URL = 8_000  # characters; servers and browsers refuse much longer ones


@dataclass(frozen=True)
class Side:
    """One of the two strategies.

    Parameters:
        values: the parameters that differ from their defaults, as JSON.
        chunk: the number of the chunk whose details are shown, or None.
        tab: what is shown below the text: that chunk, or code.
        is_linked: whether the settings came with a link, and the user has changed nothing.
        is_open: whether a narrow page shows the form.
    """

    letter: str
    strategy: str = "auto"
    values: Mapping[str, Any] = field(default_factory=dict)
    chunk: int | None = None
    tab: str = "chunk"
    is_linked: bool = False
    is_open: bool = False

    @classmethod
    def read(cls, fields: Mapping[str, str], letter: str) -> Side:
        """Read the fields of a side. Raises RagSplittersError if a strategy is unknown."""
        strategy, values = read_strategy(fields, letter)
        tab = fields.get(f"{letter}-tab", "chunk")
        return cls(
            letter,
            strategy,
            values,
            _whole_number(fields.get(f"{letter}-chunk")),
            tab if tab in TABS else "chunk",
            bool(fields.get(f"{letter}-linked")),
            bool(fields.get(f"{letter}-open")),
        )


@dataclass(frozen=True)
class Settings:
    """Everything but the strategies.

    Parameters:
        start: the first code point of the text that is shown, if the text is long.
        answer: where the answer to the question is, if that is known.
    """

    text: Text
    question: str = ""
    k: int = 3
    start: int = 0
    answer: tuple[int, int] | None = None

    @classmethod
    def read(cls, fields: Mapping[str, str], texts: Texts) -> Settings:
        """Read the fields. Raises RagSplittersError if there is no such text."""
        text = texts.get(fields["text"]) if fields.get("text") else texts.first
        question = fields.get("q", "")
        k = _whole_number(fields.get("k")) or 3
        start = min(_whole_number(fields.get("from")) or 0, len(text.text))
        answer = _sample_answer(question, text.text) or _range(fields.get("answer", ""))
        return cls(text, question, min(k, _MAX_K), start, answer)


def link(settings: Settings, sides: Sequence[Side]) -> str | None:
    """Return the page's URL with these settings, or None if it would be too long."""
    fields = {"text": settings.text.key}
    for side in sides:
        fields |= write_fields(side.strategy, side.values, side.letter)
    if settings.question:
        fields["q"] = settings.question
    if settings.k != 3:
        fields["k"] = str(settings.k)
    url = f"?{urlencode(fields, errors='replace')}"
    return url if len(url) <= _MAX_URL else None


def changed_fields(fields: Mapping[str, str]) -> Mapping[str, str]:
    """Return the fields after a button was pressed that resets or closes a side."""
    letter = fields.get("reset") or fields.get("close")
    own = {key for key in fields if key.startswith(f"{letter}.")} | {fields.get("close")}
    return {key: text for key, text in fields.items() if key not in own}


def second_side(first: Side) -> Side:
    """Return the strategy to compare another one with at first: one of the same sizes."""
    strategy = "recursive" if first.strategy == "sentence" else "sentence"
    return Side("b", strategy, sizes_of(first.strategy, first.values))


def _whole_number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 12 else None


def _range(text: str) -> tuple[int, int] | None:
    start, end = map(_whole_number, (text.partition("-")[0], text.partition("-")[2]))
    return (start, end) if start is not None and end is not None and start < end else None


def _sample_answer(question: str, text: str) -> tuple[int, int] | None:
    """Return where the answer to one of the sample questions is."""
    answers = dict(zip(SAMPLE_QUESTIONS, SAMPLE_ANSWERS, strict=True))
    start = text.find(answers[question]) if question in answers else -1
    return None if start < 0 else (start, start + len(answers[question]))
