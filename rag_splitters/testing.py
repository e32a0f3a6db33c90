"""The guarantees of every chunker as checks, to test a chunker of your own.

    from hypothesis import given
    from rag_splitters.testing import check_chunker, hostile_texts

    @given(hostile_texts())
    def test_my_chunker_keeps_the_contract(text):
        check_chunker(MyChunker(chunk_size=20), text)

The functions raise an AssertionError that shows the chunker and the text. Only `hostile_texts`
needs Hypothesis: pip install 'rag-splitters[test]'.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import regex

from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.sized import SizedChunker
from rag_splitters.parameters.checks import check_kind
from rag_splitters.span import Source, Span
from rag_splitters.text.sizing import sizer

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

HOSTILE_PIECES = (
    *("a", "b", " ", "  ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\t", "\f", "\x00", "\x0b"),
    *("word", "Longerword", "The end.", "Dr. No said so.", "Is it? Yes!", "3.14", "e.g.", "..."),
    *("The same passage again. ", "The same passage again. ", "# Heading\n", "- item\n", "1. One "),
    *("e\u0301", "\u0301", "x\u0301\u0302\u0303", " \u0301", "\u00a0", "\u2028"),
    *("\u3000", "\ufeff"),
    *("👩‍👩‍👧", "👍🏽", "🇩🇪", "🇩🇪🇫🇷", "\u200d", "\u200b", "각", "\u1100\u1161\u11a8"),
    *("क्षि", "नमस्ते। "),
    *("他说。", "「はい！」", "日本語", "สวัสดี", "مرحبا؟ ", "\u200fעברית", "\u0600", "\U000e0041"),
    *("\ud800", "\udc00", "\ud83d\ude00", "<|endoftext|>", "| a | b |\n", "```\n", "$x$", "&amp;"),
)
"""Pieces of text that have broken text splitters."""


def hostile_texts(max_pieces: int = 40) -> SearchStrategy[str]:
    """Return a Hypothesis strategy for texts that are hard to split.

    Parameters:
        max_pieces: maximum number of pieces in a text, each from `HOSTILE_PIECES` or any character.
    """
    from hypothesis import strategies

    piece = strategies.sampled_from(HOSTILE_PIECES) | strategies.characters()
    return strategies.lists(piece, max_size=max_pieces).map("".join)


def check_chunker(
    chunker: Chunker, text: str, dropped: Iterable[tuple[int, int]] = ()
) -> list[Span]:
    """Check all guarantees of a chunker for one text.

    Parameters:
        chunker: the chunker, or a text splitter or node parser of a front end.
        text: any text.
        dropped: start and end of each part of the text that the chunker is documented to drop.

    Returns: the spans, for further checks.

    Raises AssertionError, with the chunks, if a guarantee does not hold.

    >>> from rag_splitters import SentenceChunker
    >>> len(check_chunker(SentenceChunker(chunk_size=10), "One. Two. Three."))
    2
    """
    check_kind(chunker, Chunker, "chunker")
    spans = chunker.spans(text)
    context = _Context(chunker, text, spans)
    again = list(chunker.split([Source(text), Source(text)]))
    assert again == [spans, spans], f"a second run differs: {context}"
    if not text.strip():
        assert spans == [], f"blank text must give no chunks: {context}"
    _check_positions(text, spans, context)
    leaves, is_tree = _leaves(spans), any(span.parent is not None for span in spans)
    if is_tree:
        _check_tree(spans, context)
    _check_order(leaves, context)
    _check_coverage(text, [*((span.start, span.end) for span in leaves), *dropped], context)
    clusters = _cluster_ends(text)
    if not is_tree and isinstance(chunker, SizedChunker):
        _check_overlaps(chunker, text, spans, context)
    for span in spans:
        assert {span.start, span.end} <= clusters, f"{span} cuts a grapheme cluster: {context}"
        content = span.text_of(text)
        is_cluster = len(_cluster_ends(content)) == 2
        assert is_cluster or chunker.fits(content), f"{span} is too big: {context}"
    return spans


@lru_cache(maxsize=256)
def _cluster_ends(text: str) -> frozenset[int]:
    """Return the offsets at which grapheme clusters end, and 0."""
    return frozenset([0, *(match.end() for match in regex.finditer(r"\X", text, regex.DOTALL))])


@dataclass(frozen=True)
class _Context:
    """What was split, for error messages; it is formatted only if a check fails."""

    chunker: Chunker
    text: str
    spans: list[Span]

    @property
    def positions(self) -> list[tuple[int, int]]:
        return [(span.start, span.end) for span in self.spans]

    def __str__(self) -> str:
        return f"{self.chunker!r} on {self.text!r}: {self.positions}"


def _check_positions(text: str, spans: list[Span], context: _Context) -> None:
    for span in spans:
        assert 0 <= span.start < span.end <= len(text), f"{span} is not in the text: {context}"
        assert span.text_of(text).strip(), f"{span} is blank: {context}"


def _leaves(spans: list[Span]) -> list[Span]:
    """Return the spans without children: all of them, unless the chunks form a tree."""
    parents = {span.parent for span in spans}
    return [span for number, span in enumerate(spans) if number not in parents]


def _check_order(spans: list[Span], context: _Context) -> None:
    for one, other in pairwise(spans):
        assert one.start <= other.start, f"{one} and {other} are out of order: {context}"
        overlaps = "image" in (one.modality, other.modality)  # an image and its sentence
        rewritten = other.content is not None and other.content != one.content
        adds = one.end < other.end or overlaps or (rewritten and one.end == other.end)
        assert adds, f"{other} adds nothing to {one}: {context}"


def _check_tree(spans: list[Span], context: _Context) -> None:
    """Check that parents precede and contain their children, and that no span occurs twice."""
    keys = {(span.start, span.end, span.content) for span in spans}
    assert len(keys) == len(spans), f"twice: {context}"
    for number, span in enumerate(spans):
        if span.parent is not None:
            assert 0 <= span.parent < number, f"{span} comes before its parent: {context}"
            parent = spans[span.parent]
            inside = parent.start <= span.start and span.end <= parent.end
            assert inside, f"{span} is not inside its parent {parent}: {context}"


def _check_coverage(text: str, parts: list[tuple[int, int]], context: _Context) -> None:
    covered = 0
    for start, end in [*sorted(parts), (len(text), len(text))]:
        lost = text[covered:start].strip()
        assert not lost, f"{lost!r} is lost: {context}"
        covered = max(covered, end)


def _check_overlaps(chunker: SizedChunker, text: str, spans: list[Span], context: _Context) -> None:
    """Check that no overlap is bigger than the chunker's, if it has one.

    A chunk that was rewritten may repeat other text, such as the header of a table.
    """
    if not chunker.overlap:
        return
    measure = sizer(chunker.length_function)(text)
    for one, other in pairwise(spans):
        if other.start < one.end and not (one.is_rewritten or other.is_rewritten):
            length = measure.length(other.start, one.end)
            assert length <= chunker.overlap, f"overlap of {length}: {one}, {other}: {context}"
