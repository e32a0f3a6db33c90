"""Grapheme clusters: where they end, and in linear time."""

from __future__ import annotations

from itertools import pairwise

import regex
from hypothesis import example, given
from hypothesis import strategies as st

from rag_splitters import FixedSizeChunker
from rag_splitters.text.boundaries import boundary_after, boundary_before, cluster_end
from tests.support.counting import count_calls

PIECES = (
    *("🇩🇪", "🇫", "a", " ", "\u0301", "\u200d", "👩", "🏽", "\r", "\n", "\u0903", "가", "\u11a8"),
    "\u0600",
)


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=40))
@example(pieces=["🇫", *40 * ["🇩🇪"]])
@example(pieces=["a", "\u0600", "🇩🇪", "🇩🇪"])
@example(pieces=["a", "\u200d", *40 * ["🇩🇪"], "\u0301", "🇫"])
def test_boundaries_are_those_of_unicode(pieces: list[str]) -> None:
    text = "".join(pieces)
    edges = [0, *(match.end() for match in regex.finditer(r"\X", text, regex.DOTALL))]
    for position in range(len(text) + 1):
        assert boundary_before(text, position) == max(e for e in edges if e <= position)
        assert boundary_after(text, position) == min(e for e in edges if e >= position)
    for start, end in pairwise(edges):
        assert cluster_end(text, start) == end


def test_work_grows_linearly_with_flags() -> None:
    chunker = FixedSizeChunker(chunk_size=100, chunk_overlap=10)
    few, many = (count_calls(lambda n=n: chunker.chunk(n * "🇩🇪")) for n in (2_000, 8_000))
    assert many < 5 * few
