"""Parent-child retrieval after kill -9: nothing is lost, nothing half visible, all can be finished.

The index goes through adding, replacing and deleting again and again, each killed at a moment drawn
from its measured length. CRASHES sets how many kills there are on each back end.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import JobProcess
from tests.support.stores import check_children, on_server

pytestmark = pytest.mark.slow

CRASHES = int(os.environ.get("CRASHES", "4"))
CYCLE = ("add", "replace", "delete")
State = dict[str, Any]


class Crashes:
    """What a test asks of the process of `tests.support.crash_process`."""

    def __init__(self, process: JobProcess, place: dict[str, Any]) -> None:
        self._process, self._place = process, place

    def do(self, operation: str, search_type: str, killed_after: float | None = None) -> float:
        """Do an operation, or kill its process some seconds after it began; how long it took."""
        killed = killed_after is not None
        job = {"place": self._place, "operation": operation, "search_type": search_type}
        process = self._process.begin(job="do", killed=killed, **job)
        assert self._process.read() == {"began": True}
        began = time.perf_counter()
        if killed_after is not None:
            time.sleep(killed_after)
            os.kill(process, signal.SIGKILL)
        answer = self._process.read()
        took = time.perf_counter() - began
        if answer == {"finished": True}:
            answer = self._process.read()
        assert answer.keys() == {"ended"}, answer.get("error")
        return took

    def look(self, operation: str | None, search_type: str, repair: bool = False) -> State:
        """What a fresh process finds, and what it makes of it."""
        job = {"place": self._place, "operation": operation, "search_type": search_type}
        self._process.begin(job="look", repair=repair, **job)
        seen = self._process.read()
        assert "error" not in seen, seen.get("error")
        self._process.read()
        return seen


@pytest.fixture(params=["folder", *on_server("servers")])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Where the index is: SQLite and a Chroma folder, or PostgreSQL and a Chroma server."""
    if request.param == "folder":
        return {"folder": str(tmp_path / "index")}
    host, port = request.getfixturevalue("chroma_server")
    return {
        "host": host,
        "port": port,
        "collection": request.getfixturevalue("collection_name"),
        "url": request.getfixturevalue("postgres_url"),
    }


@pytest.fixture(scope="module")
def process() -> Iterator[JobProcess]:
    """The process that forks."""
    process = JobProcess("tests.support.crash_process")
    yield process
    process.close()


@pytest.fixture
def crashes(process: JobProcess, place: dict[str, Any]) -> Crashes:
    return Crashes(process, place)


def test_what_was_killed_at_any_moment_is_whole_and_can_be_finished(crashes: Crashes) -> None:
    crashes.do("fill", "hybrid")
    took, states = undisturbed(crashes)
    chance, interrupted, repaired = random.Random(20), 0, 0
    for trial in range(CRASHES):
        operation = CYCLE[trial % 3]
        before, after = states[trial % 3], states[(trial + 1) % 3]
        # One process in three keeps no keyword index, and so leaves one that lags behind.
        kinds = chance.choices(("hybrid", "similarity"), (2, 1), k=2)
        crashes.do(operation, kinds[0], killed_after=chance.uniform(0, took[operation]))
        seen = crashes.look(operation, kinds[1], repair=chance.random() < 0.5)
        assert_whole(seen["between"])
        assert_between(seen["between"], before, after)
        if "repaired" in seen:
            assert seen["mended"]
            assert_whole(seen["repaired"])
            assert_between(seen["repaired"], before, after)
            assert_by_document(seen["repaired"], before, after)
        assert_same(seen["end"], after)
        assert seen["sound"]
        interrupted += seen["unsound"]
        repaired += seen["unsound"] and "repaired" in seen
    assert interrupted >= CRASHES // 3, "most kills met an operation under way"
    assert repaired >= CRASHES // 10


def undisturbed(crashes: Crashes) -> tuple[dict[str, float], list[State]]:
    """How long each operation takes, and what the stores hold before each of them."""
    took: dict[str, float] = {}
    states = []
    for operation in CYCLE:
        states.append(crashes.look(None, "hybrid")["end"])
        took[operation] = crashes.do(operation, "hybrid")
    again = crashes.look(None, "hybrid")["end"]
    assert_same(again, states[0])
    return took, states


def assert_whole(state: State) -> None:
    """Each child is in the record of its document, and its parent is there if it is in use."""
    rows = state["rows"]
    records = [metadata for key, (_, metadata) in rows.items() if key.startswith("source/")]
    listed = {child for each in records for child in each["children"] + each["other_children"]}
    assert state["children"].keys() <= listed
    finished = [each for each in records if each["digest"] and each["is_whole"]]
    assert {parent for each in finished for parent in each["parents"]} <= rows.keys()


def assert_between(state: State, before: State, after: State) -> None:
    """A query gives no less than both versions have, and nothing that neither has."""
    for kind, found in state["found"].items():
        old, new, now = (
            set(each.items()) for each in (before["found"][kind], after["found"][kind], found)
        )
        assert old & new <= now <= old | new, kind


def assert_by_document(state: State, before: State, after: State) -> None:
    """Each document is as it was before or as it is after."""
    old, new, now = (by_document(each) for each in (before, after, state))
    for name in old.keys() | new.keys() | now.keys():
        assert now.get(name) in (old.get(name), new.get(name))


def by_document(state: State) -> dict[str, set[str]]:
    documents: dict[str, set[str]] = {}
    for child, (_, metadata, _) in state["children"].items():
        documents.setdefault(metadata["_source_id"], set()).add(child)
    return documents


def assert_same(state: State, expected: State) -> None:
    """The stores hold the same, to the vector, and queries find the same."""
    assert state["rows"] == expected["rows"]
    for kind, found in expected["found"].items():
        lost, more = found.keys() - state["found"][kind].keys(), state["found"][kind].keys() - found
        assert (lost, more) == (set(), set()), kind
        assert state["found"][kind] == found
    assert state["keywords"] in (None, expected["keywords"])
    assert expected["keywords"] == sorted(state["children"])
    check_children(state["children"], expected["children"])
