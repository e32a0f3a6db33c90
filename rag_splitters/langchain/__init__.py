"""Every strategy as a LangChain text splitter, and parent-child retrieval for LangChain.

Everything that imports LangChain is in this folder. Retrieval and Chroma are imported when they are
first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from rag_splitters.langchain import splitters
from rag_splitters.langchain.loader import FileLoader, docling_document
from rag_splitters.langchain.splitters import *
from rag_splitters.models import Embedder, HashingEmbeddings

if TYPE_CHECKING:
    from rag_splitters.langchain.kvstores import DocumentStore
    from rag_splitters.langchain.retriever import ParentDocumentRetriever, parent_document_retriever
    from rag_splitters.parent_child.representations import Representations
    from rag_splitters.parent_child.stores.keyvalue import SQLiteStore
    from rag_splitters.parent_child.stores.postgres import PostgresStore
    from rag_splitters.parent_child.stores.redis import RedisStore

__all__ = [
    "DocumentStore",
    "FileLoader",
    "ParentDocumentRetriever",
    "PostgresStore",
    "RedisStore",
    "Representations",
    "SQLiteStore",
    "docling_document",
    "parent_document_retriever",
]
__all__ += splitters.__all__

_LAZY = {
    "DocumentStore": "langchain.kvstores",
    "ParentDocumentRetriever": "langchain.retriever",
    "PostgresStore": "parent_child.stores.postgres",
    "RedisStore": "parent_child.stores.redis",
    "Representations": "parent_child.representations",
    "SQLiteStore": "parent_child.stores.keyvalue",
    "parent_document_retriever": "langchain.retriever",
}

for _kind in (Embedder, HashingEmbeddings):
    Embeddings.register(_kind)


def __getattr__(name: str) -> Any:
    """Import the retrieval part when one of its names is first used."""
    if name in _LAZY:
        return getattr(import_module(f"rag_splitters.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
