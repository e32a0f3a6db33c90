"""What a document costs on its way into an index on servers: seconds and bytes of each stage.

Starts PostgreSQL and a Chroma server for itself. The model is `HashingEmbeddings`, which costs next
to nothing, so that the time is that of everything else. Usage: python benchmarks/large_index.py
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_splitters.distributed.indexing import TableIndexer, Worker, turn_to_index
from rag_splitters.models import HashingEmbeddings
from tests.support.servers import ChromaServer, PostgresServer

COUNT, DIMENSIONS = 2000, 384
WORDS = "lamp tower keeper harbour rain road river meadow night oil wick boat sailor storm".split()


def open_index(url: str, port: int) -> Any:
    """Open the index with the default splitters."""
    import chromadb

    from rag_splitters.langchain import PostgresStore, parent_document_retriever

    return parent_document_retriever(
        client=chromadb.HttpClient(host="127.0.0.1", port=port),
        docstore=PostgresStore(url),
        embeddings=HashingEmbeddings(dimensions=DIMENSIONS),
    )


def text(chance: random.Random) -> str:
    """About 2,000 characters in paragraphs."""
    sentences = [" ".join(chance.choices(WORDS, k=12)).capitalize() + "." for _ in range(28)]
    return "\n\n".join(" ".join(sentences[at : at + 4]) for at in range(0, 28, 4))


def main() -> None:
    """Measure, and print a line for each figure."""
    chance = random.Random(1)
    rows = [{"id": f"doc-{n}", "text": text(chance), "team": "red"} for n in range(COUNT)]
    table = pa.Table.from_pylist(rows)
    with PostgresServer() as postgres, ChromaServer() as chroma:
        opening = partial(open_index, postgres.url, chroma.port)
        indexer = TableIndexer(opening, id_column="id")
        with (
            turn_to_index(indexer) as (turn, _),
            psycopg.connect(postgres.url, autocommit=True) as connection,
        ):
            worker = Worker(indexer, turn)
            wal = "SELECT pg_current_wal_lsn() - '0/0'"
            before = connection.execute(wal).fetchone()
            for name in ("new", "unchanged"):
                began, cpu = time.perf_counter(), time.process_time()
                for start in range(0, COUNT, 256):
                    worker.add(table.slice(start, 256))
                print_seconds(f"cut, compare, embed and write, {name}", began, cpu)
                if name == "new":
                    after = connection.execute(wal).fetchone()
                    size = "SELECT pg_total_relation_size('rag_splitters')"
                    print_bytes("PostgreSQL's log", int(after[0] - before[0]))
                    print_bytes("PostgreSQL's table", connection.execute(size).fetchone()[0])
        usage = subprocess.check_output(["du", "-sb", chroma.folder / "data"])
        print_bytes("Chroma's folder", int(usage.split()[0]))


def print_seconds(name: str, began: float, cpu: float) -> None:
    """Print what a document took."""
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    print(f"{name}: {1000 * wall / COUNT:.2f} ms per document, {1000 * used / COUNT:.2f} of CPU")


def print_bytes(name: str, size: int) -> None:
    """Print what a document takes."""
    print(f"{name}: {size / COUNT / 1000:.1f} kB per document")


if __name__ == "__main__":
    main()
