"""Cuts that a careful editor would make: what belongs together is not parted."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_splitters import (
    ContentAwareChunker,
    ParagraphChunker,
    RecursiveChunker,
    SentenceChunker,
    TableChunker,
)
from rag_splitters.testing import hostile_texts
from rag_splitters.text.leads import lead_start
from rag_splitters.text.wrapping import clauses, unwrapped_lines
from tests.support.cases import letters
from tests.support.checks import check_chunker

BEFORE = "It ends here.\n\n"
LEADS = {
    "heading with a keyword and a full stop": "Article IV.\n\n|Pour the tea.",
    "heading with a number and a full stop": "Chapter 3.\n\n|Pour the tea.",
    "long heading with a full stop": f"## {'It is a long heading. ' * 6}\n\n|Pour the tea.",
    "sentence in bold before a formula": "**Tea** is given by\n\n|$$\nt\n$$",
    "heading": "## Care\n\n|Rinse it once a month.",
    "underlined with tildes": "Care\n~~~~\n\n|Rinse it once a month.",
    "underlined with accents": "Care of it\n````````\n\n|Rinse it once a month.",
    "directive with options": ".. code:: sh\n   :name: tea\n   :lines:\n\n|   rinse kettle",
    "two headings": "# Kettle\n\n## Care\n\n|Rinse it once a month.",
    "underlined heading": "Care\n====\n\n|Rinse it once a month.",
    "overlined heading": "====\nCare\n====\n\n|Rinse it once a month.",
    "numbered and underlined": "2. Matters arising\n------------------\n\n|Nothing arose.",
    "between a heading and its line": "Care\n|----\n\nRinse it once a month.",
    "AsciiDoc heading": "== Care\n\n|Rinse it once a month.",
    "LaTeX heading": "\\section{Care}\n\\label{care}\n\n|Rinse it once a month.",
    "HTML heading": "<h2 id='care'>Care\nand repair</h2>\n|<p>Rinse it once a month.</p>",
    "opening tags": "<ul class='x'>\n|<li>Rinse it once a month.</li>",
    "numbered heading": "3.2 Overall operation\n\n|The protocol is a request and a response.",
    "numbered clause": "  2. Conveying Modified Versions.\n\n|  If you modify a copy of it, then",
    "heading in capitals": "TERMS AND CONDITIONS\n   FOR COPYING\n\n|  This licence applies to it.",
    "man page": "SYNOPSIS\n|       ls [OPTION]... [FILE]...",
    "option of a man page": "-a, --all\n|       do not ignore entries that start with .",
    "plain heading": "How to rinse it\n\n|Rinse it once a month, and use vinegar.",
    "lead-in of a list": "You need:\n\n|- vinegar",
    "lead-in that is wrapped": "You need the following\nthings for it:\n\n|- vinegar",
    "lead-in of code": "For example::\n\n|    boil(water)",
    "lead-in with CRLF": "You need:\r\n\r\n|- vinegar",
    "admonition": ":::note\n|It is hot.",
    "directive": ".. note::\n\n|   It is hot.",
    "rubric": ".. rubric:: Care\n\n|Rinse it once a month.",
    "attribute of a block": "[source,c]\n|----\nboil(water);\n----",
    "label": "**Note**\n\n|It is hot when it has boiled.",
    "fence": "```python\n|boil(water)\n```",
    "header of a table": "| a | b |\n|---|---|\n^| 1 | 2 |",
    "first border of a table": "+---+---+\n^| a | b |\n+---+---+\n| 1 | 2 |\n+---+---+",
    "header between borders": "+---+---+\n| a | b |\n+---+---+\n^| 1 | 2 |\n+---+---+",
    "header with a double border": "+---+---+\n| a | b |\n+===+===+\n^| 1 | 2 |\n+---+---+",
    "comment": "# Boil the water.\n# Not too long.\n|def boil():\n    pass",
    "decorator": "@cache\n|def boil():\n    pass",
    "signature": "@cache\ndef boil():\n|    pass",
    "attribute of Rust": "/// A kettle.\n#[derive(Debug)]\n|pub struct Kettle {",
    "question as a heading": "## Why rinse it?\n\n|Because of the lime.",
    "HTML heading in capitals": "<H2>Care</H2>\n|<p>Rinse it once a month.</p>",
    "heading of a PDF": "2 Findings\n2.1 Treads\n|The treads are of stone from a quarry at Eldon.",
    "named heading": "ANNEX: How to apply it.\n\n|To apply it, attach the following notice to it.",
    "admonition of MyST": ":::{admonition} Note\n|It is hot.",
    "title with years": "OZYMANDIAS\n\nPercy Shelley (1792-1822)\n\n|I met a traveller from a land",
    "lead-in of HTML": "<p>You need:</p>\n|<ul><li>vinegar</li></ul>",
    "greeting": "Hello everybody,\n\n|since the upgrade our server needs four minutes.",
    "end of a letter": "Best regards,\n\n|Jonas Petersen",
    "caption of a table": "Table 4 Ships in port\n|Aurora 4200 Bergen",
    "comment and a blank line": "--\n-- Name: kettle; Type: TABLE\n--\n\n|CREATE TABLE kettle (",
    "block comment and a blank line": "/* Boils. */\n\n|void boil() {",
    "anchor of RST": ".. _care:\n\n|Rinse it once a month.",
    "anchor of AsciiDoc": "[[care]]\n|== Care\n\nRinse it once a month.",
    "anchor of MyST": "(care)=\n|# Care\n\nRinse it once a month.",
    "anchor of HTML": '<a name="care"></a>\n\n|# Care\n\nRinse it once a month.',
    "anchor of XHTML": '<a name="care"/>\n\n|# Care\n\nRinse it once a month.',
    "underlined heading with a colon": "Care: why\n---------\n\n|Because of the lime.",
    "document type": "<!DOCTYPE html>\n|<p>Rinse it once a month.</p>",
    "continuation of AsciiDoc": "+\n|--\nRinse it once a month.\n--",
    "entry of an index": "\\section{Care}\n\n\\index{care}%\n|Rinse it once a month.",
    "displayed formula of LaTeX": "\\[\n|x = y\n\\]",
    "summary of details": "<details><summary>Answer</summary>\n<p>\n\n|Rinse it once a month.",
    "question with a number": "2.1. How often do I rinse it?\n\n|Once a month.",
    "question": "Q: How often do I rinse it?\n\n|A: Once a month.",
    "question with options": "How often do you rinse it?\n\n|- Once a month.\n- Never.",
    "block comment": "/**\n * Boils.\n */\n|void boil() {",
    "sentence before code": "With it, you can run\n\n|    boil water\n\nat noon.",
    "version before its changes": "kettle (1.2-1) unstable; urgency=low\n\n|  * Boil water.",
    "item that goes on": "- vinegar of apples, from the\n|  shop next door",
}
"""What belongs to what follows the mark, which is a | or, behind pipes, a ^."""

ENDS = {
    "element without content": '<Kettle colour="red" />\n\n|## Care',
    "directive without content": ".. contents::\n\n|Rinse it once a month.",
    "a list that code printed": ">>> pour(kettle)\n['kettle', 'lid']\n\n|Rinse it once a month.",
    "options without content": ".. autoclass:: Tea\n   :members:\n\n|Rinse it once a month.",
    "fence of tildes": "~~~~ text\nx\n\npour(kettle)\n~~~~\n\n|Rinse it once a month.",
    "fence of accents": "````\npour(kettle)\n````\n\n|Rinse it once a month.",
    "sentence": "The kettle is full.\n\n|The water boils.",
    "line": "He took the kettle and\n|went away.",
    "item": "- vinegar\n|- a soft cloth",
    "item with an asterisk": "* vinegar\n* a cloth\n|* patience",
    "name with an at sign": "@agnes said so\n|and went away.",
    "sentence that a picture interrupts": (
        "It was late when we came to the harbour and heard\nthe bells,\n\n|which rang for us."
    ),
    "parenthesis": "(The kettle is full.)\n\n|   The water boils.",
    "end of a condition of C": "#endif  /* KETTLE */\n\n|    boil(water);",
    "row of a table": "Aurora    Bergen     4200\n|Medusa    Gdansk     3100",
    "last border of a table": "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+\n\n^It boils.",
    "last border and a line": "+---+---+\n| a | b |\n+---+---+\n^1 row in set (0.00 sec)",
    "border between rows": (
        "+---+\n| a |\n+===+\n| 1 |\n+---+\n^| 2 |\n+---+\n\nRinse it once a month."
    ),
    "last line of a table of Org": "|---+---|\n| 1 | 2 |\n|---+---|\n\n^Rinse it once a month.",
    "reference in brackets": "- It boils over.\n  ([TEA-12])\n\n|- The lid is hot, and so it is.",
    "remark in brackets": "He left.\n\n(Nobody answers)\n\n|He came back, and asked once more.",
    "question of a list": "1. How often do you rinse it?\n|2. Where do you keep it?\n3. Why?",
    "verse": "But I have promises to keep,\n|And miles to go before I sleep.",
    "indented paragraph": "The kettle is full.\n|   The water boils.",
    "comment at the end of indented code": "- a lid\n\n    # It boils.\n\n|Rinse it once a month.",
    "front matter": "---\ntitle: Tea\n---\n|Rinse it once a month.",
    "line before a quotation mark of troff": "name=kettle\n\n|\\[aq]@\\[aq] A file to send:",
}
"""What does not."""


def at_mark(marked: str) -> tuple[str, int]:
    before, _, after = (BEFORE + marked).partition("^" if "^" in marked else "|")
    return before + after, len(before)


@pytest.mark.parametrize("marked", LEADS.values(), ids=LEADS)
def test_lead_belongs_to_what_follows(marked: str) -> None:
    text, cut = at_mark(marked)
    assert lead_start(text, 0, cut) == len(BEFORE)


@pytest.mark.parametrize("marked", ENDS.values(), ids=ENDS)
def test_end_is_no_lead(marked: str) -> None:
    text, cut = at_mark(marked)
    assert lead_start(text, 0, cut) == cut


def test_lead_is_the_last_field_of_a_head() -> None:
    head = "PEP: 568\nTitle: Tea\nStatus: Draft\n"
    assert lead_start(f"{head}Pots:\n- blue", 0, len(head) + 6) == len(head)


def test_lead_in_of_code_is_the_line_that_is_less_indented() -> None:
    code = "if hot:\n    pour(tea)\n"
    assert lead_start(f"{code}else:\n    boil(water)", 0, len(code) + 10) == len(code)


def test_fence_ends_the_paragraph_before_a_lead_in() -> None:
    text = f"{BEFORE}```\nboil(water)\n\npour(tea)\n```\nIt is hot. You need:\n"
    assert lead_start(f"{text}- a cup", 0, len(text)) == text.index("You")
    text = text.replace("It is hot. ", "")
    assert lead_start(f"{text}- a cup", 0, len(text)) == text.index("You")


@pytest.mark.parametrize("gap", ["\n", "\n\n", "\n%\n", "\n  %\n  "])
@pytest.mark.parametrize(
    "formula",
    [
        *("\\[\nx\n\\]", "$$\nx\n$$", "\\begin{align*}\nx\n\\end{align*}", ".. math::\n\n   x"),
        "```math\nx\n```",
    ],
)
@pytest.mark.parametrize("end", ["so that", "and, as it is,", "We define"])
def test_sentence_stays_with_its_formula(end: str, formula: str, gap: str) -> None:
    before = "It ends here.\n\\[\ny\n\\]\nNot here, "
    text = f"{before}{end}{gap}{formula}"
    start = text.index("Not")
    assert lead_start(text, 0, text.index(formula)) == start
    text = text.replace(f"{end}{gap}", f"here.{gap}")
    assert lead_start(text, 0, text.index(formula)) >= text.index(gap, start)


@pytest.mark.parametrize("ends", ["\\end{proof}", "</refsect1>", "```", "  }\n}"])
def test_ends_of_blocks_are_no_chunk(ends: str) -> None:
    sentences = "Tea is hot. " * 9
    text = f"{sentences.strip()}\n{ends}\n\n{sentences}"
    chunks = RecursiveChunker(chunk_size=len(sentences)).chunk(text)
    assert ends.strip() not in [chunk.text for chunk in chunks]


def test_ends_of_blocks_before_a_lead_are_no_chunk_either() -> None:
    sentences = "Tea is hot. " * 9
    text = f"<p>\n{sentences}\n</p>\n</div>\n<h3>Pots</h3>\n\n<p>\n{sentences}"
    chunks = RecursiveChunker(chunk_size=len(sentences) + 4).chunk(text)
    assert "</p>\n</div>" not in [chunk.text for chunk in chunks]


def test_heading_at_the_start_of_a_chunk_is_a_lead_too() -> None:
    text = "## Why rinse it?\n\nBecause of the lime, which is white. " * 9
    for chunk in RecursiveChunker(chunk_size=60).chunk(text):
        assert not chunk.text.endswith("?")


ENDS_AFTER_A_LEAD = {
    "sentence": (
        "Chapter 1. The Harbour\n\nThe clock has stopped. |They say that it was the salt in the "
        "air, or the gulls, or else the boys who threw stones."
    ),
    "letter": (
        "Dear Mr Pritchard,\n\nRe: Your claim 48\n\nThank you for your letter. |We have read what "
        "you sent us, and we are glad to tell you that we will pay."
    ),
    "row": (
        "## Pots\n\nWe sell these pots:\n\n|| Pot | Where |\n| --- | --- |\n"
        "| a blue pot with a lid | in the cellar          |\n| a red one | in the shop |"
    ),
}


@pytest.mark.parametrize("chunker", [RecursiveChunker, ContentAwareChunker])
@pytest.mark.parametrize("marked", ENDS_AFTER_A_LEAD.values(), ids=ENDS_AFTER_A_LEAD)
def test_chunk_with_little_text_after_its_lead_ends_there(
    marked: str, chunker: type[RecursiveChunker | ContentAwareChunker]
) -> None:
    before, _, after = marked.partition("|")
    chunks = chunker(chunk_size=100).chunk(before + after)
    assert chunks[0].text == before.strip()


WHOLE_BLOCKS = {
    "fence": "```python\nkettle.boil(water)\npour(kettle, pot)\n```",
    "formula": "$$\nt = w + l + m + s + h, \\\\\nw = 1\n$$",
    "item": "- Boil the water. Then wait.\n  Cool the pot. Pour it.",
    "quote": "> Boil the water, and then wait.\n> Cool the pot. Pour it.",
    "row": "| Tea | How |\n|---|---|\n| Green | Boil the water. Cool the pot. |",
    "HTML": "<div>\nBoil the water, and then wait.\nPour it.\n</div>",
}


def test_heading_above_an_item_that_leads_in_stays_with_it() -> None:
    before = "## Pots\n\n- A pot is hot.\n- So is its lid.\n\n"
    item = "## Tea\n\n- It is easy. So pour it:\n\n  ```\n  pour(kettle, pot)\n  wait(5)\n  ```"
    chunks = SentenceChunker(chunk_size=95).chunk(f"{before}{item}\n")
    assert [chunk.text for chunk in chunks] == [before.strip(), item]


@pytest.mark.parametrize("block", WHOLE_BLOCKS.values(), ids=WHOLE_BLOCKS)
def test_overlap_begins_inside_no_block_that_is_whole(block: str) -> None:
    sentences = "Tea is hot. " * 9
    text = f"# Tea\n\n{sentences}\n\n{block}\n\n{sentences}\n\n{sentences}"
    chunks = ContentAwareChunker(chunk_size=190, chunk_overlap=26).chunk(text)
    assert chunks[0].text.endswith(block[-8:])
    assert chunks[1].text.startswith("Tea is hot.")


def test_overlap_leaves_no_room_for_a_block_that_does_not_fit_with_its_indentation() -> None:
    text = "- Foo\n\n      bar\n\n\n      baz\n"
    chunker = ContentAwareChunker(chunk_size=17, chunk_overlap=6, format="markdown")
    assert [chunk.start for chunk in chunker.chunk(text)] == [0, 0, 13]


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("<!-- c -->\n  - nested\n~~~\n", "  - nested\n~~~"),
        # The lines at the end of the block lead to the next one.
        ("### H3 *x*\n- item\n# H\n# H\n- item\n", "*x*\n- item"),
    ],
)
def test_overlap_leaves_room_for_a_block_in_a_unit_of_the_users(text: str, second: str) -> None:
    """A part may be longer than the whole, so an overlap that is a little too long is tried."""
    sizes = {"chunk_size": 12, "chunk_overlap": 5, "min_chunk_size": 0.1}
    chunker = ContentAwareChunker(length_function=letters, format="text", **sizes)
    check_chunker(chunker, text)
    assert chunker.chunk(text)[1].text == second


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("|---|---|\n|---|---|\nFigure 1: x\n### H3 *x*\n", (4, 1, "words")),
        ("a\ta a\na\ta", (4, 1, "words")),
        ("\0# H\n| a | b |\n|---|---|\n", (8, 3, "tokens")),
    ],
)
def test_overlap_beside_a_table_leaves_room_for_a_row(
    text: str, sizes: tuple[int, int, str]
) -> None:
    size, overlap, unit = sizes
    for text_format in ("markdown", "text"):
        chunker = ContentAwareChunker(
            chunk_size=size, chunk_overlap=overlap, length_function=unit, format=text_format
        )
        check_chunker(chunker, text)


@pytest.mark.parametrize("kind", sorted(WHOLE_BLOCKS.keys() - {"row"}))
def test_overlap_leaves_room_for_a_block_that_fits(kind: str) -> None:
    block = WHOLE_BLOCKS[kind]
    sentences = "Tea is hot. " * 9
    text = f"{sentences}\n\n{block}\n\n{sentences}"
    chunker = ContentAwareChunker(chunk_size=len(block) + 9, chunk_overlap=25, format="markdown")
    assert any(block in chunk.text for chunk in chunker.chunk(text))


@given(text=hostile_texts(), data=st.data())
def test_lead_is_before_the_cut_and_after_the_limit(text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(min_value=1, max_value=len(text) + 1)) if text else 0
    if 0 < cut <= len(text):
        low = data.draw(st.integers(min_value=0, max_value=cut - 1))
        assert low <= lead_start(text, low, cut) <= cut


WRAPPED = """The protocol is a request and response protocol. A client sends
a request to the server in the form of a request method. The
server responds with a status line, which includes the version
of the message and a success or error code."""

LINES = st.sampled_from(["x" * 600, "a wrapped paragraph of lower case words that goes on and", ""])


@given(rows=st.lists(LINES, max_size=12), data=st.data())
def test_line_end_is_inside_what_is_searched(rows: list[str], data: st.DataObject) -> None:
    text = "\n".join(rows)
    high = data.draw(st.integers(min_value=0, max_value=len(text)))
    low = data.draw(st.integers(min_value=0, max_value=high))
    cut = unwrapped_lines(text)(low, high)
    assert cut == -1 or (low < cut <= high and text[cut - 1] == "\n")


def test_line_before_a_wrapped_paragraph_is_a_line() -> None:
    text = "x" * 600 + "\n" + "a wrapped paragraph of lower case words that goes on and\n" * 6
    assert unwrapped_lines(text)(0, 640) == 601


ROWS = (
    "a wrapped paragraph of lower case words that goes on and",
    "It ends. And it goes on with words to the end of the line",
    "Tea",
    "It is short, or not",
    "c. You must keep it warm, and",
)


@example("0302133212332113001032001131202000")
@example("10040")
@given(st.text("01234", max_size=60))
def test_line_breaks_of_two_characters_change_no_line_end(numbers: str) -> None:
    text = "\n".join(ROWS[int(number)] for number in numbers)
    other = text.replace("\n", "\r\n")
    find, find_in_other = unwrapped_lines(text), unwrapped_lines(other)
    high = len(text)
    while high > 0:
        cut = find(0, high)
        high_in_other = high + text.count("\n", 0, high)
        cut_in_other = find_in_other(0, high_in_other)
        assert cut == cut_in_other - other.count("\r", 0, max(cut_in_other, 0))
        high = cut - 1


@pytest.mark.parametrize("overlap", [0, 10])
@pytest.mark.parametrize("size", [30, 80])
def test_line_breaks_of_two_characters_change_no_cut(size: int, overlap: int) -> None:
    chunker = RecursiveChunker(chunk_size=size, chunk_overlap=overlap, length_function="words")
    for path in sorted((Path(__file__).parents[1] / "data" / "documents").iterdir()):
        text = path.read_text(encoding="utf-8").replace("\r", "")
        other = text.replace("\n", "\r\n")
        places = [
            tuple(place - other.count("\r", 0, place) for place in (span.start, span.end))
            for span in chunker.spans(other)
        ]
        assert places == [(span.start, span.end) for span in chunker.spans(text)], path.name


def test_line_breaks_of_two_characters_change_no_clause() -> None:
    text = "x" * 54 + ", " + "y\n" * 12
    assert clauses(text)(0, len(text)) == clauses(text.replace("\n", "\r\n"))(0, 92) == 56


UNWRAPPED = {
    "verse": "The woods are lovely, dark and deep,\nBut I have promises to keep,\nAnd miles to go",
    "address": "Agnes Pell\n14 Harbour Street\nPort Ellen\nIsle of Islay",
    "data": "2024-01-02,kettle,12.50,sold\n2024-01-03,teapot,8.00,sold\n2024-01-04,cup,2.50,no",
    "titles of one length": (
        "Every Evening She Read Another Chapter of the Long Book Aloud\n"
        "Nobody Knew Where the Old Man Had Hidden the Keys to the Hall\n"
        "Three Boats Came Home Before the Storm and Two Came After it\n"
        "Only the Lighthouse Keeper Saw What Happened on the Last Day"
    ),
    "columns": (
        "file-metadata\t\tabout the files of a package (owner, mode, time).\n"
        "trivial\t\t\tshould be trivial to fix. It needs no test at all.\n"
        "perf\t\t\tproblems of performance, memory and disk space.\n"
        "docs\t\t\tabout manuals, examples and the pages of the site."
    ),
    "log": "10:00:01 INFO server started on port 80\n10:00:02 WARN no cache\n10:00:03 INFO ready",
}


def test_line_break_inside_a_wrapped_paragraph_is_no_boundary() -> None:
    assert unwrapped_lines(WRAPPED)(0, len(WRAPPED)) == -1
    text = f"{WRAPPED}\n- an item of a list\n"
    assert unwrapped_lines(text)(0, len(text) - 1) == len(WRAPPED) + 1


def test_sentence_of_a_manual_page_ends_before_its_escaped_stop() -> None:
    text = "It\\&. " * 3 + WRAPPED.replace("protocol. A", "protocol\\&. Eine").replace(
        ". The", "\\&. Die"
    )
    assert unwrapped_lines(text)(0, len(text)) == -1


@pytest.mark.parametrize("text", UNWRAPPED.values(), ids=UNWRAPPED)
def test_line_breaks_of_other_texts_are_boundaries(text: str) -> None:
    last = unwrapped_lines(text)
    assert last(0, len(text)) == text.rindex("\n") + 1


def test_clause_ends_in_the_last_third() -> None:
    text = "First, it is here, or (b) it is not there at all"
    assert clauses(text)(0, 24) == text.index("or")
    assert clauses(text)(0, len(text)) == -1


PARTS = "\n\n".join(f"## Part {n}\n\nIt is part number {n}. It ends here." for n in range(40))


def test_chunk_does_not_end_with_a_heading_in_any_strategy() -> None:
    for chunker in (
        RecursiveChunker(chunk_size=120),
        SentenceChunker(chunk_size=120),
        ParagraphChunker(chunk_size=120),
        ContentAwareChunker(chunk_size=120),
    ):
        chunks = [chunk.text for chunk in chunker.chunk(PARTS)]
        assert len(chunks) > 10
        assert not [chunk for chunk in chunks if chunk.splitlines()[-1].startswith("#")]


def test_overlap_adds_more_than_a_heading() -> None:
    spans = RecursiveChunker(chunk_size=120, chunk_overlap=40).spans(PARTS)
    added = [PARTS[one.end : other.end] for one, other in pairwise(spans)]
    assert all("It is part" in each or "It ends" in each for each in added)


def test_separators_of_the_user_are_obeyed_exactly() -> None:
    chunks = RecursiveChunker(chunk_size=20, separators=["\n\n"]).chunk(
        "Some text.\n\n# Tea\n\nPour."
    )
    assert chunks[0].text == "Some text.\n\n# Tea"


def test_prose_and_logs_are_no_tables() -> None:
    prose = "and gold, and ivory, with which the isles of that\nsea are rich, it seems, in all\n"
    log = "2015-10-18 18:01:47,978 INFO [main] app.Master: Created the master for it\n"
    for text in (prose * 3, log * 3):
        assert all(chunk.metadata["modality"] == "text" for chunk in TableChunker().chunk(text))


def test_last_two_chunks_of_a_table_are_balanced() -> None:
    rows = "\n".join(f"Person{number},{number}" for number in range(60))
    chunks = TableChunker(chunk_size=600, format="csv").chunk(f"name,age\n{rows}")
    assert [(c.metadata["row_start"], c.metadata["row_end"]) for c in chunks] == [(1, 30), (31, 60)]
