"""HierarchicalChunker: a tree whose parents contain their children, and every guarantee."""

from __future__ import annotations

from itertools import cycle, pairwise
from typing import Any

import pytest
import regex
from hypothesis import example, given, strategies

from rag_splitters.chunkers.hierarchical import HierarchicalChunker
from rag_splitters.chunkers.titled import TitledChunker
from rag_splitters.span import Span
from rag_splitters.testing import hostile_texts
from rag_splitters.text.sizing import sizer, text_length
from tests.structure.test_blocks import EXAMPLES, HTML_PIECES, MARKDOWN_PIECES, many, texts_of
from tests.support.cases import letters
from tests.support.checks import check_chunker

CASES: list[dict[str, Any]] = [
    {},
    {"chunk_size": 20},
    {"chunk_size": 17, "chunk_overlap": 6},
    {"chunk_size": 1},
    {"chunk_sizes": (60, 30, 12)},
    {"chunk_sizes": (60, 30, 12), "chunk_overlap": 0.3},
    {"chunk_sizes": (12, 6, 3), "chunk_overlap": 1, "length_function": "words"},
    {"chunk_sizes": (20, 8), "chunk_overlap": 3, "length_function": "tokens"},
    {"chunk_sizes": (30, 12), "length_function": letters},
    {"chunk_sizes": (25,)},
]
cases = strategies.sampled_from(CASES)

TEXT = (
    "# Tea\n\n## Boil\n\nBoil water.\n\nWait.\n\n## Serve\n\n- cup\n- pot\n\n"
    "### Milk\n\nFirst.\n\nOr last.\n\n# Coffee\n\nNo."
)


@many
@given(case=cases, text=texts_of(MARKDOWN_PIECES) | hostile_texts())
@example(case=CASES[-3], text="aDr. No said so.\ra")  # a carriage return is a token of its own
@example(case={"chunk_size": 17, "chunk_overlap": 6}, text="# H\npara one. Two. \t# H\n# H\n")
@example(case=CASES[2], text="# H\n\x00# H\nSet\n===\n## H2\n")
def test_leaves_and_trees_keep_the_guarantees(case: dict[str, Any], text: str) -> None:
    check_chunker(HierarchicalChunker(format="markdown", **case), text)
    check_chunker(HierarchicalChunker(format="text", section_keywords=["para"], **case), text)
    spans = check_tree(HierarchicalChunker(format="markdown", emit="all", **case), text)
    for parent in (None, *range(len(spans))):
        parts = [span for span in spans if span.parent == parent]
        if parts:  # together they hold all that their parent does
            whole = Span(0, len(text)) if parent is None else spans[parent]
            check_covered(text, whole, parts)


@many
@given(case=cases, text=texts_of(HTML_PIECES))
def test_trees_of_html_keep_the_guarantees(case: dict[str, Any], text: str) -> None:
    check_tree(HierarchicalChunker(format="html", emit="all", **case), text)


@pytest.mark.parametrize("case", CASES)
def test_trees_of_html_that_broke_once_keep_the_guarantees(case: dict[str, Any]) -> None:
    chunker = HierarchicalChunker(format="html", emit="all", **case)
    check_tree(chunker, "<h1>&nbsp;<!--")
    check_tree(chunker, "<table><tr><td>a|b<td>c</table>")
    check_tree(chunker, "\u0600<table><tr><td>a|b<td>c</table>\u0301")
    check_tree(chunker, "'><table><tr><td>a|b</table><table><tr><td>a|b<td>c</table>")


def check_tree(chunker: HierarchicalChunker, text: str) -> list[Span]:
    """Parents come first and contain their children, sizes hold, and no span is there twice."""
    spans = chunker.spans(text)
    assert chunker.spans(text) == spans
    assert bool(spans) == bool(text.strip()) or chunker.format == "html"
    assert len({(span.start, span.end, span.content) for span in spans}) == len(spans)
    keys = [(s.start, 0 if s.is_rewritten else -s.end) for s in spans]  # marks have no width
    assert keys == sorted(keys)
    parents = {span.parent for span in spans}
    for number, span in enumerate(spans):
        assert 0 <= span.start < span.end <= len(text)
        assert text[span.start : span.end].strip()
        assert span.level is not None
        if span.parent is not None:
            parent = spans[span.parent]
            assert span.parent < number
            assert parent.start <= span.start < span.end <= parent.end
            assert parent.level is not None
            assert parent.level < span.level
        sizes = chunker.chunk_sizes
        size = sizes[span.level] if sizes else chunker.chunk_size if number not in parents else None
        content = span.text_of(text)
        alone = len(regex.findall(r"\X", content, regex.DOTALL)) == 1
        measure = sizer(chunker.length_function)(content)
        assert size is None or alone or measure.length(0, len(content)) <= size
    return spans


def check_covered(text: str, whole: Span, parts: list[Span]) -> None:
    position = whole.start
    for part in parts:
        assert not text[position : part.start].strip()
        position = max(position, part.end)
    assert not text[position : whole.end].strip()


@pytest.mark.slow
def test_specification_keeps_the_guarantees() -> None:
    """Each example with one of the sizes."""
    sizes: list[dict[str, Any]] = [{"chunk_size": 16}, {"chunk_sizes": (60, 20)}]
    for each, case in zip(EXAMPLES, cycle(sizes), strict=False):
        check_chunker(HierarchicalChunker(format="markdown", **case), each["markdown"])
        check_tree(HierarchicalChunker(format="markdown", emit="all", **case), each["markdown"])
        check_tree(HierarchicalChunker(format="html", emit="all", **case), each["html"])


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
    spans = check_tree(chunker, text)
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
    spans = check_tree(HierarchicalChunker(format="markdown", emit="all", **case), text)
    assert spans[0].start == 0
    found = [span.text_of(text) for span in spans]
    assert found[0].startswith("    # code")
    assert any(each.startswith("  - bancha, late") for each in found)
    assert found[-1] == "  - bancha, late\n- black"
