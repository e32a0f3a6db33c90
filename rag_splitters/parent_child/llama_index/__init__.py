"""Parent-child retrieval for LlamaIndex."""

from rag_splitters.parent_child.llama_index.factory import parent_document_retriever
from rag_splitters.parent_child.llama_index.retriever import ParentDocumentRetriever

__all__ = ["ParentDocumentRetriever", "parent_document_retriever"]
