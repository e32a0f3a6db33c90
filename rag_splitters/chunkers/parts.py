"""Parts of texts that other chunkers cut; each chunker plans all of its parts at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rag_splitters.contract.chunker import Chunker, plan_each
from rag_splitters.span import Source, Span
from rag_splitters.structure.stored_outline import outline_of_part
from rag_splitters.text.excerpt import Excerpt


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text that another chunker cuts; its chunks inherit the properties of its span."""

    chunker: Chunker
    excerpt: Excerpt
    span: Span


Parts: TypeAlias = "list[Span | Part]"
"""A text as a sequence of finished chunks and of parts that other chunkers cut."""


async def plan_parts(sources: Sequence[Source], parts: Sequence[Parts]) -> list[list[Span]]:
    """Let the chunkers of the parts cut them, and return all chunks of each source."""
    inner: list[tuple[Chunker, Source]] = []
    for source, own in zip(sources, parts, strict=True):
        for part in own:
            if isinstance(part, Part):
                metadata = outline_of_part(source.metadata, part.span.start, part.span.end)
                metadata = {**metadata, **part.span.to_metadata()}
                text = source.part(part.excerpt.text, part.span.start, metadata)
                inner.append((part.chunker, text))
    plans = iter(await plan_each([chunker for chunker, _ in inner], [text for _, text in inner]))
    results = []
    for source, own in zip(sources, parts, strict=True):
        spans: list[Span] = []
        for part in own:
            if isinstance(part, Span):
                spans.append(part)
                continue
            pieces = part.excerpt.spans(next(plans), source.text)
            first = len(spans)
            spans += [piece.within(part.span, first) for piece in pieces]
        results.append(in_order(spans))
    return results


def in_order(spans: list[Span]) -> list[Span]:
    """Sort spans by their starts: an image may be in the middle of its sentence's span."""
    order = sorted(range(len(spans)), key=lambda index: spans[index].start)
    places = {index: place for place, index in enumerate(order)}
    for span in spans:
        if span.parent is not None:
            span.parent = places[span.parent]
    return [spans[index] for index in order]
