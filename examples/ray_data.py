"""Split a Ray Dataset on many machines, with the same chunks and ids as in one process.

Needs Ray: pip install 'rag-splitters[ray]'
"""

import os

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing leaves this machine

import ray
from langchain_core.documents import Document

from rag_splitters.distributed import TableSplitter
from rag_splitters.distributed.ray import split_dataset
from rag_splitters.langchain import RecursiveTextSplitter

ray.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)
ray.data.DataContext.get_current().enable_progress_bars = False

REPORT = "The harbour opened in 1871.\n\nIt closed in 1954, and nobody minded. "
documents = ray.data.from_items(
    [{"id": f"report-{n}", "text": REPORT * n, "year": 1990 + n} for n in range(1, 21)]
)

splitter = RecursiveTextSplitter(chunk_size=60, chunk_overlap=10)
chunks = split_dataset(documents, TableSplitter(splitter, id_column="id"))  # nothing runs yet
rows = chunks.take_all()  # or chunks.write_parquet(folder)
print(f"{len(rows)} chunks of 20 documents, for example:")
print({name: rows[0][name] for name in ("chunk_id", "document_id", "start_index", "text", "year")})

document = Document(REPORT * 7, metadata={"year": 1997}, id="report-7")
here = {chunk.id: chunk.page_content for chunk in splitter.split_documents([document])}
there = {row["chunk_id"]: row["text"] for row in rows if row["document_id"] == "report-7"}
assert here == there
ray.shutdown()
