"""Evaluation: which strategy finds the answers in your documents, and how certain is that?

`comparing` runs a comparison, `results` holds it, `report` prints and exports it, and `page` draws
its HTML page. `intrinsic` compares strategies without questions, by the figures in `figures`.
`judging` holds the metrics and the test data that come from a chat model.
"""

from rag_splitters.evaluation.cached_embeddings import CachedEmbeddings
from rag_splitters.evaluation.comparing import candidates, compare, suggest
from rag_splitters.evaluation.intervals import Estimate
from rag_splitters.evaluation.intrinsic import (
    IntrinsicReport,
    Recommendation,
    intrinsic,
    recommend,
)
from rag_splitters.evaluation.questions import Benchmark, Question, read_benchmark, read_questions
from rag_splitters.evaluation.report import Report
from rag_splitters.evaluation.suggestion import Suggestion, suggestion, verdict

__all__ = [
    "Benchmark",
    "CachedEmbeddings",
    "Estimate",
    "IntrinsicReport",
    "Question",
    "Recommendation",
    "Report",
    "Suggestion",
    "candidates",
    "compare",
    "intrinsic",
    "read_benchmark",
    "read_questions",
    "recommend",
    "suggest",
    "suggestion",
    "verdict",
]
