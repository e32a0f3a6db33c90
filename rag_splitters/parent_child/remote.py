"""Key-value stores on a server: one event loop for all, and requests of a bounded size."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, Protocol

from rag_splitters.parent_child.keyvalue import KeyValueStore, StoreError

__all__ = ["MOST_ROWS", "Connections", "RemoteKeyValueStore", "batches"]

MOST_ROWS = 500
"""How many rows a request may hold."""
_MOST_BYTES = 4_000_000
_MOST_OPERATIONS = 4

_loops: dict[int, asyncio.AbstractEventLoop] = {}
_lock = threading.Lock()


class Connections(Protocol):
    """The connections that a store has open."""

    async def disconnect(self) -> None:
        """Close them; more can be opened afterwards."""


class RemoteKeyValueStore(KeyValueStore):
    """A key-value store on a server, written in coroutine functions.

    They run in an event loop of the package's own, in a thread that all such stores share. So the
    connections are the same for synchronous callers of any thread and for asynchronous ones of any
    event loop, also of several in turn, and no caller's loop waits for a thread.
    """

    def __init__(self, connections: Connections, timeout: float) -> None:
        if timeout <= 0:
            raise ValueError(f"timeout must be more than 0 seconds, got {timeout}")
        super().__init__()
        self._room = asyncio.Semaphore(_MOST_OPERATIONS)
        self._disconnect = weakref.finalize(self, _disconnect, connections, os.getpid())

    def close(self) -> None:
        """Close the connections; the store cannot be used afterwards."""
        super().close()
        disconnecting = self._disconnect()
        if disconnecting is not None:
            disconnecting.result()

    def _call(self, operation: Callable[..., Any], *args: Any) -> Any:
        return _submit(self._in_room(operation, *args)).result()

    async def _acall(self, operation: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.wrap_future(_submit(self._in_room(operation, *args)))

    async def _in_room(self, operation: Callable[..., Any], *args: Any) -> Any:
        async with self._room:
            if self._is_closed:
                raise StoreError(f"{self!r} is closed")
            return await operation(*args)


def batches(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    """The rows in requests of a bounded size; a row that is larger goes alone.

    >>> [len(batch) for batch in batches([(b"key", bytes(1_500_000))] * 5)]
    [2, 2, 1]
    """
    batch: list[tuple[bytes, bytes]] = []
    size = 0
    for key, value in rows:
        size += len(key) + len(value)
        if batch and (size > _MOST_BYTES or len(batch) == MOST_ROWS):
            yield batch
            batch, size = [], len(key) + len(value)
        batch.append((key, value))
    if batch:
        yield batch


def _disconnect(connections: Connections, process: int) -> Future[None] | None:
    """Close the connections, if there are any that are not those of a process before a fork."""
    is_ours = process == os.getpid() and process in _loops
    return _submit(connections.disconnect()) if is_ours else None


def _submit(work: Coroutine[Any, Any, Any]) -> Future[Any]:
    return asyncio.run_coroutine_threadsafe(work, _loop())


def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of this process; a fork has not inherited its thread, and gets another."""
    with _lock:
        if os.getpid() not in _loops:
            loop = asyncio.SelectorEventLoop()  # the only one that psycopg takes on Windows
            threading.Thread(target=loop.run_forever, name="rag_splitters", daemon=True).start()
            _loops[os.getpid()] = loop
        return _loops[os.getpid()]
