"""Judging by a chat model: metrics of retrieval, and test data to measure it with.

Metrics: `context_precision`, `context_relevance`, `evaluate_facts`. Test data: `generate_facts`,
`generate_questions`. Each takes a chat model, or a `Judge`, which caches its answers, and has an
async form, whose name begins with "a".
"""

from rag_splitters.evaluation.judge.generation import (
    agenerate_facts,
    agenerate_questions,
    generate_facts,
    generate_questions,
)
from rag_splitters.evaluation.judge.judge import Failure, Judge
from rag_splitters.evaluation.judge.records import Fact, Generated, Record, ScoreReport, read_facts
from rag_splitters.evaluation.judge.scores import (
    Retriever,
    acontext_precision,
    acontext_relevance,
    aevaluate_facts,
    context_precision,
    context_relevance,
    evaluate_facts,
)

__all__ = [
    "Fact",
    "Failure",
    "Generated",
    "Judge",
    "Record",
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
