"""Every guarantee, over every strategy of the catalogue, in the core and in both front ends.

A property takes all cases of a strategy through each text: making a text takes as long as a case.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

import pytest
import regex
from hypothesis import example, given, settings
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.schema import MetadataMode

from rag_splitters import CATALOGUE, Chunk, Chunker, Source, Span
from rag_splitters.contract.line_breaks import in_source
from rag_splitters.testing import hostile_texts
from tests.support.cases import CASES
from tests.support.checks import check_chunker
from tests.support.forms import front_end
from tests.support.front_end_checks import check_documents, check_nodes

each_strategy = pytest.mark.parametrize("strategy", CASES)

Test = TypeVar("Test", bound=Callable[..., None])

fewer = settings(max_examples=settings().max_examples // 3)
fewest = settings(max_examples=settings().max_examples // 6 + 1)  # here the adapter is under test

VIOLATIONS = (
    "The same passage again. The same passage again. The same passage again. ",
    "# H\n## H2\n# H\n# H\n",
    "\xa0aa1. One 👩\u200d👩\u200d👧aaa3.143.14",
    "# H\n# H\n## H2\n```\n",
    "aaaa  Is it? Yes!3.14👩\u200d👩\u200d👧aaIs it? Yes!\u0600\xa0Longerword",
    "<img alt=x></p>\u0301",
    "aaword0a\r\r\nLongerword",
    "a\n\n```\n```\na \u0301",
    "- item\naaaaaaaaThe same passage again. ",
    "| a | b |\n👍🏽",
    "a a \u0301<|endoftext|>",
    "The same passage again. a \u0301<|endoftext|>",
    "The same passage again. \U000e0041The same passage again. ",
    "aLongerwordสวัสดีสวัสดี\u0600 ",
    "<img alt=x>",
    " ",
    " \U000e6146\u0600\u0600 \u0600",
    "item\n<|endoftext|>```\n\u3000<table><tr><td>ⲉ각![a](g)",
    "aDr. No said so.\n\nDr. No said so.",
    " \u0301नमस्ते। Is it? Yes!",
    "aaaa\n%\r# Heading\n",
    " \u0301a\nIs it? Yes! 0",
    "aaaaaaaaaaaaaaa\twordDr. No said so.\nThe same passage again. ;",
    "aaaaaaaa# Heading\nLongerword 0",
    "a# Heading\n- item\naa$x$",
    "a# Heading\n- item\n  aé",
    "aa他说。a\r\n\r\n\r\n\r\n\r\n\r\n",
    "aa他说。a\n\n\n\n\n\n\n\n\n\n\n\nb",
    "x" + "\n" * 60 + "y",
    "a aaaaaaaa  Longerwordaaaa3.14  a",
    "สวัสดี\n\nThe same passage again. ",
    "a<|endoftext|>\n\na...",
    "```\n> \n- \n|---|\n",
    "\t```\na\t\t```\na",
    "aaaaa  क्षि<|endoftext|>| a | b |\n「はい！」aaaaaaaLongerwordLongerword<|endoftext|>",
    "li>.\n- aaa\u0600  aaaaa\n- \u0600 ",
    "The same passage again. \n\n1. One \u0301a",
    "3.14a$# Heading\n\naa- item\na",
    "aaa The end.3.143.14 \u0301The same passage again. ",
    "| a | b |\n  # Heading\n",
    "{\ra\x00",
    "def f(x):\ndef f(x):\n\u200b",
    "- [ ] ...\t\\end{proof}\\end{proof}\te.g.",
    "\\section{Tea}> quote\n~~~\n= Tea\n~~~\nTea and milk.\n\n1. One */e.g.",
)
"""Every text that has ever broken a guarantee; each runs through all cases."""

IS_SMOKE = settings().max_examples < 10
"""Other versions of Python and of the frameworks meet the hard texts alone."""

HARD_TEXTS = (VIOLATIONS[2], VIOLATIONS[4], "\ufeff# H\r\n\r\n" + "".join(VIOLATIONS[-3:]))
"""The texts for the adapters, which add nothing of their own to most of what can go wrong."""

REPEATS = '<main><p>Hi</p><img alt="' + "one two three. " * 100 + '"></main>'
"""A text of which some strategies make equal chunks at the same place; only their ids differ."""


def with_examples(texts: Iterable[str]) -> Callable[[Test], Test]:
    """The property test with every one of the texts as an explicit example."""

    def decorated(test: Test) -> Test:
        for text in texts:
            test = example(text=text)(test)
        return test

    return decorated


@cache
def splitters(strategy: str) -> list[Any]:
    """The text splitters of a strategy's cases."""
    return [front_end(chunker, "langchain") for chunker in CASES[strategy]]


@cache
def parsers(strategy: str, **options: Any) -> list[Any]:
    """The node parsers of a strategy's cases."""
    return [front_end(chunker, "llama_index", **options) for chunker in CASES[strategy]]


@each_strategy
@with_examples(HARD_TEXTS if IS_SMOKE else VIOLATIONS)
@given(text=hostile_texts())
def test_chunker_keeps_the_guarantees(strategy: str, text: str) -> None:
    for chunker in CASES[strategy]:
        check_chunker(chunker, text)


@each_strategy
@fewer
@with_examples(text for text in (HARD_TEXTS if IS_SMOKE else VIOLATIONS) if "\n" in text)
@given(text=hostile_texts())
def test_line_breaks_of_any_kind_give_the_same_chunks(strategy: str, text: str) -> None:
    text = re.sub(r"\r\n?", "\n", text)
    other = text.replace("\n", "\r")
    for chunker in CASES[strategy]:
        spans = chunker.spans(text)
        own = [in_source(span, Source(text), Source(other)) for span in spans]
        if chunker.spans_fit(own, other):  # a token may be one more
            assert _cuts(chunker.spans(other)) == _cuts(spans)
        if getattr(chunker, "length_function", None) == "words":  # "\r\n" has two characters
            texts = [span.text_of(text) for span in spans]
            other_text = text.replace("\n", "\r\n")
            other_texts = [span.text_of(other_text) for span in chunker.spans(other_text)]
            assert [each.replace("\r\n", "\n") for each in other_texts] == texts


def _cuts(spans: list[Span]) -> list[tuple[int, int, str]]:
    return [(span.start, span.end, (span.content or "").replace("\r", "\n")) for span in spans]


@each_strategy
@fewest
@with_examples((*HARD_TEXTS, REPEATS))
@given(text=hostile_texts())
def test_text_splitter_cuts_where_the_chunker_does(strategy: str, text: str) -> None:
    for chunker, splitter in zip(CASES[strategy], splitters(strategy), strict=True):
        source = LangChainDocument(page_content=text, metadata={"tags": ["x"]}, id="one")
        check_documents(source, splitter.split_documents([source]), chunker)
        chunks = chunker.chunk(text)
        assert splitter.split_text(text) == [chunk.text for chunk in chunks]
        ids = [document.id for document in splitter.create_documents([text])]
        assert ids == [chunk.id for chunk in chunks]
        assert len(set(ids)) == len(ids)


@each_strategy
def test_achunk_returns_what_chunk_does(strategy: str) -> None:
    text, about = "# Tea\n\nTea is old. Tea is hot.\n\nMilk is white.", {"metadata": {"title": "T"}}

    async def chunk_all(chunkers: Iterable[Chunker]) -> list[list[Chunk]]:
        return [await chunker.achunk(text, id="one", **about) for chunker in chunkers]

    expected = [chunker.chunk(text, id="one", **about) for chunker in CASES[strategy]]
    assert asyncio.run(chunk_all(CASES[strategy])) == expected
    assert asyncio.run(chunk_all(splitters(strategy))) == expected


@each_strategy
@fewest
@with_examples((*HARD_TEXTS, REPEATS))
@given(text=hostile_texts())
def test_node_parser_cuts_where_the_chunker_does(strategy: str, text: str) -> None:
    of_the_text = parsers(strategy, count_metadata=False)
    for chunker, parser in zip(CASES[strategy], of_the_text, strict=True):
        source = LlamaIndexDocument(text=text, metadata={"tags": ["x"]}, id_="one")
        check_nodes(source, parser.get_nodes_from_documents([source]), chunker)
        nodes = parser.get_nodes_from_documents([LlamaIndexDocument(text=text)])
        assert [node.node_id for node in nodes] == [chunk.id for chunk in chunker.chunk(text)]


@each_strategy
@fewest
@with_examples((*HARD_TEXTS, "{\ra\x00"))
@given(text=hostile_texts())
def test_nodes_fit_together_with_their_metadata(strategy: str, text: str) -> None:
    for chunker, parser in zip(CASES[strategy], parsers(strategy), strict=True):
        source = LlamaIndexDocument(text=text, metadata={"k": "v"}, id_="one")
        if not chunker.has_room_after("k: v\n\n"):
            with pytest.raises(ValueError, match="the metadata of document 'one' leaves no room"):
                parser.get_nodes_from_documents([source])
            continue
        for node in parser.get_nodes_from_documents([source]):
            is_cluster = regex.fullmatch(r"\X", node.text, regex.DOTALL)
            assert chunker.fits(node.get_content(MetadataMode.EMBED)) or is_cluster


def test_every_strategy_has_cases() -> None:
    assert set(CASES) == set(CATALOGUE)
    assert all(CASES.values())


def test_chunks_that_begin_together_are_in_order() -> None:
    class Growing(Chunker):
        def spans(self, text: str) -> list[Span]:
            return [Span(0, 3), Span(0, 8)]

    check_chunker(Growing(), "One two.")
