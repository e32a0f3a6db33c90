"""Locks on documents, for processes that write to the same docstore at the same time.

Each operation is a writer with a random name. In the docstore it has a row that is there as long as
it may write, a row with a count that it increases every few seconds, and a row for each document
that it has locked. Another writer waits for a document until its lock is gone. If the count does
not grow for `LEASE` seconds of watching, the holder is taken for dead and its first row is removed;
from then on its locks are void and the docstore takes nothing from it any more. No clock of one
machine is compared with that of another.

All of it rests on `AtomicDocstore.swap`. A docstore without it, such as LangChain's own stores,
admits one writing process; see `rag_splitters.parent_child.claims`.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from rag_splitters.calls import Call, call, run
from rag_splitters.ids import stable_uuid
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.claims import claim
from rag_splitters.parent_child.errors import LockLostError
from rag_splitters.parent_child.records import STATE_PREFIX, Entry
from rag_splitters.parent_child.stores import AtomicDocstore, Stores
from rag_splitters.text.surrogates import without_surrogates

LEASE = 10.0
"""Seconds without a sign of life after which a writer is taken for dead."""

_LOCK_PREFIX = f"{STATE_PREFIX}lock/"
_WRITER_PREFIX = f"{STATE_PREFIX}writer/"
_BEAT_PREFIX = f"{STATE_PREFIX}beat/"
_BEATS_PER_LEASE = 5
_SHORTEST_WAIT, _LONGEST_WAIT = 0.005, 0.1  # seconds between two looks at a lock
_ATTEMPTS = 3
_WRITE_BATCH = 1000

T = TypeVar("T")

_ended: set[str] = set()
"""Writers of this process that failed to give their locks back."""


_LOST = (
    "another process has taken over documents that this one was writing, because it showed no sign "
    "of life for too long: run the same again"
)


async def run_locked(
    stores: Stores, identities: Collection[str], work: Callable[[Stores], Awaitable[T]]
) -> T:
    """Do something while no other process writes these documents.

    Parameters:
        identities: the documents.
        work: what to do, with stores that refuse to write once the locks are lost. Then it is done
            again from the beginning, with the locks taken anew.

    Raises LockLostError if the locks are lost again and again, and DocstoreInUseError if the
    docstore admits one writing process and another one is writing.
    """
    docstore = stores.docstore
    if isinstance(docstore, _FencedDocstore) or not stores.is_shared:
        return await work(stores)
    if not isinstance(docstore, AtomicDocstore):
        async with claim(docstore):
            return await work(stores)
    for _ in range(_ATTEMPTS - 1):
        with suppress(LockLostError):
            return await _run_once(stores, docstore, identities, work)
    return await _run_once(stores, docstore, identities, work)


async def _run_once(
    stores: Stores,
    docstore: AtomicDocstore,
    identities: Collection[str],
    work: Callable[[Stores], Awaitable[T]],
) -> T:
    writer = _Writer(docstore, [_lock_key(identity) for identity in identities])
    try:
        await writer.acquire()
        result = await work(replace(stores, docstore=_FencedDocstore(docstore, writer.fence)))
    except BaseException:
        with suppress(Exception):  # the first error says more
            await writer.release()
        raise
    await writer.release()
    return result


async def remove_stale_locks(docstore: object) -> None:
    """Remove the locks of writers that are known to be dead."""
    if not isinstance(docstore, AtomicDocstore):
        return
    for keys in batched(await docstore.list_keys(_LOCK_PREFIX), _WRITE_BATCH):
        rows = dict(zip(keys, await docstore.read(keys), strict=True))
        names = {row.text for row in rows.values() if row is not None}
        living = await _living(docstore, names)
        stale = {key: row for key, row in rows.items() if row and row.text not in living}
        await docstore.swap(stale, [], list(stale))


class _Writer:
    """One operation, and the locks that it holds."""

    def __init__(self, docstore: AtomicDocstore, keys: Collection[str]) -> None:
        self.name = uuid.uuid4().hex
        self.fence: dict[str, Entry | None] = {_WRITER_PREFIX + self.name: _writer_row(self.name)}
        """What the docstore holds as long as this writer may write."""
        self._docstore = docstore
        self._keys = sorted(set(keys))
        self._held: set[str] = set()
        self._heart = _Heart(docstore, self.name)

    async def acquire(self) -> None:
        """Wait until all the locks are free, and take them.

        Everybody takes them in the same order, so that no two writers wait for each other.
        """
        watch = _Watch(self._docstore)
        await self._take(dict.fromkeys(self._keys))
        while len(self._held) < len(self._keys):
            rows = dict(zip(self._keys, await self._docstore.read(self._keys), strict=True))
            # They may be ours already, if the answer was lost and the request sent again.
            self._held = {key for key, row in rows.items() if row and row.text == self.name}
            holders = {row.text for row in rows.values() if row is not None}
            living = await _living(self._docstore, holders)
            if self._held and self.name not in living:
                raise LockLostError(_LOST)
            others = living - {self.name}
            locked = [key for key, row in rows.items() if row is not None and row.text in others]
            free = {key: row for key, row in rows.items() if not locked or key < locked[0]}
            await self._take({key: row for key, row in free.items() if key not in self._held})
            holder = rows[locked[0]] if locked else None
            if holder is not None:
                await watch.wait_for(holder.text)

    async def release(self) -> None:
        """Give all the locks back."""
        await call(self._heart.stop)
        removed = [*self._held, _WRITER_PREFIX + self.name, _BEAT_PREFIX + self.name]
        try:
            await self._docstore.swap(self.fence, [], removed)
        except BaseException:
            _ended.add(self.name)
            raise

    async def _take(self, rows: Mapping[str, Entry | None]) -> None:
        """Take the locks whose rows are as given, all or none."""
        if not rows:
            return
        locks = [(key, Entry(self.name, {}, key)) for key in rows]
        if self._held:
            is_taken = await self._docstore.swap({**self.fence, **rows}, locks, [])
        else:
            own = [(key, row) for key, row in self.fence.items() if row is not None]
            is_taken = await self._docstore.swap(rows, [*own, _beat_row(self.name, 0), *locks], [])
        if is_taken:
            self._held.update(rows)
            self._heart.start()


class _Heart:
    """Shows in the docstore, from a thread of its own, that a writer is alive."""

    def __init__(self, docstore: AtomicDocstore, name: str) -> None:
        self._docstore = docstore
        self._name = name
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rag_splitters lock", daemon=True)

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """End, and wait for a request that is under way."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        fence = {_WRITER_PREFIX + self._name: _writer_row(self._name)}
        count = 0
        while not self._stopping.wait(LEASE / _BEATS_PER_LEASE):
            count += 1
            with suppress(Exception):  # the next one may succeed, and the operation has its own
                run(self._docstore.swap(fence, [_beat_row(self._name, count)], []))


class _Watch:
    """Waits for the holder of a lock, and tells when it is dead."""

    def __init__(self, docstore: AtomicDocstore) -> None:
        self._docstore = docstore
        self._seen: tuple[str, Entry | None] | None = None
        self._watched = 0.0
        self._wait = _SHORTEST_WAIT

    async def wait_for(self, name: str) -> None:
        """Wait a little; end the writer if its count has not grown for as long as a lease."""
        (beat,) = await self._docstore.read([_BEAT_PREFIX + name])
        if self._seen != (name, beat):
            is_same_writer = self._seen is not None and self._seen[0] == name
            self._seen, self._watched = (name, beat), 0.0
            self._wait = self._wait if is_same_writer else _SHORTEST_WAIT
        elif self._watched >= LEASE:
            await _end(self._docstore, name, {_BEAT_PREFIX + name: beat})
            return
        await Call(partial(time.sleep, self._wait), partial(asyncio.sleep, self._wait))
        self._watched += self._wait  # and not by the clock, which runs while the server is away
        self._wait = min(2 * self._wait, _LONGEST_WAIT)


class _FencedDocstore:
    """A docstore that takes writes only while a writer holds its locks."""

    def __init__(self, docstore: AtomicDocstore, fence: Mapping[str, Entry | None]) -> None:
        self._docstore = docstore
        self._fence = fence

    def check(self, metadata: Mapping[str, Any]) -> None:
        self._docstore.check(metadata)

    async def read(self, keys: Sequence[str]) -> list[Entry | None]:
        return await self._docstore.read(keys)

    async def write(self, rows: Sequence[tuple[str, Entry]]) -> None:
        for batch in batched(rows, _WRITE_BATCH):
            await self.swap({}, batch, [])

    async def remove(self, keys: Sequence[str]) -> None:
        for batch in batched(keys, _WRITE_BATCH):
            await self.swap({}, [], batch)

    async def list_keys(self, prefix: str) -> list[str]:
        return await self._docstore.list_keys(prefix)

    async def swap(
        self,
        expected: Mapping[str, Entry | None],
        rows: Sequence[tuple[str, Entry]],
        removed: Sequence[str],
    ) -> bool:
        if await self._docstore.swap({**self._fence, **expected}, rows, removed):
            return True
        if None in await self._docstore.read(list(self._fence)):
            raise LockLostError(_LOST)
        return False


async def _living(docstore: AtomicDocstore, names: Collection[str]) -> set[str]:
    """Return those of the writers that may still write."""
    for name in _ended.intersection(names):
        await _end(docstore, name, {})
    ordered = sorted(names)
    rows = await docstore.read([_WRITER_PREFIX + name for name in ordered])
    return {name for name, row in zip(ordered, rows, strict=True) if row is not None}


async def _end(docstore: AtomicDocstore, name: str, expected: Mapping[str, Entry | None]) -> None:
    """Make all the locks of a writer void, if the rows are as expected."""
    await docstore.swap(expected, [], [_WRITER_PREFIX + name, _BEAT_PREFIX + name])


def _lock_key(identity: str) -> str:
    # A child keeps its document's identity without lone surrogates: both must name one lock.
    return _LOCK_PREFIX + stable_uuid(without_surrogates(identity))


def _writer_row(name: str) -> Entry:
    return Entry(name, {}, _WRITER_PREFIX + name)


def _beat_row(name: str, count: int) -> tuple[str, Entry]:
    return _BEAT_PREFIX + name, Entry(str(count), {}, _BEAT_PREFIX + name)
