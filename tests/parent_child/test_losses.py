"""Losses and faults that must be noticed, and say what to do."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import stat
from collections import namedtuple
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import chromadb
import pytest
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

from rag_splitters.langchain import (
    DocumentStore,
    ParentDocumentRetriever,
    RecursiveTextSplitter,
    SQLiteStore,
    parent_document_retriever,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child import errors, losses
from rag_splitters.parent_child.errors import (
    DamagedRowsError,
    MissingChildrenError,
    MissingParentsError,
    RefusedDocumentsError,
    StoreError,
)
from rag_splitters.parent_child.opening import Shared, own_folder
from rag_splitters.parent_child.records import RECORD_PREFIX, record_key
from rag_splitters.parent_child.stores.keyvalue import KeyValueDocstore
from tests.support.counting import record_calls
from tests.support.front_ends import FrontEnd, Page, every_front_end, in_turn, sentence
from tests.support.processes import run_python

PAGES: list[Page] = [
    (f"p{n}", " ".join(sentence(9 * n + m) for m in range(9)), {"n": n}) for n in range(6)
]
SEARCHES = ("similarity", "hybrid")


def shared(place: tuple[Any, str, Path], **options: Any) -> ParentDocumentRetriever:
    client, name, path = place
    return parent_document_retriever(
        client=client,
        collection_name=name,
        docstore=SQLiteStore(path),
        embeddings=HashingEmbeddings(dimensions=32),
        child_splitter=RecursiveTextSplitter(chunk_size=60),
        parent_splitter=RecursiveTextSplitter(chunk_size=200),
        **{"k": 2, **options},
    )


@pytest.fixture
def place(tmp_path: Path, collection_name: str) -> tuple[Any, str, Path]:
    return chromadb.EphemeralClient(), collection_name, tmp_path / "parents.sqlite"


def documents() -> list[Document]:
    return [
        Document(page_content=text, metadata=metadata, id=name) for name, text, metadata in PAGES
    ]


@pytest.mark.parametrize("search_type", SEARCHES)
@pytest.mark.parametrize("options", [{}, {"search_kwargs": {"filter": {"n": 3}}}])
def test_query_says_that_the_collection_came_back_empty(
    place: tuple[Any, str, Path], search_type: str, options: dict[str, Any]
) -> None:
    shared(place).add_documents(documents())
    place[0].delete_collection(place[1])
    again = shared(place, search_type=search_type, **options)
    with pytest.raises(MissingChildrenError, match=r"'p\d'.* verify\(repair=True\)"):
        again.invoke(sentence(3))
    assert not again.verify().is_sound
    assert again.add_documents(documents()[:3]) == ["p0", "p1", "p2"]
    again.verify(repair=True)
    assert again.verify().is_sound
    assert again.invoke(sentence(30))


def test_first_hybrid_query_says_that_some_children_are_missing(
    place: tuple[Any, str, Path],
) -> None:
    shared(place).add_documents(documents())
    retriever = shared(place)
    assert len(retriever.invoke(sentence(3))) == 2
    collection = retriever.vectorstore._collection  # type: ignore[attr-defined]
    collection.delete(ids=collection.get(where={"_source_id": "p5"})["ids"])
    retriever.shared.is_checked = retriever.shared.keywords.is_rebuilt = False  # a new process
    with pytest.raises(MissingChildrenError, match="'p5'"):
        retriever.invoke(sentence(3))
    retriever.add_documents(documents())
    assert len(retriever.invoke(sentence(3))) == 2


@pytest.mark.parametrize("search_type", SEARCHES)
def test_first_query_of_a_new_process_says_that_some_children_are_missing(
    place: tuple[Any, str, Path], search_type: str
) -> None:
    shared(place).add_documents(documents())
    retriever = shared(place, search_type=search_type)  # its keyword index is still empty
    collection = retriever.vectorstore._collection  # type: ignore[attr-defined]
    collection.delete(ids=collection.get(where={"_source_id": "p5"})["ids"])
    for _ in range(2):
        with pytest.raises(MissingChildrenError, match="'p5'"):
            retriever.invoke(sentence(3))
    retriever.verify(repair=True)
    assert len(retriever.invoke(sentence(3))) == 2


@pytest.mark.parametrize("parent", [None, "another"])
def test_a_query_bears_children_whose_metadata_another_program_changed(
    place: tuple[Any, str, Path], parent: str | None
) -> None:
    retriever = shared(place)
    retriever.add_documents(documents())
    kinds = ("parents", "passages")
    before = {kind: retriever.invoke(sentence(3), retrieve=kind) for kind in kinds}
    collection = retriever.vectorstore._collection  # type: ignore[attr-defined]
    ids = collection.get(where={"_source_id": "p0"})["ids"]
    collection.update(ids=ids, metadatas=[{"parent_id": parent}] * len(ids))
    for kind in kinds:  # the keyword index knows the parents
        assert retriever.invoke(sentence(3), retrieve=kind) == before[kind]
    for options in ({"retrieve": "children"}, {"search_type": "similarity"}):
        numbers = [each.metadata["n"] for each in retriever.invoke(sentence(3), **options)]
        assert numbers
        assert 0 not in numbers


@pytest.mark.parametrize("value", [b"\xff", b'{"text": "", "metadata": {}, "id": "p0"}'])
def test_damaged_records_do_not_fail_a_query_that_does_not_need_them(
    place: tuple[Any, str, Path], value: bytes
) -> None:
    """What is no JSON, and JSON that is no record."""
    shared(place).add_documents(documents())
    rows = SQLiteStore(place[2])
    keys = list(rows.yield_keys(prefix=RECORD_PREFIX))
    rows._change({}, {key.encode(): value for key in keys}, [])
    for retrieve in ("parents", "children", "passages"):
        options = {"search_type": "similarity", "retrieve": retrieve}
        assert len(shared(place, **options).invoke(sentence(3))) == 2
        assert len(shared(place, **options, k=50).invoke(sentence(3))) > 2
    with pytest.raises(DamagedRowsError, match=r"verify\(repair=True\)"):
        shared(place).list_ids()


def test_a_sample_of_many_documents_needs_not_all_their_keys(
    place: tuple[Any, str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = shared(place, search_type="similarity")
    retriever.add_documents(documents())
    monkeypatch.setattr(losses, "_SAMPLE", 1)
    monkeypatch.setattr("random.randrange", lambda stop: int(record_key("p5")[7:9], 16))
    asked = record_calls(monkeypatch, KeyValueDocstore, "list_keys")
    assert len(retriever.invoke(sentence(3))) == 2
    assert [prefix for _, prefix in asked] == [record_key("p5")[:9]]


@pytest.mark.parametrize("search_type", SEARCHES)
def test_full_answer_is_no_reason_to_look(
    place: tuple[Any, str, Path], search_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = shared(place, search_type=search_type)
    retriever.add_documents(documents())
    retriever.invoke(sentence(3))
    looks: list[object] = []
    monkeypatch.setattr(losses, "_check", lambda *args: looks.append(args))
    assert len(retriever.invoke(sentence(3))) == 2
    assert looks == []


class WithoutLookup(InMemoryVectorStore):
    """A vector store that returns nothing by its id, as some of LangChain's."""

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        raise NotImplementedError


def test_a_lost_parent_is_named_also_if_children_cannot_be_read_by_their_ids() -> None:
    embeddings: Any = HashingEmbeddings()
    options: dict[str, Any] = {"vectorstore": WithoutLookup(embeddings), "parent_splitter": None}
    retriever = parent_document_retriever(documents(), **options, k=9)
    assert len(retriever.invoke("anything")) == 6
    parents = [k for k in retriever.docstore.yield_keys() if not k.startswith(("source", "state"))]
    (stale,) = retriever.docstore.mget(parents[:1])
    retriever.docstore.mdelete(parents[:1])
    with pytest.raises(MissingParentsError, match=f"lost parents of .*'{stale.id}'"):
        retriever.invoke("anything")


def test_hybrid_search_says_that_it_needs_children_by_their_ids() -> None:
    embeddings: Any = HashingEmbeddings()
    stores: dict[str, Any] = {
        "vectorstore": WithoutLookup(embeddings),
        "docstore": InMemoryStore(),
        "search_type": "hybrid",
    }
    parent_document_retriever(documents(), **stores)
    with pytest.raises(ValueError, match="search_type='hybrid' needs a vector store that returns"):
        parent_document_retriever(**stores).invoke("anything")


def test_collection_deleted_under_an_open_retriever_is_named(
    place: tuple[Any, str, Path],
) -> None:
    retriever = shared(place, search_type="similarity")
    retriever.add_documents(documents())
    place[0].delete_collection(place[1])
    with pytest.raises(RuntimeError, match="open the retriever again"):
        retriever.invoke(sentence(3))


def change_a_parent(rows: Any, parent: str, record: str) -> None:
    (row,) = rows.mget([parent])
    rows.mset([(parent, {**row, "text": row["text"].replace("e", "3")})])


def change_metadata_of_a_parent(rows: Any, parent: str, record: str) -> None:
    (row,) = rows.mget([parent])
    rows.mset([(parent, {**row, "metadata": {**row["metadata"], "n": 99}})])


def scramble_a_parent(rows: Any, parent: str, record: str) -> None:
    rows._change({}, {parent.encode(): b'{"text": "\xff\x00'}, [])


def change_a_record(rows: Any, parent: str, record: str) -> None:
    (row,) = rows.mget([record])
    rows.mset([(record, {**row, "text": row["text"] + "3"})])


LOSSES = (change_a_parent, scramble_a_parent, change_a_record)
"""What takes a part of the document's text away, which is stored once."""


@pytest.mark.slow
@in_turn("damage", [*LOSSES, change_metadata_of_a_parent])
def test_verify_reads_every_value(
    front: FrontEnd, damage: Callable[[Any, str, str], None], tmp_path: Path
) -> None:
    retriever = front.build(PAGES, path=tmp_path)
    rows = getattr(retriever.docstore, "rows", retriever.docstore)
    (child, *_) = front.collection(retriever).get(where={"_source_id": "p2"})["metadatas"]
    keys = {row["id"]: key for key in rows.yield_keys("source/") for row in rows.mget([key])}
    damage(rows, child["parent_id"], keys["p2"])
    report = front.do(retriever, "verify")
    assert not report.is_sound
    assert report.damaged == ["p2"]
    repaired = front.do(retriever, "verify", repair=True)
    if damage in LOSSES:
        assert list(repaired.failed) == ["p2"]
    if damage is not change_metadata_of_a_parent:
        front.do(retriever, "add_documents", front.documents(PAGES))
    assert front.do(retriever, "verify").is_sound
    fresh = front.build(PAGES)
    for question in (sentence(20), sentence(25)):
        found, expected = front.find(retriever, question), front.find(fresh, question)
        assert [each.text for each in found] == [each.text for each in expected]
    retriever.close()


def test_new_index_and_one_that_another_process_wrote_are_sound(
    place: tuple[Any, str, Path],
) -> None:
    retriever, other = shared(place), shared(place)
    assert retriever.verify().is_sound
    retriever.add_documents(documents()[:2])
    other.add_documents(documents()[2:])
    assert retriever.verify().is_sound
    retriever.invoke("anything")
    other.delete(["p0"])
    assert retriever.verify().is_sound
    assert other.verify().is_sound


@every_front_end
def test_a_single_id_is_refused(front: FrontEnd) -> None:
    retriever = front.build([("a", "Amber.", {}), ("b", "Bronze.", {})])
    for method in ("delete", "get"):
        with pytest.raises(TypeError, match=r"list of ids, got 'ab': write \['ab'\]"):
            front.do(retriever, method, "ab")
    with pytest.raises(TypeError, match="list of ids"):
        front.do(retriever, "add_documents", front.documents(PAGES[:2]), ids="ab")
    assert front.do(retriever, "verify").documents == 2


def test_question_whose_vector_is_no_number_is_refused() -> None:
    model = HashingEmbeddings(dimensions=32)

    def embed(texts: list[str]) -> Any:
        bad = [[float("nan")] * 32]
        return bad if texts == ["bad"] else model.embed_documents(texts)

    retriever = parent_document_retriever(documents(), embeddings=embed, search_type="similarity")
    with pytest.raises(ValueError, match="answered with a number that is not finite"):
        retriever.invoke("bad")


@pytest.mark.parametrize("k", [1_000_001, 10**18])
def test_absurd_k_is_refused(k: int) -> None:
    retriever = parent_document_retriever(documents())
    with pytest.raises(ValueError, match="k must be at most 1,000,000, got 1,000"):
        retriever.invoke("amber", k=k)


def test_model_of_another_dimension_is_refused(place: tuple[Any, str, Path]) -> None:
    retriever = shared(place, search_type="similarity")
    retriever.add_documents(documents())
    vectorstore: Any = retriever.vectorstore
    vectorstore._embedding_function = HashingEmbeddings(dimensions=16)
    with pytest.raises(ValueError, match=r"does not fit the collection .*Use the\s+model"):
        retriever.invoke("amber")


def test_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    with closing(parent_document_retriever(documents(), path=folder)) as retriever:
        retriever.invoke("amber")
        for path in (folder, folder / "chroma"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
        files = [*folder.glob("[kp]*/*.sqlite")]
        for path in files:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert len(files) == 2


def test_damaged_files_of_chroma_are_named_and_made_anew(tmp_path: Path) -> None:
    with parent_document_retriever(documents(), path=tmp_path) as retriever:
        results = retriever.invoke(sentence(3))
    (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"damaged" * 1000)
    for _ in range(2):  # Chroma itself raises an AttributeError the second time
        with pytest.raises(StoreError, match=r"its files in .*/chroma .*not a database.* delete"):
            parent_document_retriever(path=tmp_path)
    shutil.rmtree(tmp_path / "chroma")
    with parent_document_retriever(path=tmp_path) as retriever:
        assert len(retriever.verify(repair=True).without_children) == len(PAGES)
        assert retriever.verify().is_sound
        assert retriever.invoke(sentence(3)) == results


def test_an_index_stays_in_its_folder_if_the_program_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    with (
        parent_document_retriever(path="index") as in_folder,
        parent_document_retriever(docstore=SQLiteStore("rows.sqlite")) as in_file,
    ):
        monkeypatch.chdir(elsewhere)
        for retriever in (in_folder, in_file):
            assert retriever.add_documents(documents()) == [each.id for each in documents()]
            assert retriever.verify().is_sound
    assert list(elsewhere.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_retriever_is_refused_after_a_fork() -> None:
    """Chroma would hang there."""
    code = """
import os, signal
from langchain_core.documents import Document
from rag_splitters.langchain import parent_document_retriever
from rag_splitters.parent_child import StoreError

retriever = parent_document_retriever([Document("Tea is hot.", id="tea")])
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        retriever.invoke("tea")
    except StoreError as error:
        assert "was opened in another process: open the index again" in str(error)
        os._exit(7)
    os._exit(8)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert len(retriever.invoke("tea")) == 1
"""
    run_python(code)


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    file = tmp_path / "index.db"
    file.touch()
    with pytest.raises(OSError, match=r"index.db is a file: an index needs a folder$"):
        own_folder(file)


def test_lock_of_a_process_that_has_ended_says_which_file_to_delete(tmp_path: Path) -> None:
    release = own_folder(tmp_path)
    mine = json.loads((tmp_path / "owner").read_text())
    other = {**mine, "number": int(run_python("import os; print(os.getpid())"))}
    owners = [json.dumps(each) for each in (other, mine, {**other, "host": "elsewhere"})]
    opening = f"""
from pathlib import Path
from rag_splitters.parent_child import FolderInUseError
from rag_splitters.parent_child.opening import own_folder
for owner in {owners}:
    Path("owner").write_text(owner)
    try:
        own_folder(Path({str(tmp_path)!r}))
    except FolderInUseError as error:
        print(*str(error).split())
"""
    messages = run_python(opening, cwd=tmp_path).splitlines()
    assert f"delete {tmp_path / 'lock'}" in messages[0]
    assert "is open in process" in messages[1]
    assert "on elsewhere" in messages[2]
    release()


def test_children_can_be_removed_after_an_old_docstore_was_restored(
    place: tuple[Any, str, Path],
) -> None:
    client, name, path = place
    backup = path.with_name("backup.sqlite")
    index = shared(place)
    index.add_documents(documents())
    with closing(sqlite3.connect(path)) as rows, closing(sqlite3.connect(backup)) as copy:
        rows.backup(copy)
    for topic in range(9):  # the same children, written in later turns
        changed = [each.model_copy(update={"metadata": {"topic": topic}}) for each in documents()]
        index.add_documents(changed)
    restored = shared((client, name, backup))
    restored.verify(repair=True)
    restored.delete(["p0"])
    restored.add_documents([Document(page_content="Something else.", id="p1")])
    assert restored.verify().is_sound
    assert client.get_collection(name).get(where={"_source_id": "p0"})["ids"] == []


def test_a_request_of_a_dead_writer_that_comes_late_is_not_found(
    place: tuple[Any, str, Path],
) -> None:
    """Chroma may do what a killed writer had asked for after another one has taken over."""
    index = shared(place)
    index.add_documents([Document(page_content="The dead writer's text.", id="p0")])
    collection = place[0].get_collection(place[1])
    late = collection.get(include=["embeddings", "documents", "metadatas"])
    index.add_documents(documents())
    collection.upsert(**{name: late[name] for name in ("ids", *late["included"])})
    for retrieve in ("passages", "parents", "children"):
        results = shared(place, retrieve=retrieve).invoke("The dead writer's text.")
        assert not any("dead" in each.page_content for each in results)
    assert index.verify().orphans == late["ids"]
    index.verify(repair=True)
    assert index.verify().is_sound


def test_a_factory_that_fails_closes_what_it_opened(tmp_path: Path) -> None:
    """Also if documents are refused before there is a retriever to return."""
    for error in (ValueError("no"), RefusedDocumentsError(["no"], None)):
        with pytest.raises(type(error)), Shared(tmp_path, "tea") as opened:
            raise error
        with pytest.raises(StoreError, match="is closed"):
            opened.check_open()


# A full disk

TEA = Document(page_content="Tea is hot. " * 20, id="tea")
LONG = Document(page_content="Rain fell all day. " * 40_000, id="long")


def limit(docstore: object, pages: int) -> None:
    """Let SQLite say that the disk is full when its file has grown to so many pages."""
    assert isinstance(docstore, DocumentStore)
    assert isinstance(docstore.rows, SQLiteStore)
    docstore.rows._database.read(f"PRAGMA max_page_count = {pages}")


@pytest.mark.slow
def test_full_disk_is_explained_and_adding_again_finishes(tmp_path: Path) -> None:
    with parent_document_retriever([TEA], path=tmp_path, search_type="similarity") as retriever:
        limit(retriever.docstore, 50)
        with pytest.raises(OSError, match=r"disk is full.*Free some space.*verify") as caught:
            retriever.add_documents([LONG])
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path))
        assert [each.id for each in retriever.get(["tea"])] == ["tea"]
        limit(retriever.docstore, 1 << 30)
        retriever.add_documents([LONG])
        assert retriever.verify().is_sound


def test_other_errors_on_a_disk_with_little_space_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(errors.shutil, "disk_usage", lambda folder: usage(9, 9, 0))
    message = r"0 bytes are free\): RuntimeError: failed to apply logs"
    with pytest.raises(OSError, match=message), errors.explaining_full_disk(tmp_path):
        raise RuntimeError("failed to apply logs")
    with pytest.raises(ValueError, match="no such key"), errors.explaining_full_disk(tmp_path):
        raise ValueError("no such key")
    with pytest.raises(RuntimeError, match="elsewhere"), errors.explaining_full_disk(None):
        raise RuntimeError("elsewhere")
