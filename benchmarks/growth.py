"""Parent-child retrieval from a thousand parents to many: what grows, and how fast.

    python benchmarks/growth.py TEXT [--parents 1000 16000] [--classic] [--servers]

TEXT is a file of natural text. Each parent is a document of about 1,400 characters: sentences of
TEXT, drawn at random, so that words are as frequent as in natural text. Vectors have 128 dimensions
and cost next to nothing. In a folder, with the factory's defaults; queries are medians of 50
questions of 12 words. `--classic` adds `langchain_classic` on Chroma and a `SQLiteStore`, and
`--servers` an index on PostgreSQL and a Chroma server, with the first query of a new process and
the queries after each document that another process writes.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from langchain_chroma import Chroma
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_splitters.langchain import (
    DocumentStore,
    RecursiveTextSplitter,
    SQLiteStore,
    parent_document_retriever,
)

BATCH, QUESTIONS, LENGTH = 500, 50, 1400
EMBEDDINGS = DeterministicFakeEmbedding(size=128)
"""A random vector for each text, seeded by the text."""
FILTERS: dict[str, dict[str, Any]] = {
    "1 in 1,000": {"team": "small"},
    "1 in 20": {"page": {"$lt": 15}},
    "9 in 10": {"team": "large"},
}


def draw_documents(text: str, count: int, seed: int = 1) -> Iterator[Document]:
    """Yield documents of random sentences of a text."""
    sentences = [each for each in re.split(r"(?<=[.!?])\s+", text) if 20 < len(each) < 400]
    chance = random.Random(seed)
    for number in range(count):
        paragraphs = []
        while sum(map(len, paragraphs)) < LENGTH - 200:
            paragraphs.append(" ".join(chance.choices(sentences, k=3)))
        team = "small" if number % 1000 == 7 else "large" if number % 10 else "medium"
        metadata = {"source": f"{number // 100}.md", "team": team, "page": number % 300}
        yield Document("\n\n".join(paragraphs)[:LENGTH], metadata=metadata, id=f"{seed}-{number}")


def report(name: str, value: float, unit: str) -> None:
    print(f"  {name:48} {value:10.2f} {unit}", flush=True)


def add(retriever: Any, documents: Sequence[Document]) -> tuple[float, float]:
    """Add the documents, and return the CPU and wall time."""
    cpu, wall = time.process_time(), time.perf_counter()
    for start in range(0, len(documents), BATCH):
        retriever.add_documents(documents[start : start + BATCH])
    return time.process_time() - cpu, time.perf_counter() - wall


def median_ms(work: Callable[[str], object], questions: Sequence[str]) -> float:
    """Return the median time of an answer in milliseconds."""
    work("warm")
    times = []
    for question in questions:
        began = time.perf_counter()
        work(question)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def time_once(work: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def size_of(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def measure_folder(documents: list[Document], questions: list[str]) -> None:
    """Measure an index in a folder."""
    count = len(documents)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "index"
        with closing(open_folder(folder)) as retriever:
            cpu, wall = add(retriever, documents)
            report("add, CPU per 1,000 parents", cpu / count * 1000, "s")
            report("add, wall per 1,000 parents", wall / count * 1000, "s")
        report("disk per parent", size_of(folder) / count / 1000, "kB")
        with closing(open_folder(folder)) as retriever:
            report("first query", time_once(lambda: retriever.invoke(questions[0])) * 1e3, "ms")
            hybrid = median_ms(retriever.invoke, questions)
            report("query, hybrid", hybrid, "ms")
        with closing(open_folder(folder, search_type="similarity")) as alone:
            similarity = median_ms(alone.invoke, questions)
            report("query, similarity", similarity, "ms")
            filtered = {}
            for share, where in FILTERS.items():
                alone.search_kwargs = {"filter": where}
                filtered[share] = median_ms(alone.invoke, questions)
                report(f"query, similarity, filter that {share} pass", filtered[share], "ms")
        with closing(open_folder(folder)) as retriever:
            for share, where in FILTERS.items():
                retriever.search_kwargs = {"filter": where}
                value = median_ms(retriever.invoke, questions)
                report(f"query, hybrid, filter that {share} pass", value, "ms")
                report("  its ratio", value / (filtered[share] + hybrid - similarity), "")
            retriever.search_kwargs = {}
            report("verify", time_once(retriever.verify), "s")
            report("sync with nothing changed", time_once(lambda: retriever.sync(documents)), "s")
            ids = [str(each.id) for each in documents[:100]]
            report("delete 100 documents", time_once(lambda: retriever.delete(ids)), "s")


def open_folder(folder: Path | None, **options: Any) -> Any:
    """Open an index, in a folder or in memory, that takes each document for a parent."""
    return parent_document_retriever(
        path=folder, embeddings=EMBEDDINGS, parent_splitter=None, **options
    )


def measure_classic(documents: list[Document], questions: list[str]) -> None:
    """Measure langchain_classic in a folder."""
    count = len(documents)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with closing(SQLiteStore(folder / "parents.sqlite")) as rows:
            retriever = ParentDocumentRetriever(
                vectorstore=Chroma(
                    persist_directory=str(folder / "chroma"),
                    embedding_function=EMBEDDINGS,
                    collection_configuration={"hnsw": {"space": "cosine"}},
                ),
                docstore=DocumentStore(rows),
                child_splitter=RecursiveTextSplitter(chunk_size=400),
            )
            cpu, wall = add(retriever, documents)
            report("langchain_classic: add, CPU per 1,000 parents", cpu / count * 1000, "s")
            report("langchain_classic: add, wall per 1,000 parents", wall / count * 1000, "s")
            report("langchain_classic: query", median_ms(retriever.invoke, questions), "ms")
            report("langchain_classic: disk per parent", size_of(folder) / count / 1000, "kB")


def open_servers(url: str, port: int, folder: str) -> Any:
    """Open an index on a PostgreSQL and a Chroma server, with its keyword file in a folder."""
    import chromadb

    from rag_splitters.langchain import PostgresStore

    return parent_document_retriever(
        client=chromadb.HttpClient(host="127.0.0.1", port=port),
        docstore=PostgresStore(url),
        path=folder,
        embeddings=EMBEDDINGS,
        parent_splitter=None,
    )


NEW_PROCESS = """
import sys, time
sys.path.insert(0, {root!r})
from benchmarks.growth import open_servers
retriever = open_servers({url!r}, {port}, {folder!r})
began = time.perf_counter()
retriever.invoke({question!r})
print(time.perf_counter() - began)
retriever.close()
"""


def measure_servers(documents: list[Document], questions: list[str], foreign: Document) -> None:
    """Measure an index on servers."""
    from tests.support.servers import ChromaServer, PostgresServer

    with (
        PostgresServer() as postgres,
        ChromaServer() as chroma,
        tempfile.TemporaryDirectory() as folder,
    ):
        place = {"url": postgres.url, "port": chroma.port}
        with (
            closing(open_servers(**place, folder=f"{folder}/writer")) as writer,
            closing(open_servers(**place, folder=f"{folder}/reader")) as reader,
        ):
            cpu, wall = add(writer, documents)
            report("servers: add, CPU of the client per 1,000", cpu / len(documents) * 1000, "s")
            report("servers: add, wall per 1,000", wall / len(documents) * 1000, "s")
            root = str(Path(__file__).parents[1])
            normal = median_ms(reader.invoke, questions)
            for name in ("on a new machine", "with a keyword file"):
                options = {**place, "folder": f"{folder}/other", "question": questions[0]}
                command = [sys.executable, "-c", NEW_PROCESS.format(root=root, **options)]
                first = float(subprocess.check_output(command))
                report(f"servers: first query of a process {name}", first * 1e3, "ms")
            report("servers: query", normal, "ms")
            times = []
            for number, question in enumerate(questions):
                writer.add_documents([foreign.model_copy(update={"id": f"foreign-{number}"})])
                began = time.perf_counter()
                reader.invoke(question)
                times.append(time.perf_counter() - began)
            after = statistics.median(times) * 1e3
            report("servers: query after a foreign write", after, "ms")
            report("  its ratio to a query", after / normal, "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("text", type=Path, help="a file of natural text")
    parser.add_argument("--parents", type=int, nargs="+", default=[1000, 16_000])
    parser.add_argument("--classic", action="store_true", help="langchain_classic as well")
    parser.add_argument("--servers", action="store_true", help="PostgreSQL and Chroma's server too")
    arguments = parser.parse_args()
    text = arguments.text.read_text(encoding="utf-8", errors="replace")
    foreign = next(draw_documents(text, 1, seed=3))
    sources = draw_documents(text, QUESTIONS, seed=2)
    questions = [" ".join(each.page_content.split()[20:32]) for each in sources]
    with open_folder(None) as retriever:  # what is loaded only once is not measured
        retriever.add_documents([foreign])
    for count in arguments.parents:
        print(f"{count:,} parents")
        documents = list(draw_documents(text, count))
        measure_folder(documents, questions)
        if arguments.classic:
            measure_classic(documents, questions)
        if arguments.servers:
            measure_servers(documents, questions, foreign)


if __name__ == "__main__":
    main()
