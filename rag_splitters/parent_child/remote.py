"""Key-value stores on a server: they share one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Protocol

from rag_splitters.errors import InputError
from rag_splitters.parent_child.errors import StoreError
from rag_splitters.parent_child.keyvalue import KeyValueStore

_MAX_OPERATIONS = 4  # of one store at once

_loops: dict[int, asyncio.AbstractEventLoop] = {}
_lock = threading.Lock()


class Connections(Protocol):
    """The connections that a store has open."""

    async def disconnect(self) -> None:
        """Close them; more can be opened afterwards."""


class RemoteKeyValueStore(KeyValueStore):
    """A key-value store on a server, implemented by coroutine functions.

    They run in the package's own event loop, in a thread that all such stores share. So synchronous
    callers of any thread and asynchronous callers of any event loop, also of several in turn, use
    the same connections, and no caller's event loop is blocked.
    """

    def __init__(self, connections: Connections, timeout: float) -> None:
        if timeout <= 0:
            raise InputError(f"timeout must be more than 0 seconds, got {timeout}")
        super().__init__()
        self._slots = asyncio.Semaphore(_MAX_OPERATIONS)
        self._disconnect = weakref.finalize(self, _disconnect, connections, os.getpid())

    def close(self) -> None:
        """Close the connections; the store cannot be used afterwards."""
        super().close()
        disconnecting = self._disconnect()
        if disconnecting is not None:
            disconnecting.result()

    def _call(self, operation: Callable[..., Any], *args: Any) -> Any:
        return _submit(self._in_slot(operation, *args)).result()

    async def _acall(self, operation: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.wrap_future(_submit(self._in_slot(operation, *args)))

    async def _in_slot(self, operation: Callable[..., Any], *args: Any) -> Any:
        async with self._slots:
            if self._is_closed:
                raise StoreError(f"{self!r} is closed")
            return await operation(*args)


def _disconnect(connections: Connections, process: int) -> Future[None] | None:
    """Close the connections, unless they belong to the process before a fork."""
    is_ours = process == os.getpid() and process in _loops
    return _submit(connections.disconnect()) if is_ours else None


def _submit(work: Coroutine[Any, Any, Any]) -> Future[Any]:
    return asyncio.run_coroutine_threadsafe(work, _loop())


def _loop() -> asyncio.AbstractEventLoop:
    """Return this process's event loop; a fork does not inherit its thread, and gets another."""
    with _lock:
        if os.getpid() not in _loops:
            loop = asyncio.SelectorEventLoop()  # the only one that psycopg accepts on Windows
            threading.Thread(target=loop.run_forever, name="rag_splitters", daemon=True).start()
            _loops[os.getpid()] = loop
        return _loops[os.getpid()]
