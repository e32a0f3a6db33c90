"""What parent-child retrieval asks of its stores, counted: calls, rows and children."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from chromadb import Collection
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from rag_splitters.langchain import (
    ParentDocumentRetriever,
    RecursiveTextSplitter,
    parent_document_retriever,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child import search
from rag_splitters.parent_child.keywords.index import KeywordIndex
from rag_splitters.parent_child.stores.chroma import ChromaChildren
from rag_splitters.parent_child.stores.keyvalue import KeyValueStore
from tests.support.counting import record_arguments

COUNT = 60
WORDS = ("whale", "eagle", "tiger", "snail", "moose", "gecko", "otter", "raven", "zebra", "koala")


def text(number: int) -> str:
    """A document of several children; its word is in all of them."""
    word = f"{WORDS[number % 10]}{number}"
    return " ".join(
        f"The {word} was seen on day {day}, near {WORDS[day % 10]} hill." for day in range(12)
    )


DOCUMENTS = [
    Document(page_content=text(number), metadata={"n": number}, id=str(number))
    for number in range(COUNT)
]
QUESTION = "whale0 eagle11 tiger22 snail33 moose44 gecko55"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """What Chroma and the docstore are asked: arguments, or rows, by the name of the method."""
    chroma = record_arguments(monkeypatch, Collection, "query", "get", "upsert", "delete")
    return chroma | record_arguments(monkeypatch, KeyValueStore, "read", "write")


def forget(asked: dict[str, list[Any]]) -> None:
    for calls in asked.values():
        calls.clear()


def build(folder: Path, **options: Any) -> ParentDocumentRetriever:
    return parent_document_retriever(
        path=folder,
        child_splitter=RecursiveTextSplitter(chunk_size=120),
        parent_splitter=None,
        **options,
    )


PLAIN: dict[str, Any] = {"search_type": "similarity", "smoothing": 0.0, "headings": False}


@pytest.mark.parametrize("options", [PLAIN, {}], ids=["plain", "hybrid"])
def test_adding_writes_every_parent_once_and_every_record_twice(
    options: dict[str, Any], tmp_path: Path, asked: dict[str, list[Any]]
) -> None:
    with closing(build(tmp_path, **options)) as retriever:
        retriever.add_documents(DOCUMENTS)
        children = retriever.vectorstore._collection.count()  # type: ignore[attr-defined]
        identity, noted, final = ([key for key, _ in rows] for rows in asked["write"])
        assert identity == ["state/revision", "state/index"]
        assert len(noted) == COUNT
        assert all(key.startswith("source/") for key in noted)
        assert [final[0], final[-1]] == ["state/log/0001", "state/revision"]
        assert final[-COUNT - 1 : -1] == noted
        assert len(final) == 2 * COUNT + 2, "the parents, too"
        assert [len(call["ids"]) for call in asked["upsert"]] == [children]
        assert len(asked["read"]) <= 8  # what the index is, the records twice, and the turn
        assert {call["limit"] for call in asked["get"]} == {100}, "did langchain_classic write it?"
        assert not asked["query"]
        forget(asked)
        retriever.add_documents(DOCUMENTS)
        assert {name for name, calls in asked.items() if calls} == {"read", "get"}
        assert len(asked["read"]) == 2  # the records, and whether their parents are there
        assert [call["include"] for call in asked["get"]] == [[]], "are the children there?"


@pytest.mark.parametrize("removal", ["replace", "delete"])
def test_a_removal_concerns_the_children_of_few_turns(
    removal: str, tmp_path: Path, asked: dict[str, list[Any]]
) -> None:
    """Chroma lists all the children that pass a filter, whichever ids are named beside it."""
    with closing(build(tmp_path, **PLAIN)) as retriever:
        for start in range(0, COUNT, 10):
            retriever.add_documents(DOCUMENTS[start : start + 10])
        collection = retriever.vectorstore._collection  # type: ignore[attr-defined]
        editions = [each["_edition"] for each in collection.get()["metadatas"]]
        forget(asked)
        if removal == "replace":
            retriever.add_documents([Document(page_content=text(99), id="35")])
        else:
            retriever.delete(["35"])
        (call,) = asked["delete"]
        (numbers,) = call["where"]["_edition"].values()
        assert sum(each in numbers for each in editions) < len(editions) / 5
        assert retriever.verify().is_sound


def test_a_question_by_similarity_asks_for_few_children_and_for_k_parents(
    tmp_path: Path, asked: dict[str, list[Any]]
) -> None:
    with closing(build(tmp_path, **PLAIN, k=3, retrieve="parents")) as retriever:
        retriever.add_documents(DOCUMENTS)
        retriever.invoke("the first query looks whether children are missing")
        forget(asked)
        assert len(retriever.invoke("whale0 eagle11")) == 3
        asks = [(call["n_results"], call["include"]) for call in asked["query"]]
        include = ["metadatas", "documents", "distances"]
        assert asks[0] == (7, include), "one more shows whether the last ties"
        assert [n for n, _ in asks] == sorted({n for n, _ in asks}), "deeper each time"
        assert not asked["get"]
        read = [key for rows in asked["read"] for key in rows]
        assert 3 <= len(read) == len(set(read)) <= asks[-1][0]


@pytest.mark.slow
def test_results_do_not_depend_on_how_many_children_are_fetched_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    depths: list[int] = []
    find = InMemoryVectorStore.similarity_search_with_score  # exact, unlike Chroma's graph

    def recording(self: Any, query: str, k: int = 4, **kwargs: Any) -> Any:
        depths.append(k)
        return find(self, query, k, **kwargs)

    monkeypatch.setattr(InMemoryVectorStore, "similarity_search_with_score", recording)
    store = InMemoryVectorStore(HashingEmbeddings())  # type: ignore[arg-type]
    splitter = RecursiveTextSplitter(chunk_size=60)
    retriever = parent_document_retriever(
        DOCUMENTS,
        vectorstore=store,
        child_splitter=splitter,
        parent_splitter=None,
        k=3,
        retrieve="parents",
    )
    questions = [f"{WORDS[n % 10]}{n} seen on day {n % 12}" for n in range(20)]
    results = [retriever.invoke(question) for question in questions]
    for children_per_result in (1, 20):
        monkeypatch.setitem(search._CHILDREN_PER_RESULT, "parents", children_per_result)
        depths.clear()
        assert [retriever.invoke(question) for question in questions] == results
        assert min(depths) == 3 * children_per_result + 1
        if children_per_result == 1:
            assert len(depths) > len(questions), "some have to ask again, or nothing is shown"


@pytest.mark.parametrize(("retrieve", "most"), [("passages", 50), ("parents", 12), ("children", 6)])
def test_hybrid_search_reads_only_the_children_of_its_results(
    retrieve: Any, most: int, tmp_path: Path, asked: dict[str, list[Any]]
) -> None:
    with closing(build(tmp_path, k=3, retrieve=retrieve)) as retriever:
        retriever.add_documents(DOCUMENTS)
        retriever.invoke("warm")
        forget(asked)
        results = retriever.invoke(QUESTION)
        assert len(results) == 3
        (query,) = asked["query"]
        assert query["include"] == ["distances"]
        assert query["n_results"] == 101
        vectors = [call for call in asked["get"] if call["include"] == ["embeddings"]]
        assert len(vectors) <= 1, "the vectors of those that only keywords find come in one call"
        loaded = [call for call in asked["get"] if call not in vectors]
        assert all(call["include"] == ["metadatas", "documents"] for call in loaded)
        matches = [each for result in results for each in read_matches(result)]
        wanted = {"passages": len(matches), "parents": 0, "children": 3}[retrieve]
        assert sum(len(call["ids"]) for call in loaded) == wanted < 20
        read = [key for rows in asked["read"] for key in rows]
        assert len(read) == len(set(read)) <= most


@pytest.mark.slow
def test_hybrid_search_finds_what_reading_everything_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Collection.query

    def query_exactly(self: Collection, *, n_results: int, **arguments: Any) -> Any:
        """Chroma's graph may miss a child; the first of all its rows are the nearest."""
        rows: Any = query(self, n_results=self.count(), **arguments)
        return {
            name: [row[:n_results] for row in value] if isinstance(value, list) else value
            for name, value in rows.items()
        } | {"included": rows["included"]}

    monkeypatch.setattr(Collection, "query", query_exactly)
    with closing(build(tmp_path, k=10, retrieve="children")) as retriever:
        retriever.add_documents(DOCUMENTS)
        collection = retriever.vectorstore._collection  # type: ignore[attr-defined]
        model = retriever.vectorstore.embeddings
        compared = 0
        for question in [QUESTION, *(f"{WORDS[n % 10]}{n} near hill" for n in range(20))]:
            vector = model.embed_query(question)  # type: ignore[union-attr]
            rows = collection.query(query_embeddings=[vector], n_results=collection.count())
            near = sorted(zip(rows["distances"][0], rows["ids"][0], strict=True))
            last = near[100][0]
            by_vector = [name for distance, name in near[:100] if distance != last]
            if len(by_vector) < 100:  # others tie with the last one: the search goes deeper
                continue
            compared += 1
            everything = retriever.shared.keywords.find(
                question, collection.count(), with_neighbours=True
            )
            pool = {*by_vector, *list(everything.best)[:100]}
            distances, keywords = {name: -value for value, name in near}, everything.best
            expected = dict.fromkeys(pool, 0.0)
            for share, side in ((0.3, distances), (0.7, keywords)):
                values = {name: side.get(name, 0.0) for name in pool}
                worst, best = min(values.values()), max(values.values())
                for name in pool:
                    expected[name] += share * (values[name] - worst) / (best - worst)
            strength = max(1 + max(distances.values()), everything.coverage)
            wanted = sorted(expected.values(), reverse=True)[:10]
            found = retriever.invoke(question)
            scores = [each.metadata["score"] for each in found]
            assert scores == pytest.approx([strength * score for score in wanted], abs=1e-4)
            assert [expected[each.id or ""] for each in found] == pytest.approx(wanted, abs=1e-4)
        assert compared > 10


def test_verify_lists_ids_once_and_pages_nothing(
    tmp_path: Path, asked: dict[str, list[Any]]
) -> None:
    with closing(build(tmp_path)) as retriever:
        retriever.add_documents(DOCUMENTS)
        assert retriever.verify().is_sound
        forget(asked)
        assert retriever.verify().is_sound
        assert asked["get"] == [{"include": []}], "an offset costs what it skips"
        forget(asked)
        retriever.delete(source="none")
        assert not asked["get"]


def read_matches(result: Document) -> list[Any]:
    return list(json.loads(result.metadata.get("matches", "[]")))


REWRITTEN = [
    Document(
        page_content="a\ud800b " + text(3), metadata={"n": 3, "\udc00": "\udfff"}, id="\ud800"
    ),
    Document(page_content="# Hills\n\n" + text(4), metadata={"title": "Animals", "page": [1, 2]}),
    Document(page_content=text(5) + "\n\n" + text(6), metadata={"start_index": 7, "end_index": 9}),
    Document(page_content=" \n " + text(7), metadata={"nested": {"a": [{"b": None}]}}, id="p"),
]


@pytest.mark.slow
@pytest.mark.parametrize("retrieve", ["passages", "parents", "children"])
@pytest.mark.parametrize("parents", [None, RecursiveTextSplitter(chunk_size=300, chunk_overlap=90)])
def test_what_the_keyword_index_locates_is_what_the_vector_store_holds(
    retrieve: str, parents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"parent_splitter": parents, "retrieve": retrieve}
    splitter = RecursiveTextSplitter(chunk_size=60, chunk_overlap=20)
    documents = [*DOCUMENTS[:9], *REWRITTEN]
    with parent_document_retriever(documents, child_splitter=splitter, **options) as retriever:
        questions = [QUESTION, "zebra8", "Hills", "a\ud800b", "where was the moose4 on day 3?"]
        results = [retriever.invoke(question, k=12) for question in questions]
        monkeypatch.setattr(KeywordIndex, "locate", lambda self, ids, id_key: {})
        assert [retriever.invoke(question, k=12) for question in questions] == results


def test_a_child_that_is_gone_when_it_is_read_is_in_no_passage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with parent_document_retriever(DOCUMENTS, parent_splitter=None) as retriever:
        first, *_ = retriever.invoke(QUESTION)
        collection = retriever.vectorstore._collection  # type: ignore[attr-defined]
        where = {"start_index": read_matches(first)[0]["start_index"]}
        of_first = collection.get(where={"$and": [{"n": first.metadata["n"]}, where]})["ids"]
        read = ChromaChildren.read

        async def deleting(self: ChromaChildren, ids: list[str], detail: Any = "text") -> Any:
            collection.delete(ids=of_first)
            return await read(self, ids, detail)

        monkeypatch.setattr(ChromaChildren, "read", deleting)
        results = retriever.invoke(QUESTION)
        assert len(results) == 4
        assert first.id not in [result.id for result in results]
