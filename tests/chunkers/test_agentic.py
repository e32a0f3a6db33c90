"""AgenticChunker: boundaries from a chat model, words from the source."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_splitters import RecursiveChunker, SentenceChunker
from rag_splitters.chunkers.agentic import AgenticChunker
from rag_splitters.meaning.windows import number_sentences, numbers_in, sentences_of, windows
from rag_splitters.models import ModelError
from rag_splitters.testing import hostile_texts
from tests.support.cases import every_third, halves
from tests.support.chat_doubles import (
    Function,
    LangChainDouble,
    LlamaIndexDouble,
    asked_of_openai,
    check_models_agree,
    sentences_in,
)
from tests.support.checks import check_chunker
from tests.support.splitting import asplit_texts, split_texts

TEXT = "Tea is hot. I like it. Rain fell. It was cold. Cats sleep. They hunt."


def every_third_json(prompt: str) -> str:
    return json.dumps({"starts": [int(each) for each in every_third(prompt).split(",")]})


def fails(prompt: str) -> str:
    raise RuntimeError("no answer today")


def cold_fails(prompt: str) -> str:
    """No answer where the prompt speaks of cold."""
    return "I cannot say." if "cold" in prompt else every_third(prompt)


def pieces(chunker: AgenticChunker, text: str) -> list[str]:
    return [span.text_of(text) for span in chunker.spans(text)]


@given(text=hostile_texts())
def test_agentic_keeps_the_guarantees_when_the_model_fails(text: str) -> None:
    fallback = RecursiveChunker(chunk_size=13)
    for script in (fails, lambda prompt: "1" if "word" in prompt else "nothing"):
        chunker = AgenticChunker(
            llm=script, window=3, max_retries=0, on_error=fallback, chunk_size=20, chunk_overlap=5
        )
        check_chunker(chunker, text)


@given(text=hostile_texts())
def test_sentences_are_whole_clusters_and_one_line_each(text: str) -> None:
    for segmenter in ("rules", halves):
        spans = sentences_of(text, segmenter)
        shown = number_sentences(text, spans)
        assert len(shown.splitlines()) == len(spans)
        outside = text
        for start, end in reversed(spans):
            outside = outside[:start] + outside[end:]
        assert not outside.strip()


def test_every_kind_of_model_gives_the_same_cuts() -> None:
    spans = check_models_agree(AgenticChunker, every_third, every_third_json, TEXT)
    expected = ["Tea is hot. I like it. Rain fell.", "It was cold. Cats sleep. They hunt."]
    assert [span.text_of(TEXT) for span in spans] == expected


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("1, 5, 9", [1, 5, 9]),
        ("[1, 5, 9]", [1, 5, 9]),
        ("[1], [5] and [9].", [1, 5, 9]),
        ("1\n5\n9\n", [1, 5, 9]),
        ("- 1\n- 5\n- 9", [1, 5, 9]),
        ("5;9", [5, 9]),
        ('{"starts": [1, 5, 9]}', [1, 5, 9]),
        ("The 3 chunks begin at 1, 5, and 9.", [1, 5, 9]),
        ("The 2 chunks begin at 1 and 5.", [1, 5]),
        ("1", [1]),
    ],
)
def test_numbers_are_read_tolerantly(answer: str, numbers: list[int]) -> None:
    assert numbers_in(answer) == numbers


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        (["I cannot help with that.", "1-4, 5-9", "1, -5", "1.5, 3"], "it holds"),
        (["1. 1\n2. 5\n3. 9", "1) Tea 5) Rain", "1 (tea), 5, 9"], "it holds"),
        (["Sentence 1: tea. Sentence 5: rain.", "1, 5 or else 1, 9"], "it holds"),
        (["1, 5, 9. That makes 3 chunks."], "it holds"),
        (["1, 5, ", "1, 14, 2", "1;5;9;1"], "it ends in the middle"),
    ],
)
def test_numbers_that_are_not_clear_are_refused(answers: list[str], problem: str) -> None:
    for answer in answers:
        with pytest.raises(ValueError, match=problem):
            numbers_in(answer)


def test_answers_are_sorted_and_one_is_implied() -> None:
    assert pieces(AgenticChunker(llm=lambda prompt: "5, 3, 5"), TEXT) == [
        "Tea is hot. I like it.",
        "Rain fell. It was cold.",
        "Cats sleep. They hunt.",
    ]


@pytest.mark.parametrize("bad", ["", "no idea", "1, 7", "0, 3", "1, " + "9" * 5000])
def test_unusable_answer_is_asked_again_with_what_was_wrong(bad: str) -> None:
    answers = iter([bad, "1, 3"])
    llm = Function(lambda prompt: next(answers))
    assert pieces(AgenticChunker(llm=llm), TEXT)[0] == "Tea is hot. I like it."
    assert len(llm.prompts) == 2
    assert llm.prompts[1].startswith(llm.prompts[0])
    assert "could not be used" in llm.prompts[1]


@pytest.mark.parametrize("kind", [LangChainDouble, LlamaIndexDouble])
@pytest.mark.parametrize("bad", ["no json", '{"starts": []}', '{"starts": [99]}', '{"a": 1}'])
def test_unusable_structured_answer_is_asked_again(kind: Any, bad: str) -> None:
    answers = iter([bad, '{"starts": [1, 3]}'])
    llm = kind(script=lambda prompt: next(answers))
    assert pieces(AgenticChunker(llm=llm), TEXT)[0] == "Tea is hot. I like it."
    assert len(llm.prompts) == 2


def test_error_names_document_window_and_answer() -> None:
    llm = Function(lambda prompt: "Sorry, no! " + "x" * 500 if "Cats" in prompt else "1")
    text = TEXT * 3
    with pytest.raises(ModelError) as caught:
        split_texts(AgenticChunker(llm=llm, max_retries=1), ["One. Two.", text])
    message = str(caught.value)
    assert "document 1, window 0 (sentences 1 to" in message
    assert "Sorry, no!" in message
    assert "x" * 100 not in message
    assert caught.value.index == 1
    assert len(llm.prompts) == 3


def test_failed_call_is_not_asked_again() -> None:
    llm = Function(fails)
    with pytest.raises(ModelError, match="no answer today"):
        AgenticChunker(llm=llm).spans(TEXT)
    assert len(llm.prompts) == 1


def test_fallback_takes_the_boundaries_of_the_named_chunker() -> None:
    llm = Function(cold_fails)
    fallback = SentenceChunker(chunk_size=25)
    chunker = AgenticChunker(llm=llm, on_error=fallback, max_retries=0)
    fine = "Dogs bark. They run. They eat. Birds sing."
    spans, others = split_texts(chunker, [TEXT, fine])
    assert [(s.start, s.end) for s in spans] == [(s.start, s.end) for s in fallback.spans(TEXT)]
    assert {span.metadata["fallback"] for span in spans} == {"SentenceChunker"}
    assert [span.metadata for span in others] == [{}, {}]
    assert len(llm.prompts) == 2
    assert asyncio.run(asplit_texts(chunker, [TEXT, fine])) == [spans, others]


def test_windows_are_joined_in_the_middle_of_their_overlaps() -> None:
    text = " ".join(f"S{number} is here." for number in range(45))
    # Every window says that a chunk begins at every sentence that it sees.
    llm = Function(lambda p: ", ".join(str(n + 1) for n in range(len(sentences_in(p)))))
    assert len(pieces(AgenticChunker(llm=llm, window=20), text)) == 45
    assert len(llm.prompts) == len(windows(45, 20)) == 3
    # And that none does: no boundary appears where one window ends and the next begins.
    assert len(pieces(AgenticChunker(llm=lambda prompt: "1", window=20), text)) == 1


@given(st.integers(1, 1000), st.integers(2, 100))
@example(101, 100)
@example(1000, 2)
def test_windows_decide_about_every_sentence_once(count: int, size: int) -> None:
    found = windows(count, size)
    decided = [index for w in found for index in range(w.decides_from, w.decides_to)]
    assert decided == list(range(count))
    for window in found:
        assert window.first <= window.decides_from < window.decides_to <= window.last
        assert window.last - window.first <= size
        assert window.decides_from > window.first or window.first == 0


def test_all_windows_of_all_documents_are_asked_once() -> None:
    llm = Function(every_third)
    counts = (1, 2, 100, 101, 250)
    texts = [" ".join(f"S{n} of {count} is here." for n in range(count)) for count in counts]
    chunker = AgenticChunker(llm=llm)
    split_texts(chunker, [*texts, "", " \n"])
    assert len(llm.prompts) == sum(len(windows(n, 100)) for n in (2, 100, 101, 250))
    assert len(llm.prompts) == 1 + 1 + 2 + 3


def test_long_text_takes_calls_and_characters_in_proportion() -> None:
    llm = Function(every_third)
    text = "".join(f"The same passage again, number {n}. " for n in range(20_000))
    text += "".join(f"{n:x<1000}" for n in range(500))
    spans = AgenticChunker(llm=llm).spans(text)
    assert "".join(span.text_of(text) for span in spans).count("x") == text.count("x")
    assert len(llm.prompts) == len(windows(20_500, 100))
    assert sum(map(len, llm.prompts)) < 2 * len(text)


def test_openai_client_sends_the_schema_and_reads_the_answer() -> None:
    answers = iter(["I had rather not.", '{"starts": [1, 9]}', '{"starts": [1, 3]}'])
    spans, bodies = asked_of_openai(AgenticChunker, lambda prompt: next(answers), TEXT)
    assert [span.text_of(TEXT) for span in spans] == [
        "Tea is hot. I like it.",
        "Rain fell. It was cold. Cats sleep. They hunt.",
    ]
    assert len(bodies) == 3
    assert bodies[0]["response_format"]["json_schema"]["name"] == "Starts"
    assert "there are 1 to 6" in bodies[2]["messages"][-1]["content"]
