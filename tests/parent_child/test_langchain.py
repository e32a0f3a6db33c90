"""Parent-child retrieval for LangChain, over Chroma: what it writes, removes and returns."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langchain_tests.integration_tests.indexer import (
    AsyncDocumentIndexTestSuite,
    DocumentIndexerTestSuite,
)
from langchain_text_splitters import RecursiveCharacterTextSplitter, TextSplitter

from rag_splitters.langchain import (
    ContentAwareTextSplitter,
    FixedSizeTextSplitter,
    ParentDocumentRetriever,
    SentenceTextSplitter,
    parent_document_retriever,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child import MissingParentsError
from tests.support.processes import run_python

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


def test_dump_leaves_out_what_a_retriever_shares_with_its_copies() -> None:
    assert "shared" not in parent_document_retriever().model_dump()


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


# What is written and removed


def rows(retriever: ParentDocumentRetriever, prefix: str | None = None) -> list[str]:
    """The docstore's keys, but for those of its state."""
    keys = retriever.docstore.yield_keys(prefix=prefix)
    return sorted(key for key in keys if not key.startswith("state/"))


@pytest.mark.slow
def test_more_children_than_chroma_takes_at_once_are_all_kept() -> None:
    text = " ".join(f"{number:09}" for number in range(9000))
    retriever = build(
        [Document(page_content=text)], child_splitter=FixedSizeTextSplitter(chunk_size=10)
    )
    assert len(children(retriever)) > 5461
    assert "000008123" in retriever.invoke("000008123", k=1)[0].page_content


def test_equal_documents_in_one_call_are_stored_once() -> None:
    same, named = Document(page_content=TEXT), Document(page_content="A version.", id="v")
    retriever = build()
    ids = retriever.add_documents([same, same, named, named.model_copy()])
    assert ids[0] == ids[1]
    assert ids[2:] == ["v"] * 2
    assert [d.page_content for d in retriever.get(["v"])] == ["A version."]
    assert (
        len(children(retriever))
        == -(-len(TEXT) // 80) * 3 - (len(TEXT) % 80 <= 60) - (len(TEXT) % 80 <= 30) + 1
    )


def test_parents_that_repeat_rewritten_text_are_stored_once() -> None:
    page = '<main><p>Hi</p><img alt="' + "one two three. " * 100 + '"></main>'
    retriever = build(
        [Document(page_content=page, id="a")],
        parent_splitter=ContentAwareTextSplitter(chunk_size=100),
        child_splitter=SentenceTextSplitter(chunk_size=40),
    )
    parents = [each for each in retriever.docstore.yield_keys() if "/" not in each]
    assert len(retriever.get(parents)) == len(parents) > 2
    stored = retriever.vectorstore._collection.get()  # type: ignore[attr-defined]
    owners = [metadata["parent_id"] for metadata in stored["metadatas"]]
    pairs = list(zip(owners, stored["documents"], strict=True))
    assert len(set(pairs)) == len(pairs) > len(parents)
    assert retriever.verify().is_sound
    assert retriever.get(["a"])[0].page_content == page


def test_delete_takes_a_source() -> None:
    retriever = build(
        [
            Document(page_content=p, metadata={"source": f"{n % 2}.txt"})
            for n, p in enumerate(PARAGRAPHS)
        ]
    )
    assert retriever.delete(source="1.txt")["num_deleted"] == 3
    assert asyncio.run(retriever.adelete(source="1.txt"))["num_deleted"] == 0
    results = retriever.invoke("dogs", k=50)
    assert {result.metadata["source"] for result in results} == {"0.txt"}


@pytest.mark.parametrize("blank", ["", " \n\t "])
def test_blank_documents_can_be_got_and_have_no_parent(blank: str) -> None:
    for parent_splitter in (FixedSizeTextSplitter(chunk_size=80), None):
        retriever = build(parent_splitter=parent_splitter)
        assert retriever.add_documents([]) == []
        ids = retriever.add_documents([Document(page_content=blank, metadata={"a": {}})])
        assert retriever.get(ids) == [Document(page_content=blank, metadata={"a": {}}, id=ids[0])]
        assert rows(retriever) == rows(retriever, "source/")
        assert retriever.invoke("anything") == []


@pytest.mark.slow
def test_ids_are_the_same_in_every_process() -> None:
    code = (
        "import tests.parent_child.test_langchain as t;"
        "r = t.build([t.Document(page_content=t.TEXT, metadata={'b': 1, 'a': [2]})]);"
        "ids = (sorted(t.children(r)), sorted(r.docstore.yield_keys()))"
    )
    here: dict[str, Any] = {}
    exec(code, here)
    assert run_python(f"{code}; print(ids)", PYTHONHASHSEED="29") == f"{here['ids']}\n"


@pytest.mark.parametrize(
    ("asynchronous", "cleanup"),
    [(False, None), (True, "incremental"), (False, "full"), (True, "scoped_full")],
)
def test_index_works_in_every_clean_up_mode(cleanup: Any, asynchronous: bool) -> None:
    retriever, records = build(), InMemoryRecordManager(namespace="test")
    records.create_schema()

    def sync(documents: list[Document]) -> Any:
        options: Any = {"cleanup": cleanup, "source_id_key": "source", "key_encoder": "sha256"}
        if asynchronous:
            return asyncio.run(aindex(documents, records, retriever, **options))
        return index(documents, records, retriever, **options)

    def page(source: str, text: str) -> Document:
        return Document(page_content=text, metadata={"source": source})

    first = [page("a", PARAGRAPHS[0]), page("a", PARAGRAPHS[1]), page("b", PARAGRAPHS[2])]
    assert sync(first)["num_added"] == 3
    assert sync(first)["num_skipped"] == 3
    changed = sync([page("a", PARAGRAPHS[0]), page("a", PARAGRAPHS[3])])
    gone = {None: 0, "incremental": 1, "full": 2, "scoped_full": 1}[cleanup]
    assert (changed["num_added"], changed["num_deleted"]) == (1, gone)
    texts = {source.page_content for source in retriever.get(records.list_keys())}
    assert len(texts) == 4 - gone
    found = retriever.invoke("animals in a place that eat food", k=50)
    assert all(any(parent.page_content in text for text in texts) for parent in found)
