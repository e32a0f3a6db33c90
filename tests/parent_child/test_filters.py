"""Filters on metadata that no child stores raise, in both front ends and any vector store."""

from __future__ import annotations

from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.vector_stores import ExactMatchFilter, FilterCondition, MetadataFilters

from rag_splitters.langchain import parent_document_retriever
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child.stores.keyvalue import KeyValueStore
from tests.parent_child.test_llama_index import ListVectorStore
from tests.support.counting import record_calls
from tests.support.front_ends import FrontEnd, Page, every_front_end, sentence

PAGES: list[Page] = [
    (
        f"p{n}",
        sentence(n),
        {
            "team": "red",
            "author": {"name": "Ann"},
            "none": None,
            "#tag": "x",
            "mixed": [n] if n else {"a": 1},
            **{f"key{number}": "v" for number in range(300 if n == 2 else 0)},
        },
    )
    for n in range(3)
]
UNSEARCHABLE = {
    "author": "document 'p0' has a dict there",
    "none": "document 'p0' has a NoneType there",
    "#tag": "no key that is empty, begins with",
    "key299": "document 'p2' has more metadata than the 200 values",
}


@every_front_end
@pytest.mark.parametrize("search_type", ["similarity", "hybrid"])
def test_a_key_that_no_child_stores_is_an_error(
    search_type: str, front: FrontEnd, tmp_path: Path
) -> None:
    with closing(front.build(PAGES, path=tmp_path, search_type=search_type)) as retriever:
        for key, message in UNSEARCHABLE.items():
            with pytest.raises(ValueError, match=f"the filter cannot find '{key}': {message}"):
                front.find(front.varied(retriever, where={key: "x"}), "amber")
        for where, count in (
            ({"team": "red"}, 3),
            ({"mixed": 1}, 0),  # some documents have it where it is searched
            ({"key3": "v"}, 1),
            ({"unknown": 1}, 0),  # no document has it: the answer is true
        ):
            assert len(front.find(front.varied(retriever, where=where), "amber")) == count
        front.delete(retriever, [name for name, _, _ in PAGES])
        front.do(retriever, "add_documents", front.documents([("new", "Other words.", {})]))
        assert front.find(front.varied(retriever, where={"author": "x"}), "amber") == []


class Team(str, Enum):
    RED = "red"


@every_front_end
@pytest.mark.parametrize("is_on_disk", [True, False])
def test_values_of_subclasses_are_found(front: FrontEnd, is_on_disk: bool, tmp_path: Path) -> None:
    metadata = {"team": Team.RED, "price": np.float64(2), "teams": [Team.RED, "blue"]}
    path = tmp_path if is_on_disk else None
    with closing(front.build([("p", sentence(1), metadata)], path=path)) as retriever:
        for where in ({"team": "red"}, {"price": 2.0}):
            (result,) = front.find(front.varied(retriever, where=where), "amber")
            assert result.metadata.items() >= metadata.items()


@pytest.mark.parametrize("is_on_disk", [True, False])
def test_a_tuple_is_searched_as_a_list(is_on_disk: bool, tmp_path: Path) -> None:
    documents = [Document(page_content="Tea is hot.", id="tea", metadata={"tags": ("a", "b")})]
    path = tmp_path if is_on_disk else None
    with parent_document_retriever(documents, path=path) as retriever:
        for search_type in ("hybrid", "similarity"):
            (result,) = retriever.invoke(
                "tea", filter={"tags": {"$contains": "b"}}, search_type=search_type
            )
            assert result.metadata["tags"] == (["a", "b"] if is_on_disk else ("a", "b"))


def test_conditions_inside_others_count() -> None:
    documents = [
        Document(page_content=text, metadata=metadata, id=name) for name, text, metadata in PAGES
    ]
    retriever = parent_document_retriever(documents, child_metadata_fields=["mixed", "author"])
    where: dict[str, Any] = {"$or": [{"$and": [{"mixed": 1}, {"team": {"$ne": "blue"}}]}]}
    where["$or"].append({"mixed": 2})
    with pytest.raises(ValueError, match="'team': child_metadata_fields leaves it out"):
        retriever.invoke("amber", filter=where)


def test_other_vector_stores_check_filters_too() -> None:
    store = InMemoryVectorStore(HashingEmbeddings())  # type: ignore[arg-type]
    front = FrontEnd("langchain")
    retriever = front.build(PAGES, vectorstore=store, where={"author": "x"})
    with pytest.raises(ValueError, match="'author': document 'p0' has a dict"):
        front.find(retriever, "amber")
    front = FrontEnd("llama_index")
    inner = MetadataFilters(
        filters=[ExactMatchFilter(key="author", value="x")], condition=FilterCondition.OR
    )
    other = front.build(
        PAGES, vector_store=ListVectorStore(kept={}), filters=MetadataFilters(filters=[inner])
    )
    with pytest.raises(ValueError, match="'author': document 'p0' has a dict"):
        front.find(other, "amber")


def test_a_filter_reads_at_most_one_more_row_of_each_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = FrontEnd("langchain")
    with closing(front.build(PAGES, path=tmp_path, where={"team": "red"})) as retriever:
        front.find(front.varied(retriever), "the first query looks whether children are missing")
        reads = record_calls(monkeypatch, KeyValueStore, "read")
        front.find(retriever, "amber")
        assert len(reads) == 2, "the key's row, and the parents"
        varied = front.varied(retriever, where={"mixed": 1})
        front.find(varied, "amber")
        reads.clear()
        front.find(varied, "amber")
        assert len(reads) <= 1, "that some child stores it is known by now"
