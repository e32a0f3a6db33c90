"""Questions with evidence: quotations become exact positions, or the question is rejected."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from hypothesis import example, given

from rag_splitters import RecursiveChunker
from rag_splitters.evaluation import read_questions
from rag_splitters.evaluation.judge import (
    Generated,
    Judge,
    agenerate_questions,
    generate_questions,
)
from rag_splitters.evaluation.measure.questions import Question, check_question
from rag_splitters.testing import hostile_texts
from tests.support.chat_doubles import AsyncFunction, Function, part

TEXT = "Tea is hot.\n\nRain is wet. It falls."
SMALL = RecursiveChunker(chunk_size=22, chunk_overlap=0)


def asks(prompt: str) -> str:
    """A question about each passage, with its first and last sentence quoted."""
    passage = part(prompt, "passage")
    quotes = dict.fromkeys([passage.partition(".")[0] + ".", passage.split(". ")[-1]])
    return questions((f"What of {passage.split()[0]}?", list(quotes)))


def questions(*pairs: tuple[str, list[str]]) -> str:
    rows = [{"question": question, "quotes": quotes} for question, quotes in pairs]
    return json.dumps({"questions": rows})


def written(answer: str, text: str = TEXT, **options: Any) -> Generated[Question]:
    llm = Function(lambda prompt: answer)
    return generate_questions({"a": text}, Judge(llm, max_retries=0), **options)


def test_model_writes_questions_about_each_passage() -> None:
    llm = AsyncFunction(asks)
    found = generate_questions({"weather": TEXT}, llm, chunker=SMALL)
    assert found == [
        Question("What of Tea?", "weather", ((0, 11),)),
        Question("What of Rain?", "weather", ((13, 25), (26, 35))),
    ]
    assert [TEXT[slice(*place)] for place in found[1].references] == [
        "Rain is wet.",
        "It falls.",
    ]
    assert asyncio.run(agenerate_questions({"weather": TEXT}, llm, chunker=SMALL)) == found
    assert str(found) == "2 of 2 requested, about 2 passages"
    assert len(llm.prompts) == 4


def test_what_cannot_be_used_is_counted_and_not_repaired() -> None:
    answers = {
        "One.": questions(("A?", ["One."]), ("B?", ["One."])),  # one too many is left out
        "Two.": questions(("A?", ["Two"])),  # of another document
        "Three.": questions(("C?", ["tree."])),
        "Four.": questions(("D?", ["Four.", "And more."])),
        "Five.": questions(("E?", [])),
        "Six.": questions(),
        "Seven.": questions((" ", ["Seven."])),
    }
    llm = Function(lambda prompt: answers[part(prompt, "passage")])
    found = generate_questions({name: name for name in answers}, Judge(llm, max_retries=1))
    assert [(each.text, each.document) for each in found] == [
        ("A?", "One."),
        ("A?", "Two."),
    ]
    assert [
        (each.document, each.text, each.failure and each.failure.reason) for each in found.rejected
    ] == [
        ("Six.", "", "nothing was written"),
        ("Seven.", "", "the answer could not be used"),
        ("Three.", "C?", "a quotation is not in the passage"),
        ("Four.", "D?", "a quotation is not in the passage"),
        ("Five.", "E?", "no evidence is quoted"),
    ]
    assert found.rejected[2].failure is not None
    assert "'tree.' is not in the passage" in found.rejected[2].failure.detail
    assert found.reasons["a quotation is not in the passage"] == 2
    assert "rejected: no evidence is quoted (1)" in str(found)
    assert (found.passages, found.requested, len(found)) == (7, 7, 2)
    assert len(llm.prompts) == 8


def test_question_asked_twice_about_a_document_is_used_once() -> None:
    found = written(questions(("What?", ["is"])), chunker=SMALL)
    assert [each.references for each in found] == [((4, 6),)]
    assert found.reasons == {"written twice": 1}


def test_first_place_in_the_shown_passage_is_taken() -> None:
    """Not one in a passage before it, as a search through the document would."""
    text = "It rains.\n\nAnd it rains. It rains. It rains."
    llm = Function(lambda prompt: asks_rain(part(prompt, "passage")))
    paragraphs = RecursiveChunker(chunk_size=40, chunk_overlap=0)
    found = generate_questions({"a": text}, llm, chunker=paragraphs)
    assert [each.references for each in found] == [((0, 9),), ((25, 34),)]


def asks_rain(passage: str) -> str:
    return questions((f"What {passage[:3]}?", ["It rains."]))


def test_quotation_given_twice_is_one_reference() -> None:
    found = written(questions(("How?", ["hot.", "Tea", "hot."])))
    assert found[0].references == ((0, 3), (7, 11))


@given(text=hostile_texts())
@example("aa# Heading\n- item\nword")
@example("# Heading\n# Heading\n")
def test_questions_about_hostile_texts_hold(text: str) -> None:
    def copies(prompt: str) -> str:
        passage = prompt.partition("<passage>\n")[2].rpartition("\n</passage>")[0]
        quote = " ".join(passage.split())
        return questions(*[("What?", [quote])] * any(map(str.isalnum, quote)))

    found = generate_questions({"a": text}, copies, chunker=SMALL)
    assert bool(found) == any(map(str.isalnum, text))
    assert set(found.reasons) <= {"written twice", "nothing was written"}
    assert found.passages == len(found) + len(found.rejected)
    for question in found:
        check_question(question, {"a": text})


def test_questions_are_exported_for_the_retrieval_figures(tmp_path: Path) -> None:
    documents = {"weather \ud800": TEXT.replace("wet", "wet\r\n and \ud800"), "b": "Snow is cold."}
    found = generate_questions(documents, asks, chunker=SMALL)
    assert len(found) == 4
    found.export(tmp_path / "questions.jsonl")
    again = read_questions(tmp_path / "questions.jsonl", documents)
    assert again.questions == found


def test_no_documents_have_no_questions() -> None:
    for documents in ({}, {"a": ""}, {"a": " \r\n "}):
        found = generate_questions(documents, str.upper)
        assert (found, found.rejected, found.requested) == ([], [], 0)
