"""PropositionChunker: statements from a chat model, each with the span of its evidence."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
import regex
from hypothesis import given, strategies

from rag_splitters import Span
from rag_splitters.chunkers.proposition import PropositionChunker
from rag_splitters.meaning.propositions import propositions_in
from rag_splitters.models import ModelError
from rag_splitters.testing import hostile_texts
from tests.structure.test_blocks import many
from tests.support.cases import SIZES, halves, no_propositions
from tests.support.chat_doubles import (
    Function,
    LangChainDouble,
    LlamaIndexDouble,
    check_models_agree,
    sentences_in,
)
from tests.support.checks import check_chunker
from tests.support.splitting import split_texts

TEXT = "Tea is made. It is hot. Rain fell."
UNLAPPED = [{**size, "chunk_overlap": 0} for size in SIZES]


def echo(prompt: str) -> str:
    """Every sentence as a proposition."""
    lines = [f"{n}: {text}" for n, text in enumerate(sentences_in(prompt), 1)]
    return "\n".join(lines) or "none"


def several(prompt: str) -> str:
    """Propositions of one, of two and of distant sentences; some sentences have none."""
    texts = sentences_in(prompt)
    lines = [f"1: First, {texts[0]}", f"1: Second, {texts[0]}", f"1: Second, {texts[0]}"]
    if len(texts) > 2:
        lines.append(f"{len(texts)}, 1: " + "Both are far apart. " * 3)
    if len(texts) > 3:
        lines.append(f"- [2-3]: {texts[1]} {texts[2]}")
    return "\n".join(lines)


def both_json(prompt: str) -> str:
    return json.dumps({"propositions": [{"evidence": [1, 2], "text": "Made tea is hot."}]})


def check_propositions(chunker: PropositionChunker, text: str) -> list[Span]:
    """The guarantees as they are for chunks that may share a place."""
    spans = chunker.spans(text)
    clusters = {match.end() for match in regex.finditer(r"\X", text, regex.DOTALL)} | {0}
    covered: set[int] = set()
    for span in spans:
        assert 0 <= span.start < span.end <= len(text)
        assert {span.start, span.end} <= clusters
        content = span.text_of(text)
        assert content.strip()
        alone = len(regex.findall(r"\X", content, regex.DOTALL)) == 1
        assert chunker.fits(content) or (alone and not span.metadata["proposition"])
        assert span.metadata["proposition"] is (span.content is not None)
        covered.update(range(span.start, span.end))
    assert all(text[place].isspace() for place in set(range(len(text))) - covered)
    assert all((one.start, one.end) <= (two.start, two.end) for one, two in pairwise(spans))
    assert len({(s.start, s.end, s.text_of(text)) for s in spans}) == len(spans)
    assert split_texts(chunker, [text, text]) == [spans, spans]
    return spans


@pytest.mark.slow
@many
@given(size=strategies.sampled_from([{}, *UNLAPPED]), text=hostile_texts())
def test_proposition_keeps_the_guarantees(size: dict[str, Any], text: str) -> None:
    check_chunker(PropositionChunker(llm=no_propositions, **size), text)
    for script in (echo, several):
        check_propositions(PropositionChunker(llm=script, **size), text)
    check_propositions(PropositionChunker(llm=several, segmenter=halves, **size), text)


@given(text=hostile_texts())
def test_passages_that_the_model_failed_on_are_kept(text: str) -> None:
    chunker = PropositionChunker(
        llm=lambda prompt: echo(prompt) if "word" in prompt.partition("<sent")[2] else "???",
        max_retries=0,
        on_error="keep",
        chunk_size=20,
    )
    for span in check_propositions(chunker, text):
        assert ("fallback" in span.metadata) <= (not span.metadata["proposition"])


def test_every_kind_of_model_gives_the_same_propositions() -> None:
    def plain(prompt: str) -> str:
        return "1-2: Made tea is hot."

    spans = check_models_agree(PropositionChunker, plain, both_json, TEXT)
    assert [(s.start, s.end, s.text_of(TEXT), s.metadata) for s in spans] == [
        (0, 23, "Made tea is hot.", {"proposition": True}),
        (24, 34, "Rain fell.", {"proposition": False}),
    ]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("3: Tea.", [([3], "Tea.")]),
        ("- 3-4: Tea: hot.\n\n* [1], [2]: Rain.", [([3, 4], "Tea: hot."), ([1, 2], "Rain.")]),
        ("```\n1, 3 – 4; 6: Tea.\r\n```", [([1, 3, 4, 6], "Tea.")]),
        ("[2] - [3]: Tea.", [([2, 3], "Tea.")]),
        ("None.", []),
    ],
)
def test_lines_are_read_tolerantly(answer: str, found: list[tuple[list[int], str]]) -> None:
    assert [(each.evidence, each.text) for each in propositions_in(answer)] == found


@pytest.mark.parametrize(
    "answer",
    [
        *("Here are the propositions:\n1: Tea.", "Tea is hot.", "1:", "4-3: Tea."),
        *("1-999999999: Tea.", "1--3: Tea.", "1: Tea is\nhot.", "1: Tea.\nnone"),
    ],
)
def test_lines_that_are_not_clear_are_refused(answer: str) -> None:
    with pytest.raises(ValueError, match=r"not a line|not a list of sentence numbers"):
        propositions_in(answer)


@pytest.mark.parametrize("bad", ["", "Tea is hot.", "4: Tea.", "0: Tea.", "1: Tea.\nwhat else?"])
def test_unusable_answer_is_asked_again_with_what_was_wrong(bad: str) -> None:
    answers = iter([bad, "1-3: Tea and rain."])
    llm = Function(lambda prompt: next(answers))
    assert [span.content for span in PropositionChunker(llm=llm).spans(TEXT)] == ["Tea and rain."]
    assert len(llm.prompts) == 2
    assert "could not be used" in llm.prompts[1]


@pytest.mark.parametrize("kind", [LangChainDouble, LlamaIndexDouble])
@pytest.mark.parametrize(
    "bad", [{"evidence": [], "text": "Tea."}, {"evidence": [9], "text": "Tea."}]
)
def test_unusable_structured_answer_is_an_error(kind: Any, bad: dict[str, Any]) -> None:
    llm = kind(script=lambda prompt: json.dumps({"propositions": [bad]}))
    with pytest.raises(ModelError, match=r"document 1, passage 0 .*proposition 1 names"):
        split_texts(PropositionChunker(llm=llm, max_retries=1), ["", TEXT])
    assert len(llm.prompts) == 2


def test_error_names_document_passage_and_answer() -> None:
    llm = Function(lambda prompt: "Sorry" if "Rain" in prompt else echo(prompt))
    with pytest.raises(ModelError) as caught:
        split_texts(PropositionChunker(llm=llm, max_retries=0, chunk_size=25), ["One.", TEXT])
    assert "document 1, passage 1 (characters 24 to 34)" in str(caught.value)
    assert "Sorry" in str(caught.value)
    assert caught.value.index == 1
    assert len(llm.prompts) == 3


def test_passages_hold_whole_sentences_and_end_with_paragraphs() -> None:
    llm = Function(echo)
    text = "One is short. Two is too.\n\nThree is here. Four is the last of them all."
    PropositionChunker(llm=llm, chunk_size=40).spans(text)
    assert [sentences_in(prompt) for prompt in llm.prompts] == [
        ["One is short.", "Two is too."],
        ["Three is here."],
        ["Four is the last of them all."],
    ]


def test_sentences_between_distant_evidence_are_kept() -> None:
    chunker = PropositionChunker(llm=lambda prompt: "1, 3: Tea and rain.")
    assert [(s.start, s.end, s.text_of(TEXT)) for s in chunker.spans(TEXT)] == [
        (0, 34, "Tea and rain."),
        (13, 23, "It is hot."),
    ]
