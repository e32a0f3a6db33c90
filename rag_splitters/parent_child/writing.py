"""One writer at a time: of all threads and tasks, of all processes, and of all machines.

`Writer` is the only place where an operation waits for another one. It takes a lock of this
process, and then a turn at the docstore, which is the docstore's own kind of lock:

- a SQLite file has a lock file beside it, which the operating system frees;
- PostgreSQL has a lock of the session, which the server frees; all that is written in a turn goes
  through that session, so a writer that lost its connection can write nothing;
- Redis has a row that names the holder's connection, and a number that grows with every turn; every
  write checks the number, and a holder whose connection is gone is overtaken at once;
- other stores have a row that names the holder's process; see `turns.claim`.

No clock is read and no lease runs out: a writer that is stopped or slow keeps its turn.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

from rag_splitters.calls import Call
from rag_splitters.errors import OperationError
from rag_splitters.parent_child.errors import DocstoreInUseError, LockLostError
from rag_splitters.parent_child.records import Identity
from rag_splitters.parent_child.turns import Docstore, Turn

T = TypeVar("T")
logger = logging.getLogger("rag_splitters")

WRITE_TIMEOUT = 600.0
"""Seconds that an operation waits for another one that writes, unless the caller says otherwise."""

_SHORTEST_WAIT, _LONGEST_WAIT = 0.005, 0.1  # seconds between two attempts
_PATIENCE = 1.0  # seconds of waiting without a message
_ATTEMPTS = 3


class Writer:
    """Lets one writing operation at a time through.

    Parameters:
        timeout: how many seconds an operation waits for another one to finish writing.
    """

    def __init__(self, timeout: float = WRITE_TIMEOUT) -> None:
        self.timeout = timeout
        self.identity: Identity | None = None
        """What the index is, once it has been compared."""

    async def run(self, docstore: Docstore, name: str, work: Callable[[Turn], Awaitable[T]]) -> T:
        """Do something while nobody else writes to an index.

        Parameters:
            name: what all the writers of this process call the index.
            work: what to do in the turn. If the turn is lost, because the connection to the
                docstore broke, it is done again from the beginning.

        Raises DocstoreInUseError, which names the writer that is in the way, after the time limit,
        and LockLostError if the turn is lost again and again.
        """
        for _ in range(_ATTEMPTS - 1):
            with suppress(LockLostError):
                return await self._run_once(docstore, name, work)
        return await self._run_once(docstore, name, work)

    async def _run_once(
        self, docstore: Docstore, name: str, work: Callable[[Turn], Awaitable[T]]
    ) -> T:
        async with process_lock(name).hold(self.timeout), self.turn(docstore) as turn:
            return await work(turn)

    @asynccontextmanager
    async def turn(self, docstore: Docstore) -> AsyncIterator[Turn]:
        """Wait for a turn at a docstore, and release it in the end."""
        turn = await _wait(docstore.take_turn, docstore.describe_holder, self.timeout)
        try:
            yield turn
        except BaseException:
            with suppress(Exception):  # the first error says more
                await turn.release()
            raise
        await turn.release()


class ProcessLock:
    """A lock for threads and for tasks of event loops, which it does not block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether an operation is under way."""
        return self._lock.locked()

    @asynccontextmanager
    async def hold(self, timeout: float) -> AsyncIterator[None]:
        """Wait for the operation before this one.

        Raises OperationError for a synchronous operation that would wait for a task of its own
        thread, and DocstoreInUseError after the time limit.
        """
        await _wait(self._attempt, self._describe_holder, timeout)
        try:
            yield
        finally:
            self._holder = None
            self._lock.release()

    async def _attempt(self) -> bool | None:
        return await Call(self._acquire, self._acquire_in_loop)

    def _acquire(self) -> bool | None:
        if self._lock.acquire(blocking=False):
            self._holder = threading.get_ident()
            return True
        if self._holder == threading.get_ident():
            raise OperationError(
                "an asynchronous operation on this index is under way in this thread: await "
                "it before a synchronous one, or await both"
            )
        return None

    async def _acquire_in_loop(self) -> bool | None:
        """Acquire the lock for a task, which may wait for another one of its own thread."""
        if not self._lock.acquire(blocking=False):
            return None
        self._holder = threading.get_ident()
        return True

    async def _describe_holder(self) -> str:
        return "another operation of this process"


async def _wait(
    attempt: Callable[[], Awaitable[T | None]],
    describe_holder: Callable[[], Awaitable[str]],
    timeout: float,
) -> T:
    """Repeat an attempt until it succeeds. Raises DocstoreInUseError after the time limit."""
    waited, wait = 0.0, _SHORTEST_WAIT
    while (result := await attempt()) is None:
        if waited < _PATIENCE <= waited + wait:
            holder = await describe_holder()
            logger.warning("waiting until %s has finished writing to the index", holder)
        if waited >= timeout:
            raise DocstoreInUseError(
                f"{await describe_holder()} has been writing to this index for more than "
                f"{timeout:g} seconds: try again when it has finished, end it if it hangs, or pass "
                "a longer write_timeout"
            )
        await Call(partial(time.sleep, wait), partial(asyncio.sleep, wait))
        waited, wait = waited + wait, min(2 * wait, _LONGEST_WAIT)
    return result


_locks: WeakValueDictionary[tuple[int, str], ProcessLock] = WeakValueDictionary()
_locks_lock = threading.Lock()


def process_lock(name: str) -> ProcessLock:
    """Return this process's lock of a name; a forked process has its own."""
    with _locks_lock:
        return _locks.setdefault((os.getpid(), name), ProcessLock())
