"""What prompts say: the name of the document, the size, and the form of the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_openai import ChatOpenAI

from rag_splitters import AgenticChunker, ContextualChunker, PropositionChunker, RecursiveChunker
from rag_splitters.evaluation.judge import (
    Fact,
    Judge,
    evaluate_facts,
    generate_facts,
    generate_questions,
)
from tests.models.test_injections import (
    agentic,
    facts,
    precision,
    proposition,
    questions,
    relevance,
    telling,
)
from tests.support.chat_doubles import Function
from tests.support.openai_server import OpenAIServer

SECTION = "It was founded long ago. She left the firm in that year. " * 36
DOCUMENT = "# Zephyr Handbook\n\n" + "".join(
    f"## Chapter {number}\n\n{SECTION}\n\n" for number in range(12)
)


def prompts_of(run: Callable[[Any], object], answer: str = "{}") -> list[dict[str, Any]]:
    """The bodies of the requests that a real client sends."""
    with OpenAIServer(lambda prompt: answer) as server:
        run(ChatOpenAI(model="gpt-4o", base_url=server.url, api_key="sk-any", max_retries=0))
        return [request["body"] for request in server.requests]


def contents(bodies: list[dict[str, Any]]) -> list[str]:
    return [body["messages"][-1]["content"] for body in bodies]


CHUNKERS = {
    "agentic": lambda llm: AgenticChunker(
        llm=llm, max_retries=0, window=20, on_error=RecursiveChunker()
    ),
    "proposition": lambda llm: PropositionChunker(llm=llm, max_retries=0, on_error="keep"),
    "contextual": lambda llm: ContextualChunker(llm=llm, document_window=2000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHUNKERS)
def test_every_prompt_names_the_document_and_the_section(name: str) -> None:
    prompts = contents(prompts_of(lambda llm: CHUNKERS[name](llm).chunk(DOCUMENT)))
    assert len(prompts) > 20
    assert all("Zephyr Handbook" in prompt for prompt in prompts)
    assert sum("\nZephyr Handbook > Chapter " in prompt for prompt in prompts) > 15


@pytest.mark.parametrize("name", CHUNKERS)
def test_title_in_the_metadata_stands_before_what_the_model_sees(name: str) -> None:
    titled = {"title": "Zephyr"}
    text = "It is old. She left."
    (prompt,) = contents(prompts_of(lambda llm: CHUNKERS[name](llm).chunk(text, metadata=titled)))
    assert "<headings>\nZephyr\n</headings>\n\n<" in prompt
    (prompt,) = contents(prompts_of(lambda llm: CHUNKERS[name](llm).chunk(text)))
    assert "<headings>" not in prompt


@pytest.mark.parametrize("write", [generate_facts, generate_questions])
def test_passages_to_write_about_stand_below_their_headings(write: Any) -> None:
    bodies = prompts_of(lambda llm: write({"a": DOCUMENT}, Judge(llm, max_retries=0)))
    prompts = contents(bodies)
    assert len(prompts) > 10
    assert all("Zephyr Handbook" in prompt for prompt in prompts)


UNITS: list[tuple[dict[str, Any], str]] = [
    ({"chunk_size": 60}, r"at most 60 characters, which is about 3 of these sentences;"),
    (
        {"chunk_size": 12, "length_function": "words"},
        r"at most 12 words, which is about 2 of these",
    ),
    (
        {"chunk_size": 15, "chunk_overlap": 5, "length_function": "tokens"},
        r"at most 10 tokens, which is about 2 of these sentences;",
    ),
    (
        {"chunk_size": 25, "length_function": lambda text: len(text)},
        r"at most about one of these sentences;",
    ),
]


@pytest.mark.parametrize(("options", "words"), UNITS)
def test_agentic_prompt_says_the_size(options: dict[str, Any], words: str) -> None:
    llm = Function(lambda prompt: "1")
    AgenticChunker(llm=llm, **options).chunk("Tea is very hot now. " * 20)
    assert re.search(words, llm.prompts[0]), llm.prompts[0]


RUNS = {
    "agentic": (agentic, "separated by"),
    "proposition": (proposition, "one line for"),
    "facts": (facts, "one JSON object"),
    "questions": (questions, "one JSON object"),
    "precision": (precision, "one JSON object"),
    "relevance": (relevance, "one JSON object"),
    "telling": (telling, "one JSON object"),
}


@pytest.mark.parametrize("name", RUNS)
def test_form_of_the_answer_is_the_one_that_is_asked_for(name: str) -> None:
    run, form = RUNS[name]
    llm = Function(lambda prompt: "none")
    run(llm, "Tea. Rain.")
    assert llm.prompts
    for prompt in llm.prompts:
        assert form in prompt
        assert "{form}" not in prompt
    for body in prompts_of(lambda llm: run(llm, "Tea. Rain.")):
        assert body["response_format"]["type"] == "json_schema"
        prompt = body["messages"][-1]["content"]
        assert "{form}" not in prompt
        for contradiction in (
            *("separated by", "; nothing else", "one line", "line with", "JSON", "answer: "),
        ):
            assert contradiction not in prompt


@pytest.mark.parametrize("name", ["precision", "relevance", "telling"])
def test_judge_gives_its_reason_before_its_verdict(name: str) -> None:
    run, _ = RUNS[name]
    for body in prompts_of(lambda llm: run(llm, "Tea. Rain.")):
        schema = body["response_format"]["json_schema"]["schema"]
        assert list(schema["properties"]) == ["reason", "verdict"]
        assert schema["required"] == ["reason", "verdict"]


def test_reason_of_a_verdict_is_kept() -> None:
    answer = json.dumps({"reason": "So they say.", "verdict": True})
    with OpenAIServer(lambda prompt: answer) as server:
        by_schema = ChatOpenAI(model="gpt-4o", base_url=server.url, api_key="sk-any")
        for llm in (by_schema, lambda prompt: f"It is:\n```json\n{answer}\n```"):
            report = evaluate_facts([Fact("Tea is hot.", True)], lambda _: ["Tea is hot."], llm)
            (record,) = report.records
            assert (record.score, record.explanations) == (1.0, ("So they say.",))


@pytest.mark.parametrize("name", ["proposition", "contextual"])
def test_answers_stay_in_the_language_of_the_text(name: str) -> None:
    for prompt in contents(prompts_of(lambda llm: CHUNKERS[name](llm).chunk("Tee ist heiß."))):
        assert re.search(r"[Ww]rite (it )?in the language of the (passage|chunk)", prompt)
