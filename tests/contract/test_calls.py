"""One coroutine for synchronous and asynchronous callers: `run`, `arun` and `together`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from rag_splitters.calls import Batch, Call, arun, call, run, together


async def sum_of_calls(threads: list[int]) -> int:
    """Awaits one call of each kind, and notes the thread that runs what stands between them."""
    threads.append(threading.get_ident())
    one = await call(int, "1")
    threads.append(threading.get_ident())
    two = await Call(lambda: 2, lambda: asyncio.sleep(0, 2))
    threads.append(threading.get_ident())
    return one + two


async def test_run_makes_the_calls_on_the_spot_also_inside_an_event_loop() -> None:
    threads: list[int] = []
    assert run(sum_of_calls(threads)) == 3
    assert set(threads) == {threading.get_ident()}


async def test_arun_calls_blocking_functions_in_a_thread_and_awaits_the_others() -> None:
    async def on_loop() -> int:
        return threading.get_ident()

    async def idents() -> tuple[int, int]:
        return await call(threading.get_ident), await Call(lambda: 0, on_loop)

    threads: list[int] = []
    assert await arun(sum_of_calls(threads)) == 3
    assert threading.get_ident() not in threads
    blocking, awaited = await arun(idents())
    assert blocking != threading.get_ident()
    assert awaited == threading.get_ident()


async def recovering(log: list[str]) -> str:
    try:
        await call(int, "no number")
    except ValueError:
        log.append("recovered")
    return "done"


async def test_errors_are_raised_where_the_call_is_awaited() -> None:
    log: list[str] = []
    assert run(recovering(log)) == await arun(recovering(log)) == "done"
    assert log == ["recovered", "recovered"]


async def test_errors_of_the_coroutine_reach_the_caller() -> None:
    async def failing() -> None:
        await call(int)
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing"):
        run(failing())
    with pytest.raises(KeyError, match="missing"):
        await arun(failing())


async def test_foreign_awaitables_are_refused() -> None:
    async def sleeping() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="sleeping may await only calls"):
        run(sleeping())
    with pytest.raises(RuntimeError, match="sleeping may await only calls"):
        await arun(sleeping())


class Held:
    """A function that says when it has begun, and returns when it is let go."""

    def __init__(self, result: Any = None) -> None:
        self.result = result
        self.started, self.release = threading.Event(), threading.Event()

    def __call__(self) -> Any:
        self.started.set()
        self.release.wait(10)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


async def cancel(work: Any, held: Held) -> None:
    """Cancel what has begun, which then goes on."""
    task = asyncio.create_task(arun(work))
    await asyncio.to_thread(held.started.wait, 10)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    held.release.set()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("is_calling", [True, False], ids=["in a call", "between calls"])
async def test_cancelling_runs_the_clean_up(is_calling: bool) -> None:
    log: list[str] = []
    held = Held()

    async def working() -> None:
        try:
            if is_calling:
                held.started.set()
                await Call(lambda: None, lambda: asyncio.sleep(60))
            else:
                held()
            await call(log.append, "went on")
        finally:
            await call(log.append, "cleaned up")

    await cancel(working(), held)
    assert log == ["cleaned up"]


@pytest.mark.parametrize("error", [None, ValueError("it failed")])
@pytest.mark.parametrize("has_undo", [False, True])
async def test_cancelling_what_ends_meanwhile_is_a_cancellation(
    error: Exception | None, has_undo: bool
) -> None:
    held = Held(error)

    async def undo(_: None) -> None:
        assert error is None

    async def working() -> None:
        if has_undo:
            await Call(held, is_write=True, undo=undo)
        held()

    await cancel(working(), held)


async def test_a_lock_that_arrives_after_the_cancellation_is_released() -> None:
    log: list[str] = []
    held = Held("lock")

    async def undo(lock: str) -> None:
        await call(log.append, f"released {lock}")

    async def working() -> None:
        await Call(held, is_write=True, undo=undo)
        await call(log.append, "went on")

    await cancel(working(), held)
    assert log == ["released lock"]


class Doubling:
    """A model that doubles numbers, and counts how it is asked."""

    def __init__(self) -> None:
        self.requests: list[list[int]] = []

    def double(self, numbers: Sequence[int]) -> list[int]:
        self.requests.append(list(numbers))
        return [2 * number for number in numbers]

    def call(self, numbers: Sequence[int]) -> Batch:
        return Batch(id(self), numbers, self.double)


@pytest.mark.parametrize("is_async", [False, True])
def test_together_joins_batches_of_one_key(is_async: bool) -> None:
    model, other = Doubling(), Doubling()

    async def doubled(numbers: list[int], times: int) -> list[int]:
        for _ in range(times):
            numbers = list(await model.call(numbers))
        return numbers

    async def other_one() -> list[int]:
        await call(int)
        return list(await other.call([7]))

    def works() -> Any:
        return together([doubled([1], 2), doubled([2, 3], 1), other_one(), doubled([], 1)])

    results = asyncio.run(arun(works())) if is_async else run(works())
    assert results == [[4], [4, 6], [14], []]
    assert model.requests == [[1, 2, 3], [2]]
    assert other.requests == [[7]]


def test_together_raises_the_error_where_each_awaits_and_closes_the_others() -> None:
    log: list[str] = []

    def refuse(items: Sequence[int]) -> list[int]:
        raise OSError("down")

    async def careful() -> str:
        try:
            await Batch("key", [1], refuse)
        except OSError:
            return "handled"
        return "answered"

    async def careless() -> None:
        await Batch("key", [2], refuse)

    async def waiting() -> None:
        try:
            await call(int)
            await call(int)
        finally:
            log.append("closed")

    assert run(together([careful(), careful()])) == ["handled", "handled"]
    with pytest.raises(OSError, match="down"):
        run(together([careful(), careless(), waiting()]))  # type: ignore[list-item]
    assert log == ["closed"]
