"""Parent-child retrieval: ours and langchain_classic's `ParentDocumentRetriever`, in one run.

    python benchmarks/parent_child.py TEXT [--rounds 3] [--parents 2000]

TEXT is a file of natural text. Its consecutive parts of 2,000 characters are the parents, and the
same splitter cuts them into children of 400 characters for both. Both write to a Chroma folder and
a `SQLiteStore`, or to a Chroma and a docstore in memory, with `HashingEmbeddings` or with vectors
that cost next to nothing. A round runs both on new stores, one after the other, with the order
reversed in every second round. Theirs retrieves as many children as it needs to return as many
parents as ours. The last case of each table is ours with its defaults: hybrid search and smoothing.
All values are medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from langchain_chroma import Chroma
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from rich.console import Console
from rich.table import Table

from rag_splitters.langchain import (
    DocumentStore,
    RecursiveTextSplitter,
    SQLiteStore,
    parent_document_retriever,
)
from rag_splitters.models import Embedder, HashingEmbeddings

_BATCH = 500  # documents; langchain_classic fails with more children than Chroma accepts
_PARENTS = 4
_QUESTIONS = 100
Open = Callable[[Path | None, Any], Any]


def next_to_nothing(texts: list[str]) -> list[list[float]]:
    """A random vector for each text, seeded by the text."""
    seeds = [zlib.crc32(text.encode()) for text in texts]
    return [np.random.default_rng(seed).standard_normal(384).tolist() for seed in seeds]


@contextmanager
def ours(folder: Path | None, embeddings: Any, **options: Any) -> Iterator[Any]:
    retriever = parent_document_retriever(
        path=folder,
        embeddings=embeddings,
        child_splitter=RecursiveTextSplitter(chunk_size=400),
        parent_splitter=None,
        k=_PARENTS,
        **options,
    )
    with closing(retriever):
        yield retriever


@contextmanager
def theirs(folder: Path | None, embeddings: Any) -> Iterator[Any]:
    model = embeddings if isinstance(embeddings, HashingEmbeddings) else Embedder(embeddings)
    with ExitStack() as opened:
        docstore: Any = InMemoryStore()
        if folder is not None:
            folder.mkdir()
            rows = opened.enter_context(closing(SQLiteStore(folder / "parents.sqlite")))
            docstore = DocumentStore(rows)
        where = None if folder is None else str(folder / "chroma")
        chroma = Chroma(
            f"theirs-{time.time_ns()}",
            persist_directory=where,
            embedding_function=model,
            collection_configuration={"hnsw": {"space": "cosine"}},
        )
        yield ParentDocumentRetriever(
            vectorstore=chroma,
            docstore=docstore,
            child_splitter=RecursiveTextSplitter(chunk_size=400),
            search_kwargs={"k": _PARENTS},
        )
        chroma.delete_collection()


OPEN: dict[str, Open] = {
    "rag_splitters": partial(ours, search_type="similarity", smoothing=0.0, headings=False),
    "langchain_classic": theirs,
    "rag_splitters, defaults": ours,
}


def ingest(retriever: Any, documents: list[Document]) -> tuple[float, float]:
    """CPU and wall time."""
    cpu, wall = time.process_time(), time.perf_counter()
    for start in range(0, len(documents), _BATCH):
        retriever.add_documents(documents[start : start + _BATCH])
    return time.process_time() - cpu, time.perf_counter() - wall


def ask(retriever: Any, questions: list[str]) -> tuple[float, float, float]:
    """Median CPU and wall time in milliseconds, and the mean number of parents."""
    if isinstance(retriever, ParentDocumentRetriever):
        while statistics.mean(len(retriever.invoke(q)) for q in questions) < _PARENTS:
            retriever.search_kwargs["k"] += 1
    else:
        retriever.invoke("warm")
    cpus, walls, parents = [], [], []
    for question in questions:
        cpu, wall = time.process_time(), time.perf_counter()
        parents.append(len(retriever.invoke(question)))
        cpus.append(time.process_time() - cpu)
        walls.append(time.perf_counter() - wall)
    return statistics.median(cpus) * 1e3, statistics.median(walls) * 1e3, statistics.mean(parents)


def measure(
    title: str, documents: list[Document], embeddings: Any, rounds: int, on_disk: bool
) -> None:
    """Run the cases in turn and print the medians."""
    texts = [document.page_content for document in documents[:: len(documents) // _QUESTIONS]]
    questions = [" ".join(text.split()[50:60]) for text in texts]
    measurements: dict[str, list[tuple[float, ...]]] = {name: [] for name in OPEN}
    for opening in OPEN.values():  # so that loading at first use counts for neither
        with (
            tempfile.TemporaryDirectory() as folder,
            opening(Path(folder) / "index" if on_disk else None, embeddings) as retriever,
        ):
            ingest(retriever, documents[:20])
    for number in range(rounds):
        for name, opening in list(OPEN.items())[:: -1 if number % 2 else 1]:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "index" if on_disk else None
                with opening(path, embeddings) as retriever:
                    ingestion = ingest(retriever, documents)
                    measurements[name].append((*ingestion, *ask(retriever, questions)))
    columns = ("ingest, s CPU", "s", "query, ms CPU", "ms", "parents")
    table = Table("", *columns, title=title, title_justify="left")
    for name, rows in measurements.items():
        medians = [statistics.median(column) for column in zip(*rows, strict=True)]
        table.add_row(name, *(f"{value:.2f}" for value in medians))
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("text", type=Path, help="a file of natural text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parents", type=int, default=2000)
    arguments = parser.parse_args()
    text = arguments.text.read_text(encoding="utf-8", errors="replace")
    starts = [number * 2000 % (len(text) - 2000) for number in range(arguments.parents)]
    documents = [
        Document(page_content=text[start : start + 2000], metadata={"source": f"{number}.md"})
        for number, start in enumerate(starts)
    ]
    for model, embeddings in (("hashed", HashingEmbeddings()), ("free", next_to_nothing)):
        for place, on_disk in (("in a folder", True), ("in memory", False)):
            title = f"{len(documents):,} parents {place}, {model} vectors"
            measure(title, documents, embeddings, arguments.rounds, on_disk)


if __name__ == "__main__":
    main()
