"""`rag-splitters demo`: chunks in colours, positions that are right, questions with answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from rag_splitters.chunkers.by_name import build_chunker
from rag_splitters.cli.views import console, excerpt
from rag_splitters.reading.samples import SAMPLE_QUESTIONS, sample_texts
from rag_splitters.text.coloured import coloured
from rag_splitters.text.sizing import sizer

if TYPE_CHECKING:
    from langchain_core.documents import Document

_STRATEGIES = ("fixed_size", "recursive")
_CHUNK_SIZE = 130  # characters

_NIGHT = "Lamp lit at dusk. Wind from the west. No ship seen. Lamp out at dawn."
_LOG = " ".join([_NIGHT] * 20)
_TOKENS, _OVERLAP = 80, 20  # per chunk of the log

_PARENT_SIZE, _CHILD_SIZE = 900, 200
_PASSAGE = 200  # characters of a passage that are shown


def demo() -> None:
    """Show what it does: chunks, their positions, and answers; offline, in seconds."""
    out = console()
    out.print(Text(f"1. One text, cut into chunks of at most {_CHUNK_SIZE} characters", "bold"))
    handbook = sample_texts()["lighthouse.md"]
    text = handbook[handbook.index("The tower was") : handbook.index("\n\nThe lens is")]
    for name in _STRATEGIES:
        chunks = build_chunker(name, {"chunk_size": _CHUNK_SIZE}).chunk(text)
        out.print(Text(f"{name}: {len(chunks)} chunks", "cyan"))
        out.print(coloured(text, chunks, out))
    out.print(Text("\n2. Where is each chunk? A log that says the same for 20 nights", "bold"))
    out.print(_position_table(positions()))
    out.print(
        "All chunks together hold the whole log, so their positions should cover all of it. The "
        "frameworks cut first and then search the text for each chunk."
    )
    out.print(
        Text("\n3. Questions and passages; without a model, it matches words, not meaning", "bold")
    )
    for question, passage in answers():
        out.print(Text(question, "cyan"))
        out.print(excerpt(passage, _PASSAGE))
    out.print("\nNext: rag-splitters split FILE --show, rag-splitters strategies, or --help")


class Positions(NamedTuple):
    """Where a splitter says that its chunks are.

    Parameters:
        chunks: how many chunks it makes.
        missing: how many of them have no position.
        coverage: the share of the text that the positions cover.
    """

    splitter: str
    chunks: int
    missing: int
    coverage: float


def positions() -> list[Positions]:
    """Return the positions of the chunks of one text by us, LangChain and LlamaIndex."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter
    from llama_index.core import Document as LlamaIndexDocument
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.schema import TextNode

    measure = sizer("tokens")
    sizes = {"chunk_size": _TOKENS, "chunk_overlap": _OVERLAP}
    chunker = build_chunker("recursive", {**sizes, "length_function": "tokens"})
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=_TOKENS,
        chunk_overlap=_OVERLAP,
        length_function=lambda text: measure(text).length(0, len(text)),
        add_start_index=True,
    )
    starts = [
        (document.metadata["start_index"], len(document.page_content))
        for document in splitter.create_documents([_LOG])
    ]
    parser = SentenceSplitter(chunk_size=_TOKENS, chunk_overlap=_OVERLAP)
    try:
        nodes = parser.get_nodes_from_documents([LlamaIndexDocument(text=_LOG)])
    except LookupError:  # older versions download NLTK's data first
        parser = SentenceSplitter(
            chunk_size=_TOKENS,
            chunk_overlap=_OVERLAP,
            chunking_tokenizer_fn=re.compile(r"[^.]+\.\s*").findall,
        )
        nodes = parser.get_nodes_from_documents([LlamaIndexDocument(text=_LOG)])
    ours = [(chunk.start, chunk.end) for chunk in chunker.chunk(_LOG)]
    langchain = [None if start < 0 else (start, start + length) for start, length in starts]
    llama_index = [
        (node.start_char_idx, node.end_char_idx)
        if isinstance(node, TextNode) and node.start_char_idx is not None and node.end_char_idx
        else None
        for node in nodes
    ]
    return [
        _measure("rag_splitters RecursiveChunker", ours),
        _measure("LangChain RecursiveCharacterTextSplitter", langchain),
        _measure("LlamaIndex SentenceSplitter", llama_index),
    ]


def _measure(splitter: str, spans: Iterable[tuple[int, int] | None]) -> Positions:
    spans = list(spans)
    covered = {at for span in spans if span is not None for at in range(*span)}
    letters = [at for at, letter in enumerate(_LOG) if not letter.isspace()]
    coverage = sum(at in covered for at in letters) / len(letters)
    return Positions(splitter, len(spans), spans.count(None), coverage)


def _position_table(rows: Iterable[Positions]) -> Table:
    table = Table(f"at most {_TOKENS} tokens", box=box.SIMPLE_HEAD, show_edge=False)
    for heading in ("chunks", "without a position", "covered"):
        table.add_column(heading, justify="right")
    for row in rows:
        style = "green" if row.coverage == 1 else "red"
        coverage = Text(f"{row.coverage:.0%}".replace("%", " %"), style)
        table.add_row(row.splitter, str(row.chunks), str(row.missing), coverage)
    return table


def answers() -> Iterator[tuple[str, Document]]:
    """Yield each question with the passage that answers it."""
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
