"""Tables of documents in, tables of chunks out, on as many machines as there are.

`TableSplitter` works on Arrow tables, without a framework; `rag_splitters.distributed.ray` runs it
over a Ray Dataset, `rag_splitters.distributed.spark` over a Spark DataFrame. Importing any of them
loads neither Arrow nor Ray nor Spark.
"""

from rag_splitters.distributed.table import TableSplitter

__all__ = ["TableSplitter"]
