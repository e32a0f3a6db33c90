"""The one event loop of this process on which asynchronous functions run, and threads for others.

A client that is awaited keeps connections that belong to its event loop, and fails on any other.
Asynchronous functions therefore always run on one background loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from inspect import isawaitable
from typing import Any, TypeVar

from rag_splitters.errors import OperationError

T = TypeVar("T")


_MAX_THREADS = 128


class _State:
    """The loop with its thread, and the threads for calls that block."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None
        self.threads = ThreadPoolExecutor(_MAX_THREADS, "rag_splitters model")


_state = _State()
_parents: list[_State] = []  # kept, so that a forked process does not close what it shares


def _reset_after_fork() -> None:
    """Reset the state in a forked process, which has a copy of the loop but not its thread."""
    global _state
    _parents.append(_state)
    _state = _State()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def _running() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    """Return the loop, which is started at first use, and its thread."""
    state = _state
    with state.lock:
        if state.loop is None or state.thread is None:
            state.loop = asyncio.new_event_loop()
            state.thread = threading.Thread(
                target=state.loop.run_forever, name="rag_splitters event loop", daemon=True
            )
            state.thread.start()
        return state.loop, state.thread


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop from synchronous code, and return its result.

    If the caller is interrupted, so is the coroutine. Raises RuntimeError on the loop's own thread,
    which cannot wait for itself.
    """
    loop, thread = _running()
    if threading.current_thread() is thread:
        work.close()
        raise OperationError(
            "an asynchronous model cannot wait for a synchronous call that needs the same event "
            "loop: await the asynchronous method instead, such as achunk()"
        )
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    finally:
        future.cancel()


def finished(result: Any) -> Any:
    """Return the result of a user's function, which is awaited on the loop if it is awaitable."""

    async def wait() -> Any:
        return await result

    return run_async(wait()) if isawaitable(result) else result


async def arun_async(work: Coroutine[Any, Any, T]) -> T:
    """`run_async` for asynchronous code: cancelling it cancels the coroutine."""
    loop, _ = _running()
    if asyncio.get_running_loop() is loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


async def in_thread(function: Callable[[Any], T], argument: Any) -> T:
    """Call a function in one of the threads for models, of which there are enough for all calls."""
    call = partial(contextvars.copy_context().run, function, argument)
    return await asyncio.get_running_loop().run_in_executor(_state.threads, call)
