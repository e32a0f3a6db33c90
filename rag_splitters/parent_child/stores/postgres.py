"""A key-value store in PostgreSQL: one table of keys and JSON."""

from __future__ import annotations

import copy
import math
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

from rag_splitters.errors import InputError
from rag_splitters.extras import needs
from rag_splitters.parent_child.batching import MAX_ROWS, batched, bounded_requests
from rag_splitters.parent_child.errors import LockLostError
from rag_splitters.parent_child.stores.keyvalue import (
    HOLDER_KEY,
    TURN_KEY,
    KeyValueStore,
    StoreTurn,
    check_timeout,
    holder_value,
    is_as_expected,
)
from rag_splitters.parent_child.writing import Process

if TYPE_CHECKING:
    from psycopg import Connection


T = TypeVar("T")
Run = Callable[..., Any]
"""Runs a statement with values, and returns its rows or, if it has none, how many it changed."""

_MAX_NAME_BYTES = 63
_MAX_KEY_BYTES = 2600  # PostgreSQL's indexes take a little more
_LOCK = 0x72616753  # any number that others do not use

# bytea and not text, which holds neither NUL nor lone surrogates.
_CREATE = "CREATE TABLE IF NOT EXISTS {table} (key bytea PRIMARY KEY, value bytea NOT NULL)"
_READ = "SELECT key, value FROM {table} WHERE key = ANY(%b::bytea[])"
_READ_AND_LOCK = f"{_READ} FOR SHARE"
_LOCK_TABLE = "SELECT pg_advisory_xact_lock(%s, {literal}::regclass::oid::int)"
_CHANGE = (
    "WITH removed AS (DELETE FROM {table} WHERE key = ANY(%b::bytea[]) RETURNING 1), written AS "
    "(INSERT INTO {table} (key, value) SELECT * FROM unnest(%b::bytea[], %b::bytea[]) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value) SELECT count(*) FROM removed"
)
_TURN_LOCK = 0x72616754
_TRY_TURN = "SELECT pg_try_advisory_lock(%s, {literal}::regclass::oid::int)"
_END_TURN = "SELECT pg_advisory_unlock(%s, {literal}::regclass::oid::int)"
_COUNT_TURN = (
    "WITH holder AS (INSERT INTO {table} (key, value) VALUES (%b, %b) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value) "
    "INSERT INTO {table} AS old (key, value) VALUES (%b, '1') ON CONFLICT (key) DO UPDATE SET "
    "value = convert_to((convert_from(old.value, 'UTF8')::bigint + 1)::text, 'UTF8') "
    "RETURNING convert_from(value, 'UTF8')::bigint"
)
_KEYS = "SELECT key FROM {table} WHERE key >= %b AND key < %b ORDER BY key LIMIT 1000"


class PostgresStore(KeyValueStore):
    """Keeps JSON values under string keys in a table of PostgreSQL.

    Each `mset` and `mdelete` is one transaction. A connection that the server dropped is opened
    again. The table is created if it does not exist. A key may have 2,600 bytes in UTF-8.

    Parameters:
        url: `postgresql://user:password@host:port/database`, or libpq's `host=... dbname=...`.
        table: the table, or `schema.table`; stores with the same table share their rows.
        timeout: seconds to wait for the server to answer one request.

    Raises ImportError without the extra `postgres`, and ValueError for an invalid URL or a long
    name. The first connection is made when the store is first used.
    """

    def __init__(self, url: str, *, table: str = "rag_splitters", timeout: float = 30.0) -> None:
        check_timeout(timeout)
        if any(len(part.encode()) > _MAX_NAME_BYTES for part in table.split(".")):
            raise InputError(
                f"table must have at most {_MAX_NAME_BYTES} bytes, because PostgreSQL cuts longer "
                f"names short, got {table!r}"
            )
        self._settings, self._timeout = _settings(url, timeout), timeout
        self._idle: list[Connection[Any]] = []
        """The connections that are not in use."""
        self._session: Connection[Any] | None = None
        """The connection of the turn in which this store writes."""
        super().__init__()
        self._close_with(partial(_close_all, self._idle))
        self.table = table
        self._has_table = False
        from psycopg import Error

        self._failures = (Error, OSError)

    def __repr__(self) -> str:
        host, port, name = (self._settings.get(key) or "" for key in ("host", "port", "dbname"))
        place = f"postgresql://{host}{port and ':'}{port}/{name}"  # without user and password
        return f"{type(self).__name__}({place!r}, table={self.table!r})"

    def _read(self, keys: list[bytes]) -> dict[bytes, bytes]:
        values: dict[bytes, bytes] = {}
        for batch in batched(keys, MAX_ROWS):
            values.update(self._query(_READ, [batch]))
        return values

    def _change(
        self, expected: dict[bytes, bytes], rows: dict[bytes, bytes], removed: list[bytes]
    ) -> int | None:
        _check_keys(rows)
        batches = list(
            zip_longest(batched(removed, MAX_ROWS), bounded_requests(rows.items()), fillvalue=())
        )
        # In a turn, nobody else writes what an index owns.
        needs_lock = self._session is None or bool(expected)

        def change(run: Run) -> int | None:
            if needs_lock:
                run(_LOCK_TABLE, [_LOCK])
            if expected:
                values = dict(run(_READ_AND_LOCK, [list(expected)]))
                if not is_as_expected(values, expected):
                    return None
            counts = [
                run(_CHANGE, [list(keys), *([pair[n] for pair in pairs] for n in (0, 1))])
                for keys, pairs in batches
            ]
            removals: int = sum(count for ((count,),) in counts)
            return removals

        if not expected and not batches:
            return 0
        is_transaction = needs_lock or len(batches) > 1
        return self._run(change, is_transaction=is_transaction)

    def _take_turn(self) -> StoreTurn | None:
        try:
            return self._try_turn(self._take_connection())
        except LockLostError:  # it was idle: perhaps the server was restarted
            _close_all(self._idle)
            return self._try_turn(self._take_connection())

    def _try_turn(self, session: Connection[Any]) -> StoreTurn | None:
        """Take the lock with one connection, which is not replaced when it is lost."""
        store = copy.copy(self)
        store._session = session
        ((is_free,),) = store._query(_TRY_TURN, [_TURN_LOCK])
        if not is_free:
            self._idle.append(session)
            return None
        ((number,),) = store._query(_COUNT_TURN, [HOLDER_KEY, holder_value(), TURN_KEY])

        def end() -> None:
            with suppress(LockLostError):  # it ended with the connection
                store._query(_END_TURN, [_TURN_LOCK])
                self._idle.append(session)

        return store, number, end

    def _page(self, start: bytes, end: bytes) -> list[bytes]:
        return [key for (key,) in self._query(_KEYS, [start, end])]

    def _query(self, statement: str, values: Sequence[Any]) -> Any:
        return self._run(lambda run: run(statement, values), is_transaction=False)

    def _run(self, work: Callable[[Run], T], *, is_transaction: bool) -> T:
        """Run statements; in a turn, on its connection. Raises LockLostError if that is lost.

        Otherwise, if the connection is lost, they are run once more on another one.
        """
        from psycopg import OperationalError

        if self._session is not None:
            try:
                return self._run_on(self._session, work, is_transaction)
            except OperationalError as error:
                raise LockLostError(
                    f"the connection to PostgreSQL was lost during a write to an index ({error}): "
                    "run the same again"
                ) from error
        connection = self._take_connection()
        try:
            result = self._run_on(connection, work, is_transaction)
        except OperationalError:
            if not connection.broken:
                raise
            _close_all(self._idle)  # perhaps a restarted server: the others are lost too
            connection = self._take_connection()
            result = self._run_on(connection, work, is_transaction)
        self._idle.append(connection)
        return result

    def _run_on(
        self, connection: Connection[Any], work: Callable[[Run], T], is_transaction: bool
    ) -> T:
        """Run statements together or not at all; the connection is closed if one of them fails."""
        run = partial(self._run_statement, connection)
        try:
            if is_transaction:
                # Whatever the database's default: a statement sees what was written before it.
                run("BEGIN ISOLATION LEVEL READ COMMITTED")
            result = work(run)
            if is_transaction:
                run("COMMIT")
        except BaseException:
            connection.close()  # which also rolls back
            raise
        return result

    def _run_statement(
        self, connection: Connection[Any], statement: str, values: Sequence[Any] = ()
    ) -> Any:
        from psycopg import OperationalError, sql

        table = sql.Identifier(*self.table.replace("%", "%%").split("."))  # % is for placeholders
        literal = sql.Literal(table.as_string(None))
        query = sql.SQL(statement).format(table=table, literal=literal)
        start = time.monotonic()
        timer = threading.Timer(self._timeout, _hang_up, [connection])
        timer.daemon = True
        timer.start()
        try:
            cursor = connection.execute(query, values, binary=True)
            return cursor.fetchall() if cursor.description else cursor.rowcount
        except OperationalError as error:
            if time.monotonic() < start + self._timeout:
                raise
            raise TimeoutError(f"no answer within {self._timeout:g} seconds") from error
        finally:
            timer.cancel()

    def _take_connection(self) -> Connection[Any]:
        with suppress(IndexError):
            return self._idle.pop()
        from psycopg import Connection

        # Nothing is prepared on the server: poolers such as PgBouncer do not keep that.
        settings = {"application_name": str(Process.current()), **self._settings}
        connection = Connection.connect(**settings, autocommit=True, prepare_threshold=None)
        if not self._has_table:
            self._run_on(connection, _create_table, is_transaction=True)
            self._has_table = True
        return connection


def _create_table(run: Run) -> None:
    """Create the table, unless it exists: some users may not create one."""
    run("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    if run("SELECT to_regclass({literal})") == [(None,)]:
        run(_CREATE)


def _close_all(connections: list[Connection[Any]]) -> None:
    with suppress(IndexError):
        while True:
            connections.pop().close()


def _check_keys(rows: Iterable[bytes]) -> None:
    for key in rows:
        if len(key) > _MAX_KEY_BYTES:
            raise InputError(
                f"a key in PostgreSQL must not have more than {_MAX_KEY_BYTES} bytes, "
                f"got {len(key)}: {key[:40].decode('utf-8', 'replace')!r}..."
            )


def _settings(url: str, timeout: float) -> dict[str, Any]:
    with needs("PostgreSQL stores need psycopg", "postgres"):
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    try:
        return {"connect_timeout": math.ceil(timeout), **conninfo_to_dict(url)}
    except ProgrammingError:
        raise InputError(  # without the URL and the cause, which may contain a password
            "invalid PostgreSQL URL: use postgresql://user:password@host/database"
        ) from None


def _hang_up(connection: Connection[Any]) -> None:
    """End a connection whose server is silent, so that whoever waits for it gets an error."""
    with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as line:
        line.shutdown(socket.SHUT_RDWR)
