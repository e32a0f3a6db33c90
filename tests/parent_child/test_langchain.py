"""Parent-child retrieval for LangChain, over Chroma in memory and in a folder."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langchain_tests.integration_tests.indexer import (
    AsyncDocumentIndexTestSuite,
    DocumentIndexerTestSuite,
)
from langchain_text_splitters import RecursiveCharacterTextSplitter, TextSplitter

from rag_splitters.langchain import ParentDocumentRetriever, parent_document_retriever
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child import MissingParentsError


class SpanSplitter(TextSplitter):
    """A splitter that reports positions as ours do: both ends, carried from the cut."""

    def __init__(self, size: int) -> None:
        super().__init__(chunk_size=size, chunk_overlap=0)

    def split_text(self, text: str) -> list[str]:
        size = self._chunk_size
        return [text[at : at + size] for at in range(0, len(text), size)]

    def create_documents(
        self, texts: list[str], metadatas: list[dict[Any, Any]] | None = None
    ) -> list[Document]:
        documents = []
        for text, metadata in zip(texts, metadatas or [{}] * len(texts), strict=True):
            for n, part in enumerate(self.split_text(text)):
                start = n * self._chunk_size
                places = {"start_index": start, "end_index": start + len(part), "chunk_index": n}
                documents.append(Document(page_content=part, metadata={**metadata, **places}))
        return documents


PARAGRAPHS = [
    f"Paragraph {n} is about {animal}. The {animal} lives in place {n}. It eats food {n}."
    for n, animal in enumerate(["cats", "dogs", "horses", "eagles", "whales", "ants", "bears"])
]
TEXT = "\n\n".join(PARAGRAPHS)


def build(documents: Iterable[Document] | None = None, **options: Any) -> ParentDocumentRetriever:
    splitters = {"parent_splitter": SpanSplitter(80), "child_splitter": SpanSplitter(30)}
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


@pytest.mark.parametrize("parent_splitter", [SpanSplitter(80), None])
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
    for parent_splitter in (stock, SpanSplitter(80)):
        (parent,) = build(
            [Document(page_content=TEXT)], parent_splitter=parent_splitter, child_splitter=stock
        ).invoke("eagles", k=1)
        assert ("start_index" in parent.metadata) is (parent_splitter is not stock)
        assert set(parent.matches[0]) == {"score"}


def test_k_counts_parents_and_scores_fall() -> None:
    retriever = build([Document(page_content=TEXT)], child_splitter=SpanSplitter(3))
    total = -(-len(TEXT) // 80)
    for k in (1, 3, total, total + 5):
        results = retriever.invoke("horses", k=k)
        assert len({result.id for result in results}) == len(results) == min(k, total)
        scores = [result.metadata["score"] for result in results]
        assert scores == sorted(scores, reverse=True)
        assert scores == [result.matches[0]["score"] for result in results]
    assert asyncio.run(retriever.ainvoke("horses", k=3)) == retriever.invoke("horses", k=3)
    with pytest.raises(ValueError, match="k must be a whole number of at least 1, got 0"):
        retriever.invoke("horses", k=0)


METADATA: dict[str, Any] = {
    "nested": {"deep": [1, {"x": None}]},
    "empty": [],
    "mixed": [1, "a"],
    "none": None,
    "big": 2**70,
    "infinite": 1e400,
    "flag": True,
    "tags": ["a", "b"],
    "bad\ud800": "\ud800",
    "": 1,
    "chroma:document": "x",
}


def test_any_metadata_comes_back_whole_and_scalars_can_be_filtered(tmp_path: Path) -> None:
    text = "lone \ud800 surrogate \ud83d\ude00 and more text than one child can hold"
    documents = [Document(page_content=text, metadata=METADATA), Document(page_content="other")]
    for path in (None, tmp_path):
        retriever = build(documents, path=path, search_kwargs={"filter": {"flag": True}})
        for kind in ("parents", "children"):
            results = retriever.model_copy(update={"retrieve": kind}).invoke("more \ud800 text")
            assert results
            for result in results:
                start, end = result.metadata["start_index"], result.metadata["end_index"]
                assert result.page_content == text[start:end]
                assert METADATA.items() <= result.metadata.items()
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


def test_a_folder_keeps_everything_and_its_model(tmp_path: Path) -> None:
    documents = [Document(page_content=TEXT, metadata={"deep": {"a": [1]}}, id="d")]
    retriever = build(documents, path=tmp_path / "new" / "folder")
    before = retriever.invoke("Where do the eagles live?", k=1)
    retriever.close()
    again = build(path=tmp_path / "new" / "folder")
    assert again.invoke("Where do the eagles live?", k=1) == before
    assert again.get(["d"]) == documents
    assert again.get([before[0].id]) != []
    again.close()
    with pytest.raises(ValueError, match=r"HashingEmbeddings\(dimensions=1024\).*dimensions=64"):
        build(path=tmp_path / "new" / "folder", embeddings=HashingEmbeddings(dimensions=64))


def test_two_retrievers_in_memory_share_nothing() -> None:
    first = build([Document(page_content=TEXT)])
    assert build().invoke("eagles") == []
    assert first.invoke("eagles") != []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"embeddings": HashingEmbeddings(), "vectorstore": True},
            "pass embeddings or vectorstore",
        ),
        ({"search_kwargs": {"k": 0}}, r'search_kwargs\["k"\] must be a whole number of at least 1'),
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
    ],
)
def test_contradictory_options_are_refused(options: dict[str, Any], message: str) -> None:
    stores = {
        "vectorstore": InMemoryVectorStore(HashingEmbeddings()),  # type: ignore[arg-type]
        "docstore": InMemoryStore(),
    }
    with pytest.raises(ValueError, match=message):
        build(**{key: stores.get(key, value) for key, value in options.items()})
    with pytest.raises(ValueError, match="ids must be one for each of 1 documents, got 2"):
        build().add_documents([Document(page_content="a")], ids=["1", "2"])


def test_other_vector_stores_and_stock_splitters_work() -> None:
    retriever = build(
        vectorstore=InMemoryVectorStore(HashingEmbeddings()),  # type: ignore[arg-type]
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=20),
        parent_splitter=RecursiveCharacterTextSplitter(chunk_size=200, chunk_overlap=50),
    )
    assert asyncio.run(retriever.aadd_documents([Document(page_content=TEXT)], ids=["t"])) == ["t"]
    results = retriever.invoke("Where do the whales live?", k=2)
    assert "whales" in results[0].page_content
    assert results == asyncio.run(retriever.ainvoke("Where do the whales live?", k=2))


def test_users_see_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        retriever = build([Document(page_content=TEXT)])
        assert retriever.invoke("eagles")
