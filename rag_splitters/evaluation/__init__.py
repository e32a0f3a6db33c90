"""Evaluation: which strategy finds the answers in your documents, and how sure is that?"""

from rag_splitters.evaluation.questions import (
    Benchmark,
    Question,
    read_benchmark,
    read_questions,
)

__all__ = ["Benchmark", "Question", "read_benchmark", "read_questions"]
