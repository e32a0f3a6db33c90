"""What a document costs on its way into an index on servers: seconds and bytes of each stage.

Starts PostgreSQL and a Chroma server for itself. The model is `HashingEmbeddings`, which costs next
to nothing, so that the time is that of everything else. Usage: python benchmarks/large_index.py
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_splitters.distributed.runs import make_job
from rag_splitters.distributed.stages import Worker
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
    folder = Path(tempfile.mkdtemp())
    with PostgresServer() as postgres, ChromaServer() as chroma:
        opening = partial(open_index, postgres.url, chroma.port)
        job = make_job(opening, folder / "run", "text", "id", None, None, 256, "raise")
        worker = Worker(job)
        for name in ("new", "unchanged"):
            began, cpu = time.perf_counter(), time.process_time()
            batches = list(worker.prepare(table))
            print_seconds(f"cut and compare, {name}", began, cpu)
            if name == "new":
                Path(job.checkpoint.chunks).mkdir(parents=True)
                path = f"{job.checkpoint.chunks}/one.parquet"
                pyarrow.parquet.write_table(pa.Table.from_batches(batches), path)
                print_bytes("Parquet", Path(path).stat().st_size)
                with psycopg.connect(postgres.url, autocommit=True) as connection:
                    wal = "SELECT pg_current_wal_lsn() - '0/0'"
                    before = connection.execute(wal).fetchone()
                    began, cpu = time.perf_counter(), time.process_time()
                    worker.write([path])
                    print_seconds("embed, write and read back", began, cpu)
                    after = connection.execute(wal).fetchone()
                    size = "SELECT pg_total_relation_size('rag_splitters')"
                    print_bytes("PostgreSQL's log", int(after[0] - before[0]))
                    print_bytes("PostgreSQL's table", connection.execute(size).fetchone()[0])
                (result,) = [worker.count([f"{n:02x}" for n in range(256)])]
                print(f"{result['parents'] / COUNT:.2f} parents, ", end="")
                print(f"{result['children'] / COUNT:.2f} children per document of ", end="")
                print(f"{sum(len(row['text']) for row in rows) / COUNT:.0f} characters")
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
