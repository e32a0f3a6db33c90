"""The passages that a model is shown, to write facts and questions about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rag_splitters.chunker import Chunker
from rag_splitters.chunkers.recursive import RecursiveChunker
from rag_splitters.evaluation.judging.answers import Failure
from rag_splitters.models.fields import check_count

__all__ = ["Passage", "Rejected", "passages_of"]


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
            "reason": self.failure.reason,
            "error": self.failure.detail,
        }


def passages_of(
    documents: Mapping[str, str], chunker: Chunker | None, every: int | Callable[[str], int]
) -> list[Passage]:
    """The passages of documents, by their positions; those that nothing is wanted of are left out.

    Parameters:
        documents: texts by name.
        chunker: what cuts them; None: at paragraphs, into 2,000 characters. A passage is the source
            between a chunk's positions, whatever the chunker writes.
        every: how much to write: one thing for so many characters of a passage, and at least one;
            or a function passage -> number.

    >>> [(each.start, each.wanted) for each in passages_of({"a": "x" * 2500}, None, 500)]
    [(0, 4), (2000, 1)]
    """
    if not callable(every):
        check_count(every, "every", 1)
    cut = chunker or RecursiveChunker(chunk_size=2000, chunk_overlap=0)
    found = []
    spans = cut.spans_many(documents.values())
    for (name, text), parts in zip(documents.items(), spans, strict=True):
        for span in parts:
            shown = text[span.start : span.end]
            number = every(shown) if callable(every) else max(1, len(shown) // every)
            if number > 0 and shown.strip():
                found.append(Passage(name, span.start, span.end, shown, number))
    return found
