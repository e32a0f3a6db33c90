"""Strategies that read markup keep every guarantee on hostile Markdown, HTML and plain text."""

from __future__ import annotations

from functools import partial
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_splitters import (
    Chunker,
    ContentAwareChunker,
    HierarchicalChunker,
    ModalityChunker,
    RecursiveChunker,
    TableChunker,
)
from rag_splitters.testing import hostile_texts
from tests.structure.test_blocks import EXAMPLES, HTML_PIECES, MARKDOWN_PIECES, many, texts_of
from tests.support.cases import SIZES, letters
from tests.support.checks import check_chunker

MERGED = {"chunk_size": 30, "min_chunk_size": 10}
LEVELS: list[dict[str, Any]] = [
    {"chunk_sizes": (60, 30, 12)},
    {"chunk_sizes": (60, 30, 12), "chunk_overlap": 0.3},
    {"chunk_sizes": (12, 6, 3), "chunk_overlap": 1, "length_function": "words"},
    {"chunk_sizes": (20, 8), "chunk_overlap": 3, "length_function": "tokens"},
    {"chunk_sizes": (30, 12), "length_function": letters},
    {"chunk_sizes": (25,)},
]
"""Sizes of a tree."""

LEAVES = [partial(HierarchicalChunker, **case) for case in ({}, *SIZES, *LEVELS)]
SMALL = {name: RecursiveChunker(chunk_size=20) for name in ("text", "code", "formula", "image")}
CASES: dict[str, list[partial[Chunker]]] = {
    "content_aware": [
        partial(ContentAwareChunker, **case)
        for case in ({}, *SIZES, MERGED, {**MERGED, "chunk_overlap": 7})
    ],
    "hierarchical": [*LEAVES, partial(HierarchicalChunker, section_keywords=["para"])],
    "tree": [
        partial(leaves, emit="all") for leaves in LEAVES if "chunk_overlap" not in leaves.keywords
    ],
    "modality": [
        partial(ModalityChunker),
        partial(
            ModalityChunker,
            text=RecursiveChunker(chunk_size=30),
            table=TableChunker(chunk_size=40, text=None),
        ),
        partial(ModalityChunker, table=TableChunker(chunk_size=30, text=None), **SMALL),
    ],
}
"""What makes the chunkers, given a format."""

FORMATS = ("markdown", "html", "text")
PIECES = (
    *("![alt](u.png)", "![a][r]", "<img src=x alt='y'>", "![", "](", ")", "`", "<figcaption>"),
    *("<figure><img src=z><figcaption>fc</figcaption></figure>", "a,b,c\n1,2,3\nx,y,z\n"),
)
TEXTS = texts_of((*MARKDOWN_PIECES, *PIECES)) | texts_of((*HTML_PIECES, *PIECES)) | hostile_texts()
VIOLATIONS = (
    "Figure 1: x\n# H\nFigure 1: x\n# H\n# H\n    indented\n\t# H\n# H\né ",
    "\x00# H\n# H\n# H\n## H2\n    indented\n# H\n",
    "# H\n\x00# H\nSet\n===\n## H2\n",
    "# H\n|---|---|\n|---|---|\n\x00<!-- c -->\n",
    "|---|---|\n-\n### H3 *x*\n",
    "para one. Two. \r~~~\n>\n# H\n",
    "aDr. No said so.\ra",  # a carriage return is a token of its own
    "# H\npara one. Two. \t# H\n# H\n",
    "<h1>&nbsp;<!--",
    "<table><tr><td>a|b<td>c</table>",
    "\u0600<table><tr><td>a|b<td>c</table>\u0301",
    "'><table><tr><td>a|b</table><table><tr><td>a|b<td>c</table>",
    "<table><tr><td>a|b<td>c</table>\u0301",
    "\u0600<td>aaaa$$\nx\n$$\na,b,c\n1,2,3\nx,y,z\n",  # the mark belongs to the tag's cluster
    "<p><p>\n    deeper\n<p><p><p><p></blockquote></table><h2>T</h2>\n    deeper\n",
)
"""Every text that has ever broken a guarantee here; each runs through all cases."""

each_strategy = pytest.mark.parametrize("cases", CASES.values(), ids=CASES)


@each_strategy
def test_texts_that_broke_a_guarantee_once(cases: list[partial[Chunker]]) -> None:
    for text in VIOLATIONS:
        for make in cases:
            for text_format in FORMATS:
                check_chunker(make(format=text_format), text)


@each_strategy
@many
@given(data=st.data(), text=TEXTS)
def test_hostile_markup(cases: list[partial[Chunker]], data: st.DataObject, text: str) -> None:
    make = data.draw(st.sampled_from(cases))
    for text_format in FORMATS:
        check_chunker(make(format=text_format), text)


@each_strategy
def test_mark_behind_a_tag_belongs_to_the_next_chunk(cases: list[partial[Chunker]]) -> None:
    """It is in one grapheme cluster with the end of the tag."""
    for make in cases:
        check_chunker(make(format="html"), "\u0301</p>\u0301")


@pytest.mark.slow
@each_strategy
def test_examples_of_the_specification(cases: list[partial[Chunker]]) -> None:
    """Each with a size of more than a letter: those of an image's text have one place."""
    sizes = [make for make in cases if make.keywords.get("chunk_size") != 1]
    for each, make in zip(EXAMPLES, cycle(sizes), strict=False):
        check_chunker(make(format="markdown"), each["markdown"])
        check_chunker(make(format="html"), each["html"])
