"""Front ends are assignable, as the frameworks' own splitters are; core chunkers are not."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import Document

import rag_splitters.langchain
from rag_splitters import CATALOGUE, HierarchicalChunker, RagSplittersError, RecursiveChunker
from rag_splitters.langchain import RecursiveTextSplitter
from rag_splitters.llama_index import (
    HierarchicalNodeParser,
    RecursiveNodeParser,
    SentenceNodeParser,
)
from tests.contract.test_errors import message_of
from tests.support.forms import classes, required

TEXT = "One sentence is here. " * 30

every_strategy = pytest.mark.parametrize("name", CATALOGUE)


def texts(front_end: Any, text: str = TEXT) -> list[str]:
    if hasattr(front_end, "create_documents"):
        return [document.page_content for document in front_end.create_documents([text])]
    return [node.text for node in front_end([Document(text=text)])]


def values(front_end: Any) -> dict[str, Any]:
    """The parameters; each parser of LlamaIndex has a callback manager of its own."""
    parameters: dict[str, Any] = front_end.__dict__
    return {name: value for name, value in parameters.items() if name != "callback_manager"}


@every_strategy
def test_every_field_is_assignable_and_checked(name: str) -> None:
    for kind in classes(name)[1:]:
        front_end = kind(**required(name))
        before = front_end.__dict__.copy()
        for field, value in before.items():
            setattr(front_end, field, value)
            assert getattr(front_end, field) == value
            now = front_end.__dict__.copy()
            if field not in ("callback_manager", "cache"):
                with pytest.raises(RagSplittersError, match=field):
                    setattr(front_end, field, object())
                assert front_end.__dict__ == now
        with pytest.raises(RagSplittersError, match="did you mean"):
            setattr(front_end, f"{field}s", 1)
        assert values(front_end) == values(kind(**required(name)))


@every_strategy
def test_assigned_value_counts_as_one_that_was_passed(name: str) -> None:
    for kind in classes(name)[1:]:
        if "chunk_size" not in kind.model_fields:
            continue
        front_end = kind(**required(name))
        front_end.chunk_size = 30
        assert values(front_end) == values(kind(**required(name), chunk_size=30))
        assert texts(front_end) == texts(kind(**required(name), chunk_size=30))


@pytest.mark.parametrize("overlap", [-1, True, "a", 1.5])
def test_overlap_is_checked_in_a_copy_with_another_one(overlap: object) -> None:
    """Pydantic checks no values that `model_copy` puts in."""
    copied = RecursiveChunker(chunk_size=10).model_copy(update={"chunk_overlap": overlap})
    with pytest.raises(RagSplittersError, match="chunk_overlap must be"):
        copied.chunk(TEXT)


@every_strategy
def test_copies_and_pickles_are_independent(name: str) -> None:
    for kind in classes(name):
        chunker = kind(**required(name))
        copies = [chunker.model_copy(), copy.copy(chunker), copy.deepcopy(chunker)]
        copies.append(pickle.loads(pickle.dumps(chunker)))
        for each in copies:
            assert type(each) is kind
            assert each.model_fields_set == chunker.model_fields_set
            assert each is not chunker
            assert each == chunker
            assert hash(each) == hash(chunker)
            if kind is not CATALOGUE[name]:  # which cannot be changed
                each.page_break = "x"
                assert chunker.page_break != "x"
                assert each != chunker
                assert hash(each) == hash(chunker)  # it stays in a set when it is changed


@pytest.mark.parametrize("kind", [RecursiveTextSplitter, RecursiveNodeParser])
def test_sizes_are_compared_when_it_splits(kind: Any) -> None:
    front_end = kind(chunk_size=100, chunk_overlap=20)
    front_end.chunk_size = 10
    message = "chunk_overlap must be smaller than chunk_size (10), got 20"
    assert message_of(lambda: texts(front_end)) == message
    outer = rag_splitters.langchain.HybridTextSplitter(stages=[front_end])
    assert message_of(lambda: texts(outer)) == message
    if hasattr(front_end, "split_text"):
        assert message_of(lambda: front_end.split_text(TEXT)) == message
    front_end.chunk_overlap = 2
    assert texts(front_end) == texts(kind(chunk_size=10, chunk_overlap=2))
    front_end.min_chunk_size = 11
    assert "min_chunk_size must not be larger" in message_of(lambda: texts(front_end))


async def test_sizes_are_compared_when_it_splits_asynchronously() -> None:
    splitter = RecursiveTextSplitter(chunk_size=100, chunk_overlap=20)
    splitter.chunk_size = 10
    with pytest.raises(ValueError, match="chunk_overlap must be smaller"):
        await splitter.atransform_documents([LangChainDocument(TEXT)])
    parser = SentenceNodeParser(chunk_size=100, chunk_overlap=20)
    parser.chunk_size = 10
    with pytest.raises(ValueError, match="chunk_overlap must be smaller"):
        await parser.acall([Document(text=TEXT)])


def test_parameters_may_be_assigned_in_any_order() -> None:
    for names in (("chunk_size", "chunk_overlap"), ("chunk_overlap", "chunk_size")):
        for size, overlap in ((10, 4), (3000, 2500)):
            parser = SentenceNodeParser(chunk_size=100, chunk_overlap=20)
            for name in names:
                setattr(parser, name, {"chunk_size": size, "chunk_overlap": overlap}[name])
            expected = SentenceNodeParser(chunk_size=size, chunk_overlap=overlap)
            assert values(parser) == values(expected)


def test_overlap_that_was_assigned_stays() -> None:
    parser = SentenceNodeParser()
    parser.chunk_overlap = 5
    parser.chunk_size = 50
    assert (parser.chunk_size, parser.chunk_overlap) == (50, 5)
    parser = SentenceNodeParser()
    parser.overlap_sentences = 1
    assert texts(parser) == texts(SentenceNodeParser(overlap_sentences=1))


def test_levels_of_a_hierarchy_are_assignable() -> None:
    parser = HierarchicalNodeParser(chunk_sizes=[100, 50])
    parser.chunk_sizes = [80, 20]
    assert (parser.chunk_sizes, parser.chunk_size) == ((80, 20), 20)
    parser.chunk_size = 10
    assert "chunk_size must be the last of chunk_sizes (20)" in message_of(lambda: texts(parser))
    parser = HierarchicalNodeParser()
    parser.chunk_size = 10
    assert values(parser) == values(HierarchicalNodeParser(chunk_size=10))
    assert HierarchicalChunker(chunk_size=10).chunk_sizes is None
