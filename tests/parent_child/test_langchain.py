"""Parent-child retrieval for LangChain, over Chroma in memory and in a folder."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langchain_tests.integration_tests.indexer import (
    AsyncDocumentIndexTestSuite,
    DocumentIndexerTestSuite,
)
from langchain_text_splitters import RecursiveCharacterTextSplitter, TextSplitter

from rag_splitters.langchain import (
    FixedSizeTextSplitter,
    ParentDocumentRetriever,
    parent_document_retriever,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child import MissingParentsError

PARAGRAPHS = [
    f"Paragraph {n} is about {animal}. The {animal} lives in place {n}. It eats food {n}."
    for n, animal in enumerate(["cats", "dogs", "horses", "eagles", "whales", "ants", "bears"])
]
TEXT = "\n\n".join(PARAGRAPHS)


def build(documents: Iterable[Document] | None = None, **options: Any) -> ParentDocumentRetriever:
    splitters = {
        "parent_splitter": FixedSizeTextSplitter(chunk_size=80),
        "child_splitter": FixedSizeTextSplitter(chunk_size=30),
    }
    options = splitters | {"retrieve": "parents"} | options
    return parent_document_retriever(documents, **options)


def children(retriever: ParentDocumentRetriever) -> dict[str, dict[str, Any]]:
    rows = retriever.vectorstore._collection.get()  # type: ignore[attr-defined]
    return dict(zip(rows["ids"], rows["metadatas"], strict=True))


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[ParentDocumentRetriever]:
        return ParentDocumentRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        made = build([Document(page_content=TEXT)])
        names = ("vectorstore", "docstore", "child_splitter", "parent_splitter")
        return {name: getattr(made, name) for name in names}

    @property
    def retriever_query_example(self) -> str:
        return "Where do horses live?"


class TestDocumentIndex(DocumentIndexerTestSuite):
    @pytest.fixture
    def index(self) -> ParentDocumentRetriever:
        return build()


class TestDocumentIndexAsync(AsyncDocumentIndexTestSuite):
    @pytest.fixture
    async def index(self) -> ParentDocumentRetriever:
        return build()


@pytest.mark.parametrize("parent_splitter", [FixedSizeTextSplitter(chunk_size=80), None])
def test_positions_of_results_are_those_of_the_source(parent_splitter: TextSplitter | None) -> None:
    text = TEXT + "\n\n" + TEXT  # every passage is there twice
    offset = {"start_index": 1000, "end_index": 1000 + len(text)}
    for metadata, base in (({}, 0), (offset, 1000)):
        source = Document(page_content=text, metadata=metadata, id="s")
        retriever = build([source], parent_splitter=parent_splitter, k=100)
        seen = set()
        for parent in retriever.invoke("Where do the eagles live?"):
            start, end = parent.metadata["start_index"], parent.metadata["end_index"]
            assert text[start - base : end - base] == parent.page_content
            for match in parent.matches:
                assert start <= match["start_index"] < match["end_index"] <= end
                seen.update(range(match["start_index"], match["end_index"]))
        assert {base + n for n, c in enumerate(text) if not c.isspace()} <= seen
        for child in retriever.model_copy(update={"retrieve": "children"}).invoke("eagles"):
            start, end = child.metadata["start_index"], child.metadata["end_index"]
            assert text[start - base : end - base] == child.page_content


def test_guessed_positions_of_other_splitters_are_left_out() -> None:
    stock = RecursiveCharacterTextSplitter(chunk_size=40, chunk_overlap=0, add_start_index=True)
    for parent_splitter in (stock, FixedSizeTextSplitter(chunk_size=80)):
        (parent,) = build(
            [Document(page_content=TEXT)], parent_splitter=parent_splitter, child_splitter=stock
        ).invoke("eagles", k=1)
        assert ("start_index" in parent.metadata) is (parent_splitter is not stock)
        assert set(parent.matches[0]) == {"score"}


def test_results_have_what_was_added_and_share_it_with_nobody(tmp_path: Path) -> None:
    text = "lone \ud800 surrogate \ud83d\ude00 and more text than one child can hold"
    own = {"nested": {"deep": [1, {"x": None}]}, "flag": True, "bad\ud800": "\ud800"}
    documents = [Document(page_content=text, metadata=own), Document(page_content="other")]
    for path in (None, tmp_path):
        retriever = build(documents, path=path, search_kwargs={"filter": {"flag": True}})
        for kind in ("parents", "children"):
            results = retriever.model_copy(update={"retrieve": kind}).invoke("more \ud800 text")
            assert results
            for result in results:
                start, end = result.metadata["start_index"], result.metadata["end_index"]
                assert result.page_content == text[start:end]
                assert own.items() <= result.metadata.items()
                result.metadata["nested"]["deep"].clear()  # does not reach the store
        retriever.close()


def test_missing_parents_are_an_error_that_names_the_documents() -> None:
    document = Document(page_content=TEXT, id="animals")
    retriever = build([document], k=2)
    query = "Paragraph 3 is about eagles that eat food"
    before = retriever.invoke(query)
    retriever.docstore.mdelete([before[0].id])
    with pytest.raises(MissingParentsError, match=r"'animals': add the documents again"):
        retriever.invoke(query)
    assert list(retriever.verify(repair=True).failed) == ["animals"]
    with pytest.raises(MissingParentsError, match=r"'animals': add the documents again"):
        retriever.get(["animals"])
    retriever.add_documents([document])
    assert retriever.invoke(query) == before


def test_contradictory_options_are_refused() -> None:
    model: Any = HashingEmbeddings()
    with pytest.raises(ValueError, match="pass embeddings or vectorstore"):
        build(embeddings=model, vectorstore=InMemoryVectorStore(model))
    with pytest.raises(ValueError, match="ids must be one for each of 1 documents, got 2"):
        build().add_documents([Document(page_content="a")], ids=["1", "2"])


def test_users_see_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        retriever = build([Document(page_content=TEXT)])
        assert retriever.invoke("eagles")


def test_a_chunk_keeps_its_place_where_children_get_only_some_metadata() -> None:
    """LangChain's own splitters write `start_index` with `add_start_index=True`."""
    metadata = {"source": "tea", "start_index": 100, "end_index": 124}
    document = Document("Tea is hot. Rain is wet.", metadata=metadata, id="tea")
    with parent_document_retriever([document], child_metadata_fields=["source"]) as retriever:
        for retrieve in ("passages", "parents", "children"):
            (result,) = retriever.invoke("Is tea hot?", retrieve=retrieve)
            assert (result.metadata["start_index"], result.metadata["end_index"]) == (100, 124)
            assert result.matches[0]["start_index"] == 100
