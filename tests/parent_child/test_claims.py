"""Docstores without locks: one writing process at a time, and rows that are half written."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.storage import LocalFileStore, create_kv_docstore
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore, InMemoryStore

from rag_splitters.calls import run
from rag_splitters.langchain import (
    ParentDocumentRetriever,
    adapters,
    parent_document_retriever,
)
from rag_splitters.parent_child import (
    DamagedRowsError,
    DocstoreInUseError,
    LockLostError,
    writing,
)
from rag_splitters.parent_child.records import record_key
from tests.support.front_ends import FrontEnd, every_front_end
from tests.support.processes import running

OTHER = """
import sys, time
from langchain_classic.storage import LocalFileStore, create_kv_docstore
from langchain_core.documents import Document
from rag_splitters.langchain import parent_document_retriever

from rag_splitters.parent_child.stores.chroma import ChromaChildren

def write(self, children, turn):
    print("writing", flush=True)
    time.sleep(60)

ChromaChildren.write = write
parent_document_retriever(
    [Document(page_content="Tea is hot.", id="tea")],
    docstore=create_kv_docstore(LocalFileStore(sys.argv[1])),
    search_type="similarity",
)
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is adding a document."""
    with running(OTHER, str(tmp_path), says="writing") as process:
        yield process


@pytest.mark.slow
def test_second_writer_is_refused_until_the_first_has_ended(
    other: subprocess.Popen[str], tmp_path: Path
) -> None:
    docstore = create_kv_docstore(LocalFileStore(str(tmp_path)))
    rain = Document(page_content="Rain fell.", id="rain")
    with parent_document_retriever(docstore=docstore) as retriever:
        message = rf"process {other.pid} on .* is writing to this docstore, .* PostgresStore, "
        for write in (
            lambda: retriever.add_documents([rain]),
            lambda: retriever.delete(["tea"]),
            lambda: retriever.verify(repair=True),
        ):
            with pytest.raises(DocstoreInUseError, match=message):
                write()
        assert retriever.get(["rain"]) == []
        other.send_signal(signal.SIGKILL)
        other.wait()
        retriever.add_documents([rain])
        assert len(retriever.get(["rain"])) == 1
        assert "tea" in retriever.verify(repair=True).unfinished
        assert retriever.verify().is_sound


def test_the_claim_of_another_machine_stays_until_it_is_released(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    docstore = create_kv_docstore(LocalFileStore(tmp_path))
    rain = Document(page_content="Rain fell.", id="rain")
    with parent_document_retriever([rain], docstore=docstore) as retriever:
        with monkeypatch.context() as other_machine:
            other_machine.setattr(writing.socket, "gethostname", lambda: "elsewhere")
            other_machine.setattr(writing, "release_claim", None)  # it dies
            with pytest.raises(TypeError):
                retriever.add_documents([Document(page_content="Tea is hot.", id="tea")])
        monkeypatch.setattr(time, "time", lambda: 4e9)
        snow = Document(page_content="Snow fell.", id="snow")
        with pytest.raises(DocstoreInUseError, match=r"on elsewhere is .* release_claim\(\)"):
            retriever.add_documents([snow])
        retriever.release_claim()
        assert retriever.add_documents([snow]) == ["snow"]
        retriever.verify(repair=True)
        assert retriever.verify().is_sound


def test_the_end_of_a_process_is_known_where_the_start_of_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as on macOS, which has no /proc."""
    monkeypatch.setattr(writing, "_start_time", lambda number: "")
    current = writing.Process.current()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert replace(current, number=ended.pid).has_ended()
    assert not replace(current, number=os.getppid()).has_ended()


class ReleasedLate(InMemoryStore):
    """A store in which the turn before ends just after the first claim of the next one."""

    is_released = False

    def mset(self, key_value_pairs: Sequence[tuple[str, Document]]) -> None:
        super().mset(key_value_pairs)
        for key, row in key_value_pairs:
            if key == writing.CLAIM_KEY and row.metadata["holder"] and not self.is_released:
                self.is_released = True
                super().mset([(key, Document("", metadata=row.metadata | {"holder": None}))])


def test_a_claim_that_meets_the_end_of_another_is_made_again() -> None:
    """Those that begin an index and those that write to it end their turns independently."""
    store = ReleasedLate()
    rain = Document(page_content="Rain fell.", id="rain")
    with parent_document_retriever([rain], docstore=store) as retriever:
        assert store.is_released
        assert retriever.list_ids() == ["rain"]


@every_front_end
def test_a_writer_whose_claim_another_one_took_removes_nothing(
    front: FrontEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody released the claim of a writer that was alive."""

    def write(version: str) -> None:
        text = " ".join(f"Lamp {number} says {version}." for number in range(8))
        pages = [("lamps", text, {"version": version})]
        front.do(retriever, "add_documents", front.documents(pages))

    def count(version: str) -> int:
        return len(front.collection(retriever).get(where={"version": version})["ids"])

    retriever = front.build()
    write("before")
    children, kind = count("before"), type(front.collection(retriever))
    upsert = kind.upsert

    def upsert_while_another_begins(self: Any, **rows: Any) -> Any:
        run(retriever._stores().docstore.take_turn())
        return upsert(self, **rows)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(kind, "upsert", upsert_while_another_begins)
        meanwhile.setattr(writing, "_ATTEMPTS", 1)
        with pytest.raises(LockLostError, match="another one has begun to write"):
            write("after")
    assert count("before") == children > 1
    assert front.do(retriever, "verify").unfinished == ["lamps"]
    write("after")
    assert (count("before"), count("after")) == (0, children)
    assert front.do(retriever, "verify").is_sound


# Files: a reader sees rows that are half written, and a kill leaves them so

DOCUMENTS = [
    Document(page_content="The lamp burned whale oil.", id="lamp"),
    Document(page_content="The fog horn is older than the pier.", id="horn"),
]


class SlowFiles(InMemoryByteStore):
    """Shows each value once as a store of files does while it is being written."""

    def __init__(self) -> None:
        super().__init__()
        self.half_written: set[str] = set()

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        super().mset(key_value_pairs)
        self.half_written.update(key for key, _ in key_value_pairs)

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        values = [
            value and (value[:9] if key in self.half_written else value)
            for key, value in zip(keys, super().mget(keys), strict=True)
        ]
        self.half_written.difference_update(keys)
        return values


@pytest.mark.parametrize("option", ["byte_store", "docstore"])
def test_a_row_that_is_being_written_is_read_again(option: str) -> None:
    rows = SlowFiles()
    stores: dict[str, Any] = {option: rows if option == "byte_store" else create_kv_docstore(rows)}
    retriever = parent_document_retriever(DOCUMENTS, **stores, k=1)
    for search_type in ("hybrid", "similarity"):
        retriever = retriever.model_copy(update={"search_type": search_type})
        rows.half_written.update(rows.yield_keys())
        assert retriever.invoke("whale oil")[0].page_content == "The lamp burned whale oil."
        rows.half_written.update(rows.yield_keys())
        (result,) = asyncio.run(retriever.ainvoke("whale oil"))
        assert result.page_content == "The lamp burned whale oil."


@pytest.fixture
def retriever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ParentDocumentRetriever:
    """A retriever whose docstore is a folder of files, to which nobody else writes."""
    monkeypatch.setattr(adapters, "_WAITS", (0.0,))
    rows = LocalFileStore(tmp_path / "rows")
    return parent_document_retriever(DOCUMENTS, byte_store=rows)


@pytest.mark.parametrize("value", [b"", b"\xff", b'{"lc": 1, "ty', b"[1]"])
@pytest.mark.parametrize("kind", ["record", "parent"])
def test_a_row_that_was_cut_short_is_named_and_repaired(
    retriever: ParentDocumentRetriever, tmp_path: Path, kind: str, value: bytes
) -> None:
    (passage,) = retriever.invoke("whale oil", k=1)
    name, key = ("lamp", record_key("lamp")) if kind == "record" else (passage.id, passage.id)
    (tmp_path / "rows" / str(key)).write_bytes(value)
    with pytest.raises(
        DamagedRowsError,
        match=r"LocalFileStore: the values of .* are damaged.*verify\(repair=True\)",
    ) as caught:
        retriever.get([str(name)])
    assert isinstance(caught.value.__cause__, ValueError), "it says what was wrong"
    assert len(retriever.verify(repair=True).damaged) == 1
    assert retriever.add_documents(DOCUMENTS) == ["lamp", "horn"]
    assert retriever.verify().is_sound
    assert retriever.get(["lamp", "horn"]) == DOCUMENTS


def test_a_claim_that_was_cut_short_is_released(
    retriever: ParentDocumentRetriever, tmp_path: Path
) -> None:
    (tmp_path / "rows" / "state" / "writer").write_bytes(b"")
    changed = Document(page_content="The lamp burns gas.", id="lamp")
    with pytest.raises(DocstoreInUseError, match=r"call release_claim\(\), and then verify"):
        retriever.add_documents([changed])
    retriever.release_claim()
    assert retriever.verify(repair=True).is_sound
    retriever.add_documents([changed])
    assert retriever.verify().is_sound
    assert [each.page_content for each in retriever.invoke("lamp", k=1)] == ["The lamp burns gas."]
