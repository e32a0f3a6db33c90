"""Blocks of Markdown, HTML and plain text: what they are, where they are, and in linear time.

tests/data/markdown_spec.json.gz holds the examples of the CommonMark specification and the tables
of GitHub's (CC-BY-SA 4.0; the file names source, licence and changes).
"""

from __future__ import annotations

import gzip
import html
import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rag_splitters.span import Span
from rag_splitters.structure.blocks import Block, detect_format, read_blocks
from rag_splitters.structure.blocks.markdown import _parser
from rag_splitters.structure.document import read_document
from rag_splitters.structure.html.tags import scan_tags
from rag_splitters.structure.html.text import strip_tags
from rag_splitters.structure.html.tree import Tag, parse_html
from rag_splitters.structure.text_tables import find_tables
from rag_splitters.testing import hostile_texts
from tests.support.counting import count_calls

hostile = settings(suppress_health_check=list(HealthCheck))
many = settings(hostile, max_examples=4 * settings().max_examples)
"""For properties that draw a case, too: many texts for all cases together."""
SPEC = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data/markdown_spec.json.gz").read_bytes())
)
EXAMPLES = SPEC["examples"]

MARKDOWN_PIECES = (
    *("# H\n", "## H2\n", "### H3 *x*\n", "para one. Two. ", "\n", "\n\n", "- item\n"),
    *("  - nested\n", "1. one\n", "> quote\n", ">\n", "> > deep\n", "```py\n", "# code\n"),
    *("```\n", "    indented\n", "| a | b |\n", "|---|---|\n", "| 1 | 2 |\n", "$$\n", "x = y\n"),
    *("Set\n===\n", "---\n", "~~~\n"),
    *("[r]: http://a.b 'c'\n", "![alt](u)\n", "<div>\n", "</div>\n", "<!-- c -->\n", "\r\n", "\r"),
    *("\x00", "\ud800", "\u0301", "é ", "Figure 1: x\n", "\t", "\\[\n", "\\]\n", "-\n", "word "),
)
HTML_PIECES = (
    *("<p>", "</p>", "<div>", "</div>", "<h1>", "</h1>", "<h2>T</h2>", "<ul>", "<li>", "</li>"),
    *("</ul>", "<blockquote>", "</blockquote>", "<table>", "<tr>", "<td>", "</td>", "</table>"),
    *("<pre>", "</pre>", "<script>", "</script>", "<style>x</style>", "<!--", "-->", "<!-- c -->"),
    *("<!doctype html>", "<head>", "</head>", "<a href='", "'>", '"', ">", "<", "&amp;", "&#x301;"),
    *("&nbsp;", "text ", "Some words. More.", "\n", "\n\n", "<br>", "<img alt=x>", "<figure>"),
    *("</figure>", "<hr>", "\u0301", "\x00", "\ud800", "<b>", "</b>", "</", "&", "<?", "\r\n"),
    *("👩‍👩‍👧", "\n  deep", "\n    deeper\n"),
    *("<nav>", "</nav>", "<main>", "</main>", "<aside>", "</aside>", "<header>", "</header>"),
    *("<ol start=3>", "</ol>", "<dl>", "<dt>", "<dd>", "</dl>", "<th>", "<td rowspan=2 colspan=3>"),
    *("<table><tr><td>a|b<td>c</table>", "<a href='#x' class=headerlink>¶</a>", "<svg>", "</svg>"),
    *("<button>", "</button>", "<template>", "</template>", "<div role=navigation>"),
)


def texts_of(pieces: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces), max_size=30).map("".join)


def check_blocks(text: str, format: str) -> list[Block]:
    """Blocks ascend, do not overlap, and hold everything that is no white space."""
    blocks = read_blocks(text, format)
    position = 0
    for block in blocks:
        assert position <= block.start < block.end, blocks
        assert not text[position : block.start].strip(), blocks
        assert text[block.start : block.end].strip(), block
        position = block.end
    assert not text[position:].strip(), blocks
    return blocks


def check_kept(text: str, spans: Sequence[Span], tags: Sequence[Tag] = ()) -> None:
    """All text of an HTML page is white space, in a span, in a dropped block, or in these tags."""
    covered = bytearray(len(text))
    dropped = [block for block in read_blocks(text, "html") if block.kind == "dropped"]
    for each in (*spans, *dropped, *tags):
        covered[each.start : each.end] = b"\1" * (each.end - each.start)
    lost = "".join(" " if inside else text[at] for at, inside in enumerate(covered))
    assert not html.unescape(lost).strip(), (text, spans)


def shown(text: str, format: str) -> list[tuple[str, str]]:
    return [(each.kind, text[each.start : each.end]) for each in check_blocks(text, format)]


@pytest.mark.parametrize("format", ["auto", "markdown", "html", "text"])
@hostile
@given(text=texts_of(MARKDOWN_PIECES) | texts_of(HTML_PIECES) | hostile_texts())
def test_blocks_hold_everything(format: str, text: str) -> None:
    check_blocks(text, format)


def test_blocks_of_the_markdown_specification() -> None:
    assert len(EXAMPLES) > 650
    for example in EXAMPLES:
        for text in (example["markdown"], example["markdown"].replace("\n", "\r\n")):
            blocks = check_blocks(text, "markdown")
            if detect_format(text) != "xml":  # whose tags are in no block
                check_blocks(text, "auto")
            kinds = {block.kind for block in blocks}
            page = re.sub(r"<(blockquote|li)>.*</\1>", "", example["html"], flags=re.DOTALL)
            if not example["markdown"].startswith("---\n") and "<div" not in page:
                assert ("heading" in kinds) == bool(re.search("<h[1-6]>", page)), example
            assert ("quote" in kinds) <= ("<blockquote>" in example["html"] or not example["html"])
            if "<pre><code" in example["html"]:
                assert "code" in kinds or "<pre" in example["markdown"], example
            if example["section"].startswith("Tables") and "delimiter row" not in text:
                assert kinds & {"table", "paragraph"}, example


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# a #\n\ntext\n", [("heading", "# a #"), ("paragraph", "text")]),
        ("One\ntwo\n===\n\nx", [("heading", "One\ntwo\n==="), ("paragraph", "x")]),
        ("```sh\n# no heading\n```", [("code", "```sh\n# no heading\n```")]),
        ("    # code\n", [("code", "# code")]),
        (
            "- a\n  b\n  - c\n- d\n",
            [("list_item", "- a\n  b"), ("list_item", "- c"), ("list_item", "- d")],
        ),
        ("- a\n\n  b\n", [("list_item", "- a\n\n  b")]),
        ("- ```\n  x\n  ```\n", [("code", "- ```\n  x\n  ```")]),
        ("-\n- b", [("list_item", "-"), ("list_item", "- b")]),
        (">\n> a\n>\n> b", [("quote", ">\n> a\n>"), ("quote", "> b")]),
        ("> a\nlazy\n\nb", [("quote", "> a\nlazy"), ("paragraph", "b")]),
        (
            "a | b\n--|--\n1 | `\\|`\n\nx",
            [("table", "a | b\n--|--\n1 | `\\|`"), ("paragraph", "x")],
        ),
        ("$$\na\n= \nb\n- c\n$$\n", [("formula", "$$\na\n= \nb\n- c\n$$")]),
        ("\\[ x \\]\n", [("formula", "\\[ x \\]")]),
        ("$$ a\n\nb", [("paragraph", "$$ a"), ("paragraph", "b")]),
        ("![alt](a.png)\n", [("image", "![alt](a.png)")]),
        ("[![alt](a)](b)", [("image", "[![alt](a)](b)")]),
        ("[![](a)](b)\n[![alt](c)](d)", [("image", "[![](a)](b)\n[![alt](c)](d)")]),
        ("![alt](a.png) text\n", [("paragraph", "![alt](a.png) text")]),
        ("[a]: b\n'c'\n\n[a]", [("paragraph", "[a]: b\n'c'"), ("paragraph", "[a]")]),
        ("<div>\n# no\n</div>\n", [("html", "<div>\n# no\n</div>")]),
        ("<table><tr><td>1<td>2</table>", [("table", "<table><tr><td>1<td>2</table>")]),
        ("a\n\n***\n", [("paragraph", "a"), ("rule", "***")]),
        (
            "---\na: b\n\nc: d\n---\n# x",
            [("front_matter", "---\na: b\n\nc: d\n---"), ("heading", "# x")],
        ),
        ("---\n\nno\n\n---", [("rule", "---"), ("paragraph", "no"), ("rule", "---")]),
        ("a\u2028# b\x0b\x0c# c", [("paragraph", "a\u2028# b\x0b\x0c# c")]),
        ("\x00\n# \ud800\n", [("paragraph", "\x00"), ("heading", "# \ud800")]),
        ("(a) two\n(b) three", [("list_item", "(a) two"), ("list_item", "(b) three")]),
    ],
)
def test_markdown_blocks(text: str, expected: list[tuple[str, str]], line_break: str) -> None:
    expected = [(kind, part.replace("\n", line_break)) for kind, part in expected]
    assert shown(text.replace("\n", line_break), "markdown") == expected


def test_markdown_blocks_know_titles_levels_and_groups() -> None:
    text = (
        "## The *big* [link](x) &amp; `code`\n\n- a\n  - b\n\n> q\n\n~~~ {.py}\nx\n~~~\n\n"
        "Table 2: Costs\n\n|a|\n|-|\n\n![An image](x.png)\n*Figure 1.*\n\n![Two](y)\n\nFig. 3 is it"
    )
    found = [(b.kind, b.level, b.title, b.group) for b in check_blocks(text, "markdown")]
    assert found == [
        ("heading", 2, "The big link & code", 0),
        ("list_item", 1, "", 1),
        ("list_item", 2, "", 1),
        ("quote", 1, "", 2),
        ("code", 0, "py", 0),
        ("paragraph", 0, "", 3),
        ("table", 0, "Table 2: Costs", 3),
        ("paragraph", 0, "", 0),
        ("image", 0, "Two", 4),
        ("paragraph", 0, "", 4),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<h2>A &amp; B</h2>\n<p>x", [("heading", "<h2>A &amp; B</h2>"), ("paragraph", "<p>x")]),
        ("<div><p>a</p></div> b", [("paragraph", "<div><p>a</p></div>"), ("paragraph", "b")]),
        ("a<!-- c -->b<p>c", [("paragraph", "a<!-- c -->b"), ("paragraph", "<p>c")]),
        (
            "<p>a<!-- c --></p><!-- d -->",
            [("paragraph", "<p>a<!-- c --></p>"), ("dropped", "<!-- d -->")],
        ),
        ("<script>'<p>'</script>a", [("dropped", "<script>'<p>'</script>"), ("paragraph", "a")]),
        ("<script>never closed", [("paragraph", "<script>never closed")]),
        ("<!-- never closed", [("paragraph", "<!-- never closed")]),
        (
            "<ul><li>a<ul><li>b</ul><li>c</ul>",
            [
                ("list_item", "<ul><li>a"),
                ("list_item", "<ul><li>b</ul>"),
                ("list_item", "<li>c</ul>"),
            ],
        ),
        (
            "<table><tr><td>1<td><b>2</b></table>x",
            [("table", "<table><tr><td>1<td><b>2</b></table>"), ("paragraph", "x")],
        ),
        ("<table><tr><td>a<td>b", [("paragraph", "<table><tr><td>a"), ("paragraph", "<td>b")]),
        ("<pre>\n a</pre>", [("code", "<pre>\n a</pre>")]),
        (
            "<blockquote>a<p>b</blockquote>",
            [("quote", "<blockquote>a"), ("quote", "<p>b</blockquote>")],
        ),
        ("<p><img src='a>b' alt=c></p>", [("image", "<p><img src='a>b' alt=c></p>")]),
        (
            "<figure><img><figcaption>f</figcaption></figure>",
            [("image", "<figure><img><figcaption>f</figcaption></figure>")],
        ),
        (
            "<head><title>x</title></head><body>a</body>",
            [("dropped", "<head><title>x</title></head>"), ("paragraph", "<body>a</body>")],
        ),
        ("<div></div>", [("html", "<div></div>")]),
        ("1 < 2 <a", [("paragraph", "1 < 2 <a")]),
        ("a<hr>b", [("paragraph", "a"), ("rule", "<hr>"), ("paragraph", "b")]),
    ],
)
def test_html_blocks(text: str, expected: list[tuple[str, str]]) -> None:
    assert shown(text, "html") == expected


def test_html_blocks_know_titles() -> None:
    text = (
        "<h3>A <i>b</i></h3><pre><code class='language-py'>x</code></pre>"
        "<table><caption>C</caption><tr><th>x</table><img alt='An image'><p>"
    )
    found = [(block.kind, block.title) for block in check_blocks(text, "html")]
    assert found == [("heading", "A b"), ("code", "py"), ("table", "C"), ("image", "An image")]


def test_text_blocks() -> None:
    text = (
        "THE TITLE\n\nIt begins.\n\nChapter IV: The sea\nText.\n\n2.3 Results\nText of it\n"
        "2.4 is cited here\n\nUnder\n-----\n- a\n- b\n  more\n\n1. one\n2. two\n\n§ 5 Scope\nend"
    )
    blocks = read_blocks(text, "text", keywords=("§",))
    headings = [(block.title, block.level) for block in blocks if block.kind == "heading"]
    assert headings == [
        ("THE TITLE", 1),
        ("Chapter IV: The sea", 2),
        ("2.3 Results", 3),
        ("Under", 2),
        ("§ 5 Scope", 5),
    ]
    items = [text[block.start : block.end] for block in blocks if block.kind == "list_item"]
    assert items == ["- a", "- b\n  more", "1. one", "2. two"]
    assert ("paragraph", "chapter by chapter") in shown("chapter by chapter", "text")


@pytest.mark.parametrize("read", [read_blocks, read_document, find_tables])
def test_unknown_format_is_refused(read: Any) -> None:
    with pytest.raises(ValueError, match=r"format must be one of auto, .*; got 'rtf'"):
        read("", "rtf")


def test_stripping_decodes_and_keeps_code() -> None:
    text = (
        "<p>Q&amp;A\n  one<br>two</p><pre>a\n  b</pre><ul><li>x</li><li>y</li></ul><tr><td>1<td>2"
    )
    stripped = strip_tags(parse_html(text), read_blocks(text, "html"))
    assert stripped.text == "Q&A one\ntwo\n\na\n  b\n\n- x\n- y\n\n1\n\n2"
    text = "<p>a</p><div> <pre>\n\n  b\n <i> c</i></pre></div>"
    assert strip_tags(parse_html(text), read_blocks(text, "html")).text == "a\n\n  b\n  c"
    table = "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"
    assert (
        strip_tags(parse_html(table), read_blocks(table, "html")).text
        == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    )


PATHOLOGICAL = [
    *(
        ("markdown", text)
        for text in ("> #\na\n", "> > #\n> a\n", "- a\n", "-\n", "[\n", "[a]: b (\n")
    ),
    *(
        ("markdown", text)
        for text in ("```\n", "<!--\n", "a\n", "# a\n", "\n", "x", "|a\n|-\n", "$$\n")
    ),
    *(
        ("html", text)
        for text in ("<a ", "<a '", "<!--", "<p>", "</p>", "<ul><li>", "<table>", "<a \"'>")
    ),
    *(
        ("html", text)
        for text in ("<script>", "<figure>", "&amp;", "</blockquote>", "<![CDATA[", "<h1>")
    ),
    *(("text", text) for text in ("1. a\n", "A\n\n", "\n", "x", "=\n", "Chapter 1\n")),
    *(
        ("text", text)
        for text in ("1. Tea\n\n", "1. Tea\n\nx\n\n", "-\n", "1. Tea\nx\n2. Milk\nx\n")
    ),
    *(("rst", text) for text in ("Tea\n===\n", "===\n", "::\n", "::\n\n a\n", ".. code::\n", "\n")),
    *(("asciidoc", text) for text in ("= a\n", "----\n", "A\n-----\n", "[[", "|===\n")),
    *(("latex", text) for text in ("\\section{a}\n", "\\section{\n", "\\begin{verbatim}\n", "{")),
    *(("man", text) for text in (".SH a\n", ".nf\n", ".SH\n", "A\n      a\n", ".PP\n")),
    *(("mail", text) for text in ("From a 2024\nA: b\n\n", "Subject: a\n", "\n")),
    *(("log", text) for text in ("a\n", "a\n b\n", " b\n")),
]


@pytest.mark.slow
def test_work_grows_linearly() -> None:
    """Four times the text takes no more than six times the function calls."""
    for kind, piece in PATHOLOGICAL:
        read_blocks("# x", kind)
        texts = (piece * (100 * times) for times in (1, 4))
        few, many = (count_calls(partial(read_blocks, text, kind)) for text in texts)
        assert many < 6 * few + 1250, (kind, piece, few, many)


@pytest.mark.parametrize("mark", [">", "- ", "> - ", "1. "])
def test_deep_nesting_is_bounded(mark: str) -> None:
    check_blocks(mark * 10_000 + "x\n\nafter\n", "markdown")
    check_blocks("\n".join("  " * depth + "- x" for depth in range(300)), "markdown")


def test_windows_do_not_change_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(example["markdown"] for example in EXAMPLES if "<!" not in example["markdown"])
    whole = read_blocks(text, "markdown")
    monkeypatch.setattr("rag_splitters.structure.blocks.markdown._WINDOW", 300)
    assert [(b.kind, b.start, b.end) for b in read_blocks(text, "markdown")] == [
        (b.kind, b.start, b.end) for b in whole
    ]


def test_tags_are_found_in_broken_html() -> None:
    found = [
        (kind, name) for kind, _, _, name in scan_tags("<p a='>' b=\"<i>\"><BR/><x y='></p><!-->z")
    ]
    assert found == [
        ("open", "p"),
        ("open", "br"),
        ("open", "x"),
        ("close", "p"),
        ("dropped", "comment"),
    ]


@pytest.mark.parametrize("mark", ["", "> ", "- "])
@pytest.mark.parametrize(
    "end",
    ["", "text", "    code", "\t| 3 | 4 |", "# H", "> q", "- item", "1. x", "```", "---", "<div>"],
)
def test_markdown_table_ends_where_markdown_it_ends_it(end: str, mark: str) -> None:
    """Rows and cells are not cut by the parser, which would take most of the time."""
    own = MarkdownIt("commonmark").enable("table")
    rows = ["| a | b |", "|:-:|---|", "| 1 | 2 |", "| 1 | 2 | 3 |", "x", end, "| 5 | 6 |"]
    inner = mark.replace("-", " ")
    text = "\n".join((inner if number else mark) + row for number, row in enumerate(rows))
    known = [token.map for token in own.parse(text) if token.type == "table_open"]
    found = [token.map for token in _parser().parse(text) if token.type == "table_open"]
    assert found == known != []


def test_heading_of_a_wiki_ends_a_paragraph() -> None:
    text = "Tea.\n== Green ==\nHot.\n== Black ==\nCold."
    blocks = [(block.kind, text[block.start : block.end]) for block in read_blocks(text)]
    assert blocks == [
        ("paragraph", "Tea."),
        ("heading", "== Green =="),
        ("paragraph", "Hot."),
        ("heading", "== Black =="),
        ("paragraph", "Cold."),
    ]


def test_heading_begins_with_the_anchor_between_code_and_it() -> None:
    text = "Pour::\n\n    [tea]\n\n.. _tea:\n\nTea\n===\n\nHot."
    blocks = [(block.kind, text[block.start : block.end]) for block in read_blocks(text, "rst")]
    assert blocks[-2:] == [("heading", ".. _tea:\n\nTea\n==="), ("paragraph", "Hot.")]
