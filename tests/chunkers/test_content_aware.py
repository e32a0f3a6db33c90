"""ContentAwareChunker: blocks are kept whole, headings with what they head, and every guarantee."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given

from rag_splitters.chunkers.auto import AutoChunker
from rag_splitters.chunkers.content_aware import ContentAwareChunker
from rag_splitters.chunkers.hierarchical import HierarchicalChunker
from rag_splitters.structure.blocks import read_blocks
from rag_splitters.structure.blocks.layout import heads
from rag_splitters.text.lines import line_kind
from tests.structure.test_blocks import (
    MARKDOWN_PIECES,
    hostile,
    texts_of,
)
from tests.support.checks import check_chunker

MARKDOWN = """\
# Tea

## Boil

Boil the water. Wait a minute. Then pour it over the leaves.

```py
# not a heading

def brew():
    return "tea"
```

- green
  - sencha
- black

## Serve

| cup | ml |
|-----|----|
| big | 300 |
| tiny | 90 |

> Never add milk first.
>
> Or do.

# Coffee

Is another story."""


def texts(chunker: ContentAwareChunker, text: str) -> list[str]:
    return [chunk.text for chunk in chunker.chunk(text)]


CONTENTS = """\
Preface of the book.

Table of Contents

  1  Tea and
     its leaves ...... 1
  2  Milk ............ 4
  3  Cups . . . . . . .9

Chapter 1

Tea is hot, and it is green.
"""


@pytest.mark.parametrize("kind", [ContentAwareChunker, AutoChunker])
def test_contents_are_dropped_from_plain_text(
    kind: type[ContentAwareChunker | AutoChunker],
) -> None:
    chunks = kind(chunk_size=50).chunk(CONTENTS)
    assert [(chunk.start, chunk.text) for chunk in chunks] == [
        (0, "Preface of the book."),
        (CONTENTS.index("Chapter"), "Chapter 1\n\nTea is hot, and it is green."),
    ]
    assert chunks[1].metadata["headings"] == ["Chapter 1"]
    windows = kind(chunk_size=50).chunk(CONTENTS.replace("\n", "\r\n"))
    assert [" ".join(chunk.text.split()) for chunk in windows] == [
        " ".join(chunk.text.split()) for chunk in chunks
    ]
    assert [c.text for c in kind(chunk_size=500, min_chunk_size=0.9).chunk(CONTENTS)] == [
        chunk.text for chunk in chunks
    ]
    kept = kind(chunk_size=50, drop_contents=False).chunk(CONTENTS)
    assert " ".join(chunk.text for chunk in kept).split() == CONTENTS.split()


def test_index_without_a_title_and_with_several_pages_is_dropped() -> None:
    index = "".join(f"{word} ....... {9 - n}, {20 + n}\n" for n, word in enumerate("abcdefgh"))
    chunks = AutoChunker(chunk_size=500).chunk(f"Tea is hot, and green.\n\n{index}")
    assert [chunk.text for chunk in chunks] == ["Tea is hot, and green."]


@pytest.mark.parametrize(
    "text",
    [
        "1 Tea ...... 1\n2 Milk ..... 4\n3 Cups ..... 9\n",  # nothing else
        "Our prices:\n\nTea ....... 9\nMilk ...... 4\nCups ...... 2\nPots ...... 1\n",
        "Prices:\n" + "".join(f"{word} ...... {9 - n}\n" for n, word in enumerate("hgfedcba")),
        "Wait ...... 4\nor go ...... 5\n",
    ],
)
def test_other_lines_with_dots_are_kept(text: str) -> None:
    chunks = check_chunker(ContentAwareChunker(format="text", chunk_size=30), text)
    assert " ".join(span.text_of(text) for span in chunks).split() == text.split()


@pytest.mark.parametrize("overlap", [0, 12])
@pytest.mark.parametrize("markup", ["markdown", "html"])
@pytest.mark.parametrize("strategy", [ContentAwareChunker, AutoChunker])
def test_a_table_that_is_cut_repeats_its_header(strategy: Any, markup: str, overlap: int) -> None:
    if markup == "html":
        rows = "".join(f"<tr><td>G{n}</td><td>{n}</td></tr>" for n in range(20))
        head = "<tr><th>grade</th><th>pay</th></tr>"
        text = f"<html><h1>Pay</h1><p>See:</p><table>{head}{rows}</table><p>It ends here."
    else:
        rows = "".join(f"| G{n} | {n} |\n" for n in range(20))
        text = f"# Pay\n\nSee:\n\n| grade | pay |\n| --- | --- |\n{rows}\nIt ends here.\n"
    chunker = strategy(chunk_size=90, chunk_overlap=overlap)
    chunks = chunker.chunk(text)
    assert [chunk.text for chunk in chunks if "It ends" in chunk.text] == ["It ends here."]
    assert "".join(chunk.text for chunk in chunks[:1]).startswith(("# Pay", "Pay"))
    for chunk in chunks[:-1]:
        assert "| grade | pay |\n| --- | --- |\n| G" in chunk.text
        assert chunk.metadata["headings"] == ["Pay"]
        assert len(chunk.text) <= 90
    shown = [n for n in range(20) if any(f"| G{n} | {n} |" in chunk.text for chunk in chunks)]
    assert shown == list(range(20))
    last = chunks[-2]
    assert "G19" in text[last.start : last.end]
    assert "grade" not in text[last.start : last.end]


def test_sections_that_fit_are_chunks() -> None:
    spans = check_chunker(ContentAwareChunker(min_chunk_size=0), MARKDOWN)
    assert [list(span.headings) for span in spans] == [["Tea"], ["Coffee"]]
    spans = check_chunker(ContentAwareChunker(chunk_size=200), MARKDOWN)
    assert [span.text_of(MARKDOWN).split("\n")[0] for span in spans] == [
        "# Tea",
        "## Serve",
        "# Coffee",
    ]
    assert [list(span.headings) for span in spans] == [
        ["Tea", "Boil"],
        ["Tea", "Serve"],
        ["Coffee"],
    ]


@pytest.mark.parametrize("kind", ["code", "table", "list_item", "quote"])
@pytest.mark.parametrize("size", [60, 70, 90, 130])
def test_blocks_that_fit_are_never_cut(kind: str, size: int) -> None:
    blocks = read_blocks(MARKDOWN, "markdown")
    spans = check_chunker(ContentAwareChunker(chunk_size=size), MARKDOWN)
    for before, block in pairwise(blocks):
        start = before.start if before.kind == "heading" else block.start
        if block.kind == kind and block.end - start <= size:
            assert any(s.start <= block.start and block.end <= s.end for s in spans), block


@pytest.mark.parametrize("format", ["markdown", "text", "org", "rst", "asciidoc"])
@hostile
@example("- item\n---\n# H\n# H\n# H\n[r]: http://a.b 'c'\n")
@example("para one. Two. para one. Two. Set\n===\n>\n# H\n")
@example("* H\n\r\n[r]: http://a.b 'c'\n[r]: http://a.b 'c'\n")
@example("para one.\n\n* H\n\nOne of:\n\n    indented one, two, three\n")
@example("# H\n\x00  - nested\n[r]: http://a.b 'c'\n-\n\x00# H\n")
@example("| a | b |\n\x00## H2\n    indented\nSet\n===\n| a | b |\n")
@example("# H\n[r]: http://a.b 'c'\n## H2\n    indented\n")
@example("==H==\n[r]: http://a.b 'c'\n---\n    indented\n")
@example("$$\nword ### H3 *x*\nSet\n===\n### H3 *x*\n| a | b |\n")
@given(text=texts_of((*MARKDOWN_PIECES, "* H\n", "** H2\n", "One of:\n", "==H==\n", "= H\n")))
def test_headings_stay_with_what_they_head(format: Any, text: str) -> None:
    chunker = ContentAwareChunker(format=format, chunk_size=40)
    ends = {span.end for span in chunker.spans(text)}
    blocks = read_blocks(text, format)
    for heading, block in pairwise(blocks):
        word = re.search(r"(?:[-*|>][ ]+)?\S+", text[block.start : block.end])  # with its mark
        fits = word and block.start + word.end() - heading.start <= 40
        is_text = line_kind(text[block.start : block.end].split("\n")[0]) == "text"
        if fits and heads(heading, block) and block.kind == "paragraph" and is_text:
            assert heading.end not in ends, heading


def test_no_heading_is_cut_below_another_one() -> None:
    chunker = ContentAwareChunker(format="markdown", chunk_size=20)
    assert texts(chunker, "# H\n\n# A long H\n\n## Heading\n") == [
        "# H",
        "# A long H",
        "## Heading",
    ]


def test_a_subheading_stays_with_its_text_if_the_heading_above_leaves_no_room() -> None:
    text = "# All about green tea\n\n## Brewing\n\nWater first."
    assert texts(ContentAwareChunker(chunk_size=35), text) == [
        "# All about green tea",
        "## Brewing\n\nWater first.",
    ]


def test_no_chunk_runs_over_a_heading_of_its_level() -> None:
    text = "# A\n\na\n\n## B\n\nb\n\n## C\n\nc\n\n# D\n\nd"
    assert texts(ContentAwareChunker(chunk_size=30), text) == [
        text[: text.index("# D")].rstrip(),
        "# D\n\nd",
    ]
    assert texts(ContentAwareChunker(chunk_size=20), text) == [
        "# A\n\na",
        "## B\n\nb",
        "## C\n\nc",
        "# D\n\nd",
    ]
    merged = ContentAwareChunker(chunk_size=20, min_chunk_size=10)
    assert texts(merged, text) == ["# A\n\na\n\n## B\n\nb", "## C\n\nc\n\n# D\n\nd"]


@pytest.mark.parametrize("chunker", [ContentAwareChunker, HierarchicalChunker])
@pytest.mark.parametrize(
    ("text", "size", "chunks"),
    [
        (
            "- green\n  - sencha, steamed\n  - bancha, late\n- black",
            30,
            ["- green\n  - sencha, steamed", "  - bancha, late\n- black"],
        ),
        ("    # indented\n    code()", 40, ["    # indented\n    code()"]),
        ("Text.\n\n\t# one()\n\ttwo()", 10, ["Text.", "\t# one()", "\ttwo()"]),
        ("```\nif x:\n    y = 1\n```", 14, ["```\nif x:", "    y = 1\n```"]),
        ("- a\n\n      - b", 8, ["- a", "- b"]),  # it would take more than half of the chunk
        ("1. one,\n   two\n   - three", 12, ["1. one,", "two", "   - three"]),
    ],
)
def test_lists_and_code_keep_their_indentation(
    chunker: Any, text: str, size: int, chunks: list[str]
) -> None:
    spans = check_chunker(chunker(chunk_size=size, format="markdown"), text)
    assert [span.text_of(text) for span in spans] == chunks


@pytest.mark.parametrize("size", [22, 25, 300])
def test_indentation_in_pre_is_kept(size: int) -> None:
    text = "<p>See:</p><pre>\n    def f():\n        return 1\n</pre><p>End.</p>"
    chunker = ContentAwareChunker(format="html", chunk_size=size)
    check_chunker(chunker, text)
    assert "\n    def f():\n        return 1" in "\n".join(texts(chunker, text))


def test_stripped_html_has_positions_of_its_evidence() -> None:
    text = "<h1>Tea &amp; milk</h1><p>Boil <b>the</b>\n water.</p><script>x</script>"
    text += "<ul><li>a<li>b</ul>"
    chunker = ContentAwareChunker(chunk_size=30)
    chunks = [(chunk.text, text[chunk.start : chunk.end]) for chunk in chunker.chunk(text)]
    assert chunks == [
        ("Tea & milk\n\nBoil the water.", text[: text.index("<script>")]),
        ("- a\n- b", "<ul><li>a<li>b</ul>"),
    ]


def test_few_words_before_the_first_subsection_stay_with_it() -> None:
    text = "# Tea\n\nHot.\n\n## Green\n\n" + "Cool the water, and wait. " * 5
    text += "\n\n## Black\n\n" + "Boil the water, and wait. " * 5
    chunks = ContentAwareChunker(chunk_size=200).chunk(text)
    assert [chunk.text[:14] for chunk in chunks] == ["# Tea\n\nHot.\n\n#", "## Black\n\nBoil"]
    long = text.replace("Hot.", "It is a hot drink of many kinds.")  # more than a tenth
    assert len(ContentAwareChunker(chunk_size=200).chunk(long)) == 3


def test_heading_without_text_stays_with_the_next_one() -> None:
    text = "# Tea\n\n# Coffee\n\n" + "Boil the water, and wait. " * 9
    chunks = ContentAwareChunker(chunk_size=120).chunk(text)
    assert chunks[0].text.startswith("# Tea\n\n# Coffee\n\nBoil")


def test_code_after_a_lead_in_is_cut_between_lines() -> None:
    lead = "We split out what all of the scripts do into one file, so that it stands only there:"
    code = (
        f"    load 'support'\n    load 'asserts_that_fail'\n    # {'use the path of the file ' * 6}"
    )
    text = f"{lead}\n\n.. code-block:: bash\n\n{code}\n    cd /tmp\n    ls\n"
    first = ContentAwareChunker(chunk_size=280, format="rst").chunk(text)[0]
    assert first.text.endswith("load 'asserts_that_fail'")


def test_a_tiny_introduction_joins_the_beginning_of_a_section_that_does_not_fit() -> None:
    rows = "\n".join(f"    step {number} of the long recipe" for number in range(40))
    text = f"# Tea\n\nIn short.\n\n## Steps\n\n{rows}"
    first = ContentAwareChunker(chunk_size=800).chunk(text)[0]
    assert first.text.startswith("# Tea\n\nIn short.\n\n## Steps\n\n    step 0")


def test_tiny_subsections_join_the_next_ones_below_the_same_heading() -> None:
    text = (
        "# http\n\nA client.\n\n## Name\n\nhttp\n\n## Synopsis\n\nhttp [URL]\n\n## Description\n\n"
        + "It sends requests and shows the answers. " * 20
    )
    first, second = ContentAwareChunker(chunk_size=800).chunk(text)[:2]
    assert "## Synopsis" in first.text
    assert first.metadata["headings"] == ["http"]
    assert second.text.startswith("## Description")
    assert second.metadata["headings"] == ["http", "Description"]


def test_an_empty_paragraph_of_a_man_page_ends_no_chunk() -> None:
    text = ".TH http 1\n.SH NAME\nhttp - a client\n.PP\n.SH OPTIONS\nThey begin with a hyphen.\n"
    chunks = ContentAwareChunker(chunk_size=50).chunk(text, metadata={"source": "http.1"})
    assert [chunk.text for chunk in chunks] == [
        ".TH http 1\n.SH NAME\nhttp - a client",
        ".PP\n.SH OPTIONS\nThey begin with a hyphen.",
    ]
