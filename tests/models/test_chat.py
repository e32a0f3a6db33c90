"""chat_model: any chat model behind `ask`, whose every answer or error keeps its place."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from rag_splitters.calls import run, together
from rag_splitters.contract.chunker import Chunker
from rag_splitters.models import ChatModel, Llm, ModelError, chat_model
from rag_splitters.models import ask as ask_in_plan
from rag_splitters.span import Span
from tests.support.chat_doubles import Function, LlamaIndexDouble


class Boundaries(BaseModel):
    """What a structured answer looks like."""

    numbers: list[int]


class Structured(BaseChatModel):
    """A LangChain chat model with structured output of its own."""

    @property
    def _llm_type(self) -> str:
        return "structured"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        message = AIMessage(content=str(messages[-1].content).upper())
        return ChatResult(generations=[ChatGeneration(message=message)])

    def with_structured_output(self, schema: Any, **_: Any) -> Any:
        return RunnableLambda(lambda prompt: schema(numbers=[len(prompt)]))


async def awaited(prompt: str) -> str:
    return prompt.upper()


def called(prompt: str) -> str:
    return prompt.upper()


def scripted(prompt: str) -> str:
    """Structured answers come as JSON in text."""
    if "JSON schema" in prompt:
        return json.dumps({"numbers": [len(prompt.partition("\n")[0])]})
    return prompt.upper()


KINDS: dict[str, Callable[[], Any]] = {
    "langchain": Structured,
    "llama_index": lambda: LlamaIndexDouble(script=scripted),
    "function": lambda: called,
    "async_function": lambda: awaited,
    "runnable": lambda: RunnableLambda(called),
}
STRUCTURED = ("langchain", "llama_index")
PROMPTS = ["one", 'two {braces} {"a": 1}', "three"]


def ask(
    model: ChatModel, prompts: Sequence[str], schema: Any = None, is_async: bool = False
) -> list[Any]:
    found = asyncio.run(model.aask(prompts, schema)) if is_async else model.ask(prompts, schema)
    return list(found)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_chat_model_answers_whatever_the_model_came_in(kind: str, is_async: bool) -> None:
    model = chat_model(KINDS[kind]())
    assert ask(model, PROMPTS, is_async=is_async) == [prompt.upper() for prompt in PROMPTS]
    assert ask(model, [], is_async=is_async) == []
    assert chat_model(model) is model


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_chat_model_answers_with_a_schema_by_the_models_own_means(
    kind: str, is_async: bool
) -> None:
    model = chat_model(KINDS[kind]())
    assert model.is_structured == (kind in STRUCTURED)
    texts = [prompt.upper() for prompt in PROMPTS]
    objects = [Boundaries(numbers=[len(prompt)]) for prompt in PROMPTS]
    wanted = objects if kind in STRUCTURED else texts
    assert ask(model, PROMPTS, Boundaries, is_async) == wanted


def test_chat_model_gives_text_where_a_langchain_model_has_no_structured_output() -> None:
    model = chat_model(FakeListChatModel(responses=["1, 5"]))
    assert not model.is_structured
    assert ask(model, ["x"], Boundaries) == ["1, 5"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>1, 2?</think>\n\n3", "3"),
        ("1, 2?\n</think>\n3", "3"),
        ("A <think> tag ends with </think>", "A <think> tag ends with </think>"),
    ],
)
def test_reasoning_before_an_answer_is_left_out(text: str, answer: str) -> None:
    model = chat_model(lambda prompt: prompt)
    assert ask(model, [text]) == [answer]
    (unfinished,) = ask(model, ["<think>1, 2?"])
    assert "with an empty text" in str(unfinished)


@pytest.mark.parametrize("is_async", [False, True])
def test_chat_model_loses_no_answer_to_the_failure_of_another(is_async: bool) -> None:
    def model(prompt: str) -> Any:
        if prompt == "fail":
            raise RuntimeError("no such luck")
        return {"blank": " \n", "none": None, "object": 3}.get(prompt, prompt + "!")

    prompts = ["a", "fail", "b", "blank", "none", "object", "c"]
    found = ask(chat_model(model), prompts, is_async=is_async)
    assert [each for each in found if isinstance(each, str)] == ["a!", "b!", "c!"]
    errors = [each for each in found if isinstance(each, ModelError)]
    assert [error.index for error in errors] == [1, 3, 4, 5]
    assert [error.answered for error in errors] == [False, True, True, True]
    assert [error.kind for error in errors] == ["RuntimeError", "", "", ""]
    for error, message in zip(
        errors,
        (
            "failed on prompt 1: RuntimeError: no such luck",
            "answered prompt 3 with an empty text",
            "answered prompt 4 with NoneType",
            "answered prompt 5 with int",
        ),
        strict=True,
    ):
        assert message in str(error)
        assert "test_chat" in error.model
    assert isinstance(errors[0].__cause__, RuntimeError)


class Busy:
    """How many calls are under way at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.lock = threading.Lock()

    def add(self, change: int) -> None:
        with self.lock:
            self.now += change
            self.most = max(self.most, self.now)


@pytest.mark.parametrize("limit", [1, 3])
def test_chat_model_asks_at_once_what_it_may_and_no_more(limit: int) -> None:
    busy, everyone = Busy(), threading.Barrier(limit)

    def model(prompt: str) -> str:
        busy.add(1)
        everyone.wait(5)  # goes on when so many are here
        busy.add(-1)
        return prompt

    prompts = [str(number) for number in range(9)]
    assert ask(chat_model(model, max_concurrency=limit), prompts) == prompts
    assert busy.most == limit


@pytest.mark.parametrize(("limit", "wanted"), [(None, 4), (1, 1), (3, 3)])
def test_chat_model_awaits_at_once_what_it_may_and_no_more(limit: int | None, wanted: int) -> None:
    busy = Busy()

    async def model(prompt: str) -> str:
        busy.add(1)
        await asyncio.sleep(0.005)
        busy.add(-1)
        return prompt

    prompts = [str(number) for number in range(20)]
    assert ask(chat_model(model, max_concurrency=limit), prompts, is_async=True) == prompts
    assert busy.most == wanted


def test_chat_model_of_a_chat_model_changes_what_is_passed() -> None:
    model = chat_model(called, max_concurrency=7, max_retries=2)
    assert chat_model(model) is model
    fewer = chat_model(model, max_retries=0)
    assert (fewer.max_concurrency, fewer.max_retries) == (7, 0)
    slower = chat_model(model, max_concurrency=1)
    assert (slower.max_concurrency, slower.max_retries) == (1, 2)
    assert chat_model(chat_model(called)).max_retries == 4


def test_chat_model_sends_no_lone_surrogates() -> None:
    assert ask(chat_model(called), ["a\ud800b"]) == ["A\ufffdB"]


def test_equal_prompts_of_several_plans_are_sent_once() -> None:
    answer = Function(str.upper)
    model = chat_model(answer)
    plans = [ask_in_plan(model, ["tea", "rain"]), ask_in_plan(model, ["rain", "tea", "rain"])]
    assert run(together(plans)) == [["TEA", "RAIN"], ["RAIN", "TEA", "RAIN"]]
    assert sorted(answer.prompts) == ["rain", "tea"]


@pytest.mark.parametrize("model", ["gpt-4o", 3, None, FakeListChatModel])
def test_chat_model_refuses_what_is_none(model: object) -> None:
    with pytest.raises(TypeError, match="llm must be a LangChain chat model"):
        chat_model(model)


class Asking(Chunker):
    llm: Llm

    def spans(self, text: str) -> list[Span]:
        return []


def test_chat_field_is_written_as_a_stable_name() -> None:
    chunker = Asking(llm=called)
    written = chunker.model_dump()
    assert written == {"llm": f"function:{__name__}:called"}
    assert chunker == pickle.loads(pickle.dumps(chunker))
    with pytest.raises(ValueError, match="pass the function again as llm="):
        Asking(**written)
    assert Asking(llm=LlamaIndexDouble(script=called)).model_dump() == {
        "llm": "tests.LlamaIndexDouble"
    }
    with pytest.raises(ValueError, match="pass the model again as llm="):
        Asking(llm="tests.LlamaIndexDouble")
    with pytest.raises(ValueError, match="define it with def at the top level"):
        Asking(llm=lambda prompt: prompt).model_dump()
    with pytest.raises(ValueError, match="llm must be a LangChain chat model"):
        Asking(llm=3)
