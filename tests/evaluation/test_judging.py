"""Judge: every answer is asked for once, kept and exported; and what retrieves for it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_classic.storage import LocalFileStore
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from llama_index.core.retrievers import BaseRetriever as LlamaIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.kvstore import SimpleKVStore
from pydantic import BaseModel

from rag_splitters.evaluation.judge import Failure, Judge
from rag_splitters.evaluation.judge.judge import Task, read_choice
from rag_splitters.evaluation.judge.retrieval import Retrieved, retrieve
from rag_splitters.evaluation.measure.uncertainty import mean_score
from tests.support.chat_doubles import AsyncFunction, Function, LangChainDouble, LlamaIndexDouble


class Answer(BaseModel):
    """What a structured answer looks like."""

    verdict: Literal["yes", "no"]


def read(answer: str | BaseModel) -> bool:
    return read_choice(answer, {"yes": True, "no": False})


def retrieved(retriever: Any, questions: list[str]) -> list[Retrieved]:
    return retrieve(retriever, questions).function()


async def aretrieved(retriever: Any, questions: list[str]) -> list[Retrieved]:
    return await retrieve(retriever, questions).result()


TASK = Task("test", 1, Answer, read)
PROMPTS = ["Is 1 odd?", "Is 2 odd?", "Is 3 \ud800 odd?"]


def odd(prompt: str) -> str:
    return "no" if "2" in prompt else "yes"


def odd_json(prompt: str) -> str:
    return json.dumps({"verdict": odd(prompt)})


def verdicts(judge: Judge, task: Task[bool] = TASK) -> list[bool | None]:
    return [each.verdict for each in judge.ask(task, PROMPTS)]


CACHES = {
    "langchain": lambda path: InMemoryStore(),
    "langchain bytes": lambda path: InMemoryByteStore(),
    "langchain files": lambda path: LocalFileStore(path / "files"),
    "llama_index": lambda path: SimpleKVStore(),
    "folder": lambda path: path / "new" / "folder",
}
MODELS = {
    "function": lambda: Function(odd),
    "async function": lambda: AsyncFunction(odd),
    "langchain": lambda: LangChainDouble(script=odd_json),
    "llama_index": lambda: LlamaIndexDouble(script=odd_json),
}


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("model", MODELS)
def test_second_run_asks_nothing(cache: str, model: str, tmp_path: Path) -> None:
    kept, llm = CACHES[cache](tmp_path), MODELS[model]()
    first, second = Judge(llm, cache=kept), Judge(llm, cache=kept)
    assert verdicts(first) == [True, False, True]
    assert len(llm.prompts) == 3
    assert verdicts(second) == verdicts(first) == [True, False, True]
    again = asyncio.run(Judge(llm, cache=kept).aask(TASK, PROMPTS[::-1]))
    assert [each.verdict for each in again] == [True, False, True]
    assert len(llm.prompts) == 3
    assert second.judgements == first.judgements


@pytest.mark.parametrize("cache", CACHES)
def test_async_run_fills_the_cache(cache: str, tmp_path: Path) -> None:
    kept, llm = CACHES[cache](tmp_path), AsyncFunction(odd)
    asyncio.run(Judge(llm, cache=kept).aask(TASK, PROMPTS))
    assert verdicts(Judge(llm, cache=kept)) == [True, False, True]
    assert len(llm.prompts) == 3


def test_same_prompt_is_asked_once() -> None:
    judge = Judge(llm := Function(odd))
    assert [each.verdict for each in judge.ask(TASK, PROMPTS[:1] * 3)] == [True] * 3
    assert verdicts(judge) == [True, False, True]
    assert len(llm.prompts) == 3
    assert [each.prompt for each in judge.judgements] == PROMPTS


def test_another_model_task_or_version_is_asked_anew(tmp_path: Path) -> None:
    judge = Judge(llm := Function(odd), cache=tmp_path)
    for task in (TASK, Task("other", 1, Answer, read), Task("test", 2, Answer, read)):
        assert verdicts(judge, task) == [True, False, True]
    assert len(llm.prompts) == 9
    other = LangChainDouble(script=odd_json)
    assert verdicts(Judge(other, cache=tmp_path)) == [True, False, True]
    assert len(other.prompts) == 3
    assert (tmp_path / "judgements.sqlite").exists()


def test_failures_are_told_apart_and_asked_again(tmp_path: Path) -> None:
    def moody(prompt: str) -> str:
        if "2" in prompt:
            raise OSError("no answer today")
        return "perhaps" if "3" in prompt else "yes"

    llm = Function(moody)
    one, two, three = Judge(llm, cache=tmp_path, max_retries=1).ask(TASK, PROMPTS)
    assert (one.verdict, one.failure) == (True, None)
    assert two.failure is not None
    assert two.failure.reason == "the model raised OSError"
    assert "no answer today" in str(two.failure)
    assert three.failure is not None
    assert three.failure.reason == "the answer could not be used"
    assert "it is none of yes, no; it began 'perhaps'" in three.failure.detail
    assert [each.answer for each in (one, two, three)] == ["yes", None, None]
    assert len(llm.prompts) == 4  # what failed to answer is not asked again, what answered badly is
    llm.script = odd
    assert verdicts(Judge(llm, cache=tmp_path)) == [True, False, True]
    assert len(llm.prompts) == 6


def test_kept_answer_is_read_anew() -> None:
    cache = InMemoryStore()
    for kind in MODELS.values():
        llm = kind()
        verdicts(Judge(llm, cache=cache))
        contrary = Task("test", 1, Answer, lambda answer: not read(answer))
        assert verdicts(Judge(llm, cache=cache), contrary) == [False, True, False]
        assert len(llm.prompts) == 3


def test_export_is_for_audit(tmp_path: Path) -> None:
    llm = LangChainDouble(script=lambda prompt: "{}" if "2" in prompt else odd_json(prompt))
    judge = Judge(llm, max_retries=0)
    judge.ask(TASK, PROMPTS)
    judge.export(tmp_path / "run.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [(row["prompt"], row["answer"], row["verdict"]) for row in rows] == [
        (PROMPTS[0], {"verdict": "yes"}, True),
        (PROMPTS[1], None, None),
        (PROMPTS[2], {"verdict": "yes"}, True),
    ]
    assert {row["model"] for row in rows} == {judge.model}
    assert {(row["task"], row["version"]) for row in rows} == {("test", 1)}
    assert [row["reason"] for row in rows] == [None, "the answer could not be used", None]


def test_secrets_stay_out_of_keys_and_exports(tmp_path: Path) -> None:
    def leaky(prompt: str) -> str:
        raise RuntimeError("wrong key sk-very-secret")

    cache = InMemoryStore()
    for script in (odd_json, leaky):
        judge = Judge(LangChainDouble(script=script), cache=cache)
        judge.ask(Task(f"test {script.__name__}", 1, Answer, read), PROMPTS)
        judge.export(tmp_path / "run.jsonl")
        assert "very-secret" not in (tmp_path / "run.jsonl").read_text()
    reasons = {each.failure.reason for each in judge.judgements if each.failure}
    assert reasons == {"the model raised RuntimeError"}
    assert len(cache.store) == 3
    assert "very-secret" not in str(cache.store)


def test_judge_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="llm must be"):
        Judge(3)
    with pytest.raises(TypeError, match="cache must be"):
        Judge(odd, cache=3)
    with pytest.raises(ValueError, match="no other process could find it by name"):
        Judge(lambda prompt: "yes", cache=tmp_path)
    with pytest.raises(ValueError, match="max_retries must be a whole number"):
        Judge(odd, max_retries=-1)
    with pytest.raises(ValueError, match="max_concurrency must be a whole number"):
        Judge(odd, max_concurrency=0)


# Plain answers


@pytest.mark.parametrize("answer", ["yes", "Yes.", " YES\n", "**yes**", "Answer: yes", "`yes`"])
def test_word_is_read_tolerantly(answer: str) -> None:
    assert read_choice(answer, {"yes": 1, "no": 0}) == 1


@pytest.mark.parametrize("answer", ["", "not yes", "yes or no", "yes, as it says", "yess", "10"])
def test_word_that_is_not_clear_is_refused(answer: str) -> None:
    with pytest.raises(ValueError, match="it is none of yes, no, 1, 0"):
        read_choice(answer, {"yes": 1, "no": 0, "1": 1, "0": 0})


# Intervals


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


def test_no_scores_have_no_mean() -> None:
    assert mean_score([]) is None


# Retrieval


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
    questions = ["one two", "", "three"]
    wanted = [("one", "two"), (), ("three",)]
    if isinstance(retriever, LlamaIndexRetriever):
        questions[1], wanted[1] = " ", ()
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

    for found in (
        retrieved(Store(), ["one", "two", "three"]),
        asyncio.run(aretrieved(Store(), ["one", "two", "three"])),
    ):
        assert found == [
            ("one",),
            Failure("the retriever raised ConnectionError", "ConnectionError: no ***"),
            ("three",),
        ]


@pytest.mark.parametrize(
    ("retriever", "message"),
    [
        (3, "a retriever must be"),
        (str, "a retriever must be"),
        (lambda question: "one text", "must return a list of texts, got str"),
        (lambda question: None, "must return a list of texts, got NoneType"),
        (lambda question: [3], "got a int among them"),
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

    class Shelf:
        invoke = staticmethod(str.split)
        ainvoke = staticmethod(slow)

    questions = [str(number) for number in range(20)]
    for retriever in (slow, Shelf()):
        most = 0
        assert await aretrieved(retriever, questions) == [(each,) for each in questions]
        assert most == 4
    assert retrieved(slow, questions[:2]) == [("0",), ("1",)]
