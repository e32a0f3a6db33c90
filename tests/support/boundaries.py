"""Texts glued together from different subjects, and how well a splitter finds the boundaries."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from rag_splitters import Chunker, FixedSizeChunker
from rag_splitters.text.sentences import sentence_spans

__all__ = [
    "CASES",
    "ORDERS",
    "Case",
    "Cut",
    "cuts_of",
    "errors",
    "sentences",
    "subjects",
    "uneven",
    "windows",
]

Cut = Callable[[str], Sequence[int]]
"""text -> where chunks begin, but for the first."""
Case = list[tuple[str, list[int]]]
"""(text, boundaries between its subjects)."""

_DATA = Path(__file__).parents[1] / "data"


def _glued(passages: Iterable[str]) -> tuple[str, list[int]]:
    text, boundaries = "", []
    for passage in passages:
        if text:
            text += " "
            boundaries.append(len(text))
        text += passage
    return text, boundaries


def subjects() -> list[tuple[str, str]]:
    """(subject, passage): three passages on each of four subjects."""
    blocks = (_DATA / "subjects.txt").read_text(encoding="utf-8").split("# ")[1:]
    return [(name, text.strip()) for name, _, text in (each.partition("\n") for each in blocks)]


def shuffled(seed: int) -> tuple[str, list[int]]:
    """The twelve passages in an order in which the subject always changes."""
    passages, order = subjects(), random.Random(seed)
    while any(one[0] == other[0] for one, other in pairwise(passages)):
        order.shuffle(passages)
    return _glued(passage for _, passage in passages)


def sentences() -> list[list[str]]:
    """The sentences of five other subjects."""
    text = (_DATA / "subjects.md").read_text(encoding="utf-8")
    parts = re.split(r"^# .*\n", text, flags=re.MULTILINE)[1:]
    return [[part[start:end] for start, end in sentence_spans(part)] for part in parts]


def uneven(order: Sequence[int]) -> tuple[str, list[int]]:
    """The five subjects, with so many sentences of each that no fixed window fits by chance."""
    counts = zip(order, (8, 5, 7, 4, 6), strict=True)
    return _glued(" ".join(sentences()[subject][:count]) for subject, count in counts)


ORDERS = ((0, 1, 2, 3, 4), (4, 2, 0, 3, 1), (3, 0, 4, 1, 2), (2, 4, 1, 0, 3))
CASES: dict[str, Case] = {
    "returning": [shuffled(seed) for seed in range(3)],
    "uneven": [uneven(order) for order in ORDERS],
}
"""Four subjects that come back twice, and five that do not."""


def _wrong(size: int, boundaries: Sequence[int], found: Iterable[int]) -> tuple[float, float]:
    marks = [np.zeros(size, dtype=np.int64) for _ in range(2)]
    for row, cuts in zip(marks, (boundaries, found), strict=True):
        row[list(cuts)] = 1
    width = size // (2 * (len(boundaries) + 1))
    one, other = (row[width:] - row[:-width] for row in (mark.cumsum() for mark in marks))
    return float(np.mean((one == 0) != (other == 0))), float(np.mean(one != other))


def errors(cut: Cut, case: Case) -> np.ndarray:
    """Pk and WindowDiff, as means over a case's texts: the share of places where two characters,
    half a subject apart, are wrongly said to be in one segment or in two (Beeferman et al. 1999),
    and where they have a wrong number of boundaries between them (Pevzner and Hearst 2002)."""
    return np.mean([_wrong(len(text), boundaries, cut(text)) for text, boundaries in case], axis=0)


# What cuts


def cuts_of(chunker: Chunker) -> Cut:
    """Where a chunker cuts."""
    return lambda text: [span.start for span in chunker.spans(text)][1:]


def windows(size: int) -> Cut:
    """Windows of a size."""
    return cuts_of(FixedSizeChunker(chunk_size=size))
