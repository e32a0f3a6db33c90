"""Every strategy as a LlamaIndex node parser, and parent-child retrieval for LlamaIndex.

Everything that imports LlamaIndex is in this folder. Retrieval is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rag_splitters.llama_index import parsers
from rag_splitters.llama_index.docling import docling_document
from rag_splitters.llama_index.parsers import *
from rag_splitters.llama_index.reader import FileReader

if TYPE_CHECKING:
    from rag_splitters.llama_index.embeddings import HashingEmbedding
    from rag_splitters.llama_index.kvstores import PostgresKVStore, RedisKVStore, SQLiteKVStore
    from rag_splitters.llama_index.retriever import (
        ParentDocumentRetriever,
        parent_document_retriever,
    )
    from rag_splitters.parent_child.representations import Representations

__all__ = [
    "FileReader",
    "HashingEmbedding",
    "ParentDocumentRetriever",
    "PostgresKVStore",
    "RedisKVStore",
    "Representations",
    "SQLiteKVStore",
    "docling_document",
    "parent_document_retriever",
]
__all__ += parsers.__all__

_LAZY = {
    "HashingEmbedding": "embeddings",
    "ParentDocumentRetriever": "retriever",
    "PostgresKVStore": "kvstores",
    "RedisKVStore": "kvstores",
    "Representations": "retriever",
    "SQLiteKVStore": "kvstores",
    "parent_document_retriever": "retriever",
}


def __getattr__(name: str) -> Any:
    """Import the retrieval part when one of its names is first used."""
    if name in _LAZY:
        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
