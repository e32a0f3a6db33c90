"""How often do chunks start or end where a careful editor would not cut?

    python benchmarks/cuts.py [--by-document] [--show STRATEGY] [--kind data]

The documents are those of tests/data/documents. Its gold.json says where sentences and lines start,
and which lines are headings or lead-ins, so the judge shares no rule with the package. Chunks have
800 characters and no overlap. --by-document prints a row for each document, --show every bad cut
of a strategy. Libraries that are not installed are skipped:

    pip install chonkie semantic-text-splitter
"""

from __future__ import annotations

import argparse
import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core.node_parser import SentenceSplitter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rag_splitters import Chunker, ContentAwareChunker, RecursiveChunker, SentenceChunker

FOLDER = Path(__file__).parent.parent / "tests" / "data" / "documents"
SIZE = 800
TAGS = re.compile(r"<(script|style)\b.*?</\1>|<!--.*?-->|<[^<>]*>", re.DOTALL)
BLANK = re.compile(rf"(?:\s|{TAGS.pattern})*", re.DOTALL)
SPACE = re.compile(r"\s*")

Piece = tuple[int, int, int]  # start and end in the document, and the length of the chunk
Splitter = Callable[[str, str], list[Piece]]  # the name and the text of a document


class Document:
    """A text, and where it may be cut."""

    def __init__(self, name: str, text: str, gold: dict[str, list[str]]) -> None:
        self.name, self.text = name, text
        html = name.endswith(".html")
        self.blank = BLANK if html else SPACE
        self.visible = TAGS.sub(lambda tag: " " * len(tag[0]), text) if html else text
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.starts = set(self.places(gold["starts"]))
        self.headings = [(at, self.end_of_line(at)) for at in self.places(gold["headings"])]
        self.lead_ins = {self.end_of_line(at) for at in self.places(gold["lead_ins"])}

    def places(self, rows: Iterable[str]) -> Iterator[int]:
        """The offsets of places such as `12:5 Word 12:40 Another`."""
        for row in rows:
            for place in row.split(" ")[::2]:
                line, column = map(int, place.split(":"))
                yield self.lines[line - 1] + column - 1

    def end_of_line(self, start: int) -> int:
        """Behind the last visible character of a line."""
        line = bisect_right(self.lines, start)
        end = self.lines[line] if line < len(self.lines) else len(self.text)
        return start + len(self.visible[start:end].rstrip())

    def starts_badly(self, start: int, end: int) -> bool:
        """Whether a chunk starts where neither a sentence nor a line of data does."""
        match = self.blank.match(self.text, start, end)
        first = match.end() if match else start
        return first < end and first not in self.starts

    def ending(self, start: int, end: int) -> str:
        """`heading` or `lead-in` if the last visible character belongs to one."""
        last = start + len(self.visible[start:end].rstrip())
        if any(first < last <= behind for first, behind in self.headings):
            return "heading"
        return "lead-in" if last in self.lead_ins else ""


@dataclass
class Count:
    """What was counted over some chunks."""

    chunks: int = 0
    characters: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    cuts: list[str] = field(default_factory=list)

    def add(self, document: Document, pieces: list[Piece]) -> Count:
        """Judge the chunks of a document."""
        for start, end, length in pieces:
            self.chunks += 1
            self.characters += length
            ending = document.ending(start, end)
            if document.starts_badly(start, end):
                self.count("mid-sentence", document, start)
            if ending:
                self.count(ending, document, end)
            if length < SIZE / 10:
                self.count("tiny", document, start)
        return self

    def count(self, fault: str, document: Document, at: int) -> None:
        """Note a bad cut."""
        self.faults[fault] += 1
        before, after = document.text[max(0, at - 60) : at], document.text[at : at + 60]
        line = bisect_right(document.lines, at)
        self.cuts.append(f"{document.name}:{line} {fault}: {before!r} | {after!r}")

    def row(self) -> list[str]:
        """The cells of a table."""
        chunks = max(1, self.chunks)
        return [
            str(self.chunks),
            f"{self.faults['mid-sentence'] / chunks:.1%}",
            str(self.faults["heading"]),
            f"{self.faults['lead-in'] / chunks:.1%}",
            f"{self.faults['tiny'] / chunks:.1%}",
            f"{self.characters / chunks / SIZE:.2f}",
        ]


def ours(chunker: Chunker) -> Splitter:
    """A chunker of this package, which is told the name of the file as a loader would."""

    def split(name: str, text: str) -> list[Piece]:
        chunks = chunker.chunk(text, metadata={"source": name})
        return [(chunk.start, chunk.end, len(chunk.text)) for chunk in chunks]

    return split


def theirs(split_text: Callable[[str], Iterable[str]]) -> Splitter:
    """A splitter that returns texts: each stands behind the one before."""

    def split(name: str, text: str) -> list[Piece]:
        pieces, at = [], 0
        for piece in split_text(text):
            at = text.index(piece, at)
            pieces.append((at, at + len(piece), len(piece)))
            at += len(piece)
        return pieces

    return split


def splitters() -> dict[str, Splitter]:
    """All that are compared, by name."""
    llama = SentenceSplitter(chunk_size=SIZE, chunk_overlap=0, tokenizer=list)
    found = {
        "Recursive": ours(RecursiveChunker(chunk_size=SIZE)),
        "Sentence": ours(SentenceChunker(chunk_size=SIZE)),
        "ContentAware": ours(ContentAwareChunker(chunk_size=SIZE)),
        "LangChain recursive": theirs(
            RecursiveCharacterTextSplitter(chunk_size=SIZE, chunk_overlap=0).split_text
        ),
        "LlamaIndex SentenceSplitter": theirs(llama.split_text),
    }
    try:
        import chonkie

        peer = chonkie.RecursiveChunker(tokenizer="character", chunk_size=SIZE)
        found["chonkie recursive"] = theirs(lambda text: [c.text for c in peer.chunk(text)])
    except ImportError:
        pass
    try:
        from semantic_text_splitter import TextSplitter

        found["semantic-text-splitter"] = theirs(TextSplitter(SIZE).chunks)
    except ImportError:
        pass
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kind", choices=["prose", "data"], default="prose")
    parser.add_argument("--by-document", action="store_true", help="a row for each document")
    parser.add_argument("--show", metavar="STRATEGY", help="print every bad cut of a strategy")
    arguments = parser.parse_args()
    gold = json.loads((FOLDER / "gold.json").read_text(encoding="utf-8"))
    documents = [
        Document(name, (FOLDER / name).read_text(encoding="utf-8"), places)
        for name, places in gold.items()
        if places["kind"] == arguments.kind
    ]
    title = f"{len(documents)} documents, {SIZE} characters, no overlap"
    table = Table("", "chunks", "starts mid-sentence", "headings at end", title=title)
    for column in ("lead-ins at end", "tiny", "fill"):
        table.add_column(column)
    console = Console(width=max(Console().width, 120))
    for name, split in splitters().items():
        total = Count()
        for document in documents:
            pieces = split(document.name, document.text)
            total.add(document, pieces)
            if arguments.by_document:
                table.add_row(f"  {document.name}", *Count().add(document, pieces).row())
        table.add_row(f"[bold]{name}", *total.row(), end_section=arguments.by_document)
        if name == arguments.show:
            for cut in total.cuts:
                console.print(escape(cut), highlight=False, soft_wrap=True)
    console.print(table)


if __name__ == "__main__":
    main()
