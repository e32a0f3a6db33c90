"""One writer at a time: of all threads and tasks, of all processes, and of all machines.

`Writer` is the only place where an operation waits for another one. It takes a lock of this
process, and then a turn at the docstore, which is the right to write and the docstore's own kind of
lock:

- a SQLite file has a lock file beside it, which the operating system frees;
- PostgreSQL has a lock of the session, which the server frees; all that is written in a turn goes
  through that session, so a writer that lost its connection can write nothing;
- Redis has a row that names the holder's connection, and a number that grows with every turn; every
  write checks the number, and a holder whose connection is gone is overtaken at once;
- other stores have a row that names the holder's process; see `claim`.

No clock is read and no lease runs out: a writer that is stopped or slow keeps its turn.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from rag_splitters.calls import Call, in_both_forms, sleep
from rag_splitters.errors import OperationError
from rag_splitters.parent_child.errors import (
    DamagedRowsError,
    DocstoreInUseError,
    LockLostError,
    explaining_full_disk,
)
from rag_splitters.parent_child.records import STATE_PREFIX, Entry, Identity

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOST_TURN = (
    "this process has lost its turn to write to the docstore, because its connection broke or its "
    "claim was released, and another one has begun to write: run the same again"
)
Keys = Sequence[str]
Rows = Sequence[tuple[str, Entry]]
"""Rows of a docstore, with their keys."""
Expected = Mapping[str, Entry | None] | None
"""Rows that others must not have changed, with their keys; None of one that must not be there."""
T = TypeVar("T")
logger = logging.getLogger("rag_splitters")

WRITE_TIMEOUT = 600.0
"""Seconds that an operation waits for another one that writes, unless the caller says otherwise."""

_SHORTEST_WAIT, _LONGEST_WAIT = 0.005, 0.1  # seconds between two attempts
_PATIENCE = 1.0  # seconds of waiting without a message
_ATTEMPTS = 3
CLAIM_KEY = f"{STATE_PREFIX}writer"
"""The key of the row in which a docstore without locks names the writing process."""


class Docstore(ABC):
    """The key-value store of parents, and of a record for each source document."""

    is_in_memory = False
    """Whether only this process can reach the rows."""
    is_json = True
    """Whether it keeps only what JSON can hold."""

    @abstractmethod
    async def read(self, keys: Sequence[str]) -> list[Entry | None]:
        """Return the rows of the keys, in their order; None where there is none."""

    @abstractmethod
    async def write(self, rows: Rows, removed: Keys = (), expected: Expected = None) -> bool:
        """Write rows, in this order, and then remove others; all at once if the store can.

        Parameters:
            expected: other rows, which are compared where several processes may write in one turn.
                If they are not as expected, nothing is done, and False is returned.
        """

    @abstractmethod
    async def list_keys(self, prefix: str) -> list[str]:
        """Return the keys that begin with a prefix."""

    async def make(self, request: Call[T]) -> T:
        """Make a call; at once if the rows are in memory, so that no reader comes in between."""
        return request.function() if self.is_in_memory else await request

    async def read_turn(self) -> int:
        """Return the number of the last turn that was taken."""
        (row,) = await self.read([CLAIM_KEY])
        number: int = 0 if row is None else row.metadata["number"]
        return number

    async def take_turn(self) -> Turn | None:
        """Become the only writer of all processes; return None if another one is writing.

        Raises DocstoreInUseError if it cannot be told when the other one will have finished.
        """
        return await claim(self)

    async def describe_holder(self) -> str:
        """Say which process is writing."""
        return "another process"


@dataclass(frozen=True, slots=True)
class Turn:
    """A writer's turn at a docstore, which ends when it is released or when the writer dies."""

    docstore: Docstore
    """Writes only as long as the turn lasts, and raises a LockLostError afterwards."""
    number: int
    """Greater than the number of every turn before."""
    release: Callable[[], Awaitable[None]]

    async def confirm(self) -> None:
        """Raise a LockLostError if the turn has ended."""
        if await self.docstore.read_turn() != self.number:
            raise LockLostError(LOST_TURN)


def lock_file(path: Path, *, is_shared: bool = False) -> BaseFileLock | None:
    """Lock a file; return None if another process, or another user in this one, has locked it.

    The operating system releases the lock when the process ends, however it ends.

    Parameters:
        is_shared: whether this process may have the lock several times.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, thread_local=False, is_singleton=is_shared)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return None
    return lock


class Writer:
    """Lets one writing operation at a time through.

    Parameters:
        folder: the index's folder; None for memory or servers.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.timeout = WRITE_TIMEOUT
        """How many seconds an operation waits for another one to finish writing."""
        self.identity: Identity | None = None
        """What the index is, once it has been compared."""

    async def run(self, docstore: Docstore, work: Callable[[Turn], Awaitable[T]]) -> T:
        """Do something while nobody else writes to the index.

        Parameters:
            work: what to do in the turn. If the turn is lost, because the connection to the
                docstore broke, it is done again from the beginning.

        Raises the errors of `turn`, LockLostError if the turn is lost again and again, and an
        OSError that says what to do if the disk is full.
        """
        attempts = _ATTEMPTS
        while True:
            attempts -= 1
            try:
                with explaining_full_disk(self.folder):
                    async with self.turn(docstore) as turn:
                        return await work(turn)
            except LockLostError:
                if not attempts:
                    raise

    @asynccontextmanager
    async def turn(self, docstore: Docstore) -> AsyncIterator[Turn]:
        """Wait for this process's lock and a turn at the docstore, and release both in the end.

        Raises DocstoreInUseError, which names the writer that is in the way, after the time limit.
        """
        attempt = partial(_take_turn, docstore)
        name = "a new index" if self.identity is None else self.identity.id
        async with process_lock(name).hold(self.timeout):
            turn = await _wait(attempt, docstore.describe_holder, self.timeout)
            try:
                yield turn
            except BaseException:
                with suppress(Exception):  # the first error says more
                    await turn.release()
                raise
            await turn.release()


def _take_turn(docstore: Docstore) -> Call[Turn | None]:
    """Return the call that takes a turn, and releases it if the caller is cancelled meanwhile."""

    async def release(turn: Turn | None) -> None:
        if turn is not None:
            await turn.release()

    return Call(*in_both_forms(docstore.take_turn), is_write=True, undo=release)


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

        async def describe_holder() -> str:
            return "another operation of this process"

        await _wait(lambda: Call(self._acquire, self._acquire_in_loop), describe_holder, timeout)
        try:
            yield
        finally:
            self._holder = None
            self._lock.release()

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
        await sleep(wait)
        waited, wait = waited + wait, min(2 * wait, _LONGEST_WAIT)
    return result


_locks: WeakValueDictionary[tuple[int, str], ProcessLock] = WeakValueDictionary()
_locks_lock = threading.Lock()


def process_lock(name: str) -> ProcessLock:
    """Return this process's lock of a name; a forked process has its own."""
    with _locks_lock:
        return _locks.setdefault((os.getpid(), name), ProcessLock())


# Docstores without locks


@dataclass(frozen=True, slots=True)
class Process:
    """A process of this machine or of another one."""

    number: int
    host: str
    started: str = ""
    """When it started, as its machine counts: another process may get the same number later."""

    def __str__(self) -> str:
        return f"process {self.number} on {self.host}"

    @classmethod
    def current(cls) -> Process:
        """Return this process."""
        return cls(os.getpid(), socket.gethostname(), _start_time(os.getpid()))

    def has_ended(self) -> bool:
        """Whether it is known to have ended; of another machine's process nothing is known."""
        if self.host != socket.gethostname():
            return False
        if self == Process.current():  # nothing else of it is under way: it has its own lock
            return True
        return not _is_running(self.number) or _start_time(self.number) != self.started


async def claim(docstore: Docstore) -> Turn | None:
    """Take a turn at a docstore without locks, with a row that names the writing process.

    Two processes that begin in the same instant may miss each other.

    Returns: None if another turn began or ended in the meantime: an operation that begins an index
    and one that writes to it, for example, in one process.

    Raises DocstoreInUseError if another process has the turn, unless it is known to have ended.
    """
    last_claim = await _read_claim(docstore)
    number = last_claim.get("number", 0) + 1
    holder = Process.current()
    await docstore.write([_claim_row(number, holder)])
    if await _read_claim(docstore) != {"number": number, "holder": asdict(holder)}:
        return None
    return Turn(docstore, number, partial(release_claim, docstore, number))


async def _read_claim(docstore: Docstore) -> dict[str, Any]:
    try:
        (row,) = await docstore.read([CLAIM_KEY])
    except DamagedRowsError as error:
        raise DocstoreInUseError(
            "the row that names the process that is writing to this docstore is damaged, as if "
            "that process had been killed. If no process is writing, call release_claim(), and "
            "then verify(repair=True)"
        ) from error
    last_claim = {} if row is None else row.metadata
    if docstore.is_in_memory or not last_claim.get("holder"):
        return last_claim
    holder = Process(**last_claim["holder"])
    if holder.has_ended():
        return last_claim
    raise DocstoreInUseError(
        f"{holder} is writing to this docstore, which allows one writing process at a time. Write "
        "from there, or wait until it has finished. If it no longer runs, which cannot be seen "
        "from another machine, call release_claim(). Any number of processes may write to "
        "PostgresStore, RedisStore or SQLiteStore"
    )


async def release_claim(docstore: Docstore, number: int | None = None) -> None:
    """Let others write to a docstore without locks.

    Parameters:
        number: the turn that has ended; None: whichever there is.
    """
    try:
        (row,) = await docstore.read([CLAIM_KEY])
    except DamagedRowsError:
        row = _claim_row(0, None)[1]
    if row is not None and number in (None, row.metadata["number"]):
        await docstore.write([_claim_row(row.metadata["number"], None)])


def _claim_row(number: int, holder: Process | None) -> tuple[str, Entry]:
    metadata = {"number": number, "holder": None if holder is None else asdict(holder)}
    return CLAIM_KEY, Entry("", metadata, CLAIM_KEY)


def _is_running(number: int) -> bool:
    """Whether a process of this machine has not ended, as far as can be told."""
    if os.name != "posix":  # where signal 0 would end it
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _start_time(number: int) -> str:
    """Return when a process started, in ticks since the machine started; nothing without Linux."""
    with suppress(OSError, IndexError):
        line = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
        state, *fields = line.rpartition(")")[2].split()
        return "" if state in ("Z", "X") else fields[18]  # it has ended, and nobody took notice
    return ""
