"""What the chunks of a document are like, without questions: figures from the text alone.

The first five are those of "Adaptive Chunking: Optimizing Chunking-Method Selection for RAG" (de
Moura Junior, Lelong and Blangero, 2026, arXiv 2603.25333), after the authors' published code. Where
we differ from that code, a docstring says so.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag_splitters.errors import InputError
from rag_splitters.evaluation.metrics import Range
from rag_splitters.structure.blocks import detect_format, read_blocks
from rag_splitters.structure.outline import Outline
from rag_splitters.text.boundaries import skip_space
from rag_splitters.text.leads import lead_start
from rag_splitters.text.sentences import sentence_spans
from rag_splitters.text.sizing import LengthFunction, sizer

References: TypeAlias = Callable[[str], Iterable[Range]]
"""A function from a text to the ranges that a reader needs together, each from what is named to the
word that refers to it."""

FIGURES = {
    "size_compliance": "size compliance",
    "cohesion": "cohesion",
    "coherence": "coherence",
    "block_integrity": "block integrity",
    "reference_completeness": "references",
    "mid_sentence": "mid-sentence",
    "orphan_headings": "orphan headings",
    "lead_ins": "lead-ins",
    "tiny": "tiny",
    "fill": "fill",
}
"""The titles of all figures by name."""

FAULTS = ("mid_sentence", "orphan_headings", "lead_ins", "tiny")
"""The figures that count faults, so that less is better."""

_REFERRING = re.compile(
    r"(?:[\w'’-]+[ ,]+){0,2}"
    r"(?:he|she|it|they|him|her|them|his|hers|its|their|theirs|this|that|these|those"
    r"|the (?:former|latter|same)|such)\b",
    re.IGNORECASE,
)


class DocumentFigures:
    """The figures of chunks in one document; what belongs to the text is computed once.

    A figure is a share or a mean from 0 to 1. It is None where it is not defined: if there are no
    chunks, or if the text has nothing that it counts, such as no references. Leave out chunks whose
    position is unknown.

    Parameters:
        text: the document.
        references: finds the ranges that a reader needs together; None: `referring_sentences`.

    >>> figures = DocumentFigures("# Tea\\n\\nBoil water. It sings.")
    >>> figures.block_integrity([(0, 5), (7, 29)]), figures.orphan_headings([(0, 5), (7, 29)])
    (1.0, 0.5)
    """

    def __init__(self, text: str, references: References | None = None) -> None:
        self.text, self._references = text, references

    @cached_property
    def sentences(self) -> list[Range]:
        """The sentences of the text."""
        return list(sentence_spans(self.text))

    @cached_property
    def blocks(self) -> list[Range]:
        """Headings, paragraphs, list items, tables, code and other blocks of the text."""
        blocks = read_blocks(self.text, detect_format(self.text))
        ranges = [(block.start, block.end) for block in blocks if block.kind != "dropped"]
        return [part for part in map(self._visible, ranges) if part[0] < part[1]]

    @cached_property
    def references(self) -> list[Range]:
        """The ranges that a reader needs together. Raises ValueError if one is not in the text."""
        find = self._references or referring_sentences
        ranges = list(find(self.text))
        for start, end in ranges:
            if not 0 <= start < end <= len(self.text):
                raise InputError(
                    f"references returned ({start}, {end}) for a text of {len(self.text)} "
                    "characters: a range must be inside the text"
                )
        return list(map(self._visible, ranges))

    @cached_property
    def _headings(self) -> list[Range]:
        return [(each.start, each.end) for each in Outline.of(self.text).headings]

    @cached_property
    def _sentence_edges(self) -> tuple[frozenset[int], frozenset[int]]:
        starts, ends = zip(*self.sentences, strict=True) if self.sentences else ((), ())
        return frozenset(starts), frozenset(ends)

    def block_integrity(self, chunks: Sequence[Range]) -> float | None:
        """The share of blocks that are whole in at least one chunk.

        The published code counts a block as cut if any chunk begins inside it, even if another
        chunk holds all of it, so the two differ for chunks that overlap. The blocks are those that
        this package finds.
        """
        return _share_whole(self.blocks, chunks)

    def reference_completeness(self, chunks: Sequence[Range]) -> float | None:
        """The share of references that are whole in at least one chunk; None without references.

        The published code finds pairs of a noun and its pronoun with a coreference model, whose
        licence forbids commercial use. Here `referring_sentences` takes its place. To use a
        coreference model, pass a function as `references`.
        """
        return _share_whole(self.references, chunks)

    def sentence_cuts(self, chunks: Sequence[Range]) -> list[tuple[bool, bool]]:
        """For each chunk, whether it begins and whether it ends inside a sentence."""
        starts, ends = self._sentence_edges
        cuts = []
        for low, high in map(self._visible, chunks):
            is_blank = low == high
            cuts.append((not is_blank and low not in starts, not is_blank and high not in ends))
        return cuts

    def mid_sentence(self, chunks: Sequence[Range]) -> float | None:
        """The share of chunks that begin inside a sentence."""
        return _share(begins for begins, _ in self.sentence_cuts(chunks))

    def orphan_headings(self, chunks: Sequence[Range]) -> float | None:
        """The share of chunks that end with a heading, which belongs to what follows it."""
        starts = [start for start, _ in self._headings]

        def ends_with_heading(high: int) -> bool:
            index = bisect_left(starts, high) - 1
            is_last = skip_space(self.text, high) >= len(self.text)
            return index >= 0 and high <= self._headings[index][1] and not is_last

        return _share(ends_with_heading(high) for _, high in map(self._visible, chunks))

    def lead_ins(self, chunks: Sequence[Range]) -> float | None:
        """The share of chunks that end with a line that belongs to what follows it.

        That is a heading, a line that ends with a colon, a label or the like: see
        `rag_splitters.text.leads`.
        """
        places = ((low, skip_space(self.text, high)) for low, high in map(self._visible, chunks))
        return _share(
            low < cut < len(self.text) and lead_start(self.text, low, cut) < cut
            for low, cut in places
        )

    def _visible(self, chunk: Range) -> Range:
        """A chunk without white space at its edges."""
        part = self.text[chunk[0] : chunk[1]]
        visible = part.strip()
        low = chunk[0] + (len(part) - len(part.lstrip()) if visible else 0)
        return low, low + len(visible)


def size_compliance(sizes: Sequence[int], least: int, most: int) -> float | None:
    """The share of chunks whose size is from `least` to `most` units.

    >>> size_compliance([20, 400, 2000, 500], 100, 1100)
    0.5
    """
    return _share(least <= size <= most for size in sizes)


def tiny(sizes: Sequence[int]) -> float | None:
    """The share of chunks that are smaller than a tenth of the largest one.

    >>> tiny([100, 8, 50, 60])
    0.25
    """
    return _share(10 * size < max(sizes) for size in sizes)


def fill(sizes: Sequence[int]) -> float | None:
    """The mean size of the chunks as a share of the largest one.

    >>> fill([100, 50])
    0.75
    """
    return sum(sizes) / len(sizes) / max(sizes) if sizes and max(sizes) else None


def cohesion(chunks: NDArray[np.float32], sentences: Sequence[NDArray[np.float32]]) -> float | None:
    """How similar the sentences of a chunk are to the whole chunk.

    For each chunk with at least two sentences: the mean cosine similarity between the chunk and its
    sentences. The figure is the mean over these chunks, and 0 if that is negative, as in the
    published code.

    Parameters:
        chunks: the normalised vectors of the chunks.
        sentences: for each chunk, the normalised vectors of its sentences.
    """
    means = [
        float((vectors @ chunk).mean())
        for chunk, vectors in zip(chunks, sentences, strict=True)
        if len(vectors) > 1
    ]
    return _clipped_mean(means)


def coherence(
    chunks: NDArray[np.float32], windows: NDArray[np.float32], window_of: Sequence[int]
) -> float | None:
    """How similar each chunk is to the part of the document around it.

    The mean cosine similarity between each chunk and the window of text whose middle is nearest to
    it. The windows come from `context_windows` and are the same for all strategies. The published
    code builds windows of whole chunks, one for each chunk, which embeds most of the text many
    times and compares a chunk with many windows.

    Parameters:
        chunks: the normalised vectors of the chunks.
        windows: the normalised vectors of the windows.
        window_of: the number of each chunk's window.
    """
    return _clipped_mean([float(c @ windows[n]) for c, n in zip(chunks, window_of, strict=True)])


def context_windows(text: str, size: int, unit: LengthFunction) -> list[Range]:
    """Windows of at most `size` units; each begins at about the middle of the one before.

    >>> context_windows("one two three four five", 2, "words")
    [(0, 8), (4, 14), (8, 19), (14, 23)]
    """
    measure = sizer(unit)(text)
    windows: list[Range] = []
    start = 0
    while start < len(text):
        end = max(measure.furthest(start, size), start + 1)
        windows.append((start, end))
        if end >= len(text):
            break
        start = max(measure.furthest(start, max(1, size // 2)), start + 1)
    return windows


def nearest_windows(windows: Sequence[Range], chunks: Sequence[Range]) -> list[int]:
    """For each chunk, the number of the window whose middle is nearest to the chunk's middle."""
    middles = [start + end for start, end in windows]
    nearest = []
    for start, end in chunks:
        after = bisect_left(middles, start + end)
        numbers = [n for n in (after - 1, after) if 0 <= n < len(middles)]
        nearest.append(min(numbers, key=lambda n: abs(middles[n] - start - end)))
    return nearest


def referring_sentences(text: str) -> list[Range]:
    """Sentences that begin with a word for something named before, with the sentence before them.

    A sentence counts if one of its first three words is he, it, this, these, the latter or the
    like. So it finds some sentences that refer to nothing ("It rains."), and misses references to
    earlier sentences than the one before, and all other languages. A heading does not count as the
    sentence before.

    >>> text = "Ann has a tram. It is green. Trams are loud."
    >>> [text[start:end] for start, end in referring_sentences(text)]
    ['Ann has a tram. It is green.']
    """
    headings = {each.start for each in Outline.of(text).headings}
    sentences = list(sentence_spans(text))
    return [
        (before[0], end)
        for before, (start, end) in pairwise(sentences)
        if before[0] not in headings
        and start not in headings
        and _REFERRING.match(text, start, end)
    ]


@lru_cache(maxsize=4)
def document_figures(text: str) -> DocumentFigures:
    """The figures of a text; cached, because every strategy and setting needs the same."""
    return DocumentFigures(text)


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of those values that are not None; None if there are none."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def score(figures: Mapping[str, float | None]) -> float | None:
    """The mean of all figures but `fill`; a figure of which less is better counts as 1 minus it.

    The paper's score is the mean of its five figures. This one adds our own, but for `fill`, which
    says nothing about quality, and leaves out figures that are None.

    >>> score({"block_integrity": 1.0, "mid_sentence": 0.5, "cohesion": None})
    0.75
    """
    values = [
        None if value is None else 1 - value if name in FAULTS else value
        for name, value in figures.items()
        if name in FIGURES and name != "fill"
    ]
    return mean_of(values)


def _share(values: Iterable[bool]) -> float | None:
    flags = list(values)
    return sum(flags) / len(flags) if flags else None


def _share_whole(parts: Sequence[Range], chunks: Sequence[Range]) -> float | None:
    """The share of parts of a text that are whole in at least one chunk."""
    ordered = sorted(chunks)
    starts = [start for start, _ in ordered]
    reach: list[int] = []
    for _, end in ordered:
        reach.append(max(end, reach[-1]) if reach else end)

    def is_whole(start: int, end: int) -> bool:
        index = bisect_right(starts, start) - 1
        return index >= 0 and reach[index] >= end

    return _share(is_whole(start, end) for start, end in parts)


def _clipped_mean(values: Sequence[float]) -> float | None:
    return min(1.0, max(0.0, sum(values) / len(values))) if values else None
