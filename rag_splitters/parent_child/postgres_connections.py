"""Connections to PostgreSQL: kept, opened again when they are lost, and hung up when silent."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.sql import Composed

__all__ = ["PostgresConnections", "Statement"]

Statement = tuple[str, Sequence[Any]]
"""A statement, and the values of its placeholders."""


class PostgresConnections:
    """As many connections as there are operations at once, each kept for the next.

    Parameters:
        url: as psycopg takes it.
        timeout: seconds that the server has to answer.

    Raises: ImportError without the extra `postgres`; ValueError for a URL that cannot be read.
    """

    def __init__(self, url: str, timeout: float) -> None:
        self._settings = _settings(url, timeout)
        self._timeout = timeout
        self._idle: list[AsyncConnection[Any]] = []

    @property
    def place(self) -> str:
        """The URL without user and password."""
        host, port, name = (self._settings.get(key) or "" for key in ("host", "port", "dbname"))
        return f"postgresql://{host}{port and ':'}{port}/{name}"

    async def transact(self, table: str, *statements: Statement) -> list[Any]:
        """The rows of each statement or, where it has none, how many it has touched.

        They happen together or not at all; where a connection is lost, they are sent once more.
        `{table}` in a statement is the table's name, `{literal}` the same as a string.
        """
        from psycopg import OperationalError, sql

        name = sql.Identifier(*table.replace("%", "%%").split("."))  # % is for placeholders
        literal = sql.Literal(name.as_string(None))
        composed = [
            (sql.SQL(query).format(table=name, literal=literal), values)
            for query, values in statements
        ]
        if self._idle:
            kept = self._idle.pop()
            try:
                return await self._execute(kept, composed)
            except OperationalError:
                if not kept.broken:
                    raise
                await self.disconnect()  # the server was restarted, say: the others are lost too
        return await self._execute(await self._connect(), composed)

    async def disconnect(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            await self._idle.pop().close()

    async def _execute(
        self,
        connection: AsyncConnection[Any],
        statements: Sequence[tuple[Composed, Sequence[Any]]],
    ) -> list[Any]:
        from psycopg import sql

        try:
            if len(statements) == 1:
                results = [await self._ask(connection, *statements[0])]
            else:
                await self._ask(connection, sql.SQL("BEGIN"))
                results = [await self._ask(connection, *statement) for statement in statements]
                await self._ask(connection, sql.SQL("COMMIT"))
        except BaseException:
            await connection.close()  # which also undoes what was begun
            raise
        self._idle.append(connection)
        return results

    async def _ask(
        self, connection: AsyncConnection[Any], query: Any, values: Sequence[Any] = ()
    ) -> Any:
        from psycopg import OperationalError

        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._timeout, _hang_up, connection)
        try:
            cursor = await connection.execute(query, values, binary=True)
            return await cursor.fetchall() if cursor.description else cursor.rowcount
        except OperationalError as error:
            if loop.time() < timer.when():
                raise
            raise TimeoutError(f"no answer within {self._timeout:g} seconds") from error
        finally:
            timer.cancel()

    async def _connect(self) -> AsyncConnection[Any]:
        from psycopg import AsyncConnection

        # Nothing is prepared on the server: poolers such as PgBouncer do not keep that.
        return await AsyncConnection.connect(
            **self._settings, autocommit=True, prepare_threshold=None
        )


def _settings(url: str, timeout: float) -> dict[str, Any]:
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise ImportError(
            "PostgreSQL stores need psycopg: pip install 'rag-splitters[postgres]'"
        ) from error
    try:
        return {"connect_timeout": math.ceil(timeout), **conninfo_to_dict(url)}
    except ProgrammingError:
        raise ValueError(  # neither the URL nor the cause, for they may hold a password
            "the URL of PostgreSQL cannot be read: give postgresql://user:password@host/database"
        ) from None


def _hang_up(connection: AsyncConnection[Any]) -> None:
    """End a connection whose server is silent; whoever waits for it gets an error."""
    with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as line:
        line.shutdown(socket.SHUT_RDWR)
