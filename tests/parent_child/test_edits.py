"""An edit costs what it changed: embeddings, their requests and writes, counted in every store."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb import Collection
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

from rag_splitters import langchain, llama_index
from rag_splitters.models import Embedder, HashingEmbeddings
from rag_splitters.parent_child.records import cut_parts, join_parts
from rag_splitters.parent_child.stores.keyvalue import KeyValueStore
from tests.parent_child.test_llama_index import ListVectorStore
from tests.parent_child.test_sync import rows_store, state
from tests.support.counting import record_arguments
from tests.support.embedding_doubles import CountingEmbeddings
from tests.support.front_ends import FRONT_ENDS, FrontEnd, Page, every_front_end, in_turn, sentence
from tests.support.stores import check_children, on_server

FACTORY = "parent_document_retriever"
STORES = ("memory", "folder", "redis", "postgres", "chroma server")


def prose(paragraphs: int) -> str:
    """A text under headings, whose sentences and paragraphs are unlike each other."""
    dice = random.Random(5)
    words = [f"word{number}" for number in range(2000)]
    parts: list[str] = []
    for number in range(paragraphs):
        if number % 12 == 0:
            parts.append(f"# Chapter {number // 12}")
        sentences = [
            " ".join(dice.choices(words, k=dice.randint(5, 14))).capitalize() + "."
            for _ in range(dice.randint(3, 5))
        ]
        parts.append(" ".join(sentences))
    return "\n\n".join(parts)


TEXT = prose(178)
MIDDLE = TEXT.index(" ", len(TEXT) // 2)
EDITS = {
    "appended": (TEXT + " One more sentence at the end.", 10),
    "a word changed": (TEXT[:MIDDLE] + " changed" + TEXT[TEXT.index(" ", MIDDLE + 1) :], 20),
    "a word removed": (TEXT[:MIDDLE] + TEXT[TEXT.index(" ", MIDDLE + 1) :], 20),
    "a sentence before": ("A sentence put before it. " + TEXT, 20),
    "the first one removed": (TEXT[TEXT.index("\n\n") + 2 :], 40),  # loses a chapter's heading
    "the last one removed": (TEXT[: TEXT.rindex(". ") + 1], 10),
}


def build(front: FrontEnd, model: CountingEmbeddings, **options: Any) -> Any:
    """A retriever of default splitters and, but for the options, default settings."""
    if front.framework == "langchain":
        return langchain.parent_document_retriever(embeddings=model, **options)
    return llama_index.parent_document_retriever(embed_model=model, **options)


@pytest.fixture
def places(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Where an index is: the arguments of a factory, by the framework."""
    name = store
    if name == "memory":
        yield {"langchain": {}, "llama_index": {}}
    elif name == "folder":
        yield {"langchain": {"path": tmp_path}, "llama_index": {"path": tmp_path}}
    elif name == "chroma server":
        host, port = request.getfixturevalue("chroma_server")
        options = {
            "client": chromadb.HttpClient(host=host, port=port),
            "collection_name": request.getfixturevalue("collection_name"),
        }
        yield {
            "langchain": {**options, "docstore": InMemoryStore()},
            "llama_index": {
                **options, "docstore": llama_index.SQLiteStore(tmp_path / "rows.sqlite"),
            },
        }  # fmt: skip
    else:
        url = request.getfixturevalue(f"{name}_url")
        kinds: dict[str, Any] = {"redis": langchain.RedisStore, "postgres": langchain.PostgresStore}
        opened = [kinds[name](url) for _ in range(2)]
        yield dict(
            zip(("langchain", "llama_index"), [{"docstore": each} for each in opened], strict=True)
        )
        for each in opened:
            each.close()


@pytest.mark.slow
@pytest.mark.parametrize("store", [*STORES[:2], *on_server(*STORES[2:])])
def test_an_edit_embeds_what_it_changed(store: str, places: dict[str, Any]) -> None:
    """The front ends take turns: one core counts for both."""
    front = FRONT_ENDS[0 if STORES.index(store) % 2 else 3]
    model = CountingEmbeddings()
    with closing(build(front, model, **places[front.framework])) as retriever:

        def add(text: str, metadata: dict[str, Any]) -> int:
            front.do(retriever, "add_documents", front.documents([("d", text, metadata)]))
            return model.count()

        children = add(TEXT, {"page": 1})
        assert children == front.collection(retriever).count()
        assert children > 200
        for text, limit in EDITS.values():
            assert 0 <= add(text, {"page": 1}) <= limit
            assert add(TEXT, {"page": 1}) <= limit
        assert add(TEXT, {"page": 2, "tags": ["a"]}) == 0
        assert front.do(retriever, "verify").is_sound


@pytest.mark.slow
@in_turn("options", [{}, {"smoothing": 0.0}, {"smoothing": 1.0, "headings": False}, {}])
def test_edited_again_and_again_it_is_what_a_new_index_would_be(
    front: FrontEnd, options: dict[str, Any], tmp_path: Path
) -> None:
    dice = random.Random(8)
    model = CountingEmbeddings()
    parts = prose(24).split("\n\n")
    with closing(build(front, model, path=tmp_path / "edited", **options)) as retriever:
        for step in range(30):
            kind, place = dice.choice("adcr"), dice.randrange(len(parts))
            if kind == "r":  # their children have equal neighbours, too
                parts[place:place] = [f"The same notice {step % 2} again. " * 10] * 8
            elif kind == "a":
                parts.insert(place, f"New{step} words{step} stand here. And repeated words.")
            elif kind == "d":
                del parts[place]
            else:
                parts[place] += f" Then{step} it changed."
            metadata = {"step": step // 3} | ({"odd": True} if step % 2 else {})
            documents = [("d", "\n\n".join(parts), metadata), ("other", "Other words.", {})]
            front.do(retriever, "add_documents", front.documents(documents))
        assert front.do(retriever, "verify").is_sound
        with closing(build(front, model, path=tmp_path / "new", **options)) as other:
            front.do(other, "add_documents", front.documents(documents))
            (children, rows), (expected, new) = (state(front, each) for each in (retriever, other))
            assert rows == new
            check_children(children, expected)
            for question in ("repeated words", "then29 new3", "word7 word99"):
                found, wanted = (front.find(each, question) for each in (retriever, other))
                assert [each.id for each in found] == [each.id for each in wanted]
                assert [r.score for r in found] == pytest.approx(
                    [r.score for r in wanted], abs=1e-4
                )


@every_front_end
def test_what_did_not_change_is_not_written(
    front: FrontEnd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chroma = record_arguments(monkeypatch, Collection, "upsert", "update", "delete")
    writes = record_arguments(monkeypatch, KeyValueStore, "write")["write"]
    updated: list[int] = []
    model = CountingEmbeddings()
    with closing(build(front, model, path=tmp_path)) as retriever:
        update = retriever.shared.keywords.update

        def update_keywords(documents: Any, *arguments: Any, **options: Any) -> Any:
            updated.append(sum(map(len, documents.values())))
            return update(documents, *arguments, **options)

        monkeypatch.setattr(retriever.shared.keywords, "update", update_keywords)

        def add(text: str, metadata: dict[str, Any]) -> dict[str, int]:
            for each in (*chroma.values(), writes, updated):
                each.clear()
            front.do(retriever, "add_documents", front.documents([("d", text, metadata)]))
            keys = [key for rows in writes for key, _ in rows]
            parents = [key for key in keys if not key.startswith(("source/", "state/"))]
            counts = {name: sum(len(c["ids"]) for c in calls) for name, calls in chroma.items()}
            return counts | {"write": len(parents)}

        whole = add(TEXT, {"page": 1, "deep": {"a": 1}})
        assert whole["write"] > 20
        appended = add(EDITS["appended"][0], {"page": 1, "deep": {"a": 1}})
        assert appended["upsert"] <= 8
        assert appended["write"] <= 2
        assert appended["update"] == 0
        assert appended["delete"] <= 8, "the children of the last parent"
        add(TEXT, {"page": 1, "deep": {"a": 1}})
        metadata = add(TEXT, {"page": 2, "deep": {"a": 1}})
        assert metadata == {
            "upsert": 0, "update": whole["upsert"], "delete": 0, "write": whole["write"],
        }  # fmt: skip
        assert sum(updated) == whole["upsert"], "filters find the new page"
        nested = add(TEXT, {"page": 2, "deep": {"a": 2}})
        assert nested == {**metadata, "update": 0}, "children inherit what cannot be filtered on"
        assert front.do(retriever, "verify").is_sound


@every_front_end
def test_vectors_of_another_model_or_setting_are_not_kept(front: FrontEnd) -> None:
    model = CountingEmbeddings()
    with closing(build(front, model)) as retriever:
        documents = front.documents([("d", prose(10), {})])
        front.do(retriever, "add_documents", documents)
        count = model.count()
        varied = front.varied(retriever, smoothing=0.0)
        front.do(varied, "add_documents", documents)
        assert model.count() == count
        front.do(varied, "add_documents", documents)
        assert model.count() == 0
        collection = front.collection(retriever)
        collection.delete(ids=collection.get()["ids"][:1])
        front.do(varied, "add_documents", front.documents([("d", prose(11), {})]))
        assert 0 < model.count() < collection.count()
        assert front.do(retriever, "verify").is_sound, "the one that was missing is embedded again"


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_other_vector_stores_embed_what_changed_or_moved(framework: str) -> None:
    front, model = FrontEnd(framework), CountingEmbeddings()
    store: Any = {
        "langchain": {"vectorstore": InMemoryVectorStore(Embedder(model))},  # type: ignore[arg-type]
        "llama_index": {"vector_store": ListVectorStore(kept={}), "embed_model": model},
    }[framework]
    retriever = getattr(langchain if framework == "langchain" else llama_index, FACTORY)(**store)

    def add(text: str, metadata: dict[str, Any]) -> int:
        retriever.add_documents(front.documents([("d", text, metadata)]))
        return model.count()

    children = add(TEXT, {"page": 1})
    assert add(EDITS["appended"][0], {"page": 1}) <= EDITS["appended"][1]
    assert add(EDITS["a word removed"][0], {"page": 1}) < 0.6 * children
    assert add(EDITS["a word removed"][0], {"page": 2}) == children
    assert retriever.verify().is_sound


# Each text is stored once


@pytest.mark.slow
@given(st.text(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60))))
def test_parts_that_are_cut_out_of_a_text_give_it_back(
    text: str, bounds: list[tuple[int, int]]
) -> None:
    size = len(text)
    spans = [(min(*each, size), min(max(each), size)) for each in bounds]
    rest = cut_parts(text, spans)
    assert join_parts(rest, [(start, text[start:end]) for start, end in spans]) == text


@pytest.mark.slow
@every_front_end
@pytest.mark.parametrize("parent_size", [300, None])
def test_the_docstore_holds_each_text_once(
    front: FrontEnd, parent_size: int | None, tmp_path: Path
) -> None:
    text, new = prose(30), EDITS["a word changed"][0][:3000]
    options = {"path": tmp_path, "parent_size": parent_size}
    with closing(front.build([("d", text, {}), ("e", new, {})], **options)) as retriever:
        for version in (text, "At the beginning. " + text, text[:2000]):
            front.do(retriever, "add_documents", front.documents([("d", version, {})]))
            store = rows_store(retriever)
            rows = store.mget([key for key in store.yield_keys() if "state/" not in key])
            stored = sum(len("".join(row["text"].split())) for row in rows)
            assert stored == len("".join((version + new).split()))
            (document,) = front.do(retriever, "get", ["d"])
            assert (getattr(document, "page_content", None) or document.text) == version


@pytest.mark.parametrize("headings", [True, False])
@every_front_end
def test_a_new_title_is_embedded_with_every_child(front: FrontEnd, headings: bool) -> None:
    """As the documentation says; without headings, it is metadata like any other."""
    model = CountingEmbeddings()
    with closing(build(front, model, headings=headings)) as retriever:

        def add(title: str) -> int:
            page = ("d", prose(12), {"title": title})
            front.do(retriever, "add_documents", front.documents([page]))
            return model.count()

        children = add("Tea")
        assert children > 10
        assert add("Tea") == 0
        assert add("Coffee") == (children if headings else 0)
        assert front.do(retriever, "verify").is_sound


# Requests of one addition

MANY: list[Page] = [
    (f"p{n}", " ".join(sentence(n * 50 + m) for m in range(50)), {}) for n in range(60)
]


class Meeting(Embeddings):
    """A model behind an API whose requests wait until several are under way, and are counted."""

    chunk_size = 500
    max_retries = 2

    def __init__(self, together: int) -> None:
        self._model = HashingEmbeddings(dimensions=16)
        self._barrier = threading.Barrier(together)
        self._lock = threading.Lock()
        self.under_way = self.most = self.requests = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        assert len(texts) <= self.chunk_size
        with self._lock:
            self.requests += 1
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        if self.requests <= self._barrier.parties:
            self._barrier.wait(timeout=60)
        with self._lock:
            self.under_way -= 1
        return self._model.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self._model.embed_query(text)


@pytest.mark.slow
@every_front_end
def test_requests_go_side_by_side_and_bounded(front: FrontEnd) -> None:
    model = Meeting(together=4)
    retriever = front.build(MANY, embeddings=model)
    assert model.most == 4
    assert model.requests == -(-front.collection(retriever).count() // 500) >= 6


@every_front_end
def test_a_function_gets_one_call_at_a_time(front: FrontEnd) -> None:
    """It need not be thread-safe."""
    under_way: list[int] = []
    calls: list[int] = []

    def embed(texts: list[str]) -> list[list[float]]:
        under_way.append(len(texts))
        calls.append(len(under_way))
        time.sleep(0.05)  # another thread would begin
        under_way.pop()
        return HashingEmbeddings(dimensions=16).embed_documents(texts)

    front.build(MANY[:12], embeddings=Embedder(embed, max_texts=100))
    assert len(calls) > 4
    assert set(calls) == {1}
