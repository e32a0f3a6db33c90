"""The demo: three short texts of our own, cut by three strategies and searched for three answers.

The museum, the tram line and the bakery are invented.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from statistics import median
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from rag_splitters.cli.parameters import build
from rag_splitters.cli.views import cut

if TYPE_CHECKING:
    from langchain_core.documents import Document

__all__ = [
    "CHILD_SIZE",
    "CHUNK_SIZE",
    "PARENT_SIZE",
    "QUESTIONS",
    "STRATEGIES",
    "answers",
    "split_table",
    "texts",
]

QUESTIONS = (
    "When is the foghorn sounded?",
    "Why are the trams painted green?",
    "How long do the rye loaves bake?",
)
STRATEGIES = ("fixed_size", "recursive", "sentence")
CHUNK_SIZE = 300
PARENT_SIZE, CHILD_SIZE = 900, 200
_OTHER_COLUMNS = 60  # as wide as all but the last


def texts() -> dict[str, str]:
    """The bundled texts by their file names."""
    folder = files(__name__)
    names = ("lighthouse.md", "tram.md", "bakery.md")
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}


def split_table(width: int) -> Table:
    """How many chunks each strategy makes of each text, how long, and where the first cuts fall."""
    reach = max(4, min(20, (width - _OTHER_COLUMNS) // 2))
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("text", no_wrap=True)
    table.add_column("strategy", no_wrap=True, min_width=10)
    table.add_column("chunks", justify="right", no_wrap=True)
    table.add_column("sizes", justify="right", no_wrap=True, min_width=11)
    table.add_column("the first cuts", no_wrap=True)
    for name, text in texts().items():
        for strategy in STRATEGIES:
            chunks = build(strategy, {"chunk_size": CHUNK_SIZE}).chunk(text)
            sizes = [len(chunk.text) for chunk in chunks]
            spread = f"{min(sizes)}/{median(sizes):.0f}/{max(sizes)}"
            first = Text("\n").join(cut(text, chunk.start, reach) for chunk in chunks[1:3])
            table.add_row(name, strategy, str(len(chunks)), spread, first)
            name = ""
        table.add_section()
    return table


def answers() -> Iterator[tuple[str, Document]]:
    """Each question with the parent that answers it, from an embedded Chroma in memory."""
    from langchain_core.documents import Document

    from rag_splitters.langchain import (
        RecursiveTextSplitter,
        SentenceTextSplitter,
        parent_document_retriever,
    )

    documents = [
        Document(page_content=text, metadata={"source": name}, id=name)
        for name, text in texts().items()
    ]
    retriever = parent_document_retriever(
        documents,
        parent_splitter=RecursiveTextSplitter(chunk_size=PARENT_SIZE, language="markdown"),
        child_splitter=SentenceTextSplitter(chunk_size=CHILD_SIZE),
        k=1,
    )
    for question in QUESTIONS:
        yield question, retriever.invoke(question)[0]
    retriever.close()
