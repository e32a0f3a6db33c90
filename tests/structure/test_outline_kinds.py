"""Outlines of RST, AsciiDoc, LaTeX, man pages, mail, logs and plain text."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from rag_splitters import ContentAwareChunker, RecursiveChunker, TitledChunker
from rag_splitters.structure.blocks import TextFormat, read_blocks
from rag_splitters.structure.outline import Outline

DOCUMENTS = Path(__file__).parents[1] / "data" / "documents"
GOLD = json.loads((DOCUMENTS / "gold.json").read_text(encoding="utf-8"))


def shown(text: str, format: TextFormat) -> list[str]:
    """Each heading after one sign for each level."""
    return [f"{'#' * each.level} {each.title}" for each in Outline.of(text, format).headings]


CASES: list[tuple[TextFormat, str, list[str]]] = [
    # reStructuredText: levels in order of appearance, an overline makes another one
    ("rst", "===\nTea\n===\n\nA\n---\n\nB\n~~~\n\nC\n---\n", ["# Tea", "## A", "### B", "## C"]),
    ("rst", "Tea\n---\n\nA\n===\n\nMilk\n----\n", ["# Tea", "## A", "# Milk"]),
    ("rst", "=====\n Tea\n=====\n\nMilk\n=====\n", ["# Tea", "## Milk"]),
    ("rst", "The ``a`` of :func:`b <c>` and `d <e>`_\n" + "+" * 40, ["# The a of b and d"]),
    ("rst", "A::\n\n    Title\n    =====\n\nB\n=\n\nC\n===\n", ["# C"]),
    ("rst", ".. note::\n\n   Title\n   =====\n\n.. code:: rst\n\n    A\n    ==\n", []),
    ("rst", "One line\nand another\n-----------\n", []),
    ("rst", "a\n\n-----\n\nb\n\n=====  ====\nx      y\n=====  ====\n", []),
    (
        "rst",
        "A long title of a section\n----\n\nTea\r\n===\r\n",
        ["# A long title of a section", "## Tea"],
    ),
    # AsciiDoc
    (
        "asciidoc",
        "= Tea\n\n== Green\n\n=== Hot\n\n== Black ==\n",
        ["# Tea", "## Green", "### Hot", "## Black"],
    ),
    ("asciidoc", "= Tea\n\n.A title\n----\n== a\n# b\n----\n\n== Milk\n", ["# Tea", "## Milk"]),
    ("asciidoc", "== A\n\n====\n== x\n====\n\n....\n== y\n....\n\n|===\n|a\n|===\n", ["## A"]),
    ("asciidoc", "Teas\n====\n\nGreen\n-----\n\nHot.\n", ["# Teas", "## Green"]),
    (
        "asciidoc",
        "[source,c]\n----\n== a\n----\n\n== [[b]]The `b` of link:c[d]\n",
        ["## The b of d"],
    ),
    ("asciidoc", "----\n\n== Never closed\n", ["## Never closed"]),
    # Org
    (
        "org",
        "* TODO [#A] The ~a~ of [[b][c]]  :tag:\n** B /c/ d_e_f\n* \n******* Deep\n",
        ["# The a of c", "## B c d_e_f", "###### Deep"],
    ),
    (
        "org",
        "#+begin_src sh\n# a\n#+end_src\n# b\n* Tea\n:LOGBOOK:\n** Green\n",
        ["# Tea", "## Green"],
    ),
    # LaTeX
    (
        "latex",
        "\\title{Tea \\\\ and \\emph{Milk}}\n\\section[short]{A~\\texttt{b}}\n\\label{x}\n"
        "\\subsection*{C \\& D}\n\\chapter{E}",
        ["# Tea and Milk", "### A b", "#### C & D", "## E"],
    ),
    (
        "latex",
        "% \\section{A}\n\\begin{verbatim}\n\\section{B}\n\\end{verbatim}\n\\section{C}",
        ["# C"],
    ),
    ("latex", "\\begin{lstlisting}\n\\section{B}\n\\section{Open", ["# B"]),
    ("latex", "\\section{Two\n lines {of} it}", ["# Two lines of it"]),
    (
        "latex",
        r"\section{\LaTeX{} and Xe\TeX\ fonts for \pkg{expl3}}",
        ["# LaTeX and XeTeX fonts for expl3"],
    ),
    ("latex", "\\section{\\texorpdfstring{$\\mathcal{T}$}{T}-teas}", ["# T-teas"]),
    # man pages
    (
        "man",
        '.TH TEA 1 "2024"\n.SH "SEE ALSO"\na\n.SS \\fBGreen\\fP\\-tea\n.nf\n.SHx\n.fi\n.SH\nMilk\n',
        ["# TEA(1)", "## SEE ALSO", "### Green-tea", "## Milk"],
    ),
    (
        "man",
        "tea(1)     Commands     tea(1)\n\nNAME\n       tea - make\n\nSEE ALSO\n\n       milk\n\n"
        "   Green tea\n       It is.\n\nA line\nNO HEADING\nof it\n",
        ["# tea(1)", "## NAME", "## SEE ALSO", "### Green tea"],
    ),
    # mail
    (
        "mail",
        "From a@b Mon Feb  5 09:12:44 2024\nReceived: x\nSubject: Tea\n and milk\n\nFrom here.\n\n"
        "From c@d Mon Feb  5 09:13:44 2024\nSubject: =?utf-8?q?Caf=C3=A9?=\n\nSubject: none\n",
        ["# Tea and milk", "# Café"],
    ),
    ("mail", "From: a\nSubject: Re: Tea\n\n# hot\n", ["# Re: Tea"]),
    ("mail", "From: a\nSubject: =?uúf-8?q?Tea?=\n\nHot.\n", ["# =?uúf-8?q?Tea?="]),
    ("log", "2024-01-01 10:00:00 A\n\nB\n===\n", []),
    ("subtitles", "1\n00:00:01,000 --> 00:00:02,000\nTEA\n\n", []),
    ("csv", "A\n===\n", []),
    ("code", "# A\n\nA\n===\n", []),
    # numbers of plain text
    (
        "text",
        "1. Tea\n\nx\n\n1.1 Hot\nX.\n\n1.2. Iced\n\nx\n\n2. Milk\n\nx\n",
        ["## 1. Tea", "### 1.1 Hot", "### 1.2. Iced", "## 2. Milk"],
    ),
    (
        "text",
        "Titre II\n\nArticle 1er\n\nx\n\n§\u00a02a Tee\n\n(1) x\n\nArt. 3\n\nСтатья 4. Чай\n\nx\n",
        ["# Titre II", "#### Article 1er", "#### § 2a Tee", "#### Art. 3", "#### Статья 4. Чай"],
    ),
    ("text", "§ 5 Absatz 2 gilt für Tee.\nEr ist heiß.\n\n§ 3 ist gestrichen\n\nx\n", []),
    ("text", "h1. Tea\nHot.\n\nh3. Green\n\nx\n\nh7. x\n\nh.2 x\n", ["# Tea", "### Green"]),
    ("text", "3.7.1 Canonicalization\n\n   When in\n", ["#### 3.7.1 Canonicalization"]),
    (
        "text",
        " " * 15 + "On the Green Tea of the Northern Mountains\n\nx\n",
        ["## On the Green Tea of the Northern Mountains"],
    ),
    ("text", "Hot, see\nsection 3.7.1. If not, see\nSection 4. It is\n", []),
    ("text", "       CRLF           = CR LF\n\nx\n\n       NAME    VALUE\n\nx\n", []),
    (
        "text",
        "  0. Definitions.\n\n  x\n\n  1. Source Code.\n\n  x\n",
        ["## 0. Definitions.", "## 1. Source Code."],
    ),
    ("text", "1. Boil the water.\n\n2. Pour it.\n\n3. Wait.\n", []),
    ("text", "1. Milk\n2. Eggs\n3. Flour\n\nx\n", []),
    (
        "text",
        "1  Tea ....... 3\n\n1.1  Green ... 4\n\n1  Tea\n\nx\n\n1.1  Green\n\nx\n",
        ["## 1 Tea", "### 1.1 Green"],
    ),
    (
        "text",
        "1  Tea\n1.1  Green\n2  Milk\n\n1  Tea\n\nx\n\n1.1  Green\n\nx\n",
        ["## 1 Tea", "### 1.1 Green"],
    ),
    (
        "text",
        "1. Tea\n\nx\n\n1. Do\n\nx\n\n2. Wait\n\nx\n\n2. Milk\n\nx\n",
        ["## 1. Tea", "## 2. Milk"],
    ),
    ("text", "7 January\n\nx\n\n12 Main Street\n\nx\n", []),
    (
        "text",
        "Chapter 1\nIt rained.\n\nSection 2 says so.\n\nSection 3: Tea\n\nx\n",
        ["## Chapter 1", "### Section 3: Tea"],
    ),
    ("text", "一、はじめに\n\nx\n\n二、持ち物\n\nx\n", ["## 一、はじめに", "## 二、持ち物"]),
    (
        "text",
        " " * 30 + "The Protocol\n\nx\n\n" + " " * 50 + "14 October 2022\n",
        ["## The Protocol"],
    ),
    (
        "text",
        "Making paper\n\n1. Tools\n\nx\n\n2. Work\n\nx\n",
        ["# Making paper", "## 1. Tools", "## 2. Work"],
    ),
    ("text", "Dear Ann,\n\nCome.\n\nTHE END\n\nx\n", ["## THE END"]),
    ("text", f"It is hot:\n\n\tTEA\t*pour __P({'x' * 24}); ~\n\nx\n", []),
    (
        "text",
        "Teas\n*****\n\n1. Hot\n======\n\na\n\n1.1. Pot\n--------\n\nb\n\nLids\n~~~~\n\nc\n",
        ["# Teas", "## 1. Hot", "### 1.1. Pot", "#### Lids"],
    ),
    ("text", "Tea\n---\n\na\n\nLid\n===\n\nb\n", ["## Tea", "# Lid"]),
    (
        "text",
        " " * 30 + "TEA LAWS\n   ALL THE TERMS\n\nx\n\n1. Green\n\nx\n\n2. Black\n\nx\n",
        ["# TEA LAWS ALL THE TERMS", "## 1. Green", "## 2. Black"],
    ),
    (  # wrapped paragraphs with numbers
        "text",
        "1. Tea\n\nx\n\n2. This Licence Agreement is between the Tea Pourers\n"
        "(the Pourers), and you.\n\n3. On the Quality of the Water and of Leaves\n"
        "The water must be soft, and the leaves must not be older than two years.\n",
        ["## 1. Tea", "## 3. On the Quality of the Water and of Leaves"],
    ),
    (  # a paragraph whose lines have an indentation is not centred
        "text",
        f"x\n\n{' ' * 10}Since the tea of the north is grown on slopes that are\n"
        f"{' ' * 10}steep, it cannot be picked by machines.\n\n"
        f"{' ' * 10}All of it is picked by hand, early in the morning and\n"
        f"{' ' * 10}late in the evening, when it does not rain so hard.\n",
        [],
    ),
    (  # capitals with a number
        "text",
        "TEA LAWS\n\n1. GREEN\n\nx\n\n1.1. Hot\n\nx\n\n1.2. ICED\n\nx\n\n1.3. Cold\n\nx\n",
        ["# TEA LAWS", "## 1. GREEN", "### 1.1. Hot", "### 1.2. ICED", "### 1.3. Cold"],
    ),
    # sections with their headings in line, as in the Apache License
    ("text", "TEA LAWS\n\n1. Terms.\n\n   Tea is tea.\n\n2. Use. You may pour.\n", ["## TEA LAWS"]),
    # Markdown
    (
        "markdown",
        '# Tea {#tea .hot}\n\n## Milk ¶\n\n## Rum {id="rum"}',
        ["# Tea", "## Milk", "## Rum"],
    ),
    (
        "markdown",
        "# Tea [![build](a.svg)](b) ![docs](c.svg)\n\n# ![Milk](m.png)\n",
        ["# Tea", "# Milk"],
    ),
]


def test_blocks_of_org_are_whole_with_their_labels() -> None:
    code = "#+NAME: boil\n#+BEGIN_SRC sh :results silent\n  boil\n\n#+begin_x\n#+end_src"
    table = "#+CAPTION: Teas\n| a | b |\n|---+---|\n| 1 | 2 |"
    drawer = ":PROPERTIES:\n:ID: 1\n:END:"
    quote = "#+begin_quote\nHot.\n#+end_quote"
    text = f"* Tea\n{drawer}\n{code}\nHot.\n- a\n- b\n\n{table}\n{quote}\n:X:\nopen\n"
    blocks = read_blocks(text, "org")
    assert [(block.kind, text[block.start : block.end]) for block in blocks] == [
        ("heading", "* Tea"),
        ("front_matter", drawer),
        ("code", code),
        ("paragraph", "Hot."),
        ("list_item", "- a"),
        ("list_item", "- b"),
        ("table", table),
        ("quote", quote),
        ("paragraph", ":X:\nopen"),
    ]
    assert blocks[2].title == "sh"


@pytest.mark.parametrize(("format", "text", "expected"), CASES)
def test_headings(format: TextFormat, text: str, expected: list[str]) -> None:
    assert shown(text, format) == expected


@pytest.mark.parametrize(("format", "text", "expected"), CASES)
def test_blocks_cover_the_text_and_have_the_same_headings(
    format: TextFormat, text: str, expected: list[str]
) -> None:
    blocks, position = read_blocks(text, format), 0
    for block in blocks:
        assert not text[position : block.start].strip()
        assert block.start < block.end
        assert text[block.start : block.end].strip() == text[block.start : block.end]
        position = block.end
    assert not text[position:].strip()
    outline = Outline.of(text, format, blocks=blocks)
    assert outline.headings == Outline.of(text, format).headings


def kinds(text: str, format: TextFormat) -> list[tuple[str, str]]:
    return [(block.kind, text[block.start : block.end]) for block in read_blocks(text, format)]


def test_code_formulas_and_tables_are_blocks() -> None:
    assert kinds("So::\n\n    a\n\n    b\n\nc", "rst") == [
        ("paragraph", "So::"),
        ("code", "a\n\n    b"),
        ("paragraph", "c"),
    ]
    text = ".. code-block:: c\n   :linenos:\n\n   int x;\n\nend"
    (code, _) = read_blocks(text, "rst")
    assert (code.kind, code.title) == ("code", "c")
    assert [
        kind for kind, _ in kinds("----\na\n\nb\n----\n\n|===\n|a\n\n|b\n|===", "asciidoc")
    ] == ["code", "table"]
    latex = "A\n\\begin{align*}\nx\n\ny\n\\end{align*}\n\\begin{table}\na & b\n\\end{table}"
    assert [kind for kind, _ in kinds(latex, "latex")] == ["paragraph", "formula", "table"]
    table = "\\begin{table}\n\\begin{tabular}{l}\na & b\n\\end{tabular}\n\\end{table}"
    assert kinds(table, "latex") == [("table", table)]
    listing = ".How to make it\n[source,c]\n----\nint tea;\n----"
    assert kinds(f"Hot.\n\n{listing}\n", "asciidoc") == [("paragraph", "Hot."), ("code", listing)]
    assert kinds("a\n.PP\nb\n.nf\nc\n\nd\n.fi\n", "man")[-1][0] != "heading"
    assert [kind for kind, _ in kinds(".SH A\nb\n.nf\nc\n\nd\n.fi\ne\n.PP\nf", "man")] == [
        "heading",
        "paragraph",
        "code",
        "paragraph",
        "paragraph",
    ]
    assert kinds("10:00:00 a\n at b\n10:00:01 c", "log") == [
        ("paragraph", "10:00:00 a\n at b"),
        ("paragraph", "10:00:01 c"),
    ]
    assert [kind for kind, _ in kinds("From: a\nSubject: b\nTo: c\n\nd", "mail")] == [
        "heading",
        "front_matter",
        "paragraph",
    ]


def test_long_headings_are_cut_at_a_word() -> None:
    text = "# " + "tea and milk, " * 40 + "\n\n# " + "茶" * 300
    first, second = Outline.of(text).headings
    assert len(first.title) <= 120
    assert first.title.endswith(("tea…", "and…", "milk…"))
    assert second.title == "茶" * 119 + "…"
    assert first.end - first.start > 500


MARKED = [name for name in GOLD if Path(name).suffix in (".rst", ".adoc", ".tex", ".1", ".md")]


@pytest.mark.parametrize("name", [*MARKED, "bzip2_man.txt", "allotment_handbook.txt", "lgpl_3.txt"])
def test_outlines_of_documents_have_the_headings_that_a_reader_sees(name: str) -> None:
    text = (DOCUMENTS / name).read_text(encoding="utf-8")
    places = [row.split(" ")[0] for row in GOLD[name]["headings"]]
    expected = {int(place.split(":")[0]) for place in places}
    outline, lines = Outline.of(text, metadata={"source": name}), set()
    extra = 0
    for heading in outline.headings:
        first = text.count("\n", 0, heading.start) + 1
        own = set(range(first, first + text.count("\n", heading.start, heading.end) + 1))
        extra += not own & expected
        lines |= own
    assert not expected - lines
    assert extra <= 1  # the title of a man page, of a LaTeX document, of a handbook


@pytest.mark.parametrize("name", ["kettle_manual.adoc", "pep_0257.rst", "reservoir.tex", "http.1"])
def test_a_heading_begins_a_chunk_and_names_it(name: str) -> None:
    text = (DOCUMENTS / name).read_text(encoding="utf-8")
    chunks = ContentAwareChunker(chunk_size=800).chunk(text)
    headings = Outline.of(text).headings
    starts = {chunk.start for chunk in chunks}
    for heading, after in pairwise(headings):
        if after.start - heading.start > 800 and text[heading.end : after.start].strip():
            is_nested = any(text[start : heading.start].strip() == "" for start in starts)
            assert is_nested or any(
                not text[other.end : heading.start].strip() and other.level < heading.level
                for other in headings
            )
    unnamed = [chunk for chunk in chunks[3:] if "headings" not in chunk.metadata]
    assert all(chunk.start in {each.start for each in headings} for chunk in unnamed)  # several


def test_titled_chunks_of_a_mailbox_know_their_mail() -> None:
    text = (DOCUMENTS / "harbour_list.mbox").read_text(encoding="utf-8")
    chunker = TitledChunker(chunker=RecursiveChunker(chunk_size=400), include_headings=True)
    last = chunker.chunk(text)[-1]
    assert last.metadata["headings"][0].startswith("[PATCH] Compare time stamps")


@pytest.mark.parametrize("mark", ["====", "____", "****", "--", "----", "|==="])
def test_blocks_of_asciidoc_are_whole_with_their_labels(mark: str) -> None:
    block = f".Title\n[NOTE]\n{mark}\nBoil the water.\n\nThen wait.\n\n* one\n* two\n{mark}"
    text = f"= Tea\n\nThis is the first paragraph of it.\n\n{block}\n\nThis comes after it.\n"
    chunks = ContentAwareChunker(format="asciidoc", chunk_size=90, chunk_overlap=0).chunk(text)
    assert [block in chunk.text for chunk in chunks].count(True) == 1
