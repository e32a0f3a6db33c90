"""What a strategy does to a text, as the page draws it: chunks, and statistics about them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import median
from typing import Any

from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.sized import SizedChunker
from rag_splitters.evaluation.measure.chunks import LocatedChunk
from rag_splitters.evaluation.measure.faults import FAULTS, DocumentFaults, tiny
from rag_splitters.evaluation.measure.metrics import Range
from rag_splitters.span import Source, Span
from rag_splitters.structure.blocks import read_blocks
from rag_splitters.text.sizing import sizer

MAX_CHUNKS = 20_000
"""How many chunks are sent to the page; the statistics cover all of them."""


def show_chunks(chunker: Chunker, text: str, name: str = "") -> dict[str, Any]:
    """The chunks of a text with their sizes in the strategy's own unit, and statistics.

    Parameters:
        chunker: the strategy.
        text: the text.
        name: the name of its file, by which strategies may tell what kind of text it is.

    Returns: `chunks`, each with start and end (code points), size, metadata, and where they apply
    `content` (the text of a rewritten chunk), `begins_inside` and `ends_inside` (a sentence is cut
    there); `unit`; `monospace`, the ranges of tables and code; and `figures`: counts, sizes, the
    number of characters in several chunks and in none, the milliseconds that the strategy took, and
    how many chunks have each of the faults in `evaluation.measure.faults`.

    >>> from rag_splitters import SentenceChunker
    >>> shown = show_chunks(SentenceChunker(chunk_size=8), "One two. Three.")
    >>> [(each["start"], each["end"], each["size"]) for each in shown["chunks"]]
    [(0, 8, 8), (9, 15, 6)]
    >>> shown["figures"]["repeated"], shown["figures"]["dropped"]
    (0, 0)
    """
    start_time = time.perf_counter()
    (spans,) = chunker.split([Source(text, {"source": name} if name else {})])
    seconds = time.perf_counter() - start_time
    unit = _unit(chunker)
    sizes = _sizes(spans, text, unit)
    faults = document_faults(text, name)
    located = [LocatedChunk(each.text_of(text), name, (each.start, each.end)) for each in spans]
    flags = faults.flags(located) | {"tiny": tiny(sizes)}
    cuts = _sentence_cuts(faults.sentence_cuts([(span.start, span.end) for span in spans]))
    figures: dict[str, Any] = {
        "chunks": len(spans),
        "least": min(sizes, default=0),
        "median": median(sizes) if sizes else 0,
        "most": max(sizes, default=0),
        "begins_inside": sum("begins_inside" in each for each in cuts),
        "ends_inside": sum("ends_inside" in each for each in cuts),
        "faults": {fault: sum(flags[fault]) for fault in FAULTS},
        "milliseconds": round(1000 * seconds, 2),
        **_coverage(spans, text),
    }
    return {
        "chunks": list(map(_row, spans[:MAX_CHUNKS], sizes, cuts)),
        "unit": unit,
        "monospace": monospace_ranges(text, name),
        "figures": figures,
    }


@lru_cache(maxsize=4)
def document_faults(text: str, name: str = "") -> DocumentFaults:
    """The faults of a text; cached, because every strategy and setting needs the same."""
    return DocumentFaults(text, name)


@lru_cache(maxsize=4)
def monospace_ranges(text: str, name: str = "") -> list[Range]:
    """Where a text has tables and code, whose columns need letters of one width.

    >>> monospace_ranges("# Run\\n\\n    make\\n")
    [(7, 15)]
    """
    blocks = read_blocks(text, metadata={"source": name} if name else None)
    return [
        (text.rfind("\n", 0, block.start) + 1 if block.kind == "code" else block.start, block.end)
        for block in blocks
        if block.kind in ("code", "table")
    ]


def _row(span: Span, size: int, cuts: Mapping[str, bool]) -> dict[str, Any]:
    """A chunk as the page gets it."""
    row = {"start": span.start, "end": span.end, "size": size, "metadata": span.to_metadata()}
    content = {} if span.content is None else {"content": span.content}
    return row | content | dict(cuts)


def _sentence_cuts(cuts: Sequence[tuple[bool, bool]]) -> list[dict[str, bool]]:
    """For each span, whether it begins or ends inside a sentence."""
    return [
        ({"begins_inside": True} if begins else {}) | ({"ends_inside": True} if ends else {})
        for begins, ends in cuts
    ]


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
    """The size of each chunk's text. The source is measured only once."""
    measure = sizer(unit)
    length = measure(text).length
    return [
        length(span.start, span.end)
        if span.content is None
        else measure(span.content).length(0, len(span.content))
        for span in spans
    ]


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
