"""The SQLite wrapper that every part of the package uses."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from rag_splitters.sqlite import Database, decode, delete_database, encode
from tests.support.processes import run_python

SCHEMA = "CREATE TABLE IF NOT EXISTS numbers (number INTEGER PRIMARY KEY, name BLOB)"
INSERT = "INSERT INTO numbers VALUES (?, ?)"


def test_reads_more_keys_than_a_statement_takes(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "new" / "file.sqlite", SCHEMA)) as database:
        rows = [(number, encode(f"name {number}")) for number in range(2500)]
        assert database.write_many(INSERT, rows) == 2500
        query = "SELECT number, name FROM numbers WHERE number IN ({})"
        assert sorted(database.read_in(query, range(2500))) == rows
        assert database.read_in(query, []) == []
        assert database.write_many(INSERT, []) == 0


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "file.sqlite", SCHEMA)) as database:
        with pytest.raises(sqlite3.IntegrityError):
            database.write_many(INSERT, [(1, b"one"), (2, b"two"), (1, b"again")])
        assert database.read("SELECT * FROM numbers") == []
        with suppress(KeyError), database.transaction() as connection:
            connection.execute(INSERT, (3, b"three"))
            raise KeyError
        assert database.read("SELECT * FROM numbers") == []


def test_many_connections_may_create_and_write_the_same_file_at_once(tmp_path: Path) -> None:
    def write(number: int) -> None:
        with closing(Database(tmp_path / "file.sqlite", SCHEMA)) as database:
            database.write_many(INSERT, [(number, b"")])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(64)))
    with closing(Database(tmp_path / "file.sqlite", SCHEMA)) as database:
        assert database.read("SELECT COUNT(*) FROM numbers") == [(64,)]


def test_another_process_that_closes_a_file_takes_nothing_from_two_connections(
    tmp_path: Path,
) -> None:
    """SQLite's locks are POSIX locks, which a process loses when it closes the file in any way."""
    path = tmp_path / "file.sqlite"
    with closing(Database(path, SCHEMA)) as first, closing(Database(path, SCHEMA)) as second:
        first.write_many(INSERT, [(1, b"")])
        run_python(
            "from pathlib import Path; from rag_splitters.sqlite import Database; "
            f"Database(Path({str(path)!r}), {SCHEMA!r}).close()"
        )
        first.write_many(INSERT, [(2, b"")])
        with closing(Database(path, SCHEMA)) as third:
            for database in (first, second, third):
                assert database.read("SELECT COUNT(*) FROM numbers") == [(2,)]


def test_threads_share_one_connection() -> None:
    with closing(Database(None, SCHEMA)) as database, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: database.write_many(INSERT, [(number, b"")]), range(200)))
        assert database.read("SELECT COUNT(*) FROM numbers") == [(200,)]


def test_deletes_the_files_beside_a_database_too(tmp_path: Path) -> None:
    database = Database(tmp_path / "file.sqlite", SCHEMA, durable=False)
    database.write_many(INSERT, [(1, b"")])
    assert len(list(tmp_path.iterdir())) > 1
    database.close()
    delete_database(tmp_path / "file.sqlite")
    delete_database(tmp_path / "file.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_refuses_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database " * 200)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        Database(tmp_path / "text", SCHEMA)


@pytest.mark.parametrize("text", ["", "a\0b", "lone \ud800", "\udfff", "日本語"])
def test_text_is_kept_exactly(text: str) -> None:
    assert decode(encode(text)) == text


def test_rows_of_two_kilobytes_fill_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file.sqlite"
    with closing(Database(path, SCHEMA)) as database:
        database.write_many(INSERT, [(number, bytes(2100)) for number in range(1000)])
    assert path.stat().st_size < 1.2 * 1000 * 2100
