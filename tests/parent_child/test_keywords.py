"""The keyword index: its arrays, filters as Chroma has them, and the log that keeps it in step."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb import Collection
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore

from rag_splitters.langchain import (
    ParentDocumentRetriever,
    PostgresStore,
    RecursiveTextSplitter,
    RedisStore,
    SQLiteStore,
    parent_document_retriever,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child import ranking, revisions
from rag_splitters.parent_child.keywords import postings, segments
from rag_splitters.parent_child.keywords.index import KeywordIndex
from rag_splitters.parent_child.keywords.metadata_index import can_evaluate
from rag_splitters.parent_child.records import REPRESENTS_KEY, Entry
from rag_splitters.parent_child.stores.children import Match
from rag_splitters.parent_child.stores.chroma import ChromaChildren
from rag_splitters.parent_child.stores.keyvalue import KeyValueStore
from rag_splitters.sqlite import Database
from tests.support.counting import record_arguments, record_calls
from tests.support.front_ends import sentence
from tests.support.stores import on_server

# Arrays

WORDS = [f"word{number}" for number in range(60)]


def random_child(rng: random.Random, name: str) -> Entry:
    weights = [1 / (number + 1) for number in range(len(WORDS))]
    words = rng.choices(WORDS, weights, k=rng.randrange(20))
    return Entry(" ".join(words), {"n": rng.randrange(5), "list": [rng.choice("abc")]}, name)


def same_scores(one: KeywordIndex, other: KeywordIndex, question: str, **options: Any) -> bool:
    best, expected = (each.find(question, 9999, **options).best for each in (one, other))
    return best == pytest.approx(expected)


@pytest.mark.parametrize("with_neighbours", [False, True])
def test_an_index_that_was_updated_is_one_that_was_made_at_once(
    with_neighbours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "_MAX_REMOVED", 30)  # so that it is often compacted
    monkeypatch.setattr(segments, "_MAX_MERGED", 60)
    rng, documents = random.Random(5), {}
    index = KeywordIndex(None)
    for number in range(120):
        changes = {}
        for name in rng.sample(range(30), 2):
            ids = rng.sample([f"{name}-{n}" for n in range(12)], rng.choice([0, 1, 3, 9]))
            changes[f"document {name}"] = [random_child(rng, each) for each in ids]
        index.update(changes)
        documents |= changes
        if number % 20 == 19:
            fresh = KeywordIndex(None)
            fresh.update(documents)
            assert index.list_ids() == fresh.list_ids()
            # The neighbours, nearest first; the last `find` was before the updates.
            for name in fresh.list_ids():
                assert index.lend({name: 1.0}, 1, 9) == fresh.lend({name: 1.0}, 1, 9)
            question = " ".join(rng.sample(WORDS, 5))
            where = {"$and": [{"n": {"$gt": 1}}, {"list": {"$contains": "a"}}]}
            words = {"with_neighbours": with_neighbours}
            assert same_scores(index, fresh, question, **words)
            assert same_scores(index, fresh, question, where=where, **words)
            assert sorted(index.list_allowed(where)) == sorted(fresh.list_allowed(where))
            assert index.find(question, 1).coverage == fresh.find(question, 1).coverage


def test_a_representation_keeps_its_piece_when_children_are_numbered_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segments, "_MAX_REMOVED", -9)  # so that it is compacted at once
    children = [Entry(name, {}, name) for name in "abcde"]
    index = KeywordIndex(None)
    index.update({"d": [*children, Entry("summary", {REPRESENTS_KEY: "c"}, "s")]})
    assert index.lend({"s": 1.0}, 1, 9) == ["s", "b", "d", "a", "e"], "neighbours of its piece"
    index.update({"other": children[3:]})  # they stood between the piece and its representation
    assert index.lend({"s": 1.0}, 1, 9) == ["s", "b", "a"]


def test_numbers_of_children_that_were_found_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, names = random.Random(3), [f"{number:02}" for number in range(40)]
    index, other = KeywordIndex(None), KeywordIndex(None)
    for each in (index, other):
        each.update({"d": [random_child(rng, name) for name in names]})
    best = index.find("word0 word1", 10, names[:10]).best
    reads = record_calls(monkeypatch, Database, "read_in")
    values = dict.fromkeys([*best, *names[:10]], 1.0)
    assert index.lend(values, 5, 30) == other.lend(values, 5, 30)
    asked = [key for _, _, keys in reads for key in keys if isinstance(key, str)]
    assert asked == list(values), "only the index that has not found them reads their numbers"


def test_frequent_terms_add_to_the_scores_of_what_rarer_terms_find(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = KeywordIndex(None)
    texts = [
        f"common {'seldom' if n % 3 == 0 else ''} {'unique' if n == 9 else ''}" for n in range(90)
    ]
    index.update({"d": [Entry(text, {"n": n}, f"{n:02}") for n, text in enumerate(texts)]})
    question = "common seldom unique"
    everything = index.find(question, 90)
    monkeypatch.setattr(postings, "MAX_CANDIDATES", 30)
    matches = index.find(question, 90, ["01"])
    assert len(everything.best) == 90
    rest = [name for name in everything.best if int(name) % 3 == 0 or name == "01"]
    assert list(matches.best) == rest
    assert matches.best == {name: everything.best[name] for name in rest}
    assert matches.others == {"01": everything.best["01"]}, "its score is the whole one"
    allowed = {"n": {"$in": [1, 2]}}
    assert list(index.find(question, 90, where=allowed).best) == ["01", "02"]
    assert index.find(question, 1).coverage == pytest.approx(1.0)


# Filters

KEYS = ("a", "b", "é key")
SCALARS = (
    st.sampled_from([0, 1, 2, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
    st.sampled_from([0.0, -0.0, 1.0, 1.5, -1.0, 2.0**53, 1e300]),
    st.booleans(),
    st.sampled_from(["", "1", "x", "X", "東京", "x y", "a\x00b"]),
)
METADATA = st.dictionaries(
    st.sampled_from(KEYS),
    st.one_of(*SCALARS, *(st.lists(each, min_size=1, max_size=3) for each in SCALARS)),
    max_size=3,
)
CONDITIONS = st.one_of(
    st.one_of(*SCALARS),
    st.tuples(st.sampled_from(["$eq", "$ne", "$contains", "$not_contains"]), st.one_of(*SCALARS)),
    st.tuples(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), st.one_of(*SCALARS[:2])),
    st.tuples(
        st.sampled_from(["$in", "$nin"]),
        st.one_of(*(st.lists(each, min_size=1, max_size=3) for each in SCALARS)),
    ),
).map(lambda condition: dict([condition]) if isinstance(condition, tuple) else condition)
FILTERS = st.recursive(
    st.tuples(st.sampled_from(KEYS), CONDITIONS).map(lambda pair: dict([pair])),
    lambda inner: st.tuples(
        st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=2, max_size=3)
    ).map(lambda pair: dict([pair])),
    max_leaves=5,
)


@given(st.lists(METADATA, min_size=1, max_size=8), st.lists(FILTERS, min_size=1, max_size=4))
@example([{"a": 1}, {"a": 1.0}, {"a": True}, {"a": "1"}, {}], [{"a": 1}, {"a": {"$ne": 1.0}}])
@example([{"a": [1, 2]}, {"a": [1.0]}, {"a": [True]}], [{"a": {"$contains": 1}}, {"a": 1}])
@example([{"a": 2**53 + 1}, {"a": 2.0**53}], [{"a": {"$gt": 2.0**53}}, {"a": {"$lt": 2**53 + 1}}])
def test_filters_let_through_what_chroma_lets_through(
    rows: list[dict[str, Any]], filters: list[dict[str, Any]]
) -> None:
    collection = chromadb.EphemeralClient().create_collection(f"filters-{uuid.uuid4().hex}")
    ids = [f"{number:02}" for number in range(len(rows))]
    collection.add(
        ids=ids,
        embeddings=[[1.0, 0.0]] * len(rows),
        metadatas=[row or None for row in rows],  # type: ignore[arg-type]
    )
    index = KeywordIndex(None)
    children = [Entry("tea", row, name) for name, row in zip(ids, rows, strict=True)]
    for start in range(0, len(rows), 3):
        index.update({str(start): children[start : start + 3]})
    for where in filters:
        assert can_evaluate(where)
        expected = sorted(collection.get(where=where, include=[])["ids"])
        assert sorted(index.list_allowed(where)) == expected
        assert sorted(dict(index.find("tea", 99, where=where).best)) == expected
    collection.delete(ids=ids)  # Chroma 1.5 keeps the lists of a collection that is deleted
    chromadb.EphemeralClient().delete_collection(collection.name)


INVALID: list[dict[str, Any]] = [
    {},
    {"a": 1, "b": 2},
    {"a": {"$gt": 1, "$lt": 3}},
    {"a": {"$gt": "x"}},
    {"a": {"$gt": True}},
    {"a": {"$in": []}},
    {"a": {"$in": [1, "1"]}},
    {"a": [1]},
    {"a": None},
    {"a": {"$regex": "x"}},
    {"$and": [{"a": 1}]},
    {"$not": {"a": 1}},
    {"#document": {"$contains": "x"}},
]


@pytest.mark.parametrize("where", INVALID, ids=str)
def test_what_chroma_refuses_is_left_to_chroma(where: dict[str, Any]) -> None:
    assert not can_evaluate(where)


PLACES = [
    Document(
        page_content=f"The lamp of house {n} was lit. {sentence(n)}",
        metadata={"team": "rare" if n == 321 else "large", "n": n, "even": n % 2 == 0},
        id=str(n),
    )
    for n in range(400)
]


@pytest.fixture(scope="module")
def places() -> Iterator[ParentDocumentRetriever]:
    with parent_document_retriever(PLACES, parent_splitter=None, retrieve="parents") as retriever:
        yield retriever


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"filter": {"team": "rare"}}, {321}),
        ({"filter": {"$and": [{"n": {"$gt": 7}}, {"n": {"$lte": 9}}]}}, {8, 9}),
        ({"filter": {"n": {"$nin": list(range(3, 400))}}}, {0, 1, 2}),
        ({"where_document": {"$contains": "house 321 "}}, {321}),
        ({"filter": {"even": True}, "where_document": {"$contains": "house 39"}}, None),
    ],
    ids=str,
)
def test_hybrid_search_finds_what_passes_however_rare_it_is(
    options: dict[str, Any], expected: set[int] | None, places: ParentDocumentRetriever
) -> None:
    found = {each.metadata["n"] for each in places.invoke("lamp lit house", k=9, **options)}
    assert found == ({390, 392, 394, 396, 398} if expected is None else expected)


def test_a_filter_is_resolved_once(
    places: ParentDocumentRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def accept(*arguments: Any) -> None:
        """Ask for nothing more if Chroma's graph leads to too few, as it does now and then."""

    monkeypatch.setattr(ChromaChildren, "_add_missing", accept)
    asked = record_arguments(monkeypatch, Collection, "get", "query")
    results = []
    for most_compared, most_unfiltered, expected in (
        (1000, 0, set()),
        (0, 2000, set()),
        (0, 0, {("query", "{'even': True}")}),
    ):
        for name, most in (("compared", most_compared), ("unfiltered", most_unfiltered)):
            monkeypatch.setattr(ranking, f"_most_{name}", lambda count, most=most: most)
        for calls in asked.values():
            calls.clear()
        results.append(places.invoke("lamp lit house", filter={"even": True}))
        requests = [(name, call.get("where")) for name, calls in asked.items() for call in calls]
        filtered = {(name, str(where)) for name, where in requests if where}
        assert filtered == expected, "no other request has the filter"
        if not expected:
            assert len(requests) <= 3, "the nearest, their vectors, and the children that are read"
    assert {len(each) for each in results} == {4}
    assert all(each.metadata["even"] for own in results for each in own)


def test_a_filter_that_many_pass_finds_those_far_from_the_question(
    places: ParentDocumentRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If too few of the nearest pass, the store evaluates the filter."""
    find, asked = ChromaChildren.find_unfiltered, []

    async def find_few(self: ChromaChildren, query: str, n: int) -> list[Match]:
        asked.append(n)
        return (await find(self, query, n))[:50]

    monkeypatch.setattr(ChromaChildren, "find_unfiltered", find_few)
    monkeypatch.setattr(ranking, "_most_compared", lambda count: 0)
    monkeypatch.setattr(ranking, "_most_unfiltered", lambda count: 1000)
    results = places.invoke("lamp lit house", k=120, filter={"even": True})
    assert asked == [720]
    assert len(results) == 120
    assert all(each.metadata["n"] % 2 == 0 for each in results)


# The log

STORES = ["sqlite", *on_server("redis", "postgres"), "no atomic operations"]
Opening = Callable[[str], ParentDocumentRetriever]


@pytest.fixture(params=STORES)
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opening]:
    """Open one index on shared stores, each time with the keyword file of another process."""
    in_memory, client, name = InMemoryStore(), chromadb.EphemeralClient(), uuid.uuid4().hex
    docstores: dict[str, Callable[[], Any]] = {
        "sqlite": lambda: SQLiteStore(tmp_path / "parents.sqlite"),
        "redis": lambda: RedisStore(request.getfixturevalue("redis_url")),
        "postgres": lambda: PostgresStore(request.getfixturevalue("postgres_url")),
        "no atomic operations": lambda: in_memory,
    }
    opened: list[ParentDocumentRetriever] = []

    def opening(process: str) -> ParentDocumentRetriever:
        retriever = parent_document_retriever(
            path=tmp_path / process,
            client=client,
            collection_name=f"log-{name}",
            docstore=docstores[request.param](),
            embeddings=HashingEmbeddings(dimensions=32),
            child_splitter=RecursiveTextSplitter(chunk_size=60),
            parent_splitter=None,
            retrieve="parents",
            k=1,
        )
        opened.append(retriever)
        return retriever

    yield opening
    for retriever in opened:
        retriever.close()


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of all records of documents that are read from a docstore."""
    keys: list[str] = []
    read, mget = KeyValueStore.read, InMemoryStore.mget

    def record(read: Any) -> Any:
        def recording(self: Any, names: Any, *args: Any) -> Any:
            keys.extend(name for name in names if name.startswith("source/"))
            return read(self, names, *args)

        return recording

    monkeypatch.setattr(KeyValueStore, "read", record(read))
    monkeypatch.setattr(InMemoryStore, "mget", record(mget))
    return keys


def report(name: object, word: str = "lamp") -> Document:
    text = f"Report {name} tells about the {word}. " * 4
    return Document(page_content=text, metadata={"name": f"{name} {word}"}, id=str(name))


def check_children(retriever: ParentDocumentRetriever) -> None:
    ids = retriever.vectorstore._collection.get(include=[])["ids"]  # type: ignore[attr-defined]
    assert retriever.shared.keywords.list_ids() == sorted(ids)
    assert retriever.verify().is_sound


def test_a_write_of_another_process_costs_what_it_changed(
    opening: Opening, records: list[str]
) -> None:
    writer, reader = opening("writer"), opening("reader")
    writer.add_documents([report(n) for n in range(50)])
    assert reader.invoke("report 7")[0].metadata["name"] == "7 lamp"
    assert len(set(records)) == 50, "it knew nothing"
    reader.close()
    writer.add_documents([report(7, "xylophone"), report("new", "zither")])
    writer.delete(ids=["8"])
    for _ in range(2):
        reader = opening("reader")
        records.clear()
        assert reader.invoke("zither")[0].metadata["name"] == "new zither"
        assert len(set(records)) <= 3, "a new process reads what it missed"
        assert reader.invoke("xylophone", filter={"name": "7 xylophone"})
        assert reader.invoke("lamp", filter={"name": "7 lamp"}) == []
        check_children(reader)
    writer.add_documents([report(9, "harpsichord")])
    records.clear()
    assert reader.invoke("harpsichord")[0].metadata["name"] == "9 harpsichord"
    assert len(records) <= 1
    records.clear()
    assert reader.invoke("harpsichord")
    assert records == []
    check_children(reader)
    check_children(writer)


def test_a_log_that_was_cut_off_has_the_index_rebuilt(
    opening: Opening, records: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revisions, "LOG_SIZE", 3)
    writer, reader = opening("writer"), opening("reader")
    writer.add_documents([report(n) for n in range(20)])
    assert reader.invoke("lamp")
    for count, most in ((3, 3), (4, 23)):
        for n in range(count):
            writer.add_documents([report(n, f"word{count}")])
        records.clear()
        assert reader.invoke(f"word{count}")[0].metadata["name"].endswith(f"word{count}")
        assert len(set(records)) <= most
        assert (len(set(records)) == 20) == (count > 3)
        check_children(reader)


def test_two_processes_write_in_turn_and_one_of_them_dies(
    opening: Opening, records: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = opening("first"), opening("second")
    first.add_documents([report(n) for n in range(20)])
    assert first.invoke("lamp")
    assert second.invoke("lamp")
    for n in range(3):
        for retriever in (first, second):
            retriever.add_documents([report(n, f"cello{n}"), report(f"{n} more", "viola")])
            retriever.delete(ids=[f"{n} more"])
    with monkeypatch.context() as patch:
        patch.setattr(Collection, "upsert", None)
        with pytest.raises(TypeError):
            first.add_documents([report(5, "oboe")])
    records.clear()
    assert second.invoke("cello2")[0].metadata["name"] == "2 cello2"
    second.add_documents([report(5, "oboe")])
    for retriever in (first, second):
        assert retriever.invoke("oboe")[0].metadata["name"] == "5 oboe"
    assert len(set(records)) <= 7, "the log names them"
    for retriever in (first, second):
        check_children(retriever)


def test_another_docstore_is_not_taken_for_the_one_of_the_file(tmp_path: Path) -> None:
    for name in ("one", "other"):
        with parent_document_retriever(
            path=tmp_path / "keywords",
            client=chromadb.EphemeralClient(),
            collection_name=f"{name}-{uuid.uuid4().hex}",
            docstore=SQLiteStore(tmp_path / name),
            parent_splitter=None,
        ) as retriever:
            retriever.add_documents([report(name, "lute")])
            assert retriever.invoke("lute")[0].metadata["name"] == f"{name} lute"
            check_children(retriever)
