"""Write a Ray Dataset into a parent-child index with two workers, then edit it and do so again.

Needs Ray: pip install 'rag-splitters[ray]'. The example starts a Chroma server for itself, and
keeps the parents in a file; on several machines, use PostgresStore or RedisStore.
"""

import os

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing leaves this machine

import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import chromadb
import ray

from rag_splitters.distributed import TableIndexer
from rag_splitters.distributed.ray import index_dataset
from rag_splitters.langchain import SQLiteStore, parent_document_retriever


def open_index(folder: Path, port: int):
    """Called once in every process."""
    return parent_document_retriever(
        client=chromadb.HttpClient(host="127.0.0.1", port=port),
        docstore=SQLiteStore(folder / "parents.sqlite"),
    )


folder = Path(tempfile.mkdtemp())
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
chroma = [sys.executable, "-c", "from chromadb.cli.cli import app; app()", "run"]
server = subprocess.Popen(  # noqa: S603
    [*chroma, "--path", str(folder / "chroma"), "--host", "127.0.0.1", "--port", str(port)],
    stdout=subprocess.DEVNULL,
)
try:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)

    ray.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    rows = [
        {"id": f"day-{n}", "text": f"On day {n} the keeper lit {n * n} lamps.", "year": 1871}
        for n in range(1, 201)
    ]
    opening = partial(open_index, folder, port)
    indexer = TableIndexer(opening, id_column="id", scope={"year": 1871})
    print(index_dataset(ray.data.from_items(rows), indexer))

    rows[6]["text"] += " One of them went out."
    summary = index_dataset(ray.data.from_items(rows[:-1]), indexer)
    print(summary)
    assert (summary.changed, summary.deleted, summary.unchanged) == (1, 1, 198)

    with opening() as retriever:
        print(retriever.invoke("Which lamps went out?")[0].page_content)
        assert retriever.verify().is_sound
    ray.shutdown()
finally:
    server.terminate()
