"""Context precision and context relevance: RAGAS' definitions, and what becomes of failures."""

from __future__ import annotations

import asyncio
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_splitters.evaluation.judge import (
    Judge,
    ScoreReport,
    acontext_precision,
    acontext_relevance,
    context_precision,
    context_relevance,
)
from rag_splitters.evaluation.judge.scores import average_precision
from rag_splitters.evaluation.measure.questions import Question
from rag_splitters.testing import hostile_texts
from tests.support.chat_doubles import AsyncFunction, Function, part, verdict

QUESTIONS = ["How is tea?", "How is rain?", "How is snow?"]
ANSWERS = ["Hot.", "Wet.", "Cold."]
FOUND = {
    "How is tea?": ["Tea is hot.", "It is late.", "Hot is the tea."],
    "How is rain?": ["It is late.", "Rain is wet."],
    "How is snow?": ["It is late."],
}


def finds(question: str) -> list[str]:
    return FOUND[question]


def useful(prompt: str) -> str:
    """Is the answer in the passage?"""
    answer = part(prompt, "answer").rstrip(".").lower()
    return verdict(int(answer in part(prompt, "passage").lower()))


def relevant(prompt: str) -> str:
    """The strict judge counts the question's last word, the mild one is pleased with less."""
    topic = part(prompt, "question").split()[-1].rstrip("?")
    count = part(prompt, "context").lower().count(topic)
    return verdict(min(2, count if "Rate how well" in prompt else 2 * count))


def scores(report: ScoreReport) -> list[float | None]:
    return [each.score for each in report.records]


# Context precision


def test_precision_by_the_verdict_on_each_passage() -> None:
    llm = AsyncFunction(useful)
    report = context_precision(QUESTIONS, finds, Judge(llm), references=ANSWERS)
    assert [each.verdicts for each in report.records] == [(1, 0, 1), (0, 1), (0,)]
    assert scores(report) == [(1 + 2 / 3) / 2, 1 / 2, 0.0]
    assert report.score is not None
    assert report.score.mean == pytest.approx((5 / 6 + 1 / 2) / 3)
    assert report.failures == {}
    assert len(llm.prompts) == 6
    again = asyncio.run(acontext_precision(QUESTIONS, finds, Judge(llm), references=ANSWERS))
    assert again == report


@given(verdicts=st.lists(st.integers(0, 1), max_size=12))
def test_average_precision_is_the_definition(verdicts: list[int]) -> None:
    """Sum over k of precision@k * v(k), over the number of relevant items in the top K."""
    wanted = Fraction(0)
    for k in range(1, len(verdicts) + 1):
        wanted += Fraction(sum(verdicts[:k]), k) * verdicts[k - 1]
    wanted = wanted / sum(verdicts) if sum(verdicts) else wanted
    assert average_precision(verdicts) == pytest.approx(float(wanted))


def test_questions_may_come_with_their_positions() -> None:
    questions = [Question(text, "a", ((0, 1),)) for text in QUESTIONS]
    report = context_precision(questions, finds, useful, references=ANSWERS)
    assert report == context_precision(QUESTIONS, finds, useful, references=ANSWERS)
    assert context_relevance(questions, finds, relevant).records[0].text == QUESTIONS[0]


def test_missing_verdict_leaves_its_question_without_a_score() -> None:
    def moody(prompt: str) -> str:
        if part(prompt, "passage") == "Hot is the tea.":
            raise OSError("no answer")
        return useful(prompt)

    report = context_precision(QUESTIONS, finds, moody, references=ANSWERS)
    assert scores(report) == [None, 0.5, 0.0]
    assert report.records[0].verdicts == (1, 0, None)
    assert report.score is not None
    assert report.score.mean == 0.25
    assert report.failures == {"the model raised OSError": 1}
    assert "failed: the model raised OSError (1)" in str(report)


@pytest.mark.parametrize(
    ("references", "message"),
    [
        (ANSWERS[:2], "one reference for each of 3 questions, got 2"),
        ("abc", "one reference for each of 3 questions"),
        (["a", " ", "b"], "reference 1 is blank"),
    ],
)
def test_precision_refuses_answers_that_make_no_sense(references: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        context_precision(QUESTIONS, finds, useful, references)


# Context relevance


def test_relevance_by_two_judges_on_each_question() -> None:
    llm = AsyncFunction(relevant)
    report = context_relevance(QUESTIONS, finds, Judge(llm))
    assert [each.verdicts for each in report.records] == [(2, 2), (1, 2), (0, 0)]
    assert scores(report) == [1.0, 0.75, 0.0]
    assert report.failures == {}
    assert len(llm.prompts) == 6
    assert asyncio.run(acontext_relevance(QUESTIONS, finds, Judge(llm))) == report
    assert report.score is not None
    assert report.score.mean == pytest.approx(1.75 / 3)


@pytest.mark.parametrize(
    ("strict", "mild", "score"), [(0, 0, 0), (0, 1, 0.25), (1, 1, 0.5), (2, 0, 0.5), (2, 2, 1)]
)
def test_relevance_is_the_mean_of_both_judges(strict: int, mild: int, score: float) -> None:
    def judge(prompt: str) -> str:
        return verdict(strict if "Rate how well" in prompt else mild)

    assert scores(context_relevance(["How?"], lambda _: ["So."], judge)) == [score]


def test_failure_in_one_role_leaves_a_question_without_a_score() -> None:
    def strict(prompt: str) -> str:
        return verdict(3 if "Rate how well" in prompt else 1)

    report = context_relevance(QUESTIONS[:1], finds, Judge(strict, max_retries=0))
    assert report.records[0].verdicts == (None, 1)
    assert (scores(report), report.score) == ([None], None)
    assert report.failures == {"the answer could not be used": 1}
    assert str(report).startswith("context relevance: no score")


@pytest.mark.parametrize("found", [[" "], ["How is tea?"], ["tea", ""], ["is", " "]])
def test_context_that_adds_nothing_is_not_relevant_and_not_asked_about(found: list[str]) -> None:
    llm = Function(relevant)
    report = context_relevance(["How is tea?"], lambda question: found, llm)
    assert scores(report) == [0.0]
    assert llm.prompts == []
    assert report.empty == 0


# Both


def figures(questions: list[str], retriever: Any, llm: Any) -> list[ScoreReport]:
    references = ["So."] * len(questions)
    return [
        context_precision(questions, retriever, llm, references=references),
        context_relevance(questions, retriever, llm),
    ]


def test_empty_retrieval_scores_nothing_and_is_counted() -> None:
    llm = Function(lambda prompt: verdict(1))
    for report in figures(["Why?", "How?"], lambda q: ["So."] if q == "How?" else [], llm):
        assert report.records[0].score == 0.0
        assert (report.empty, report.failures) == (1, {})
        assert "nothing retrieved (1)" in str(report)
    assert not any("Why?" in prompt for prompt in llm.prompts)


def test_failed_retrieval_has_no_score() -> None:
    def away(question: str) -> list[str]:
        if question == "Why?":
            raise OSError("away")
        return ["So."]

    for report in figures(["Why?", "How?"], away, lambda prompt: verdict(1)):
        assert (report.empty, report.failures) == (0, {"the retriever raised OSError": 1})
        assert [each.score is None for each in report.records] == [True, False]


def test_no_questions_are_no_figure() -> None:
    for report in figures([], finds, useful):
        assert report.score is None
        assert report.records == ()
    for wrong in (["How?", " "], [""]):
        with pytest.raises(ValueError, match="is blank"):
            context_relevance(wrong, finds, useful)
    with pytest.raises(TypeError, match="expected a list of questions, got 'How"):
        context_relevance("How is tea?", finds, useful)


@given(texts=st.lists(hostile_texts(8), max_size=3))
def test_texts_are_data(texts: list[str]) -> None:
    seen: list[str] = []

    def model(prompt: str) -> str:
        prompt.encode()  # no client could send it else
        seen.append(prompt)
        return verdict(1)

    for report in figures(["How {passage} {question}?"], lambda question: texts, model):
        assert report.failures == {}
        assert report.records[0].texts == tuple(texts)
    assert all("How {passage} {question}?" in prompt for prompt in seen)


def test_scores_are_exported(tmp_path: Path) -> None:
    for report in (
        context_precision(QUESTIONS, finds, useful, references=ANSWERS),
        context_relevance(["How \ud800?"], lambda _: ["\ud800 so"], lambda prompt: verdict(1)),
    ):
        report.export(tmp_path / "scores.jsonl")
        lines = (tmp_path / "scores.jsonl").read_text(encoding="ascii").splitlines()
        for line, each in zip(lines, report.records, strict=True):
            row = json.loads(line)
            assert (row["text"], row["score"]) == (each.text, each.score)
            for name in ("texts", "verdicts", "explanations"):
                assert tuple(row[name]) == getattr(each, name)
