"""Parts of texts that go to different chunkers, each asked once for all of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from rag_splitters.chunker import Chunker
from rag_splitters.span import Span
from rag_splitters.tables.excerpt import Excerpt

__all__ = ["Part", "Routed", "aroute", "route"]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text that a chunker cuts.

    Parameters:
        chunker: the chunker.
        excerpt: the part's text, with positions.
        metadata: what its chunks know beside what the chunker adds.
    """

    chunker: Chunker
    excerpt: Excerpt
    metadata: Mapping[str, Any] = field(default_factory=dict)


Routed: TypeAlias = "list[Span | Part]"
"""A text's chunks that are ready, and its parts that are not, in order."""


def route(
    texts: Sequence[str], metadatas: Sequence[Mapping[str, Any]], plans: Sequence[Routed]
) -> list[list[Span]]:
    """The chunks of every text by its plan."""
    requests = _requests(metadatas, plans)
    answers = [each.chunker.spans_of_documents(each.texts, each.metadatas) for each in requests]
    return _placed(texts, plans, requests, answers)


async def aroute(
    texts: Sequence[str], metadatas: Sequence[Mapping[str, Any]], plans: Sequence[Routed]
) -> list[list[Span]]:
    """`route` without blocking the event loop, where the chunkers can do without."""
    requests = _requests(metadatas, plans)
    answers = [
        await each.chunker.aspans_of_documents(each.texts, each.metadatas) for each in requests
    ]
    return _placed(texts, plans, requests, answers)


@dataclass(slots=True)
class _Request:
    """All that one chunker is asked."""

    chunker: Chunker
    texts: list[str] = field(default_factory=list)
    metadatas: list[Mapping[str, Any]] = field(default_factory=list)


def _requests(metadatas: Sequence[Mapping[str, Any]], plans: Sequence[Routed]) -> list[_Request]:
    requests: dict[int, _Request] = {}
    for known, plan in zip(metadatas, plans, strict=True):
        for part in plan:
            if isinstance(part, Part):
                request = requests.setdefault(id(part.chunker), _Request(part.chunker))
                request.texts.append(part.excerpt.text)
                request.metadatas.append(known)
    return list(requests.values())


def _placed(
    texts: Sequence[str],
    plans: Sequence[Routed],
    requests: Sequence[_Request],
    answers: Sequence[Sequence[list[Span]]],
) -> list[list[Span]]:
    """The answers in the places of the parts that they answer, as spans of the whole text."""
    pairs = zip(requests, answers, strict=True)
    waiting = {id(request.chunker): iter(answer) for request, answer in pairs}
    results = []
    for text, plan in zip(texts, plans, strict=True):
        spans: list[Span] = []
        for part in plan:
            if isinstance(part, Span):
                spans.append(part)
                continue
            spans.extend(
                replace(span, metadata={**span.metadata, **part.metadata})
                for span in part.excerpt.spans(next(waiting[id(part.chunker)]), text)
            )
        results.append(sorted(spans, key=lambda span: span.start))
    return results
