"""The passages that a model is shown, to write facts and questions about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rag_splitters.chunker import Chunker
from rag_splitters.chunkers.recursive import RecursiveChunker
from rag_splitters.evaluation.judging.answers import Failure, counted, why
from rag_splitters.fields import whole_number
from rag_splitters.span import Source, Span

__all__ = ["Every", "Passage", "Rejected", "Written", "apassages_of", "passages_of"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document.

    Parameters:
        document: the document's name.
        start: offset of its first code point.
        end: offset after its last code point.
        text: the document's text from `start` to `end`.
        wanted: how many things the model is to write about it.
    """

    document: str
    start: int
    end: int
    text: str
    wanted: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """Something that a model wrote, or a passage that it failed on, and why it is not used.

    Parameters:
        document: the document's name.
        start: where the passage begins.
        end: where the passage ends.
        text: what the model wrote; empty where it failed on the whole passage.
        failure: why it is not used.
    """

    document: str
    start: int
    end: int
    text: str
    failure: Failure

    @classmethod
    def of(cls, passage: Passage, text: str, failure: Failure) -> Rejected:
        """What a model wrote about a passage."""
        return cls(passage.document, passage.start, passage.end, text, failure)

    def as_dict(self) -> dict[str, Any]:
        """What was rejected, for JSON."""
        return {
            "document": self.document,
            "start": self.start,
            "end": self.end,
            "text": self.text,
            **why(self.failure),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An account of what a model wrote about passages.

    Parameters:
        rejected: what cannot be used, and why.
        passages: how many passages the model was shown.
        wanted: how many things it was asked for.
    """

    rejected: tuple[Rejected, ...]
    passages: int
    wanted: int

    @property
    def reasons(self) -> dict[str, int]:
        """How many things and passages were rejected, by the reason."""
        return counted(each.failure for each in self.rejected)

    def account(self) -> dict[str, Any]:
        """The account for JSON."""
        return {
            "passages": self.passages,
            "wanted": self.wanted,
            "reasons": self.reasons,
            "rejected": [each.as_dict() for each in self.rejected],
        }


Every: TypeAlias = "int | Callable[[str], int]"
"""How much to write: one thing for so many characters of a passage, and at least one; or a function
from the passage to the number."""


def passages_of(
    documents: Mapping[str, str], chunker: Chunker | None, every: Every
) -> list[Passage]:
    """The passages of documents, by their positions; those that nothing is wanted of are left out.

    Parameters:
        documents: texts by name.
        chunker: what cuts them; None: at paragraphs, into 2,000 characters. A passage is the source
            between a chunk's positions, whatever the chunker writes.
        every: how much to write about each.

    >>> [(each.start, each.wanted) for each in passages_of({"a": "x" * 2500}, None, 500)]
    [(0, 4), (2000, 1)]
    """
    sources = [Source(text, number=number) for number, text in enumerate(documents.values())]
    return _passages(documents, list((chunker or _CHUNKER).split(sources)), every)


async def apassages_of(
    documents: Mapping[str, str], chunker: Chunker | None, every: Every
) -> list[Passage]:
    """`passages_of` without blocking the event loop."""
    sources = [Source(text, number=number) for number, text in enumerate(documents.values())]
    spans = [spans async for spans in (chunker or _CHUNKER).asplit(sources)]
    return _passages(documents, spans, every)


_CHUNKER = RecursiveChunker(chunk_size=2000, chunk_overlap=0)


def _passages(
    documents: Mapping[str, str], spans: Sequence[Sequence[Span]], every: Every
) -> list[Passage]:
    if not callable(every):
        whole_number(every, "every", 1)
    found = []
    for (name, text), parts in zip(documents.items(), spans, strict=True):
        for span in parts:
            shown = text[span.start : span.end]
            number = every(shown) if callable(every) else max(1, len(shown) // every)
            if number > 0 and shown.strip():
                found.append(Passage(name, span.start, span.end, shown, number))
    return found
