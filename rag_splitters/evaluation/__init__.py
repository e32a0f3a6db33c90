"""Evaluation: which strategy finds the answers in your documents, and how sure is that?"""

from rag_splitters.evaluation.bootstrap import Figure
from rag_splitters.evaluation.cache import CachedEmbeddings, EmbeddingCache
from rag_splitters.evaluation.comparing import compare
from rag_splitters.evaluation.questions import (
    Benchmark,
    Question,
    read_benchmark,
    read_questions,
)
from rag_splitters.evaluation.report import Report
from rag_splitters.evaluation.suggesting import (
    Suggestion,
    advice,
    candidates,
    suggest,
    suggestion,
)

__all__ = [
    "Benchmark",
    "CachedEmbeddings",
    "EmbeddingCache",
    "Figure",
    "Question",
    "Report",
    "Suggestion",
    "advice",
    "candidates",
    "compare",
    "read_benchmark",
    "read_questions",
    "suggest",
    "suggestion",
]
