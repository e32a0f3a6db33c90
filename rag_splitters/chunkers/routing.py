"""Parts of texts that go to different chunkers, each asked once for all of its parts."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from rag_splitters.chunker import Chunker
from rag_splitters.span import Span
from rag_splitters.text.excerpt import Excerpt

__all__ = ["Part", "Routed", "RoutingChunker"]


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


class RoutingChunker(Chunker):
    """A chunker that hands parts of a text to other chunkers, each asked once about all texts."""

    @abstractmethod
    def plan(self, text: str) -> Routed:
        """The chunks of a text and the parts that others cut, in order."""

    def spans(self, text: str) -> list[Span]:
        return self.spans_of_documents([text], [{}])[0]

    def spans_many(self, texts: Iterable[str]) -> list[list[Span]]:
        known = list(texts)
        return self.spans_of_documents(known, [{}] * len(known))

    def spans_of_documents(
        self, texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]]
    ) -> list[list[Span]]:
        known = list(texts)
        plans = [self.plan(text) for text in known]
        requests = _requests(metadatas, plans)
        answers = [each.chunker.spans_of_documents(each.texts, each.metadatas) for each in requests]
        return _placed(known, plans, requests, answers)

    async def aspans_many(self, texts: Iterable[str]) -> list[list[Span]]:
        known = list(texts)
        return await self.aspans_of_documents(known, [{}] * len(known))

    async def aspans_of_documents(
        self, texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]]
    ) -> list[list[Span]]:
        known = list(texts)
        plans = await asyncio.to_thread(lambda: [self.plan(text) for text in known])
        requests = _requests(metadatas, plans)
        answers = [
            await each.chunker.aspans_of_documents(each.texts, each.metadatas) for each in requests
        ]
        return await asyncio.to_thread(_placed, known, plans, requests, answers)


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
