"""How often do chunks start or end where a careful editor would not cut?

    python benchmarks/cuts.py [--by-document] [--show STRATEGY] [--kind data]
    python benchmarks/cuts.py FILE ... [--size 800] [--overlap 0.15]

The documents are those of tests/data/documents. Its gold.json says where sentences and lines start,
and which lines are headings or lead-ins, so the judge shares no rule with the package. In your own
files, a chunk starts inside a sentence if it starts in lower case behind a line or a word that does
not end one, but not in a line with dot leaders and, if chunks overlap, not behind a comma or a
short line either. Headings are those of Markdown and underlined ones, and a line that ends with a
colon is a lead-in. A block is text between blank lines that fits into a chunk. --by-document prints
a row for each document, --show every bad cut of a strategy. PDF files are read as the loaders do,
and ".gz" files are unpacked. Libraries that are not installed are skipped:

    pip install chonkie semantic-text-splitter
"""

from __future__ import annotations

import argparse
import gzip
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

from rag_splitters import (
    AutoChunker,
    Chunker,
    ContentAwareChunker,
    RecursiveChunker,
    SentenceChunker,
)
from rag_splitters.reading.files import read_bytes

FOLDER = Path(__file__).parent.parent / "tests" / "data" / "documents"
TAGS = re.compile(r"<(script|style)\b.*?</\1>|<!--.*?-->|<[^<>]*>", re.DOTALL)
HEADING = re.compile(
    r"^(?:#{1,6}[ \t]+\S.*|(?!\s)\S.{0,78}\n(?:={3,}|-{3,}|~{3,}))[ \t]*$", re.MULTILINE
)
BLOCK = re.compile(r"[^\s].*(?:\n[ \t]*\S.*)*")
PRONOUN = re.compile(r"(?<=[.!?][ \n])(?:It|They|This|These|He|She)\b(?= [a-z])")
BLANK = re.compile(rf"(?:\s|{TAGS.pattern})*", re.DOTALL)
LEADER = re.compile(r".*(?:\. ?){4}")
SHORT_LINE = 45  # characters
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


class Unlabelled(Document):
    """A text of which nobody said where it may be cut."""

    def __init__(self, name: str, text: str, may_start_clause: bool = False) -> None:
        super().__init__(name, text, {"starts": [], "headings": [], "lead_ins": []})
        self.may_start_clause = may_start_clause
        self.headings = [
            match.span() for match in HEADING.finditer(self.visible) if is_heading(match)
        ]

    def starts_badly(self, start: int, end: int) -> bool:
        """Whether a chunk starts in lower case behind the middle of a sentence.

        One that repeats the end of the chunk before may also start with a clause or a short line.
        """
        match = self.blank.match(self.text, start, end)
        first = match.end() if match else start
        before = self.visible[max(0, first - 200) : first]
        is_clause = self.may_start_clause and (
            before.rstrip()[-1:] == "," or 0 < len(before.split("\n")[-2:][0].strip()) <= SHORT_LINE
        )
        is_inside = before.rstrip()[-1:] not in (*'.!?:;"”»)…。', "") and not is_clause
        is_inside = is_inside and not LEADER.match(self.text, first)
        return first < end and self.text[first].islower() and is_inside

    def ending(self, start: int, end: int) -> str:
        """`heading` or `lead-in` if the last visible character belongs to one."""
        last = start + len(self.visible[start:end].rstrip())
        leads_in = self.text[last - 1 : last] == ":"
        return super().ending(start, end) or ("lead-in" if leads_in else "")


def is_heading(match: re.Match[str]) -> bool:
    """Whether an underline is about as long as the title, unlike the end of a listing."""
    title, _, underline = match[0].partition("\n")
    return not underline or abs(len(title) - len(underline.strip())) <= 3


@dataclass
class Count:
    """What was counted over some chunks of at most `size` characters."""

    size: int
    chunks: int = 0
    characters: int = 0
    blocks: int = 0
    whole: int = 0
    pronouns: int = 0
    parted: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    cuts: list[str] = field(default_factory=list)

    def add(self, document: Document, pieces: list[Piece]) -> Count:
        """Judge the chunks of a document."""
        is_html = document.name.endswith(".html")  # whose chunks are rewritten
        for start, end, length in pieces:
            self.chunks += 1
            self.characters += length
            ending = document.ending(start, end)
            if document.starts_badly(start, end):
                self.count("mid-sentence", document, start)
            if ending:
                self.count(ending, document, end)
            if length < self.size / 10:
                self.count("tiny", document, start)
        for block in () if is_html else BLOCK.finditer(document.text):
            if block.end() - block.start() <= self.size:
                self.blocks += 1
                nearby = around(pieces, block.start())
                stop = block.start() + len(block[0].rstrip())
                self.whole += any(
                    start <= block.start() and stop <= end for start, end, _ in nearby
                )
        for pronoun in PRONOUN.finditer(document.visible):
            self.pronouns += 1
            at = pronoun.start()
            holding = [start for start, end, _ in around(pieces, at) if start <= at < end]
            self.parted += all(not document.visible[start:at].strip() for start in holding)
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
            f"{self.characters / chunks / self.size:.2f}",
            f"{self.whole / max(1, self.blocks):.1%}",
            f"{1 - self.parted / max(1, self.pronouns):.1%}",
        ]


def ours(chunker: Chunker) -> Splitter:
    """A chunker of this package, which is told the name of the file as a loader would."""

    def split(name: str, text: str) -> list[Piece]:
        chunks = chunker.chunk(text, metadata={"source": name})
        return [(chunk.start, chunk.end, len(chunk.text)) for chunk in chunks]

    return split


def around(pieces: list[Piece], position: int) -> list[Piece]:
    """The last chunks that start up to a position; one that overlaps may hold it, too."""
    index = bisect_right(pieces, position, key=lambda piece: piece[0])
    return pieces[max(0, index - 2) : index]


def theirs(split_text: Callable[[str], Iterable[str]], overlap: int = 0) -> Splitter:
    """A splitter that returns texts: each starts behind the start of the one before."""

    def split(name: str, text: str) -> list[Piece]:
        pieces: list[Piece] = []
        for piece in split_text(text):
            # it repeats at most `overlap` characters
            low = max(0, pieces[-1][1] - overlap) if pieces else 0
            at = text.index(piece, low)
            pieces.append((at, at + len(piece), len(piece)))
        return pieces

    return split


def splitters(size: int, overlap: int) -> dict[str, Splitter]:
    """All that are compared, by name."""
    llama = SentenceSplitter(chunk_size=size, chunk_overlap=overlap, tokenizer=list)
    langchain = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap)
    kinds = (RecursiveChunker, SentenceChunker, ContentAwareChunker, AutoChunker)
    found = {
        kind.__name__.removesuffix("Chunker"): ours(kind(chunk_size=size, chunk_overlap=overlap))
        for kind in kinds
    }
    found["LangChain recursive"] = theirs(langchain.split_text, overlap)
    found["LlamaIndex SentenceSplitter"] = theirs(llama.split_text, overlap)
    try:
        import chonkie

        if not overlap:  # it has none
            peer = chonkie.RecursiveChunker(tokenizer="character", chunk_size=size)
            found["chonkie recursive"] = theirs(lambda text: [c.text for c in peer.chunk(text)])
    except ImportError:
        pass
    try:
        from semantic_text_splitter import TextSplitter

        found["semantic-text-splitter"] = theirs(
            TextSplitter(size, overlap=overlap).chunks, overlap
        )
    except ImportError:
        pass
    return found


def labelled(kind: str) -> list[Document]:
    """The documents of tests/data, with what is said about them."""
    gold = json.loads((FOLDER / "gold.json").read_text(encoding="utf-8"))
    return [
        Document(name, (FOLDER / name).read_text(encoding="utf-8"), places)
        for name, places in gold.items()
        if places["kind"] == kind
    ]


def unlabelled(file: Path, has_overlap: bool) -> Document:
    """A file of the user; of a long one the first 300,000 characters."""
    data = file.read_bytes()
    data = gzip.decompress(data) if file.suffix == ".gz" else data
    name = file.name.removesuffix(".gz")
    (source,) = read_bytes(data, name)
    return Unlabelled(name, source.text[:300_000], has_overlap)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("files", nargs="*", type=Path, help="your own files")
    parser.add_argument("--kind", choices=["prose", "data"], default="prose")
    parser.add_argument("--size", type=int, default=800, help="characters in a chunk")
    parser.add_argument("--overlap", type=float, default=0, help="share of the size")
    parser.add_argument("--by-document", action="store_true", help="a row for each document")
    parser.add_argument("--show", metavar="STRATEGY", help="print every bad cut of a strategy")
    arguments = parser.parse_args()
    size, overlap = arguments.size, int(arguments.size * arguments.overlap)
    files = [unlabelled(file, overlap > 0) for file in arguments.files]
    documents = files or labelled(arguments.kind)
    title = f"{len(documents)} documents, {size} characters, overlap {overlap}"
    table = Table("", "chunks", "starts mid-sentence", "headings at end", title=title)
    for column in ("lead-ins at end", "tiny", "fill", "whole blocks", "pronouns with nouns"):
        table.add_column(column)
    console = Console(width=max(Console().width, 130))
    for name, split in splitters(size, overlap).items():
        total = Count(size)
        for document in documents:
            pieces = split(document.name, document.text)
            total.add(document, pieces)
            if arguments.by_document:
                table.add_row(f"  {document.name}", *Count(size).add(document, pieces).row())
        table.add_row(f"[bold]{name}", *total.row(), end_section=arguments.by_document)
        if name == arguments.show:
            for cut in total.cuts:
                console.print(escape(cut), highlight=False, soft_wrap=True)
    console.print(table)


if __name__ == "__main__":
    main()
