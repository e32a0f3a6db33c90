"""What parent-child retrieval for LangChain writes and removes, over Chroma in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index

from rag_splitters.langchain import (
    ContentAwareTextSplitter,
    FixedSizeTextSplitter,
    ParentDocumentRetriever,
    SentenceTextSplitter,
)
from tests.parent_child.test_langchain import PARAGRAPHS, TEXT, build, children
from tests.support.processes import run_python


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
