"""Judging by a chat model: metrics of retrieval, and test data to measure it with.

Metrics: `context_precision`, `context_relevance`, `evaluate_facts`. Test data: `generate_facts`,
`generate_questions`. Each takes a chat model, or a `Judge`, which keeps the answers.
"""

from rag_splitters.evaluation.judge.context import (
    QuestionScore,
    ScoreReport,
    acontext_precision,
    acontext_relevance,
    context_precision,
    context_relevance,
)
from rag_splitters.evaluation.judge.fact_evaluation import (
    FactReport,
    FactResult,
    aevaluate_facts,
    evaluate_facts,
)
from rag_splitters.evaluation.judge.facts import (
    Fact,
    Facts,
    agenerate_facts,
    generate_facts,
    read_facts,
)
from rag_splitters.evaluation.judge.judge import Failure, Judge, Judgement
from rag_splitters.evaluation.judge.passages import Rejected
from rag_splitters.evaluation.judge.retrieval import Retriever
from rag_splitters.evaluation.judge.synthetic_questions import (
    GeneratedQuestions,
    agenerate_questions,
    generate_questions,
)

__all__ = [
    "Fact",
    "FactReport",
    "FactResult",
    "Facts",
    "Failure",
    "GeneratedQuestions",
    "Judge",
    "Judgement",
    "QuestionScore",
    "Rejected",
    "Retriever",
    "ScoreReport",
    "acontext_precision",
    "acontext_relevance",
    "aevaluate_facts",
    "agenerate_facts",
    "agenerate_questions",
    "context_precision",
    "context_relevance",
    "evaluate_facts",
    "generate_facts",
    "generate_questions",
    "read_facts",
]
