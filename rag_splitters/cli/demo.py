"""`rag-splitters demo`: three short texts, three strategies, three questions."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from rag_splitters.chunkers.by_name import build_chunker
from rag_splitters.cli.views import console, cut, passage_view
from rag_splitters.reading.samples import SAMPLE_QUESTIONS, sample_texts

if TYPE_CHECKING:
    from langchain_core.documents import Document


_STRATEGIES = ("fixed_size", "recursive", "sentence")
_CHUNK_SIZE = 300
_PARENT_SIZE, _CHILD_SIZE = 900, 200
_OTHER_COLUMNS = 60  # the width of all columns but the last


def demo() -> None:
    """Show what it does: three texts, three strategies, three questions; offline, in seconds."""
    out = console()
    out.rule(Text("Splitting"))
    out.print(
        f"Three texts, cut by {', '.join(_STRATEGIES)} into chunks of at most {_CHUNK_SIZE} "
        "characters. The sizes are the shortest, the median and the longest chunk; a bar marks "
        "each cut.\n"
    )
    out.print(_split_table(out.width))
    out.rule(Text("Parent-child retrieval"))
    out.print(
        "The search looks at small child chunks and returns the larger parent of the best one. "
        "The index is a Chroma database in memory. Its default embedding is built in and matches "
        "words, not meaning: pass a model of your own for real retrieval.\n"
    )
    for question, parent in answers():
        out.print(Text(question, style="bold"))
        out.print(passage_view(parent))
    out.print("Next: rag-splitters split FILE, rag-splitters strategies, rag-splitters --help")


def answers() -> Iterator[tuple[str, Document]]:
    """Each question with the parent that answers it."""
    from langchain_core.documents import Document

    from rag_splitters.langchain import (
        RecursiveTextSplitter,
        SentenceTextSplitter,
        parent_document_retriever,
    )

    documents = [
        Document(page_content=text, metadata={"source": name}, id=name)
        for name, text in sample_texts().items()
    ]
    retriever = parent_document_retriever(
        documents,
        parent_splitter=RecursiveTextSplitter(chunk_size=_PARENT_SIZE, language="markdown"),
        child_splitter=SentenceTextSplitter(chunk_size=_CHILD_SIZE),
        k=1,
    )
    for question in SAMPLE_QUESTIONS:
        yield question, retriever.invoke(question)[0]
    retriever.close()


def _split_table(width: int) -> Table:
    """How many chunks each strategy makes of each text, their sizes, and the first cuts."""
    reach = max(4, min(20, (width - _OTHER_COLUMNS) // 2))
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("text", no_wrap=True)
    table.add_column("strategy", no_wrap=True, min_width=10)
    table.add_column("chunks", justify="right", no_wrap=True)
    table.add_column("sizes", justify="right", no_wrap=True, min_width=11)
    table.add_column("the first cuts", no_wrap=True)
    for name, text in sample_texts().items():
        for strategy in _STRATEGIES:
            chunks = build_chunker(strategy, {"chunk_size": _CHUNK_SIZE}).chunk(text)
            sizes = [len(chunk.text) for chunk in chunks]
            spread = f"{min(sizes)}/{median(sizes):.0f}/{max(sizes)}"
            first = Text("\n").join(cut(text, chunk.start, reach) for chunk in chunks[1:3])
            table.add_row(name, strategy, str(len(chunks)), spread, first)
            name = ""
        table.add_section()
    return table
