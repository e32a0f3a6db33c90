"""Docstores, and turns at them: what an index needs from the store of its parents.

A turn is the right to write, which one process at a time has. A store without locks of its own
names the process in a row; see `claim`.
"""

from __future__ import annotations

import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_splitters.parent_child.errors import DocstoreInUseError
from rag_splitters.parent_child.records import STATE_PREFIX, Entry

if TYPE_CHECKING:
    from filelock import BaseFileLock

CLAIM_KEY = f"{STATE_PREFIX}writer"
"""The key of the row in which a docstore without locks names the writing process."""


class Docstore(ABC):
    """The key-value store of parents, and of a record for each source document."""

    is_in_memory = False
    """Whether only this process can reach the rows."""
    is_json = True
    """Whether it keeps only what JSON can hold."""
    is_atomic = False
    """Whether what one call writes and removes takes effect all at once."""

    @abstractmethod
    async def read(self, keys: Sequence[str]) -> list[Entry | None]:
        """Return the rows of the keys, in their order; None where there is none."""

    @abstractmethod
    async def write(self, rows: Sequence[tuple[str, Entry]], removed: Sequence[str] = ()) -> None:
        """Write rows, in this order, and then remove others; all at once if the store can."""

    async def swap(
        self,
        expected: Mapping[str, Entry | None],
        rows: Sequence[tuple[str, Entry]],
        removed: Sequence[str] = (),
    ) -> bool:
        """Do the same if other rows are as expected, and return whether they were.

        It is compared only where several processes may write in one turn.
        """
        await self.write(rows, removed)
        return True

    @abstractmethod
    async def list_keys(self, prefix: str) -> list[str]:
        """Return the keys that begin with a prefix."""

    async def confirm(self) -> None:
        """Raise a LockLostError if the turn in which this docstore writes has ended."""
        return

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


def lock_file(path: Path) -> BaseFileLock | None:
    """Lock a file; return None if another process has locked it.

    The operating system releases the lock when the process ends, however it ends.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return None
    return lock


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

    Raises DocstoreInUseError if another process has the turn, unless it is known to have ended.
    """
    claimed = await _read_claim(docstore)
    number = claimed.get("number", 0) + 1
    holder = Process.current()
    await docstore.write([_claim_row(number, holder)])
    if await _read_claim(docstore) != {"number": number, "holder": asdict(holder)}:
        raise DocstoreInUseError("another process began to write to this docstore: try again")
    return Turn(docstore, number, partial(release_claim, docstore, number))


async def _read_claim(docstore: Docstore) -> dict[str, Any]:
    (row,) = await docstore.read([CLAIM_KEY])
    claimed = {} if row is None else row.metadata
    if docstore.is_in_memory or not claimed.get("holder"):
        return claimed
    holder = Process(**claimed["holder"])
    if holder.has_ended():
        return claimed
    raise DocstoreInUseError(
        f"{holder} is writing to this docstore, which allows one writing process at a time. Write "
        "from there, or wait until it has finished. If it no longer runs, which cannot be seen "
        "from another machine, call release_claim(). Any number of processes may write to "
        "PostgresStore, RedisStore or SQLiteStore (LlamaIndex: PostgresKVStore, RedisKVStore or "
        "SQLiteKVStore)"
    )


async def release_claim(docstore: Docstore, number: int | None = None) -> None:
    """Let others write to a docstore without locks.

    Parameters:
        number: the turn that has ended; None: whichever there is.
    """
    (row,) = await docstore.read([CLAIM_KEY])
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
