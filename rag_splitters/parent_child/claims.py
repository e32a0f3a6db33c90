"""One writing process at a time, on docstores that cannot compare and write in one step.

LangChain's own stores have no locks. While a process writes, a row of the docstore says so, and
another process that finds it refuses to write. Two that begin in the same instant may miss each
other, and stores that are not seen by both are not checked: see `rag_splitters.parent_child.locks`
for docstores that any number of processes may write to.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from rag_splitters.parent_child.errors import DocstoreInUseError
from rag_splitters.parent_child.guard import is_running
from rag_splitters.parent_child.records import STATE_PREFIX, Entry
from rag_splitters.parent_child.stores import Docstore

CLAIM_SECONDS = 60.0
"""How long the claim of a process counts that may have died; it is renewed with every batch."""

_KEY = f"{STATE_PREFIX}writing"
_names: dict[int, str] = {}


@asynccontextmanager
async def claim(docstore: Docstore) -> AsyncIterator[None]:
    """Keep a row in the docstore, as long as this process writes to it, that says so.

    Raises DocstoreInUseError if another process says so.
    """
    name = _names.setdefault(os.getpid(), uuid.uuid4().hex)  # a forked process has its own
    await _check(docstore, name)
    details = {"process": os.getpid(), "host": socket.gethostname(), "time": time.time()}
    await docstore.write([(_KEY, Entry(name, details, _KEY))])
    await _check(docstore, name)
    try:
        yield
    except BaseException:
        with suppress(Exception):  # the first error says more
            await docstore.remove([_KEY])
        raise
    await docstore.remove([_KEY])


async def _check(docstore: Docstore, name: str) -> None:
    (row,) = await docstore.read([_KEY])
    if row is None or row.text == name or not _is_alive(row):
        return
    details = row.metadata
    raise DocstoreInUseError(
        f"process {details['process']} on {details['host']} is writing to this docstore, which "
        "admits one writing process at a time. Write from there, or wait until it has finished; "
        "or use PostgresStore, RedisStore or SQLiteStore (LlamaIndex: PostgresKVStore, "
        "RedisKVStore or SQLiteKVStore), to which any number of processes may write. A process "
        f"that died is forgotten after {CLAIM_SECONDS:.0f} seconds"
    )


def _is_alive(row: Entry) -> bool:
    """Whether the process that wrote a claim may still be writing."""
    details = row.metadata
    if abs(time.time() - float(details["time"])) > CLAIM_SECONDS:
        return False
    number = int(details["process"])
    is_here = details["host"] == socket.gethostname()
    return not is_here or (number != os.getpid() and is_running(number))
