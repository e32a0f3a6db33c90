"""Several processes write to one index on servers: the end is that of some order of what they did.

ROUNDS sets how often each pair of operations meets, and WRITER_CRASHES how often one is killed.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from rag_splitters.parent_child import DocstoreInUseError
from tests.support.processes import JobProcess
from tests.support.writer_process import document, opened

pytestmark = pytest.mark.server

ROUNDS = int(os.environ.get("ROUNDS", "3"))
CRASHES = int(os.environ.get("WRITER_CRASHES", "3"))


class Writer(JobProcess):
    """A process of `tests.support.writer_process`."""

    def __init__(self) -> None:
        super().__init__("tests.support.writer_process")
        self.place: dict[str, Any] = {}
        self.job = 0

    def prepare(
        self, go: Path, operation: str, names: Sequence[str], version: str, delay: float = 0.0
    ) -> None:
        """Have a job ready at the place, which begins when the file is there."""
        job = {"place": self.place, "go": str(go), "operation": operation, "delay": delay}
        self.job = self.begin(**job, names=list(names), version=version)
        assert self.read() == {"ready": True}

    def end(self) -> None:
        """Wait until the job has ended, or was killed."""
        answer = self.read()
        assert "error" not in answer, answer["error"]


@pytest.fixture(params=["postgres", "redis"])
def place(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Where the index is."""
    host, port = request.getfixturevalue("chroma_server")
    return {
        "kind": request.param,
        "host": host,
        "port": port,
        "collection": request.getfixturevalue("collection_name"),
        "url": request.getfixturevalue(f"{request.param}_url"),
    }


@pytest.fixture(scope="module")
def processes() -> Iterator[tuple[Writer, Writer]]:
    """Two processes, which fork one for each job."""
    both = Writer(), Writer()
    yield both
    for writer in both:
        writer.close()


@pytest.fixture
def writers(place: dict[str, Any], processes: tuple[Writer, Writer]) -> tuple[Writer, Writer]:
    """The two processes, for jobs at this place."""
    for writer in processes:
        writer.place = place
    return processes


def texts_by_document(place: dict[str, Any]) -> dict[str, list[str]]:
    """Look at the stores themselves: the versions of each document's children, one for each."""
    with closing(opened(place)) as retriever:
        rows = retriever.vectorstore._collection.get()  # type: ignore[attr-defined]
        versions: dict[str, list[str]] = {}
        for metadata in rows["metadatas"]:
            versions.setdefault(metadata["_source_id"], []).append(metadata["source"])
        return versions


def assert_sound(place: dict[str, Any]) -> None:
    """The stores agree."""
    with closing(opened(place)) as retriever:
        report = retriever.verify()
        assert report.is_sound, report


@pytest.mark.parametrize(
    ("first", "second", "delay", "count"),
    [("add", "add", 0.01, 1), ("add", "delete", 0.05, 1), ("add singly", "repair", 0.2, 4)],
)
def test_two_operations_that_meet_leave_one_whole_version_or_none(
    place: dict[str, Any],
    writers: tuple[Writer, Writer],
    tmp_path: Path,
    first: str,
    second: str,
    delay: float,
    count: int,
) -> None:
    """They begin at the same moment, after their delays."""
    chance = random.Random(count)
    for number in range(ROUNDS):
        go, names = tmp_path / f"go{number}", [f"doc{number}x{n}" for n in range(count)]
        writers[0].prepare(go, first, names, "A", chance.uniform(0, 0.01))
        writers[1].prepare(go, second, names, "B", chance.uniform(0, delay))
        go.touch()
        for writer in writers:
            writer.end()
    versions = texts_by_document(place)
    assert all(each in (["A"] * 12, ["B"] * 12) for each in versions.values())
    if second != "delete":
        assert len(versions) == ROUNDS * count
    assert_sound(place)


def test_writer_is_killed_while_another_writes_the_same(
    place: dict[str, Any], writers: tuple[Writer, Writer], tmp_path: Path
) -> None:
    """The other waits until the dead writer's locks are void, and then has the last word."""
    chance, names = random.Random(4), ["doc0", "doc1"]
    operations = ["add", "delete", "sync", "add", "repair"]
    for number in range(CRASHES):
        go, killed = tmp_path / f"go{number}", writers[0]
        operation = operations[number % 5]
        killed.prepare(go, "delete" if number % 3 == 2 else "add", names, f"A{number}")
        writers[1].prepare(go, operation, names, f"B{number}", chance.uniform(0, 0.05))
        go.touch()
        time.sleep(chance.uniform(0, 0.08))
        with suppress(ProcessLookupError):  # it may have finished
            os.kill(killed.job, signal.SIGKILL)
        for writer in writers:
            writer.end()
        # Whoever was last, what they left is whole once the same is done again by anybody.
        writers[1].prepare(tmp_path / f"go{number}", "add", names, f"C{number}")
        writers[1].end()
        expected = {name: [f"C{number}"] * 12 for name in names}
        versions = texts_by_document(place)
        if versions != expected:  # Chroma did what the dead writer had asked for after a removal
            children = [version for each in versions.values() for version in each]
            assert set(children) == {f"A{number}", f"C{number}"}
            with closing(opened(place)) as retriever:
                assert len(retriever.verify().orphans or []) == children.count(f"A{number}")
                retriever.verify(repair=True)
        assert texts_by_document(place) == expected
        assert_sound(place)


def test_stopped_writer_is_not_overtaken_and_finishes_when_it_goes_on(
    place: dict[str, Any], writers: tuple[Writer, Writer], tmp_path: Path
) -> None:
    chance, names = random.Random(5), [f"doc{number}" for number in range(12)]
    refusals: list[tuple[int, str]] = []
    with closing(opened(place)) as hurried:
        hurried.write_timeout = 1.0
        for attempt in range(10):
            go, stopped = tmp_path / f"go{attempt}", writers[0]
            stopped.prepare(go, "add singly", names, f"A{attempt}")
            go.touch()
            time.sleep(chance.uniform(0.05, 0.3))
            os.kill(stopped.job, signal.SIGSTOP)
            try:
                hurried.add_documents([document("doc0", f"B{attempt}")])
            except DocstoreInUseError as error:
                refusals.append((stopped.job, str(error)))
            finally:
                os.kill(stopped.job, signal.SIGCONT)
            stopped.end()
            assert_sound(place)
            if len(refusals) == 2:
                break
    assert len(refusals) == 2, "it was stopped in the middle of a turn"
    assert all(str(process) in message for process, message in refusals)
    assert texts_by_document(place).keys() == set(names)
