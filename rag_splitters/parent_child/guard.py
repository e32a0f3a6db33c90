"""One writer at a time: within a process, and among processes that share a folder."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from rag_splitters.calls import Call
from rag_splitters.errors import FileError, OperationError
from rag_splitters.parent_child.disk import explaining_full_disk
from rag_splitters.parent_child.errors import FolderInUseError

_POLL_SECONDS = 0.01
_guards: WeakValueDictionary[Path, Guard] = WeakValueDictionary()
_guards_lock = threading.Lock()


class Guard:
    """Lets one writing operation at a time through, from any thread or task of this process.

    Parameters:
        folder: the index's folder; None for memory or servers.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._holder: int | None = None

    @property
    def is_held(self) -> bool:
        """Is an operation under way?"""
        return self._lock.locked()

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Wait for the operation before this one, without blocking an event loop.

        Raises RuntimeError for a synchronous operation that would wait for a task of its own
        thread, and OSError if the operation fails on a full disk.
        """
        await Call(self._acquire, self._poll)
        try:
            with explaining_full_disk(self.folder):
                yield
        finally:
            self._holder = None
            self._lock.release()

    def _acquire(self) -> None:
        if not self._lock.acquire(blocking=False):
            if self._holder == threading.get_ident():
                raise OperationError(
                    "an asynchronous operation on this index is under way in this thread: await "
                    "it before a synchronous one, or await both"
                )
            self._lock.acquire()
        self._holder = threading.get_ident()

    async def _poll(self) -> None:
        while not self._lock.acquire(blocking=False):
            await asyncio.sleep(_POLL_SECONDS)
        self._holder = threading.get_ident()  # the event loop's thread


def own_folder(folder: Path) -> tuple[Guard, Callable[[], None]]:
    """Reserve a folder for this process, and return its guard and a function that releases it.

    A process can reserve a folder several times; all share one guard. The operating system releases
    the folder when the process ends, however it ends.

    Raises FolderInUseError if another process has the folder: Chroma's files are silently damaged
    when two processes write to them.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder.resolve()
    lock = FileLock(path / "lock", is_singleton=True, thread_local=False)
    owner = path / "owner"
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise FolderInUseError(_in_use_message(folder, owner)) from None
    except OSError as error:
        raise FileError(
            f"{folder} cannot be written ({error}), and Chroma needs that also to read: make it "
            "writable, or open a copy of it"
        ) from error
    owner.write_text(f"{os.getpid()} {socket.gethostname()}", encoding="utf-8")
    with _guards_lock:
        guard = _guards.setdefault(path, Guard(path))
    return guard, lock.release


def _in_use_message(folder: Path, owner: Path) -> str:
    try:
        number, host = owner.read_text(encoding="utf-8").split(maxsplit=1)
        process = f"process {number} on {host}"
        if host == socket.gethostname() and not is_running(int(number)):
            return (
                f"{folder} was open in {process}, which has ended without removing its lock, as "
                "happens on file systems that have no locks: if nobody else has the folder open, "
                f"delete {folder / 'lock'}"
            )
    except (OSError, ValueError):
        process = "another process"
    return (
        f"{folder} is open in {process}, and one process at a time may have a Chroma folder open. "
        f"Close it there; or, for several processes, run `chroma run --path {folder / 'chroma'}` "
        "and pass client=chromadb.HttpClient() and a docstore that they share, such as "
        "PostgreSQL's or Redis's"
    )


def is_running(process: int) -> bool:
    """Whether a process of this machine has not ended, as far as can be told."""
    if os.name != "posix":  # where signal 0 would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
