"""What a strategy does to a text, as the page draws it: the chunks, and figures about them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from statistics import median
from typing import Any

from rag_splitters.chunker import Chunker, SizedChunker
from rag_splitters.span import Span
from rag_splitters.text.sentences import sentence_spans
from rag_splitters.text.sizing import sizer
from rag_splitters.text.sources import added_metadata

__all__ = ["MOST_CHUNKS", "chunked"]

MOST_CHUNKS = 20_000
"""The most chunks that are handed to the page; figures are about all of them."""


def chunked(chunker: Chunker, text: str) -> dict[str, Any]:
    """The chunks of a text, with their sizes in the strategy's own unit, and figures.

    Parameters:
        chunker: the strategy.
        text: the text.

    Returns: `chunks`, each with start and end (code points), size, metadata, and where they apply
    `content` (what is delivered in the place of the text), `begins_inside` and `ends_inside` (a
    sentence is cut there); `unit`; and `figures`: counts, sizes, the characters that are in two
    chunks or in none, and the milliseconds that the strategy took.

    >>> from rag_splitters import SentenceChunker
    >>> found = chunked(SentenceChunker(chunk_size=8), "One two. Three.")
    >>> [(each["start"], each["end"], each["size"]) for each in found["chunks"]]
    [(0, 8, 8), (9, 15, 6)]
    >>> found["figures"]["repeated"], found["figures"]["dropped"]
    (0, 0)
    """
    began = time.perf_counter()
    spans = chunker.spans(text)
    taken = time.perf_counter() - began
    unit = _unit(chunker)
    sizes = _sizes(spans, text, unit)
    starts, ends = _sentence_edges(text)
    rows, begun, ended = [], 0, 0
    for number, (span, size) in enumerate(zip(spans, sizes, strict=True)):
        part = text[span.start : span.end]
        inner = part.strip()
        first = span.start + len(part) - len(part.lstrip())
        begins, finishes = first in starts, first + len(inner) in ends
        begun += bool(inner) and not begins
        ended += bool(inner) and not finishes
        if number < MOST_CHUNKS:
            row: dict[str, Any] = {"start": span.start, "end": span.end, "size": size}
            row |= {"metadata": added_metadata(span.metadata)}
            row |= {} if span.content is None else {"content": span.content}
            row |= {"begins_inside": True} if inner and not begins else {}
            row |= {"ends_inside": True} if inner and not finishes else {}
            rows.append(row)
    figures: dict[str, Any] = {
        "chunks": len(spans),
        "least": min(sizes, default=0),
        "median": median(sizes) if sizes else 0,
        "most": max(sizes, default=0),
        "begins_inside": begun,
        "ends_inside": ended,
        "milliseconds": round(1000 * taken, 2),
        **_coverage(spans, text),
    }
    return {"chunks": rows, "unit": unit, "rewrites": chunker.rewrites, "figures": figures}


def _unit(chunker: Chunker) -> str:
    """The unit of a strategy, or of the last chunker within it; else characters."""
    if isinstance(chunker, SizedChunker):
        return str(chunker.length_function)
    for value in reversed(list(chunker.__dict__.values())):
        for inner in reversed(value if isinstance(value, tuple) else (value,)):
            if isinstance(inner, Chunker):
                return _unit(inner)
    return "characters"


def _sizes(spans: Sequence[Span], text: str, unit: str) -> list[int]:
    """The size of each chunk as it is delivered; the text itself is measured once."""
    measured = sizer(unit)
    whole = measured(text).length
    return [
        whole(span.start, span.end)
        if span.content is None
        else measured(span.content).length(0, len(span.content))
        for span in spans
    ]


@lru_cache(maxsize=4)
def _sentence_edges(text: str) -> tuple[frozenset[int], frozenset[int]]:
    """Where sentences begin and end; the same for every strategy and setting."""
    found = sentence_spans(text)
    return frozenset(start for start, _ in found), frozenset(end for _, end in found)


def _coverage(spans: Sequence[Span], text: str) -> dict[str, int]:
    """How many characters there are, are in more than one chunk, and visible ones in none."""
    reach = covered = dropped = 0
    for start, end in sorted((span.start, span.end) for span in spans):
        if start > reach:
            dropped += _visible(text[reach:start])
        covered += max(0, end - max(start, reach))
        reach = max(reach, end)
    dropped += _visible(text[reach:])
    repeated = sum(span.end - span.start for span in spans) - covered
    return {"characters": len(text), "repeated": repeated, "dropped": dropped}


def _visible(text: str) -> int:
    return sum(map(len, text.split()))
