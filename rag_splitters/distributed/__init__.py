"""Tables of documents in, tables of chunks out, on one machine or many.

`splitter` works on Arrow tables without a framework, `ray` on Ray Datasets, `spark` on Spark
DataFrames. Importing any of them loads neither Arrow nor Ray nor Spark.
"""

from rag_splitters.distributed.indexing import IndexSummary, TableIndexer
from rag_splitters.distributed.splitter import TableSplitter

__all__ = ["IndexSummary", "TableIndexer", "TableSplitter"]
