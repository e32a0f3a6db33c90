"""Every strategy as a LlamaIndex node parser, and parent-child retrieval for LlamaIndex.

Everything that imports LlamaIndex is in this folder. Retrieval is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rag_splitters.llama_index import parsers
from rag_splitters.llama_index.parsers import *
from rag_splitters.llama_index.reader import FileReader, docling_document

if TYPE_CHECKING:
    from rag_splitters.llama_index.embeddings import HashingEmbedding
    from rag_splitters.llama_index.kvstores import JSONKVStore
    from rag_splitters.llama_index.retriever import (
        ParentDocumentRetriever,
        parent_document_retriever,
    )
    from rag_splitters.parent_child.representations import Representations
    from rag_splitters.parent_child.stores.keyvalue import SQLiteStore
    from rag_splitters.parent_child.stores.postgres import PostgresStore
    from rag_splitters.parent_child.stores.redis import RedisStore

__all__ = [
    "FileReader",
    "HashingEmbedding",
    "JSONKVStore",
    "ParentDocumentRetriever",
    "PostgresStore",
    "RedisStore",
    "Representations",
    "SQLiteStore",
    "docling_document",
    "parent_document_retriever",
]
__all__ += parsers.__all__

_LAZY = {
    "HashingEmbedding": "llama_index.embeddings",
    "JSONKVStore": "llama_index.kvstores",
    "ParentDocumentRetriever": "llama_index.retriever",
    "PostgresStore": "parent_child.stores.postgres",
    "RedisStore": "parent_child.stores.redis",
    "Representations": "parent_child.representations",
    "SQLiteStore": "parent_child.stores.keyvalue",
    "parent_document_retriever": "llama_index.retriever",
}


def __getattr__(name: str) -> Any:
    """Import the retrieval part when one of its names is first used."""
    if name in _LAZY:
        return getattr(import_module(f"rag_splitters.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
