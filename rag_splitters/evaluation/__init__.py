"""Evaluation: which strategy finds the answers in your documents, and how certain is that?

Three folders: `measure` holds questions, metrics, faults and intervals; `judge` has the metrics and
the test data that come from a chat model; `report` runs a comparison and writes it.
"""

from rag_splitters.evaluation.measure.cached_embeddings import CachedEmbeddings
from rag_splitters.evaluation.measure.questions import (
    Benchmark,
    Question,
    read_benchmark,
    read_questions,
)
from rag_splitters.evaluation.measure.uncertainty import Estimate
from rag_splitters.evaluation.report.comparing import candidates, compare
from rag_splitters.evaluation.report.report import Report
from rag_splitters.evaluation.report.verdict import Verdict, verdict

__all__ = [
    "Benchmark",
    "CachedEmbeddings",
    "Estimate",
    "Question",
    "Report",
    "Verdict",
    "candidates",
    "compare",
    "read_benchmark",
    "read_questions",
    "verdict",
]
