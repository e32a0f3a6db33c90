"""Access to SQLite, for every part of the package that stores something in a file."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_TIMEOUT = 60  # seconds to wait for another connection's write
_MAX_VARIABLES = 500  # well under the limit of the oldest SQLite, which is 999
# SQLite's default of 4,096 bytes wastes a third of the file on rows of 2 kB, such as parents.
_PAGE_SIZE = 16_384
# In kB, and filled as pages are read. With SQLite's default of 2,000, nearly each of the 300 rows
# that a query reads from an index of 80,000 children is copied from the file.
_CACHE_SIZE = 32_000


class Database:
    """A SQLite file that every thread of the process may use through one connection.

    The file is in WAL mode: several processes may have it open, readers never wait, and writers
    wait for each other.

    Parameters:
        path: the file. If it does not exist, it is created with its folder, readable by its owner
            alone. None keeps everything in memory.
        schema: statements that create the tables that do not exist yet.
        durable: whether a committed transaction survives a power failure. If not, the last few
            transactions may be lost, and writing is faster.

    Raises sqlite3.Error if the file cannot be opened or is not a database.

    >>> database = Database(None, "CREATE TABLE IF NOT EXISTS ages (name, age)")
    >>> database.write_many("INSERT INTO ages VALUES (?, ?)", [("Ann", 42), ("Bob", 7)])
    2
    >>> database.read_in("SELECT age FROM ages WHERE name IN ({})", ["Bob", "Eve"])
    [(7,)]
    """

    def __init__(self, path: Path | None, schema: str, *, durable: bool = True) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Only a new file: to close one that is there drops the locks that SQLite holds on it in
            # this process, and another process that closes it then deletes its log.
            with suppress(OSError):  # it is there, or the error of SQLite below says more
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self.lock = threading.RLock()
        """Hold it for several reads with no write of another thread in between."""
        self._connection = sqlite3.connect(
            ":memory:" if path is None else path,
            timeout=_TIMEOUT,
            check_same_thread=False,
            isolation_level=None,
        )
        try:
            self._connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")  # of a new file
            self._use_wal()
            self._connection.execute(f"PRAGMA cache_size = -{_CACHE_SIZE}")
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._connection.executescript(schema)
        except BaseException:
            self._connection.close()
            raise

    def _use_wal(self) -> None:
        """Switch the file to WAL mode; SQLite itself does not wait for other processes here."""
        for attempt in range(_TIMEOUT * 20):
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or attempt == _TIMEOUT * 20 - 1:
                    raise
                time.sleep(0.05)

    def read(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.lock:
            return self._connection.execute(query, values).fetchall()

    def read_in(self, query: str, keys: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a query with `IN ({})` for any number of keys."""
        rows: list[tuple[Any, ...]] = []
        for start in range(0, len(keys), _MAX_VARIABLES):
            batch = keys[start : start + _MAX_VARIABLES]
            rows += self.read(query.format(", ".join("?" * len(batch))), batch)
        return rows

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Make several reads with no write of another thread or process in between."""
        with self.lock:
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def write_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> int:
        """Run a statement for each row, all or none, and return how many table rows changed."""
        with self.transaction() as connection:
            count = connection.executemany(statement, rows).rowcount
            return max(count, 0)  # it is -1 if there were no rows

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run statements that take effect together, or not at all if one of them raises."""
        with self.lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite itself rolls back when a disk is full
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file; the database cannot be used afterwards."""
        with self.lock:
            self._connection.close()


def delete_database(path: Path) -> None:
    """Delete a database's file and the files that SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def encode(text: str) -> bytes:
    """Encode a text as UTF-8 that keeps lone surrogates and NUL, which SQLite's TEXT does not."""
    return text.encode("utf-8", "surrogatepass")


def decode(content: bytes) -> str:
    """Decode the bytes that `encode` returned."""
    return content.decode("utf-8", "surrogatepass")
