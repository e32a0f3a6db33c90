"""A key-value store in PostgreSQL: one table of keys and JSON."""

from __future__ import annotations

import copy
import math
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rag_splitters.errors import InputError, MissingExtraError
from rag_splitters.extras import install_command
from rag_splitters.parent_child.batching import MAX_ROWS, batched, bounded_requests
from rag_splitters.parent_child.errors import LockLostError
from rag_splitters.parent_child.keyvalue import (
    TURN_KEY,
    KeyValueStore,
    StoreTurn,
    is_as_expected,
)
from rag_splitters.parent_child.writing import Process

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed


Statement = tuple[str, Sequence[Any]]
"""A statement, and the values of its placeholders."""

_MAX_KEY_BYTES = 2600  # PostgreSQL's indexes take a little more
_LOCK = 0x72616753  # any number that others do not use

# bytea and not text, which holds neither NUL nor lone surrogates.
_CREATE = "CREATE TABLE IF NOT EXISTS {table} (key bytea PRIMARY KEY, value bytea NOT NULL)"
_READ = "SELECT key, value FROM {table} WHERE key = ANY(%b::bytea[])"
_READ_AND_LOCK = f"{_READ} FOR SHARE"
_WRITE = (
    "INSERT INTO {table} (key, value) SELECT * FROM unnest(%b::bytea[], %b::bytea[]) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_REMOVE = "DELETE FROM {table} WHERE key = ANY(%b::bytea[])"
_LOCK_TABLE: Statement = (
    "SELECT pg_advisory_xact_lock(%s, {literal}::regclass::oid::int)",
    [_LOCK],
)
_REMOVE_AND_WRITE = (
    "WITH removed AS (DELETE FROM {table} WHERE key = ANY(%b::bytea[]) RETURNING 1), written AS "
    "(INSERT INTO {table} (key, value) SELECT * FROM unnest(%b::bytea[], %b::bytea[]) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value) SELECT count(*) FROM removed"
)
_TURN_LOCK = 0x72616754
_TRY_TURN: Statement = (
    "SELECT pg_try_advisory_lock(%s, {literal}::regclass::oid::int)",
    [_TURN_LOCK],
)
_END_TURN: Statement = (
    "SELECT pg_advisory_unlock(%s, {literal}::regclass::oid::int)",
    [_TURN_LOCK],
)
_COUNT_TURN: Statement = (
    "INSERT INTO {table} AS old (key, value) VALUES (%b, '1') ON CONFLICT (key) DO UPDATE SET "
    "value = convert_to((convert_from(old.value, 'UTF8')::bigint + 1)::text, 'UTF8') "
    "RETURNING convert_from(value, 'UTF8')::bigint",
    [TURN_KEY],
)
_HOLDER: Statement = (
    "SELECT pid, application_name, host(client_addr) FROM pg_locks JOIN pg_stat_activity "
    "USING (pid) WHERE locktype = 'advisory' AND classid = %s AND objsubid = 2 AND granted "
    "AND objid = {literal}::regclass::oid AND database = "
    "(SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1",
    [_TURN_LOCK],
)
_KEYS = "SELECT key FROM {table} WHERE key >= %b AND key < %b ORDER BY key LIMIT 1000"


class PostgresKeyValueStore(KeyValueStore):
    """Keeps JSON values under string keys in a table of PostgreSQL.

    Each `mset` and `mdelete` is one transaction. A connection that the server dropped is opened
    again. The table is created if it does not exist. A key may have 2,600 bytes in UTF-8.

    Parameters:
        url: `postgresql://user:password@host:port/database`, or libpq's `host=... dbname=...`.
        table: the table, or `schema.table`; stores with the same table share their rows.
        timeout: seconds to wait for the server to answer one request.

    Raises ImportError without the extra `postgres`, and ValueError for an invalid URL. The first
    connection is made when the store is first used.
    """

    def __init__(self, url: str, *, table: str = "rag_splitters", timeout: float = 30.0) -> None:
        self._pool = PostgresConnections(url, timeout)
        self._session: Connection[Any] | None = None
        """The connection of the turn in which this store writes."""
        super().__init__()
        self._close_with(self._pool.disconnect)
        self.table = table
        self._has_table = False
        from psycopg import Error

        self._failures = (Error, OSError)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._pool.place!r}, table={self.table!r})"

    def _read(self, keys: list[bytes]) -> dict[bytes, bytes]:
        values: dict[bytes, bytes] = {}
        for batch in batched(keys, MAX_ROWS):
            (rows,) = self._transact((_READ, [batch]))
            values.update(rows)
        return values

    def _change(
        self, expected: dict[bytes, bytes], rows: dict[bytes, bytes], removed: list[bytes]
    ) -> int | None:
        removals: list[Statement] = [(_REMOVE, [batch]) for batch in batched(removed, MAX_ROWS)]
        writes = _write_statements(rows)
        if len(writes) == len(removals) == 1:
            removals, writes = [(_REMOVE_AND_WRITE, [*removals[0][1], *writes[0][1]])], []
        checks: list[Statement] = [(_READ_AND_LOCK, [list(expected)])] if expected else []
        # In a turn, nobody else writes what an index owns.
        locks = [] if self._session is not None and not expected else [_LOCK_TABLE]
        statements = [*locks, *checks, *removals, *writes]
        if statements == locks:
            return 0

        def go_on(results: list[Any]) -> bool:
            return not expected or len(results) != 2 or is_as_expected(dict(results[1]), expected)

        results = self._transact(*statements, go_on=go_on)
        if len(results) < len(statements):
            return None
        start = len(locks) + len(checks)
        counts = results[start : start + len(removals)]
        return sum(each if isinstance(each, int) else each[0][0] for each in counts)

    def _take_turn(self) -> StoreTurn | None:
        self._ensure_table()
        try:
            return self._try_turn(self._pool.take())
        except LockLostError:  # it was idle: perhaps the server was restarted
            self._pool.disconnect()
            return self._try_turn(self._pool.take())

    def _try_turn(self, session: Connection[Any]) -> StoreTurn | None:
        """Take the lock with one connection, which is not replaced when it is lost."""
        store = copy.copy(self)
        store._session = session
        (((is_free,),),) = store._transact(_TRY_TURN)
        if not is_free:
            self._pool.give_back(session)
            return None
        (((number,),),) = store._transact(_COUNT_TURN)

        def end() -> None:
            with suppress(LockLostError):  # it ended with the connection
                store._transact(_END_TURN)
                self._pool.give_back(session)

        return store, number, end

    def _describe_holder(self) -> str:
        (rows,) = self._transact(_HOLDER)
        if not rows:
            return "another process"
        ((number, name, address),) = rows
        return f"PostgreSQL's session {number} ({', '.join(filter(None, [name, address]))})"

    def _page(self, start: bytes, end: bytes) -> list[bytes]:
        (rows,) = self._transact((_KEYS, [start, end]))
        return [key for (key,) in rows]

    def _transact(
        self, *statements: Statement, go_on: Callable[[list[Any]], bool] | None = None
    ) -> list[Any]:
        self._ensure_table()
        return self._run(*statements, go_on=go_on)

    def _run(
        self, *statements: Statement, go_on: Callable[[list[Any]], bool] | None = None
    ) -> list[Any]:
        """Run statements; in a turn, with its connection. Raises LockLostError if that is lost."""
        from psycopg import OperationalError

        composed = _compose(self.table, statements)
        if self._session is None:
            return self._pool.transact(composed, go_on)
        try:
            return self._pool.execute(self._session, composed, go_on)
        except OperationalError as error:
            raise LockLostError(
                f"the connection to PostgreSQL was lost during a write to an index ({error}): run "
                "the same again"
            ) from error

    def _ensure_table(self) -> None:
        if not self._has_table:
            self._create_table()
            self._has_table = True

    def _create_table(self) -> None:
        """Create the table, unless it exists: some users may not create one."""
        (rows,) = self._run(("SELECT to_regclass({literal})", []))
        if rows == [(None,)]:
            lock = ("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            self._run(lock, (_CREATE, []))


class PostgresConnections:
    """A pool with as many connections as there are operations at once.

    Raises ImportError without the extra `postgres`, and ValueError for an invalid URL.
    """

    def __init__(self, url: str, timeout: float) -> None:
        if timeout <= 0:
            raise InputError(f"timeout must be more than 0 seconds, got {timeout}")
        self._settings = _settings(url, timeout)
        self._timeout = timeout
        self._idle: list[Connection[Any]] = []

    @property
    def place(self) -> str:
        """The URL without user and password."""
        host, port, name = (self._settings.get(key) or "" for key in ("host", "port", "dbname"))
        return f"postgresql://{host}{port and ':'}{port}/{name}"

    def transact(
        self,
        statements: Sequence[tuple[Composed, Sequence[Any]]],
        go_on: Callable[[list[Any]], bool] | None,
    ) -> list[Any]:
        """Run statements together or not at all; if a connection is lost, once more.

        Parameters:
            go_on: is given the results so far after each statement. If it returns False, everything
                is undone, and the results so far are returned.

        Returns the rows of each statement or, if it has none, how many it changed.
        """
        from psycopg import OperationalError

        connection = self.take()
        try:
            results = self.execute(connection, statements, go_on)
        except OperationalError:
            if not connection.broken:
                raise
            self.disconnect()  # perhaps a restarted server: the others are lost too
            connection = self.take()
            results = self.execute(connection, statements, go_on)
        self.give_back(connection)
        return results

    def take(self) -> Connection[Any]:
        """Return a connection for the caller's own use."""
        with suppress(IndexError):
            return self._idle.pop()
        return self._connect()

    def give_back(self, connection: Connection[Any]) -> None:
        """Take a connection back."""
        self._idle.append(connection)

    def disconnect(self) -> None:
        """Close the connections that are not in use."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def execute(
        self,
        connection: Connection[Any],
        statements: Sequence[tuple[Composed, Sequence[Any]]],
        go_on: Callable[[list[Any]], bool] | None,
    ) -> list[Any]:
        """Run statements on one connection, which is closed if one of them fails."""
        from psycopg import sql

        results: list[Any] = []
        try:
            if len(statements) == 1:
                results.append(self.run(connection, *statements[0]))
            else:
                # Whatever the database's default: a statement sees what was written before it.
                self.run(connection, sql.SQL("BEGIN ISOLATION LEVEL READ COMMITTED"))
                is_going_on = True
                for statement in statements:
                    results.append(self.run(connection, *statement))
                    is_going_on = go_on is None or go_on(results)
                    if not is_going_on:
                        break
                self.run(connection, sql.SQL("COMMIT" if is_going_on else "ROLLBACK"))
        except BaseException:
            connection.close()  # which also rolls back
            raise
        return results

    def run(self, connection: Connection[Any], query: Any, values: Sequence[Any] = ()) -> Any:
        """Run a statement, and return its rows or how many it changed."""
        from psycopg import OperationalError

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

    def _connect(self) -> Connection[Any]:
        from psycopg import Connection

        # Nothing is prepared on the server: poolers such as PgBouncer do not keep that.
        settings = {"application_name": str(Process.current()), **self._settings}
        return Connection.connect(**settings, autocommit=True, prepare_threshold=None)


def _compose(table: str, statements: Sequence[Statement]) -> list[tuple[Composed, Sequence[Any]]]:
    from psycopg import sql

    name = sql.Identifier(*table.replace("%", "%%").split("."))  # % is for placeholders
    literal = sql.Literal(name.as_string(None))
    return [
        (sql.SQL(query).format(table=name, literal=literal), values) for query, values in statements
    ]


def _write_statements(rows: dict[bytes, bytes]) -> list[Statement]:
    for key in rows:
        if len(key) > _MAX_KEY_BYTES:
            raise InputError(
                f"a key in PostgreSQL must not have more than {_MAX_KEY_BYTES} bytes, "
                f"got {len(key)}: {key[:40].decode('utf-8', 'replace')!r}..."
            )
    columns = (list(zip(*batch, strict=True)) for batch in bounded_requests(rows.items()))
    return [(_WRITE, [list(keys), list(values)]) for keys, values in columns]


def _settings(url: str, timeout: float) -> dict[str, Any]:
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        hint = install_command("postgres")
        raise MissingExtraError(f"PostgreSQL stores need psycopg: {hint}") from error
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
