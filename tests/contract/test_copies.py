"""Copies, dumps and unusual values of parameters, for every strategy and front end."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from rag_splitters import CATALOGUE, RecursiveChunker, SlidingWindowChunker
from rag_splitters.langchain import RecursiveTextSplitter
from rag_splitters.llama_index import RecursiveNodeParser, SentenceNodeParser
from tests.support.cases import CASES
from tests.support.forms import FRAMEWORKS, front_end


def forms(name: str) -> list[Any]:
    case = CASES[name][0]
    return [case, *(front_end(case, framework) for framework in FRAMEWORKS)]


every_strategy = pytest.mark.parametrize("name", CATALOGUE)


@every_strategy
def test_dump_is_validated(name: str) -> None:
    for form in forms(name):
        kind, models = type(form), {"embeddings", "llm", "ner", "segmenter", "length_function"}
        passed_again = {name: getattr(form, name) for name in models & set(kind.model_fields)}
        written = [form.model_dump(exclude=set(passed_again))]
        if hasattr(form, "to_dict"):
            written.append(form.to_dict())
        for values in written:
            assert kind.model_validate({**values, **passed_again}) == form
            assert kind(**{**values, **passed_again}) == form


def test_parser_differs_by_its_parameters() -> None:
    one = RecursiveNodeParser(chunk_size=30)
    assert one == RecursiveNodeParser(chunk_size=30) != RecursiveNodeParser(chunk_size=31)
    assert one != SentenceNodeParser(chunk_size=30)
    assert len({one, RecursiveNodeParser(chunk_size=30)}) == 1


@pytest.mark.parametrize("kind", [RecursiveChunker, RecursiveTextSplitter, RecursiveNodeParser])
@pytest.mark.parametrize("number", [np.int64(300), np.int32(300), np.uint8(200)])
def test_sizes_may_be_numpys(kind: Any, number: Any) -> None:
    sizes = {"chunk_size": number, "chunk_overlap": np.int64(20), "min_chunk_size": np.int8(9)}
    chunker = kind(**sizes)
    assert chunker == kind(**{name: int(value) for name, value in sizes.items()})
    assert {type(getattr(chunker, name)) for name in sizes} == {int}
    share = kind(chunk_size=number, chunk_overlap=np.float32(0.25)).chunk_overlap
    assert (share, type(share)) == (0.25, float)
    for wrong in (np.float64(300.5), np.int64(0), np.bool_(True), True, np.array([300])):
        with pytest.raises(ValueError, match="chunk_size must be a whole number of at least 1"):
            kind(chunk_size=wrong)


def test_numpys_numbers_may_be_assigned() -> None:
    splitter = RecursiveTextSplitter()
    splitter.chunk_size = np.int64(50)  # type: ignore[assignment]
    assert (splitter.chunk_size, type(splitter.chunk_size)) == (50, int)
    window = SlidingWindowChunker(chunk_overlap=np.float64(0.5))
    assert window.model_dump()["chunk_overlap"] == 0.5


@pytest.mark.parametrize(
    ("metadatas", "error", "message"),
    [
        ([{}], ValueError, "metadatas must hold one dictionary for each text: got 1 for 2 texts"),
        ([{}] * 3, ValueError, "metadatas must hold one dictionary for each text: got 3 for 2"),
        ([None, {}], TypeError, r"metadatas\[0\] must be a dictionary, got None"),
        ([{}, "a"], TypeError, r"metadatas\[1\] must be a dictionary, got 'a'"),
    ],
)
def test_error_about_metadatas_names_them(metadatas: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        RecursiveTextSplitter().create_documents(["a", "b"], metadatas)


def test_metadatas_may_be_left_out() -> None:
    splitter = RecursiveTextSplitter(add_start_index=False)
    for metadatas in (None, []):
        documents = splitter.create_documents(["a", "b"], metadatas)
        assert [each.metadata for each in documents] == [{}, {}]
    documents = asyncio.run(splitter.atransform_documents([Document(page_content="a")]))
    assert [each.page_content for each in documents] == ["a"]
