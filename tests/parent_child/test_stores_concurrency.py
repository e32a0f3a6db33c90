"""The key-value stores under several threads and processes, and over kill -9 of a writer.

KILLS sets how often a writer of each store is killed.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rag_splitters.calls import arun
from rag_splitters.parent_child.stores.keyvalue import KeyValueStore
from tests.support.stores import OpenStore

ROOT = Path(__file__).parents[2]
ROWS = 1500
KILLS = int(os.environ.get("KILLS", "3"))


def started(code: str, place: Sequence[str], stderr: int | None = None) -> subprocess.Popen[str]:
    """A process with `store` open on the place."""
    opening = "import os, sys; from tests.support.openers import opener\n"
    opening += "store = opener(*sys.argv[1:])()\n"
    return subprocess.Popen(
        [sys.executable, "-c", opening + code, *place],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        bufsize=1,
    )


def test_writers_of_the_same_rows_do_not_mix_them(open_store: OpenStore) -> None:
    stores, keys = [open_store(), open_store()], [f"key-{number}" for number in range(1200)]

    def work(seed: int) -> None:
        shuffled = random.Random(seed).sample(keys, len(keys))
        for turn in range(4):
            if (seed + turn) % 2:
                stores[seed % 2].mdelete(shuffled)
            else:
                stores[seed % 2].mset([(key, seed) for key in shuffled])

    for _ in range(5):
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
        assert len(set(stores[0].mget(keys))) == 1


def test_event_loops_and_threads_share_a_store(open_store: OpenStore) -> None:
    store = open_store()

    async def work(name: int) -> None:
        await asyncio.gather(*(arun(store.write([(f"{name}-{n}", n)])) for n in range(20)))
        assert await arun(store.read([f"{name}-{n}" for n in range(20)])) == list(range(20))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: asyncio.run(work(name)), range(3)))
    asyncio.run(work(3))
    assert len(list(store.yield_keys())) == 80


READ = """
print("reading", flush=True)
numbers = [0]
while len(numbers) < 20:
    one, *others = store.mget(["one", "two", "three"])
    assert others == [one, one], (one, others)
    assert one >= numbers[-1]
    if one > numbers[-1]:
        numbers.append(one)
"""


@pytest.mark.slow
def test_processes_read_while_one_writes(place: tuple[str, str], open_store: OpenStore) -> None:
    store = open_store()
    store.mset([("one", 0), ("two", 0), ("three", 0)])
    readers = [started(READ, place) for _ in range(2)]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
    deadline = time.monotonic() + 60
    number = 0
    while any(reader.poll() is None for reader in readers):
        number += 1
        store.mset([("one", number), ("two", number), ("three", number)])
        assert time.monotonic() < deadline
    assert [reader.returncode for reader in readers] == [0, 0]


WRITE = f"""
generation = (store.mget(["0"])[0] or [0])[0]
print("writing", flush=True)
while True:
    generation += 1
    store.mset([(str(number), [generation, "x" * 1000]) for number in range({ROWS})])
"""


def settled(store: KeyValueStore) -> list[object]:
    """The rows, once a server that was told to commit by one who died has done so."""
    keys = [str(number) for number in range(ROWS)]
    rows: list[object] = []
    while rows != (rows := [row and row[0] for row in store.mget(keys)]) or not rows:
        time.sleep(0.1)
    return rows


@pytest.mark.slow
def test_kill_of_a_writer_leaves_all_of_mset_or_nothing(
    place: tuple[str, str], open_store: OpenStore
) -> None:
    store, moments, last = open_store(), random.Random(5), 0
    for _ in range(KILLS):
        writer = started(WRITE, place)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        time.sleep(moments.uniform(0.05, 0.4))
        writer.kill()
        writer.wait()
        rows = settled(store)
        assert len(set(rows)) == 1, "rows of different calls"
        assert isinstance(rows[0], int) or last == 0
        last = max(last, rows[0] or 0)  # type: ignore[call-overload]
        assert rows[0] == last or not last, "what was there is lost"
    assert last > 1
    assert len(list(store.yield_keys())) == ROWS


FORK = """
from rag_splitters.parent_child import StoreError
store.mset([("key", 1)])
child = os.fork()
if child == 0:
    try:
        store.mget(["key"])
    except StoreError as error:
        assert "was opened in another process: open it again" in str(error)
        store.close()
        again = opener(*sys.argv[1:])()
        assert again.mget(["key"]) == [1]
        again.close()
        os._exit(7)
    os._exit(8)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert store.mget(["key"]) == [1]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_store_is_refused_after_a_fork(place: tuple[str, str]) -> None:
    assert started(FORK, place).wait(timeout=60) == 0


@pytest.mark.slow
def test_program_that_leaves_stores_open_ends_in_silence(place: tuple[str, str]) -> None:
    """One that it used, and one that it did not."""
    use = "other = opener(*sys.argv[1:])()\nother.mset([('key', 1)])"
    process = started(use, place, stderr=subprocess.PIPE)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0
