"""Prints tables of the frameworks' own structure splitters beside ours, on difficult cases.

Every cell is measured with the installed versions and one judge for each row, the same for all
three. A framework that needs a documented option for it has both in its cell.

    python -m benchmarks.structures

docs/benchmarks.md shows the tables.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from langchain_core.documents import Document as LangChainDocument
from langchain_text_splitters import HTMLSemanticPreservingSplitter, MarkdownHeaderTextSplitter
from llama_index.core import Document
from llama_index.core.node_parser import HTMLNodeParser, MarkdownNodeParser

from rag_splitters import Chunker, ContentAwareChunker, TableChunker

SIZE = 100
HEADERS = [("#" * n, f"Header {n}") for n in range(1, 7)]
HTML_HEADERS = [(f"h{n}", f"Header {n}") for n in range(1, 7)]
PRESERVED = ["pre", "table", "ul", "ol", "p"]
TAGS = ["p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "pre", "table"]


class Chunk(NamedTuple):
    """A chunk of any splitter; None for what the splitter does not tell."""

    text: str
    headings: list[str] | None = None
    start: int | None = None
    end: int | None = None


Run = Callable[[str], list[Chunk]]
Judge = Callable[[str, list[Chunk]], str]


class Case(NamedTuple):
    """A row of the table."""

    title: str
    text: str
    judge: Judge
    chunker: Chunker = ContentAwareChunker()
    note: str = ""


# How each splitter is run: by default, then with the options that its documentation offers.


def of_langchain(splitter: Any) -> Run:
    def run(text: str) -> list[Chunk]:
        documents: list[LangChainDocument] = splitter.split_text(text)
        return [
            Chunk(each.page_content, list(each.metadata.values()), each.metadata.get("start_index"))
            for each in documents
        ]

    return run


def of_llama_index(parser: Any) -> Run:
    def run(text: str) -> list[Chunk]:
        nodes = parser.get_nodes_from_documents([Document(text=text)])
        return [
            Chunk(node.text, node_headings(node), node.start_char_idx, node.end_char_idx)
            for node in nodes
        ]

    return run


def node_headings(node: Any) -> list[str]:
    """The path over a Markdown node, and the heading that it begins with."""
    above = [part for part in node.metadata.get("header_path", "").split("/") if part]
    own = re.match(r"#+[ \t]+(.*)", node.text)
    return [*above, own[1].strip()] if own else above


def of_ours(chunker: Chunker) -> Run:
    def run(text: str) -> list[Chunk]:
        return [
            Chunk(each.text, each.metadata.get("headings"), each.start, each.end)
            for each in chunker.chunk(text)
        ]

    return run


def langchain_html(**options: Any) -> Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the class is in beta
        return of_langchain(
            HTMLSemanticPreservingSplitter(HTML_HEADERS, max_chunk_size=SIZE, **options)
        )


MARKDOWN: dict[str, dict[str, Run]] = {
    "MarkdownHeaderTextSplitter": {
        "": of_langchain(MarkdownHeaderTextSplitter(HEADERS)),
        "strip_headers=False": of_langchain(
            MarkdownHeaderTextSplitter(HEADERS, strip_headers=False)
        ),
    },
    "MarkdownNodeParser": {"": of_llama_index(MarkdownNodeParser())},
}
HTML: dict[str, dict[str, Run]] = {
    "HTMLSemanticPreservingSplitter": {
        "": langchain_html(),
        "elements_to_preserve": langchain_html(elements_to_preserve=PRESERVED),
        "denylist_tags": langchain_html(denylist_tags=["script", "style"]),
    },
    "HTMLNodeParser": {
        "": of_llama_index(HTMLNodeParser()),
        "tags": of_llama_index(HTMLNodeParser(tags=TAGS)),
    },
}


# What is judged: "right", or what is wrong.


def unspaced(text: str) -> str:
    return " ".join(text.split())


def keeps_whole(**parts: str) -> Judge:
    """Whether each part is in one chunk, and no line of it a heading, whatever its white space."""

    def is_kept(part: str, chunk: Chunk) -> bool:
        lines = {line.strip("# \r") for line in part.splitlines()}
        is_heading = bool(lines.intersection(chunk.headings or []))
        return unspaced(part) in unspaced(chunk.text) and not is_heading

    def judge(text: str, chunks: list[Chunk]) -> str:
        cut = [
            name.replace("_", " ")
            for name, part in parts.items()
            if not any(is_kept(part, each) for each in chunks)
        ]
        return f"wrong: cut in the {' and the '.join(cut)}" if cut else "right"

    return judge


def names_headings(passage: str, headings: Sequence[str]) -> Judge:
    """Whether the chunk of the passage has the headings over it."""

    def judge(text: str, chunks: list[Chunk]) -> str:
        known = next(each.headings for each in chunks if passage in each.text)
        if known == list(headings):
            return "right"
        return f"wrong: headings `{known}`" if known else "wrong: no headings"

    return judge


def keeps_indentation(*passages: str) -> Judge:
    """Whether each passage is in a chunk as it was written."""

    def judge(text: str, chunks: list[Chunk]) -> str:
        if all(any(passage in each.text for each in chunks) for passage in passages):
            return "right"
        whole = unspaced(" ".join(each.text for each in chunks))
        is_there = all(unspaced(passage) in whole for passage in passages)
        return "wrong: indentation lost" if is_there else "wrong: text lost"

    return judge


def keeps_size(text: str, chunks: list[Chunk]) -> str:
    largest = max(len(each.text) for each in chunks)
    return "right" if largest <= SIZE else f"no size: a chunk of {largest} characters"


def places(passage: str, start: int) -> Judge:
    """Whether the chunk with the passage says where it is; tags around it may belong to it."""

    def judge(text: str, chunks: list[Chunk]) -> str:
        if all(each.start is None for each in chunks):
            return "no positions"
        chunk = next(each for each in chunks if passage in each.text)
        is_there = (chunk.start or 0) <= start < (chunk.end or 0)
        plain = re.sub(r"<[^<>]*>", "", text[chunk.start : chunk.end])
        is_there = is_there and unspaced(plain) == unspaced(chunk.text)
        return "right" if is_there else "wrong: the place of another text"

    return judge


def keeps_order(sentence: str) -> Judge:
    """Whether the words of a sentence are in one chunk, in their order."""

    def judge(text: str, chunks: list[Chunk]) -> str:
        shown = [unspaced(each.text) for each in chunks]
        if any(sentence in each for each in shown):
            return "right"
        parts = [each for each in shown if set(sentence.split()) & set(each.split())]
        return f"wrong: {', '.join(f'*{each}*' for each in parts)}"

    return judge


def drops(passage: str) -> Judge:
    def judge(text: str, chunks: list[Chunk]) -> str:
        return "wrong: is text" if any(passage in each.text for each in chunks) else "right"

    return judge


def repeats_header(header: str, rows: Sequence[str]) -> Judge:
    """Whether each row is in a chunk that fits and holds the header."""

    def judge(text: str, chunks: list[Chunk]) -> str:
        plain = [unspaced(re.sub(r"<[^>]*>|\|", " ", each.text)) for each in chunks]
        if not all(row in " ".join(plain) for row in rows):
            return "wrong: text lost"
        if not all(any(row in each and header in each for each in plain) for row in rows):
            return "wrong: rows without header"
        return keeps_size(text, chunks)

    return judge


FENCED = "~~~\n# not a heading\nbrew --hot\n~~~"
INDENTED = "    # nor is this\n    brew --cold"
FRONT_MATTER = "---\ntitle: Tea\n# a comment\nauthor: Ann\n---"
FUNCTION = "def brew():\n    if hot:\n        return tea"
ITEMS = "- green\n  - sencha\n    - first flush"
BOIL = "Boil the water, then let it cool. "
ANCHORED = '<p>Boil water.</p>\n<h2 id="Green">Green</h2>\n<p>Cool it.</p>\n'
ROWS = "".join(f"<tr><td>cup number {n}</td><td>{n}00</td></tr>" for n in range(10))

MARKDOWN_CASES = (
    Case(
        "`#` in code that is fenced with `~~~` or indented",
        f"# Tea\n\n{FENCED}\n\n{INDENTED}\n",
        keeps_whole(fenced_code=FENCED, indented_code=INDENTED),
    ),
    Case(
        "`#` in front matter",
        f"{FRONT_MATTER}\n\n# Tea\n\nBoil water.\n",
        keeps_whole(front_matter=FRONT_MATTER),
    ),
    Case(
        "headings underlined with `===` or `---`",
        "Tea\n===\n\nBoil water.\n\nGreen\n-----\n\nCool it.\n",
        names_headings("Cool it.", ["Tea", "Green"]),
        ContentAwareChunker(chunk_size=30),
    ),
    Case(
        "headings in a file with CRLF",
        "# Tea\r\n\r\nBoil water.\r\n\r\n## Green\r\n\r\nCool it.\r\n",
        names_headings("Cool it.", ["Tea", "Green"]),
        ContentAwareChunker(chunk_size=30),
    ),
    Case(
        "indented lines of code, nested lists",
        f"# Tea\n\n```py\n{FUNCTION}\n```\n\n{ITEMS}\n",
        keeps_indentation(FUNCTION, ITEMS),
    ),
    Case(
        f"a section of 700 characters, chunks of {SIZE}",
        f"# Tea\n\n{BOIL * 20}\n",
        keeps_size,
        ContentAwareChunker(chunk_size=SIZE),
    ),
)
HTML_CASES = (
    Case(
        "bold words in a sentence",
        "<h1>Tea</h1><p>The <b>old</b> pot <i>broke</i> today.</p>",
        keeps_order("The old pot broke today."),
    ),
    Case(
        "indented lines in `pre`",
        f"<h1>Tea</h1><pre>{FUNCTION}</pre>",
        keeps_indentation(FUNCTION),
    ),
    Case(
        "scripts",
        "<h1>Tea</h1><p>Boil water.</p><script>let hot = 1;</script>",
        drops("let hot"),
    ),
    Case(
        "headings under headings",
        "<h1>Tea</h1><p>Boil water.</p><h2>Green</h2><p>Cool it.</p>",
        names_headings("Cool it.", ["Tea", "Green"]),
        ContentAwareChunker(chunk_size=20),
    ),
    Case(
        f"a long table, chunks of {SIZE}",
        f"<h1>Cups</h1><table><tr><th>cup</th><th>ml</th></tr>{ROWS}</table>",
        repeats_header("cup ml", [f"cup number {n} {n}00" for n in range(10)]),
        TableChunker(chunk_size=SIZE),
        " with `TableChunker`",
    ),
    Case(
        "the position of a heading with an `id`",
        ANCHORED,
        places("Green", ANCHORED.index(">Green<") + 1),
        ContentAwareChunker(chunk_size=20),
    ),
)


# The table.


def verdict(case: Case, variants: dict[str, Run]) -> str:
    """What the defaults do, and the first option with which it is right."""
    found = {option: case.judge(case.text, run(case.text)) for option, run in variants.items()}
    default = found.pop("")
    option = next((each for each, cell in found.items() if cell == "right"), "")
    return f"{default}; right with `{option}`" if option and default != "right" else default


def table(kind: str, cases: Sequence[Case], peers: dict[str, dict[str, Run]]) -> str:
    lines = [
        f"| {kind} | {' | '.join(f'`{peer}`' for peer in peers)} | `ContentAwareChunker` |",
        "|---|---|---|---|",
    ]
    for case in cases:
        cells = [verdict(case, variants) for variants in peers.values()]
        ours = verdict(case, {"": of_ours(case.chunker)}) + case.note
        lines.append(f"| {case.title} | {' | '.join(cells)} | {ours} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table("Markdown", MARKDOWN_CASES, MARKDOWN), end="\n\n")
    print(table("HTML", HTML_CASES, HTML))
