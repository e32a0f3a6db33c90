"""A docstore without locks admits one writing process, and says so to a second one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.storage import LocalFileStore, create_kv_docstore
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore

from rag_splitters.calls import run
from rag_splitters.langchain import parent_document_retriever
from rag_splitters.parent_child import DocstoreInUseError, LockLostError, writing
from tests.support.front_ends import FrontEnd, every_front_end
from tests.support.processes import ROOT

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
    command = [sys.executable, "-c", OTHER, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        yield process
        process.kill()


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
