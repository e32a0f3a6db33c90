"""Split a Spark DataFrame on a cluster, with the same chunks and ids as in one process.

Needs Java and Spark: pip install 'rag-splitters[spark]'
"""

import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers' Python, which has rag_splitters

from pyspark.sql import SparkSession

from rag_splitters import RecursiveChunker
from rag_splitters.distributed import TableSplitter
from rag_splitters.distributed.spark import split_dataframe

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)

REPORT = "The harbour opened in 1871.\n\nIt closed in 1954, and nobody minded. "
documents = spark.createDataFrame(
    [(f"report-{n}", REPORT * n, 1990 + n) for n in range(1, 21)],
    "id string, text string, year int",
)

chunker = RecursiveChunker(chunk_size=60, chunk_overlap=10)
chunks = split_dataframe(documents, TableSplitter(chunker, id_column="id"))  # nothing runs yet
rows = chunks.collect()  # or chunks.write.parquet(folder)
print(f"{len(rows)} chunks of 20 documents, for example:")
print({name: rows[0][name] for name in ("chunk_id", "document_id", "start_index", "text", "year")})

here = {chunk.id: chunk.text for chunk in chunker.chunk(REPORT * 7, id="report-7")}
there = {row["chunk_id"]: row["text"] for row in rows if row["document_id"] == "report-7"}
assert here == there
spark.stop()
