"""True and false facts: written by a model, told by a model, and every one accounted for."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from langchain_openai import ChatOpenAI
from llama_index.llms.openai import OpenAI

from rag_splitters import RecursiveChunker
from rag_splitters.evaluation.judge import (
    Fact,
    Generated,
    Judge,
    ScoreReport,
    aevaluate_facts,
    agenerate_facts,
    evaluate_facts,
    generate_facts,
    read_facts,
)
from rag_splitters.testing import hostile_texts
from tests.support.chat_doubles import AsyncFunction, Function, part, verdict
from tests.support.openai_server import Fault, OpenAIServer

SECRET = "sk-very-secret-0123456789"


# Over HTTP, every way in which it can end

KINDS = {
    "right": 12,
    "wrong": 3,
    "recovers": 2,  # a rate limit, and then a right answer
    "corrected": 2,  # an answer of no use, and then a right one
    "malformed": 2,
    "silent": 1,
    "limited": 2,
    "late": 1,
    "cut": 1,
    "unfound": 3,
    "unfindable": 1,
}
FACTS = [
    Fact(f"{kind} {number} is {'so' if number % 2 else 'not so'}.", bool(number % 2))
    for kind, count in KINDS.items()
    for number in range(count)
]


def kind_in(prompt: str) -> str:
    return re.findall(r"<statement>\n(\w+)", prompt)[0]


class Harness(OpenAIServer):
    """Tells facts by their kind."""

    def __init__(self) -> None:
        super().__init__(self.tell)
        self.asked: Counter[str] = Counter()
        self.is_healthy = False

    def begin(self, request: dict[str, Any]) -> Fault:
        fault = super().begin(request)
        kind = kind_in(request["body"]["messages"][-1]["content"])
        self.asked[request["body"]["messages"][-1]["content"]] += 1
        if self.is_healthy:
            return fault
        again = self.asked[request["body"]["messages"][-1]["content"]] > 1
        if kind == "limited" or (kind == "recovers" and not again):
            return Fault(status=429, headers={"Retry-After": "0"}, body=SECRET.encode())
        return {"late": Fault(delay=3.0), "cut": Fault(cut=True)}.get(kind, fault)

    def tell(self, prompt: str) -> str:
        kind = kind_in(prompt)
        is_true = " so.\n</statement>" in prompt and "not so." not in prompt
        if not self.is_healthy:
            if kind == "malformed" or (kind == "corrected" and "could not be used" not in prompt):
                return '{"reason": "It may be.", "verdict": "perhaps"}'
            if kind == "silent":
                return ""
            is_true ^= kind == "wrong"
        return verdict(is_true)


def langchain_client(url: str) -> Any:
    return ChatOpenAI(model="gpt-4o", base_url=url, api_key=SECRET, max_retries=1, timeout=2.0)


def llama_index_client(url: str) -> Any:
    return OpenAI(model="gpt-4o", api_base=url, api_key=SECRET, max_retries=1, timeout=2.0)


CLIENTS = [langchain_client, llama_index_client]


def finds(statement: str) -> list[str]:
    """A retriever that finds nothing for some facts, and fails on others."""
    if statement.startswith("unfindable"):
        raise OSError("the index is away")
    return [] if statement.startswith("unfound") else [f"They say: {statement}", "And so on."]


def check_counts(report: ScoreReport) -> None:
    """What the script makes of `FACTS`, and that nothing is lost."""
    assert [each.text for each in report.records] == [fact.statement for fact in FACTS]
    assert counts(report) == (16, 3, 11)
    for each, fact in zip(report.records, FACTS, strict=True):
        kind = fact.statement.partition(" ")[0]
        is_answered = kind in ("right", "wrong", "recovers", "corrected")
        assert each.score == (float(kind != "wrong") if is_answered else None)
        assert (each.failure is None) is is_answered
        assert each.group == ("true facts" if fact.is_true else "false facts")
    assert report.score is not None
    assert report.score.mean == 16 / 19
    assert 0.6 < report.score.low < 0.7
    assert report.score.high == 1


def counts(report: ScoreReport) -> tuple[int, int, int]:
    """How many facts were judged right, wrong and not at all."""
    scores = [each.score for each in report.records]
    return scores.count(1.0), scores.count(0.0), scores.count(None)


def plain(reasons: dict[str, int]) -> dict[str, int]:
    """The reasons without the prefixes that clients, and their versions, give to one exception."""
    return {re.sub("OpenAI|API", "", reason): count for reason, count in reasons.items()}


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
async def test_harness_reproduces_known_counts_over_http(client: Any, tmp_path: Path) -> None:
    async def run(judge: Judge) -> ScoreReport:
        return await aevaluate_facts(FACTS, finds, judge)

    with Harness() as server:
        llm = client(server.url)
        report = await run(Judge(llm, cache=tmp_path))
        check_counts(report)
        reasons = plain(report.failures)
        assert reasons["nothing was retrieved"] == 3
        assert reasons["the retriever raised OSError"] == 1
        assert reasons["the answer could not be used"] == 3
        assert reasons["the model raised TimeoutError"] == 1
        assert sum(reasons.values()) == 11
        assert SECRET not in json.dumps([each.as_dict() for each in report.records])

        # A second run asks again only what had failed; the third, after it went well, nothing.
        server.asked.clear()
        server.is_healthy = True
        for name in ("second", "third"):
            server.requests.clear()
            again = await run(Judge(llm, cache=tmp_path))
            assert counts(again) == (23, 3, 4)
            again.export(tmp_path / name)
        asked_again = {kind_in(prompt) for prompt in server.asked}
        assert asked_again == {"malformed", "silent", "limited", "late", "cut"}
        assert len(server.requests) == 0
        assert (tmp_path / "second").read_bytes() == (tmp_path / "third").read_bytes()


# Reports


def told(statement: str, prompt: str) -> str:
    return verdict(f"\n{statement}\n</statement>" in prompt)


def test_report_says_what_was_told_and_what_was_not(tmp_path: Path) -> None:
    facts = [Fact("A.", True), Fact("B.", True), Fact("C.", False), Fact("D.", False)]
    report = evaluate_facts(
        facts,
        lambda statement: [] if statement == "D." else [statement],
        lambda prompt: told("A.", prompt),
    )
    assert str(report) == (
        "true/false facts: 66.7 (0.0 to 100.0)\n"
        "  true facts: 50.0 (0.0 to 100.0)\n"
        "  false facts: 100.0 (0.0 to 100.0)\n"
        "  failed: nothing was retrieved (1)"
    )
    assert report.failures == {"nothing was retrieved": 1}
    assert report.groups["true facts"].mean == 0.5
    report.export(tmp_path / "facts.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "facts.jsonl").read_text().splitlines()]
    assert [(row["text"], row["verdicts"], row["score"], row["reason"]) for row in rows] == [
        ("A.", [True], 1.0, None),
        ("B.", [False], 0.0, None),
        ("C.", [False], 1.0, None),
        ("D.", [], None, "nothing was retrieved"),
    ]


@pytest.mark.parametrize("found", [[], [""], [" \n", "\t"]])
def test_fact_is_not_asked_about_where_nothing_was_retrieved(found: list[str]) -> None:
    llm = Function(lambda prompt: verdict(True))
    report = evaluate_facts([Fact("A.", True)], lambda statement: found, llm)
    assert llm.prompts == []
    assert report.failures == {"nothing was retrieved": 1}
    assert report.score is None
    assert str(report).startswith("true/false facts: no score")


def test_no_facts_are_no_figure() -> None:
    none: Generated[Fact] = generate_facts({}, str.upper)
    for facts in ([], none):
        report = evaluate_facts(facts, lambda statement: ["A."], str.upper)
        assert report.records == ()
        assert report.score is None
    assert none == []
    assert str(generate_facts({"blank": " \n "}, str.upper)).startswith("0 of 0")


# Facts from passages

TEXT = "Tea is hot.\n\nRain is wet."
SMALL = RecursiveChunker(chunk_size=12, chunk_overlap=0)


def states(prompt: str) -> str:
    """What the passage says, and the same in the negative."""
    said = " ".join(part(prompt, "passage").split())
    return statements([said], [said.replace(" is ", " is not ")])


def statements(true: list[str], false: list[str]) -> str:
    return json.dumps({"true": true, "false": false})


def test_model_writes_facts_about_each_passage() -> None:
    llm = AsyncFunction(states)
    facts = generate_facts({"weather": TEXT}, llm, chunker=SMALL)
    assert facts == [
        Fact("Tea is hot.", True, "weather", 0, 11),
        Fact("Tea is not hot.", False, "weather", 0, 11),
        Fact("Rain is wet.", True, "weather", 13, 25),
        Fact("Rain is not wet.", False, "weather", 13, 25),
    ]
    assert asyncio.run(agenerate_facts({"weather": TEXT}, llm, chunker=SMALL)) == facts
    assert str(facts) == "4 of 4 requested, about 2 passages"
    assert len(llm.prompts) == 4


def test_number_of_facts_goes_by_length() -> None:
    llm = Function(lambda prompt: statements([], []))
    text = "word " * 1000
    assert generate_facts({"a": text}, llm, every=1000).requested == 2 * (1 + 1 + 1)
    assert generate_facts({"a": text}, llm, every=100).requested == 2 * (19 + 19 + 9)
    assert "Write 19 true and 19 false ones" in llm.prompts[-2]
    with pytest.raises(ValueError, match="every must be a whole number of at least 1, got 0"):
        generate_facts({"a": text}, llm, every=0)
    with pytest.raises(TypeError, match="chunker must be a Chunker, got 'recursive'"):
        generate_facts({"a": text}, llm, chunker="recursive")
    with pytest.raises(TypeError, match="every fact must be a Fact, got 'Tea is hot"):
        evaluate_facts(["Tea is hot."], lambda question: [], llm)


def test_statements_that_cannot_be_used_are_counted_and_not_repaired() -> None:
    answers = {
        "One.": statements(["A.", "C."], ["B."]),  # one more than asked for is left out
        "Two.": statements(["A."], ["D."]),  # A again
        "Three.": statements(["E."], ["F."]),
        "Four.": statements([], ["E."]),  # E on the other side
        "Five.": statements([], []),
        "Six.": "I would say that A is true.",
    }
    llm = Function(lambda prompt: answers[part(prompt, "passage")])
    documents = {name: name for name in answers}
    facts = generate_facts(documents, Judge(llm, max_retries=1))
    assert [(fact.statement, fact.is_true, fact.document) for fact in facts] == [
        ("A.", True, "One."),
        ("B.", False, "One."),
        ("D.", False, "Two."),
        ("F.", False, "Three."),
    ]
    assert sorted(
        (each.document, each.text, each.failure.reason) for each in facts.rejected if each.failure
    ) == [
        ("Five.", "", "nothing was written"),
        ("Four.", "E.", "true and false"),
        ("Six.", "", "the answer could not be used"),
        ("Three.", "E.", "true and false"),
        ("Two.", "A.", "written twice"),
    ]
    assert len(llm.prompts) == 7  # the last is asked again, and no other
    assert "rejected: true and false (2)" in str(facts)
    assert (facts.passages, facts.requested) == (6, 12)


@given(text=hostile_texts())
def test_facts_say_where_they_come_from(text: str) -> None:
    seen = Function(lambda prompt: statements(["A."], []))
    facts = generate_facts({"a": text}, seen, chunker=SMALL)
    assert facts.passages == len(facts) + len(facts.rejected)
    assert bool(facts) == bool(text.strip())
    places = [(each.start, each.end) for each in (*facts, *facts.rejected)]
    assert places == [(span.start, span.end) for span in SMALL.spans(text)]


def test_facts_are_exported_edited_and_read(tmp_path: Path) -> None:
    facts = generate_facts({"a \ud800": "One \ud800 is two."}, states_lone)
    facts.export(tmp_path / "facts.jsonl")
    assert read_facts(tmp_path / "facts.jsonl") == facts
    own = tmp_path / "own.jsonl"
    own.write_text('{"statement": "Tea is hot.", "is_true": true}\n\n')
    assert read_facts(own) == [Fact("Tea is hot.", True)]


def states_lone(prompt: str) -> str:
    return statements(["One \ud800 is two."], ["One is not two."])


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        "3",
        "[]",
        '{"statement": "A."}',
        '{"statement": " ", "is_true": true}',
        '{"statement": 3, "is_true": true}',
        '{"statement": "A.", "is_true": "yes"}',
    ],
)
def test_lines_that_are_no_facts_are_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    path.write_text('{"statement": "A.", "is_true": false}\n' + line)
    with pytest.raises(ValueError, match=r"facts\.jsonl, line 2: this is not a fact"):
        read_facts(path)
