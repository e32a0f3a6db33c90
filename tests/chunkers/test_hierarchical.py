"""HierarchicalChunker: a tree whose parents contain their children, and every guarantee."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import regex
from hypothesis import given, strategies

from rag_splitters.chunkers.hierarchical import HierarchicalChunker
from rag_splitters.chunkers.titled import TitledChunker
from rag_splitters.span import Span
from rag_splitters.testing import hostile_texts
from rag_splitters.text.sizing import text_length
from tests.chunkers.test_markup import LEVELS
from tests.structure.test_blocks import HTML_PIECES, MARKDOWN_PIECES, many, texts_of
from tests.support.checks import check_chunker

TEXT = (
    "# Tea\n\n## Boil\n\nBoil water.\n\nWait.\n\n## Serve\n\n- cup\n- pot\n\n"
    "### Milk\n\nFirst.\n\nOr last.\n\n# Coffee\n\nNo."
)


TREES = [*LEVELS, {}, {"chunk_size": 17, "chunk_overlap": 6}]


@many
@given(
    case=strategies.sampled_from(TREES),
    markdown=texts_of(MARKDOWN_PIECES) | hostile_texts(),
    html=texts_of(HTML_PIECES),
)
def test_levels_have_their_sizes_and_parents_are_divided(
    case: dict[str, Any], markdown: str, html: str
) -> None:
    check_levels(HierarchicalChunker(format="html", emit="all", **case), html)
    check_levels(HierarchicalChunker(format="markdown", emit="all", **case), markdown)


def check_levels(chunker: HierarchicalChunker, text: str) -> None:
    """Sizes hold, parents contain their children, which hold all of their text but for HTML's."""
    spans = chunker.spans(text)
    parents = {span.parent for span in spans}
    for number, span in enumerate(spans):
        content, leaf_size = span.text_of(text), None if number in parents else chunker.chunk_size
        size = chunker.chunk_sizes[span.level] if chunker.chunk_sizes else leaf_size
        is_cluster = len(regex.findall(r"\X", content, regex.DOTALL)) == 1
        assert not size or is_cluster or text_length(content, chunker.length_function) <= size
        if span.parent is not None:
            parent = spans[span.parent]
            assert (span.parent < number, parent.level < span.level) == (True, True)
            assert parent.start <= span.start < span.end <= parent.end
    for number in parents if chunker.format == "markdown" else ():
        whole = Span(0, len(text)) if number is None else spans[number]
        position = whole.start
        for part in [*(s for s in spans if s.parent == number), Span(whole.end, len(text))]:
            assert not text[position : part.start].strip()
            position = max(position, part.end)


def test_tiny_leaves_join_a_neighbour_of_their_section() -> None:
    text = "# Tea\n\nBoil the water, and pour it on the leaves.\n\nWait.\n\n# Milk\n\nNo."
    leaves = [chunk.text for chunk in HierarchicalChunker(chunk_size=100).chunk(text)]
    assert leaves == [
        "# Tea\n\nBoil the water, and pour it on the leaves.\n\nWait.",
        "# Milk\n\nNo.",
    ]
    short = HierarchicalChunker(chunk_size=55).chunk(text)  # the neighbours do not fit together
    assert [chunk.text for chunk in short][1] == "Wait."


def test_leaf_does_not_end_with_a_lead_in() -> None:
    text = "It is easy to make tea.\n\nYou need:\n\n- a pot\n- a cup\n\nThen boil the water."
    leaves = [chunk.text for chunk in HierarchicalChunker(chunk_size=60).chunk(text)]
    assert leaves == [
        "It is easy to make tea.",
        "You need:\n\n- a pot\n- a cup",
        "Then boil the water.",
    ]


def test_leaves_are_those_of_the_tree() -> None:
    tree = HierarchicalChunker(emit="all").spans(TEXT)
    parents = {span.parent for span in tree}
    leaves = [(s.start, s.end, s.level) for n, s in enumerate(tree) if n not in parents]
    assert leaves == [(s.start, s.end, s.level) for s in HierarchicalChunker().spans(TEXT)]


def test_a_single_paragraph_is_a_single_chunk() -> None:
    for sizes in (None, (60, 30, 12)):
        (span,) = HierarchicalChunker(emit="all", chunk_sizes=sizes).spans("Only this.")
        assert (span.start, span.end, span.parent) == (0, 10, None)


def test_overlap_stays_inside_the_parent() -> None:
    text = "\n\n".join(f"{'#' * 1} S{n}\n\nalpha beta gamma delta epsilon zeta" for n in range(3))
    chunker = HierarchicalChunker(emit="all", chunk_size=24, chunk_overlap=8)
    spans = check_chunker(chunker, text)
    leaves = [span for span in spans if "alpha" not in span.text_of(text)]
    assert leaves
    assert all(span.text_of(text).startswith("gamma") for span in leaves)
    for one, other in pairwise(spans):
        if one.parent != other.parent:
            assert other.start >= one.end or other.end <= one.end


def test_section_keywords_are_headings_of_plain_text() -> None:
    text = "§ 1 Scope\nIt holds.\n\n§ 2 Place\nHere."
    spans = HierarchicalChunker(section_keywords=["§"], format="text").spans(text)
    assert [list(span.headings) for span in spans] == [["§ 1 Scope"], ["§ 2 Place"]]


def test_room_for_a_prefix_keeps_the_levels() -> None:
    narrow = HierarchicalChunker(chunk_sizes=(60, 20)).with_room_for("1234")
    assert (narrow.chunk_sizes, narrow.chunk_size) == ((56, 16), 16)


@pytest.mark.parametrize("sizes", [{"chunk_size": 8}, {"chunk_sizes": (20, 8)}])
def test_leaves_in_a_tree_fit_with_carriage_returns(sizes: dict[str, Any]) -> None:
    tree = HierarchicalChunker(length_function="tokens", emit="all", **sizes)
    text = "aDr. No said so.\ra"  # 9 tokens, and 8 with a line feed
    for chunker in (tree, TitledChunker(chunker=tree)):
        spans = chunker.spans(text)
        parents = {span.parent for span in spans}
        leaves = [span for number, span in enumerate(spans) if number not in parents]
        assert len(leaves) > 1
        assert all(text_length(leaf.text_of(text), "tokens") <= 8 for leaf in leaves)


@pytest.mark.parametrize("case", [{"chunk_size": 30}, {"chunk_sizes": (60, 30)}])
def test_trees_keep_indentation(case: dict[str, Any]) -> None:
    text = "    # code\n\n- green\n  - sencha, steamed\n  - bancha, late\n- black"
    spans = check_chunker(HierarchicalChunker(format="markdown", emit="all", **case), text)
    assert spans[0].start == 0
    found = [span.text_of(text) for span in spans]
    assert found[0].startswith("    # code")
    assert any(each.startswith("  - bancha, late") for each in found)
    assert found[-1] == "  - bancha, late\n- black"
