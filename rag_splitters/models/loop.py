"""The one event loop of this process on which asynchronous functions run.

A client that is awaited keeps connections that belong to its event loop, and fails on any other.
Asynchronous functions therefore always run on one background loop. A framework's client also has
synchronous methods: it is awaited on the first loop that uses it, and other loops call its
synchronous methods in threads.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from rag_splitters.errors import OperationError

T = TypeVar("T")


class _State:
    """The loop with its thread, and the loops on which clients are awaited."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None
        self.homes: dict[int, tuple[Any, Any]] = {}
        """By the id of a client: weak references to the client and to its loop."""


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
            "loop: await the asynchronous method instead, such as asplit()"
        )
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    finally:
        future.cancel()


async def arun_async(work: Coroutine[Any, Any, T]) -> T:
    """`run_async` for asynchronous code: cancelling it cancels the coroutine."""
    loop, _ = _running()
    if asyncio.get_running_loop() is loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


def may_await(clients: Iterable[Any]) -> bool:
    """Bind clients to the running loop, and return whether they may be awaited on it.

    They may not if they are already bound to another loop.
    """
    loop, state = asyncio.get_running_loop(), _state
    clients = list(clients)
    with state.lock:
        bound = [state.homes.get(id(client)) for client in clients]
        if any(each is not None and each[1]() is not loop for each in bound):
            return False
        for client in clients:
            with suppress(TypeError):  # an object without weak references
                state.homes[id(client)] = (_reference(client, state), weakref.ref(loop))
    return True


def _reference(client: Any, state: _State) -> Any:
    """Return a weak reference that removes the client from the state once it is deleted."""
    key = id(client)
    return weakref.ref(client, lambda reference: _remove(state, key, reference))


def _remove(state: _State, key: int, reference: Any) -> None:
    home = state.homes.get(key)
    if home is not None and home[0] is reference:
        state.homes.pop(key, None)
