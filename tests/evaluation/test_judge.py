"""Judge: every answer is asked for once and cached; and what retrieves for it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from llama_index.core.retrievers import BaseRetriever as LlamaIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import BaseModel

from rag_splitters.calls import arun, run
from rag_splitters.evaluation.judge import Failure, Judge
from rag_splitters.evaluation.judge.scores import Retrieved, retrieve
from rag_splitters.evaluation.measure.uncertainty import mean_score
from tests.support.caches import CACHES
from tests.support.chat_doubles import AsyncFunction, Function, LangChainDouble, LlamaIndexDouble


class Answer(BaseModel):
    """What a structured answer looks like."""

    verdict: Literal["yes", "no"]


PROMPTS = ["Is 1 odd?", "Is 2 odd?", "Is 3 \ud800 odd?"]


def odd(prompt: str) -> str:
    return json.dumps({"verdict": "no" if "2" in prompt.partition("\n")[0] else "yes"})


def ask(judge: Judge) -> list[Answer | Failure]:
    return run(judge.judge([PROMPTS], Answer))[0]


MODELS = [
    Function(odd),
    AsyncFunction(odd),
    LangChainDouble(script=odd),
    LlamaIndexDouble(script=odd),
    Function(odd),
    AsyncFunction(odd),
]


@pytest.mark.parametrize(("cache", "llm"), list(zip(CACHES, MODELS, strict=True)))
async def test_second_run_asks_nothing(cache: str, llm: Any, tmp_path: Path) -> None:
    kept = CACHES[cache](tmp_path)
    groups = [PROMPTS[1:], [], PROMPTS[:1] * 2]
    answers = await arun(Judge(llm, cache=kept).judge(groups, Answer))
    yes, no = Answer(verdict="yes"), Answer(verdict="no")
    assert answers == [[no, yes], [], [yes, yes]]
    assert await asyncio.to_thread(ask, Judge(llm, cache=kept)) == [yes, no, yes]
    assert len(llm.prompts) == 3


def test_another_model_is_asked_anew(tmp_path: Path) -> None:
    """The answers of several models may stand in one cache."""
    for llm in (LangChainDouble(script=odd), LlamaIndexDouble(script=odd), Function(odd)):
        assert len(ask(Judge(llm, cache=tmp_path))) == len(llm.prompts) == 3


def test_failures_are_told_apart_and_asked_again(tmp_path: Path) -> None:
    def moody(prompt: str) -> str:
        if "2" in prompt.partition("\n")[0]:
            raise RuntimeError("wrong key sk-very-secret")
        return '{"verdict": "perhaps"}' if "3" in prompt else odd(prompt)

    llm = Function(moody)
    one, two, three = ask(Judge(llm, cache=tmp_path, max_retries=1))
    assert one == Answer(verdict="yes")
    assert isinstance(two, Failure)
    assert isinstance(three, Failure)
    assert two.reason == "the model raised RuntimeError"
    assert "very-secret" not in str(two)
    assert three.reason == "the answer could not be used"
    assert "verdict Input should be 'yes' or 'no'; it began " in three.detail
    assert len(llm.prompts) == 4  # what failed to answer is not asked again, what answered badly is
    llm.script = odd
    assert one in ask(Judge(llm, cache=tmp_path))
    assert len(llm.prompts) == 6


def test_judge_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="llm must be"):
        Judge(3)
    with pytest.raises(TypeError, match="cache must be"):
        Judge(odd, cache=3)
    with pytest.raises(ValueError, match="no other process could find it by name"):
        Judge(lambda prompt: "", cache=tmp_path)
    with pytest.raises(ValueError, match="max_retries must be a whole number"):
        Judge(odd, max_retries=-1)
    with pytest.raises(ValueError, match="max_concurrency must be a whole number"):
        Judge(odd, max_concurrency=0)


@pytest.mark.parametrize("answer", ["yes", "{", '{"verdict": "maybe"}', "{}", "[1]"])
def test_answer_that_does_not_fit_is_refused(answer: str) -> None:
    (failure,) = run(Judge(lambda prompt: answer, max_retries=0).judge([["Is 1 odd?"]], Answer))[0]
    assert isinstance(failure, Failure)
    assert "it does not fit the schema" in failure.detail


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    [(8, 10, 0.5, 1), (80, 100, 0.71, 0.89), (10, 10, 0.7, 1), (0, 60, 0, 0.05), (1, 1, 0, 1)],
)
def test_mean_of_scores_has_an_honest_interval(
    right: int, count: int, low: float, high: float
) -> None:
    score = mean_score([1.0] * right + [0.0] * (count - right))
    assert score is not None
    assert score.mean == right / count
    assert score.low == pytest.approx(low, abs=0.03)
    assert score.high == pytest.approx(high, abs=0.03)


# Retrieval


def retrieved(retriever: Any, questions: list[str]) -> list[Retrieved]:
    return retrieve(retriever, questions).function()


async def aretrieved(retriever: Any, questions: list[str]) -> list[Retrieved]:
    return await retrieve(retriever, questions).result()


class Documents(BaseRetriever):
    """A LangChain retriever."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(page_content=part) for part in query.split()]


class Nodes(LlamaIndexRetriever):
    """A LlamaIndex retriever."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        parts = query_bundle.query_str.split()
        nodes = [TextNode(text=part, metadata={"source": "x"}) for part in parts]
        return [NodeWithScore(node=node, score=1.0) for node in nodes]


async def awaited(question: str) -> list[str]:
    await asyncio.sleep(0)
    return question.split()


RETRIEVERS = [
    Documents(),
    Nodes(),
    awaited,
    str.split,
    lambda question: (Document(page_content=part) for part in question.split()),
]


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_texts_come_from_every_kind_of_retriever(retriever: Any) -> None:
    questions = ["one two", " ", "three"]
    wanted = [("one", "two"), (), ("three",)]
    assert retrieved(retriever, questions) == wanted
    assert asyncio.run(aretrieved(retriever, questions)) == wanted


def test_failure_of_one_question_keeps_the_others() -> None:
    class Store:
        def __init__(self) -> None:
            self.api_key = "sk-very-secret"

        def retrieve(self, question: str) -> list[str]:
            if question == "two":
                raise ConnectionError(f"no {self.api_key}")
            return [question]

    assert retrieved(Store(), ["one", "two", "three"]) == [
        ("one",),
        Failure("the retriever raised ConnectionError", "ConnectionError: no ***"),
        ("three",),
    ]


@pytest.mark.parametrize(
    ("retriever", "message"),
    [
        (3, "a retriever must be"),
        (str, "a retriever must be"),
        (lambda question: "one text", "a list of texts from .*, got 'one text'"),
        (
            lambda question: {"context": ["a text"]},
            "a list of texts from .*, got {'context'",
        ),
        (lambda question: None, "a list of texts from .*, got None"),
        (lambda question: [3], "a string or an object with a text, got 3"),
    ],
)
def test_what_retrieves_no_texts_is_refused(retriever: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        retrieved(retriever, ["one"])
    with pytest.raises(TypeError, match=message):
        asyncio.run(aretrieved(retriever, ["one"]))


async def test_retrieval_is_bounded_and_works_inside_a_running_loop() -> None:
    running, most = 0, 0

    async def slow(question: str) -> list[str]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return [question]

    questions = [str(number) for number in range(20)]
    assert await aretrieved(slow, questions) == [(each,) for each in questions]
    assert most == 4
    assert retrieved(slow, questions[:2]) == [("0",), ("1",)]
