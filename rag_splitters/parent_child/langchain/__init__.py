"""Parent-child retrieval for LangChain."""

from rag_splitters.parent_child.langchain.factory import parent_document_retriever
from rag_splitters.parent_child.langchain.retriever import ParentDocumentRetriever
from rag_splitters.parent_child.langchain_docstores import SQLiteStore

__all__ = ["ParentDocumentRetriever", "SQLiteStore", "parent_document_retriever"]
