"""Judged figures: what a chat model says of retrieval, checked, counted and kept.

For retrieval: `context_precision`, `context_relevance`, `evaluate_facts`. For what to ask about:
`generate_facts`, `generate_questions`. Each takes a chat model or a `Judge`, which keeps answers.
"""

from rag_splitters.evaluation.judging.answers import Failure, Judgement
from rag_splitters.evaluation.judging.fact_report import FactReport, FactResult
from rag_splitters.evaluation.judging.facts import Fact, Facts, read_facts
from rag_splitters.evaluation.judging.judge import Judge
from rag_splitters.evaluation.judging.passages import Rejected
from rag_splitters.evaluation.judging.precision import acontext_precision, context_precision
from rag_splitters.evaluation.judging.questions import (
    WrittenQuestions,
    agenerate_questions,
    generate_questions,
)
from rag_splitters.evaluation.judging.relevance import acontext_relevance, context_relevance
from rag_splitters.evaluation.judging.retrieval import Retriever
from rag_splitters.evaluation.judging.scores import QuestionScore, ScoreReport
from rag_splitters.evaluation.judging.statements import agenerate_facts, generate_facts
from rag_splitters.evaluation.judging.truth import aevaluate_facts, evaluate_facts

__all__ = [
    "Fact",
    "FactReport",
    "FactResult",
    "Facts",
    "Failure",
    "Judge",
    "Judgement",
    "QuestionScore",
    "Rejected",
    "Retriever",
    "ScoreReport",
    "WrittenQuestions",
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
