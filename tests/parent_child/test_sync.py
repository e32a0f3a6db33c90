"""Keeping a parent-child index equal to its documents: sync, verify, repair, in both front ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_splitters.errors import InputError
from rag_splitters.parent_child.records import record_key
from rag_splitters.parent_child.stores.keyvalue import SQLiteStore
from tests.support.front_ends import FrontEnd, Page, every_front_end, sentence
from tests.support.stores import stored

PAGES: list[Page] = [
    (f"p{n}", " ".join(sentence(10 * n + m) for m in range(9)), {"site": "ab"[n % 2], "n": n})
    for n in range(6)
]


def state(front: FrontEnd, retriever: Any) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Every row of both stores, but for the index's own."""
    return stored(front.collection(retriever), rows_store(retriever))


def rows_store(retriever: Any) -> SQLiteStore:
    """The key-value store in a folder, under either front end."""
    store = getattr(retriever.docstore, "rows", retriever.docstore)
    assert isinstance(store, SQLiteStore)
    return store


@every_front_end
def test_sync_makes_the_index_that_a_new_one_would_be(front: FrontEnd, tmp_path: Path) -> None:
    retriever = front.build(PAGES, path=tmp_path / "synced", search_type="hybrid")
    changed: Page = ("p2", PAGES[2][1] + " And more.", {"site": "a"})  # with a key less
    fresh: Page = ("new", "Zebras by amber fjord.", {"site": "b", "n": 9})
    wanted = [PAGES[0], changed, PAGES[5], fresh]
    done = front.do(retriever, "sync", front.documents(wanted))
    assert (done.added, done.changed, done.unchanged) == (["new"], ["p2"], ["p0", "p5"])
    assert sorted(done.deleted) == ["p1", "p3", "p4"]
    other = front.build(wanted, path=tmp_path / "new", search_type="hybrid")
    assert state(front, retriever) == state(front, other)
    again = front.do(retriever, "sync", iter(front.documents(wanted)))
    assert (again.added, again.changed, again.deleted) == ([], [], [])
    for question in ("zebras", "n33", "n51"):
        assert front.find(retriever, question) == front.find(other, question)
    assert front.do(retriever, "sync", []).deleted != []
    assert state(front, retriever) == ({}, {})
    for each in (retriever, other):
        each.close()


@every_front_end
def test_sync_leaves_what_is_outside_of_its_scope(front: FrontEnd) -> None:
    retriever = front.build(PAGES)
    scope = {"site": "a"}
    assert front.do(retriever, "list_ids", scope=scope) == ["p0", "p2", "p4"]
    done = front.do(retriever, "sync", front.documents([PAGES[0]]), scope=scope)
    assert sorted(done.deleted) == ["p2", "p4"]
    left = {r.metadata["n"] for r in front.find(front.varied(retriever, k=50), "amber")}
    assert left == {0, 1, 3, 5}
    with pytest.raises(ValueError, match=r"'p1' is outside of scope=\{'site': 'a'\}"):
        front.do(retriever, "sync", front.documents([PAGES[1]]), scope=scope)
    assert front.do(retriever, "sync", [], scope={"site": "c"}).deleted == []
    assert front.do(retriever, "sync", [], scope={"n": 3, "site": "b"}).deleted == ["p3"]


@every_front_end
def test_sync_counts_equal_documents_as_one(front: FrontEnd) -> None:
    retriever = front.build([PAGES[0], ("gone", "Gone.", {})])
    copies = [PAGES[1]] * 600  # more than are written at once
    done = front.do(retriever, "sync", front.documents([*PAGES[:2], *copies]))
    assert (done.added, done.unchanged, done.deleted) == (["p1"], ["p0"], ["gone"])
    assert (done.changed, front.do(retriever, "list_ids")) == ([], ["p0", "p1"])


@every_front_end
@pytest.mark.parametrize("method", ["add_documents", "sync"])
@pytest.mark.parametrize(
    "pages",
    [
        [("v", "Version 0.", {}), ("v", "Version 1.", {})],
        [("v", "Version 0.", {"page": 0}), ("v", "Version 0.", {"page": 1})],
    ],
    ids=["text", "metadata"],
)
def test_different_documents_with_one_id_are_refused_before_anything_is_written(
    front: FrontEnd, method: str, pages: list[Page]
) -> None:
    retriever = front.build(PAGES)
    before = [(r.text, r.metadata) for r in front.find(front.varied(retriever, k=50), "amber")]
    others: list[Page] = [(f"q{n}", sentence(n), {}) for n in range(600)]
    message = r"documents\[1\] and documents\[601\] are different, .* id 'v', .* such as 'v#1',"
    with pytest.raises(InputError, match=message):
        front.do(retriever, method, front.documents([others[0], pages[0], *others[1:], pages[1]]))
    assert sorted(front.do(retriever, "list_ids")) == sorted(name for name, _, _ in PAGES)
    with pytest.raises(InputError, match=r"documents\[0\] and documents\[1\]"):
        front.do(retriever, method, iter(front.documents(pages)))
    after = [(r.text, r.metadata) for r in front.find(front.varied(retriever, k=50), "amber")]
    assert after == before
    assert front.do(retriever, "verify").is_sound


@every_front_end
def test_one_id_for_different_documents_is_refused_where_ids_are_passed(front: FrontEnd) -> None:
    retriever = front.build()
    with pytest.raises(InputError, match=r"have the same id 'report\.pdf'"):
        front.do(retriever, "add_documents", front.documents(PAGES[:2]), ids=["report.pdf"] * 2)
    assert front.do(retriever, "list_ids") == []


def lose_children(front: FrontEnd, retriever: Any) -> dict[str, list[str]]:
    rows = front.collection(retriever).get(where={"_source_id": "p1"})["ids"]
    front.collection(retriever).delete(ids=rows[:2])
    return {"without_children": ["p1"]}


def lose_a_parent(front: FrontEnd, retriever: Any) -> dict[str, list[str]]:
    (row, *_) = front.collection(retriever).get(where={"_source_id": "p3"})["metadatas"]
    rows_store(retriever).mdelete([row["parent_id"]])
    return {"without_parents": ["p3"]}


def lose_a_record(front: FrontEnd, retriever: Any) -> dict[str, list[str]]:
    store = rows_store(retriever)
    keys = list(store.yield_keys("source/"))
    rows = zip(keys, store.mget(keys), strict=True)
    (key, row), *_ = [pair for pair in rows if pair[1]["id"] == "p5"]
    store.mdelete([key])
    facts = row["metadata"]
    return {"orphans": sorted(facts["children"]), "stray_parents": sorted(facts["parents"])}


def interrupt(front: FrontEnd, retriever: Any) -> dict[str, list[str]]:
    store = rows_store(retriever)
    for key in store.yield_keys("source/"):
        (row,) = store.mget([key])
        if row["id"] in ("p0", "p4"):
            row["metadata"] |= {"is_whole": False} if row["id"] == "p0" else {"digest": ""}
            store.mset([(key, row)])
    return {"unfinished": ["p0", "p4"]}


def lose_the_keywords(front: FrontEnd, retriever: Any) -> dict[str, Any]:
    keywords = retriever.shared.keywords
    keywords.update({record_key("p0"): ()}, keywords.revision)
    return {"keywords_in_step": False}


DAMAGES: list[Callable[[FrontEnd, Any], dict[str, Any]]] = [
    lose_children,
    lose_a_parent,
    lose_a_record,
    interrupt,
    lose_the_keywords,
]


@every_front_end
def test_verify_tells_and_repairs_every_damage(front: FrontEnd, tmp_path: Path) -> None:
    retriever = front.build(PAGES, path=tmp_path, search_type="hybrid")
    put_foreign_rows(front, retriever)
    sound = front.do(retriever, "verify")
    assert sound.is_sound
    assert (sound.documents, sound.orphans) == (6, [])
    wanted = state(front, retriever)
    found = front.find(retriever, "amber n33")
    for damages in (*([damage] for damage in DAMAGES), DAMAGES):
        told: dict[str, Any] = {}
        for damage in damages:
            told |= damage(front, retriever)
        for repair in (False, True):
            verdict = front.do(retriever, "verify", repair=repair)
            assert not verdict.is_sound
            for name, value in told.items():
                seen = getattr(verdict, name)
                assert (sorted(seen) if isinstance(seen, list) else seen) == value, name
        assert list(verdict.failed) == (["p3"] if lose_a_parent in damages else [])
        assert front.do(retriever, "verify").documents_to_repair == list(verdict.failed)
        lost = {"p3": lose_a_parent, "p4": interrupt, "p5": lose_a_record}
        again = [page for page in PAGES if lost.get(page[0]) in damages]
        front.do(retriever, "add_documents", front.documents(again))
        assert front.do(retriever, "verify").is_sound
        assert state(front, retriever) == wanted
        assert front.find(retriever, "amber n33") == found
    assert foreign_rows(front, retriever) == 4
    retriever.close()


@every_front_end
def test_repair_removes_what_arrives_from_a_dead_writer_meanwhile(
    front: FrontEnd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = front.build(PAGES, path=tmp_path)
    interrupt(front, retriever)
    collection = front.collection(retriever)
    kind, late = type(collection), list[str]()
    delete = kind.delete

    def delete_before_the_last_request_arrives(self: Any, ids: list[str], **kwargs: Any) -> Any:
        row = self.get(ids=ids[:1], include=["embeddings", "metadatas", "documents"])
        deleted = delete(self, ids=ids, **kwargs)
        if not late:
            late.extend(row["ids"])
            self.upsert(**{key: row[key] for key in ("ids", *row["included"])})
        return deleted

    monkeypatch.setattr(kind, "delete", delete_before_the_last_request_arrives)
    front.do(retriever, "verify", repair=True)
    assert late
    assert not collection.get(ids=late)["ids"]
    assert front.do(retriever, "verify").is_sound
    retriever.close()


FOREIGN = "0b6ef1c4-6f57-5c0b-8a5c-0d5f3ea5e0aa"  # a UUID version 5, as ours are


def put_foreign_rows(front: FrontEnd, retriever: Any) -> None:
    """Rows of another program in the same collection and the same docstore."""
    size = len(front.collection(retriever).peek(1)["embeddings"][0])
    front.collection(retriever).add(
        ids=["foreign", FOREIGN],
        embeddings=[[1.0] + [0.0] * (size - 1), [0.5] * size],
        documents=["amber n33 " * 4, "b"],
        metadatas=[{"theirs": 1}, {"theirs": 2}],
    )
    row = {"text": "not ours", "metadata": {"theirs": 1}, "id": None}
    rows_store(retriever).mset([("theirs", row), (FOREIGN, row)])


def foreign_rows(front: FrontEnd, retriever: Any) -> int:
    stored = rows_store(retriever).mget(["theirs", FOREIGN])
    return len(front.collection(retriever).get(ids=["foreign", FOREIGN])["ids"]) + sum(
        map(bool, stored)
    )


@every_front_end
def test_rows_of_other_programs_are_neither_found_nor_touched(
    front: FrontEnd, tmp_path: Path
) -> None:
    def model(texts: list[str]) -> list[list[float]]:
        return [[1.0, len(text) / 100] for text in texts]

    retriever = front.build(PAGES, path=tmp_path, embeddings=model, model_name="m", k=2)
    put_foreign_rows(front, retriever)
    many = [f"f{n}" for n in range(300)]
    front.collection(retriever).add(
        ids=many, embeddings=[[1.0, 0.06]] * 300, documents=many, metadatas=[{"x": 1}] * 300
    )
    for kind in ("similarity", "mmr", "hybrid"):
        results = front.find(front.varied(retriever, search_type=kind), "amber")
        assert len(results) == 2, "although 300 rows of another program are nearer"
    front.do(retriever, "sync", front.documents(PAGES[:1]))
    assert front.do(retriever, "verify", repair=True).is_sound
    front.do(retriever, "sync", [])
    assert foreign_rows(front, retriever) == 4
    assert front.collection(retriever).count() == 302
    with pytest.raises(ValueError, match=r"none of the .* children .* id_key='parent_id'"):
        front.find(retriever, "amber")
    retriever.close()


def test_a_folder_goes_from_one_front_end_to_the_other(tmp_path: Path) -> None:
    fronts = [FrontEnd("langchain"), FrontEnd("llama_index", asynchronous=True)] * 2
    options = {"path": tmp_path / "new" / "folder", "search_type": "hybrid"}
    options |= {"smoothing": 0.6, "headings": True}
    deep = [
        (name, text, {**m, "deep": {"a": [n, None]}, "no": None})
        for n, (name, text, m) in enumerate(PAGES)
    ]
    fronts[0].build(deep, **options).close()
    before = found = None
    for front in fronts:
        embedded: list[str] = []
        retriever = front.build(**options)
        held = state(front, retriever)
        assert before in (None, held)
        retriever.shared.keywords.update = lambda *args, told=embedded: told.append("keywords")
        assert front.do(retriever, "add_documents", front.documents(deep)) == [d[0] for d in deep]
        assert front.do(retriever, "sync", front.documents(deep)).unchanged == [d[0] for d in deep]
        assert state(front, retriever) == held, "nothing is written"
        assert embedded == []
        results = front.find(retriever, "amber n33")
        told = [
            (r.id, r.text, r.start, r.end, r.score, r.matches, r.metadata["deep"]) for r in results
        ]
        assert found in (None, told)
        before, found = held, told
        documents = front.do(retriever, "get", ["p1", results[0].id])
        assert len(documents) == 2
        retriever.close()
