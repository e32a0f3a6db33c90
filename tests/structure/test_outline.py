"""Outline: one place finds the headings of Markdown, HTML, wiki and plain text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_splitters import (
    Chunker,
    ContentAwareChunker,
    HierarchicalChunker,
    RecursiveChunker,
    TableChunker,
    TitledChunker,
)
from rag_splitters.structure.blocks import Block, detect_format, read_blocks, read_headings
from rag_splitters.structure.outline import Outline, title_of
from rag_splitters.structure.stored_outline import stored_headings, write_outline
from tests.support.counting import record_calls

ROOT = Path(__file__).parents[2]


def texts(text: str, **options: Any) -> list[str]:
    return [heading.title for heading in Outline.of(text, **options).headings]


# What is a heading


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A #\n\n## B", [(0, 5, 1, "A"), (7, 11, 2, "B")]),
        ("One\n===\n\nTwo\n---\n", [(0, 7, 1, "One"), (9, 16, 2, "Two")]),
        ("# a\n\nOne\n  two\n---\n", [(0, 3, 1, "a"), (5, 18, 2, "One two")]),
        ("# The **big** [link](a) & `code`", [(0, 32, 1, "The big link & code")]),
        ("<h1 align=center>A <i>b</i></h1>\n\n# C", [(0, 32, 1, "A b"), (34, 37, 1, "C")]),
        ("# C\n\n<div>\n<h2>A</h2>\n<p>x</p></div>", [(0, 3, 1, "C"), (5, 21, 2, "A")]),
        ("== A ==\ntext\n=== B ===\n", [(0, 7, 2, "A"), (13, 22, 3, "B")]),
        ("<h1>A</h1><p>x</p><h2>B</h2>", [(0, 10, 1, "A"), (18, 28, 2, "B")]),
        (
            "Chapter 1\n\nIt rained.\n\nTHE END\n\nx",
            [(0, 9, 2, "Chapter 1"), (23, 30, 2, "THE END")],
        ),
        ("#\n\n##\tx\n\n####### y\n\n#z", [(3, 7, 2, "x")]),
        ("# a\r\n\r\nb\r\n==\r\n", [(0, 3, 1, "a"), (7, 12, 1, "b")]),
    ],
)
def test_headings_have_positions_levels_and_plain_texts(
    text: str, expected: list[tuple[int, int, int, str]]
) -> None:
    assert list(Outline.of(text).headings) == [Block("heading", *each) for each in expected]


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("`bind([port][, address][, callback])`", "bind([port][, address][, callback])"),
        ("`spec -> Promise<Object>`", "spec -> Promise<Object>"),
        ("`__init__`, `*args` and `&amp;`", "__init__, *args and &amp;"),
        ("The ``a`b[0](c)`` and [`d[1]`](e)", "The a`b[0](c) and d[1]"),
        ("\\`__a__\\`", "`a`"),
        ("2 * 3 < 4 and 5 > 4", "2 * 3 < 4 and 5 > 4"),
        (r"\[no](link) and <b>*bold*</b>", "[no](link) and bold"),
    ],
)
def test_title_keeps_what_is_no_markup_of_markdown(heading: str, expected: str) -> None:
    assert texts(f"# {heading}\n\ntext", format="markdown") == [expected]


@given(st.text(st.sampled_from("a1 \t\n\r\f\x00\u2028-=#<>h/!*_|+.`\ufeff"), max_size=40))
def test_a_markdown_text_that_is_not_parsed_for_headings_has_none(text: str) -> None:
    parsed = [each for each in read_blocks(text, "markdown") if each.kind in ("heading", "html")]
    assert read_headings(text, "markdown") == parsed


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: Tea\n---\n\nBoil **water**.",
        "---\ntitle: Tea\ntags: [a]\n---\ntext [a](b)",
        "+++\ntitle = 'Tea'\n+++\n\nBoil **water**.",
        "```sh\n# comment\n```",
        "~~~\n# comment\n\n# more\n",
        "- item\n\n  ```\n  # comment\n  ```\n",
        "[a](b)\n\n    # comment\n",
        "<pre>\n# comment\n\n# more\n</pre>\n\n[a](b)",
        "<!--\n# comment\n\n<h1>x</h1>\n-->\n\n[a](b)",
        "[a](b) <!-- <h1>x</h1> -->",
        "<script>\n# comment\n\nA\n===\n</script>\n\n[a](b)",
        "<html><body><pre># a\n<h1>x</h1></pre><!-- <h1>y</h1> --><p>z</p></body></html>",
        "<html><head><title>x</title></head><body><script>'<h1>y</h1>'</script></body></html>",
        "$$\na\n=\nb\n$$\n",
        "[a](b)\n\n- item\n---\n",
        "> quote\n---\n\n[a](b)",
        "| a | b |\n|---|---|\n| 1 | 2 |\n---\n",
        "[a]: b\n---\n",
        "[a](b)\n\nKind regards,\nTom Reyes\n--\nTea Ltd\n",
        "[a](b)\n\nTom\n-- \nTea Ltd\n",
    ],
)
def test_front_matter_code_and_comments_are_no_headings(text: str) -> None:
    assert texts(text) == []


PYTHON = (
    '"""About files.\n\nOpens them."""\n\nimport os\n\n# TODO: close them\n\n\n'
    "def f():\n    # Why\n    pass\n"
)
YAML = "# The build\nname: build\non:\n  push:\n    branches: [main]\n\n# TODO: more\njobs: {}\n"
TOML = "# The project\n[project]\nname = 'x'\n\n# TODO: more\nversion = '1'\n"


@pytest.mark.parametrize(
    "text",
    [
        PYTHON,
        YAML,
        "---\n" + YAML,
        TOML,
        "#!/bin/sh\n# TODO: quote\necho $1\n",
        "# Build\n#include <stdio.h>\n#include <stdlib.h>\n\nint main(void) {\n}\n",
        "// x\nimport a from 'b';\n\nexport const c = 1;\n\n# d\n",
    ],
)
def test_comments_of_source_code_are_no_headings(text: str) -> None:
    assert detect_format(text) == "code"
    assert texts(text) == []
    assert [block.kind for block in read_blocks(text)] == ["code"]


@pytest.mark.parametrize(
    "text",
    [
        "# Imports\n\n```python\nimport os\nimport sys\n\ndef f(): ...\n```\n\nThat is how.",
        "---\ntitle: Tea\ntags:\n  - hot\n---\n# Tea\n\n- green\n",
        "# Contact\n\nName: Ada\nPhone: 1\n\n# Address\n\nStreet: x\n",
        "# A\n\nimport duties rose by ten percent\nimport taxes fell, too\n",
    ],
)
def test_markdown_with_code_is_markdown(text: str) -> None:
    assert detect_format(text) == "markdown"
    assert texts(text)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"source": "scripts/build.sh"}, []),
        ({"file_name": "conf.toml"}, []),
        ({"language": "python"}, []),
        ({"source": "notes.md"}, ["TODO"]),
        ({"language": "en"}, ["TODO"]),
        ({"source": "page.html"}, ["TODO"]),
        ({}, ["TODO"]),
    ],
)
def test_metadata_may_tell_that_a_text_is_code(
    metadata: dict[str, str], expected: list[str]
) -> None:
    assert texts("# TODO\n\nx = 1", metadata=metadata) == expected


# Everybody agrees

FRAGMENTS = (
    *("# a", " ## b #", "    # c", "#", "####### d", "#e", "text", "more *text*", "  indented"),
    *("===", "---", "--", "* * *", "== w ==", "- item", "1. one", "2. two", "  # in item"),
    *("  more of it", "> quote", "> # h", "```", "~~~~", "<pre>", "</pre>", "<!-- c", "-->"),
    *("<h2>t</h2>", "<b>", "$$", "| a | b |", "|---|---|", "[a]: b", "\t# tab", "", "", ""),
)


def block_headings(text: str) -> list[tuple[int, int, str]]:
    blocks = read_blocks(text, "markdown")
    return [(b.start, b.level, b.title) for b in blocks if b.kind == "heading" and b.title]


def outline_headings(text: str) -> list[tuple[int, int, str]]:
    outline = Outline.of(text, "markdown")
    return [(heading.start, heading.level, heading.title) for heading in outline.headings]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12))
def test_outline_of_markdown_has_the_headings_among_its_blocks(lines: list[str]) -> None:
    text = "\n".join(lines)
    blocks, outline = block_headings(text), outline_headings(text)
    inside = [block for block in read_blocks(text, "markdown") if block.kind == "html"]
    shown = [h for h in outline if not any(b.start <= h[0] < b.end for b in inside)]
    assert shown == blocks


def test_outline_of_real_markdown_has_the_headings_among_its_blocks() -> None:
    paths = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/golden/*.md")]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    assert len(texts) > 90
    assert [text for text in texts if outline_headings(text) != block_headings(text)] == []


NOTE = "---\nlayout: x\nauthor: y\n---\n\n" + "Boil **water** and wait. " * 20 + "[More](a.html).\n"
SMALL = RecursiveChunker(chunk_size=120)


@pytest.mark.parametrize("text", [NOTE, PYTHON * 5, YAML * 5], ids=["front matter", "code", "yaml"])
@pytest.mark.parametrize(
    "chunker",
    [
        TitledChunker(chunker=SMALL, include_headings=True),
        ContentAwareChunker(chunk_size=120),
        HierarchicalChunker(chunk_size=120),
    ],
    ids=lambda chunker: type(chunker).__name__,
)
def test_front_matter_and_comments_head_no_chunk(chunker: Chunker, text: str) -> None:
    for chunk in chunker.chunk(text):
        assert "headings" not in chunk.metadata
        assert chunk.text in text


def test_all_strategies_tell_the_same_headings() -> None:
    text = (
        "---\ntitle: x\n---\n# Tea *green*\n\nHot.\n\n<h2>Cold</h2>\n\n```\n# no\n```\n\nIced.\n\n"
        "Milk\n----\n\n[More](a)."
    )
    aware = ContentAwareChunker(chunk_size=12).chunk(text)
    tree = HierarchicalChunker(chunk_size=12).chunk(text)
    titled = TitledChunker(chunker=RecursiveChunker(chunk_size=40), include_headings=True)
    expected = {
        "Hot.": ["Tea green"],
        "Iced.": ["Tea green", "Cold"],
        "(a).": ["Tea green", "Milk"],
    }
    for passage, path in expected.items():
        for chunks in (aware, tree, titled.chunk(text)):
            chunk = next(each for each in chunks if passage in each.text)
            assert chunk.metadata["headings"] == path


# Time


@pytest.mark.parametrize("words", [400, 4000])
def test_long_title_is_measured_a_few_times(words: int) -> None:
    lengths: list[int] = []

    def measure(text: str) -> int:
        lengths.append(len(text))
        return len(text)

    inner = RecursiveChunker(chunk_size=400, length_function=measure)
    title = "word " * words
    text = "# A\n\n" + "Text below. " * 50
    chunks = TitledChunker(chunker=inner).chunk(text, metadata={"title": title})
    assert all(len(chunk.text) <= 400 for chunk in chunks)
    assert chunks[-1].text.startswith("word word")
    assert sum(length > 400 for length in lengths) < 30


def test_heading_of_any_length_costs_in_proportion() -> None:
    text = "# " + "word " * 100_000 + "\n\n" + "Text below. " * 10_000
    for chunks in (
        TitledChunker(include_headings=each).chunk(text, metadata={"title": "Tea " * 9_000})
        for each in (False, True)
    ):
        assert sum(len(chunk.text) for chunk in chunks) < 1.5 * len(text)


def test_title_stands_before_rewritten_chunks() -> None:
    table = "# Prices\n\n| tea | price |\n|---|---|\n| green | 4 |\n| black | 3 |\n"
    chunker = TitledChunker(chunker=TableChunker(render="json", rows_per_chunk=1))
    assert [chunk.text for chunk in chunker.chunk(table)][1:] == [
        'Prices\n\n[{"tea": "green", "price": "4"}]',
        'Prices\n\n[{"tea": "black", "price": "3"}]',
    ]


@pytest.mark.parametrize(
    ("text", "name", "title"),
    [
        ('---\nlayout: post\ntitle: "Tea: hot"\n---\n## Milk\n', "a.md", "Tea: hot"),
        ("+++\ntitle = 'Tea'\n+++\n\n# Milk\n", "a.md", "Tea"),
        ("---\nsubtitle: Rum\ntitle: >\n  Tea\n---\n\n# Milk\n", "a.md", "Milk"),
        ("# Milk\n\ntitle: Tea\n", "a.md", "Milk"),
        ("# Rum\n#+TITLE:   Tea\n* Milk\n", "a.org", "Tea"),
        ("#+begin_src yaml\ntitle: Rum\n#+end_src\n#+TITLE: Tea\n* Milk\n", "a.org", "Tea"),
    ],
)
@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_title_may_be_declared(text: str, name: str, title: str, line_break: str) -> None:
    text, metadata = text.replace("\n", line_break), {"source": name}
    assert title_of(text, metadata) == title
    chunker = TitledChunker(chunker=RecursiveChunker(chunk_size=40))
    chunks = chunker.chunk(f"{text}{2 * line_break}{'Pour it. ' * 8}", metadata=metadata)
    assert chunks[-1].text.startswith(title)


def test_the_title_of_a_long_text_needs_only_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    outlined = record_calls(monkeypatch, Outline, "of")
    prose = "Boil *water*.\n\n" * 10_000
    assert title_of("# Tea\n\n" + prose, {}) == "Tea"
    assert max(len(text) for text, *_ in outlined) < 6_000
    assert title_of("[a](b)\n\n" + prose + "# Late", {}) == "Late"
    matter = "---\n" + "# a: b\n\n" * 2_000 + "x: y\n---\n\n# Tea\n\n"
    assert title_of(matter + prose, {"source": "a.md"}) == "Tea"


def test_text_after_details_stands_under_the_heading_before_them() -> None:
    text = "# Tea\n\n<details>\n<summary>More</summary>\n\n## Green\n\nCool.\n\n</details>\n\nHot."
    outline = Outline.of(text, "markdown")
    assert outline.above(text.index("Hot")) == outline.above(text.index("Cool")) == ("Tea",)


def test_stored_heading_may_hold_a_lone_surrogate() -> None:
    text = "T\ud800a\nHot."
    heading = Block("heading", 0, 3, 1, "T\ud800a")
    assert stored_headings(text, write_outline(text, [heading])) == [heading]
