"""Citations of results from both frameworks, and where an answer's quotations come from."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode

from rag_splitters.citations import cite, quoted
from rag_splitters.langchain import parent_document_retriever
from rag_splitters.llama_index import parent_document_retriever as llama_index_retriever

HANDBOOK = (
    "# Lamps\n\n## Oil\n\nThe *old* lamp burns oil. It was lit at four.\n\n## Gas\n\nIt hisses."
)
METADATA = {"source": "handbook.md"}


def results(
    framework: str,
    text: str = HANDBOOK,
    question: str = "When was the lamp lit?",
    metadata: dict[str, Any] = METADATA,
) -> list[Any]:
    if framework == "langchain":
        with parent_document_retriever([Document(text, metadata=metadata)]) as retriever:
            return list(retriever.invoke(question))
    from llama_index.core import Document as LlamaIndexDocument

    document = LlamaIndexDocument(text=text, metadata=metadata)
    with llama_index_retriever([document]) as retriever:
        return list(retriever.retrieve(question))


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_results_are_cited_with_file_and_headings(framework: str) -> None:
    first = cite(results(framework))[0]
    assert first.marker == "[1]"
    assert first.label.startswith("handbook.md > Lamps")
    assert str(first).startswith(f"[1] {first.label}\n")
    assert "lit at four" in str(first)


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_passages_of_html_are_read_without_tags(framework: str) -> None:
    """By default, parents are cut by the kind of their document."""
    page = "<h1>Ferry</h1><p>It leaves at noon.</p><h2>Fares</h2><p>Bicycles are <b>free</b>.</p>"
    passages = results(framework, page, "Are bicycles free?", {"source": "ferry.html"})
    citation = cite(passages)[0]
    assert citation.text.endswith("Fares\n\nBicycles are free.")
    assert quoted('"Bicycles are free."', passages)[0].is_exact
    assert "<" not in citation.text


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_quotation_is_traced_to_its_passage(framework: str) -> None:
    passages = results(framework)
    answer = 'It says “the old lamp burns oil”, and also "lamps are made of green glass".'
    first, second = quoted(answer, passages)
    assert first.is_exact
    assert first.citation == cite(passages)[0]
    assert first.place is not None
    assert first.citation is not None
    assert first.citation.text[slice(*first.place)] == "The *old* lamp burns oil"
    assert answer[first.start : first.end] == "“the old lamp burns oil”"
    assert second.citation is None
    assert not second.is_exact
    assert quoted(answer, cite(passages)) == [first, second]


def test_changed_quotation_shows_its_differences() -> None:
    (quotation,) = quoted('"It was lit at five."', [Document("It was lit at four.")])
    assert not quotation.is_exact
    assert quotation.citation is not None
    assert quotation.differences == "It was lit at [-five.-] {+four.+}"


@pytest.mark.parametrize(
    ("answer", "quotations"),
    [
        ("> It was lit\n> at four.\n\nYes.", ["It was lit\nat four."]),
        ("„Es wurde um vier angezündet“", ["Es wurde um vier angezündet"]),
        ("« Elle brûle de l'huile »", ["Elle brûle de l'huile"]),
        ("「灯は四時に」", ["灯は四時に"]),
        ('A 5" nail and a 6" nail, the "Old Lamp"', []),
        ("", []),
    ],
)
def test_quotations_are_recognised_by_their_marks(answer: str, quotations: list[str]) -> None:
    assert [each.text for each in quoted(answer, [])] == quotations


@pytest.mark.parametrize(
    ("metadata", "label"),
    [
        ({}, ""),
        ({"title": "Tea", "headings": ["Tea", "Green"]}, "Tea > Green"),
        ({"source": "a.pdf", "page_start": 3, "page_end": 3}, "a.pdf, p. 3"),
        ({"source": "a.pdf", "page_start": 3, "page_end": 4}, "a.pdf, pp. 3–4"),
        ({"source": "a.py", "line_start": 10, "line_end": 14}, "a.py, lines 10–14"),
    ],
)
def test_label_says_what_is_known(metadata: dict[str, Any], label: str) -> None:
    node = NodeWithScore(node=TextNode(text="x", metadata=metadata))
    assert [each.label for each in cite([node, Document("x", metadata=metadata)])] == [label] * 2
