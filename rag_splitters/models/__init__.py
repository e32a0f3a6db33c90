"""Calls to embedding models and chat models of any framework, or to plain functions.

This folder holds the calls (batches, retries, concurrency), the names of models, the pydantic
fields for them, the caches of their answers, and `HashingEmbeddings`, which needs no model.
"""

from rag_splitters.models.asking import ask, embed
from rag_splitters.models.chat import Answer, ChatModel, Llm, chat_model
from rag_splitters.models.describing import describe_model
from rag_splitters.models.embedder import Embedder, Embeddings
from rag_splitters.models.errors import ModelError
from rag_splitters.models.failures import collect_failures
from rag_splitters.models.hashing import HashingEmbeddings

__all__ = [
    "Answer",
    "ChatModel",
    "Embedder",
    "Embeddings",
    "HashingEmbeddings",
    "Llm",
    "ModelError",
    "ask",
    "chat_model",
    "collect_failures",
    "describe_model",
    "embed",
]
