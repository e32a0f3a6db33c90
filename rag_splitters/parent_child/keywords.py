"""Keyword search over the children: BM25 in SQLite's full-text index."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from rag_splitters.models.hashing import text_terms

__all__ = ["KeywordIndex"]

_MOST_VARIABLES = 500
_MOST_TERMS = 256  # of a question; SQLite parses no expression deeper than a thousand
_SCHEMA = """
CREATE TABLE IF NOT EXISTS children (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (terms, tokenize = 'ascii');
CREATE TABLE IF NOT EXISTS stamps (stamp TEXT NOT NULL);
"""
_FIND = (
    "SELECT children.id, -bm25(words) FROM words JOIN children ON children.number = words.rowid "
    "WHERE words MATCH ? ORDER BY bm25(words), children.id LIMIT ?"
)


class KeywordIndex:
    """Finds children by their words, with BM25 (Robertson and Walker 1994).

    SQLite's own, with k1 = 1.2 and b = 0.75; kept in a file or, for None, in memory. Words are
    stemmed, stop words dropped, and scripts without spaces taken in pairs of characters, as in
    `HashingEmbeddings`. Every update is one transaction. The stamp tells which state of the
    docstore the index knows; see `rag_splitters.parent_child.state`.

    >>> index = KeywordIndex(None)
    >>> index.update([("a", "the red apple"), ("b", "blue skies")], forgotten=[])
    >>> [name for name, score in index.find("apples", 5)]
    ['a']
    """

    def __init__(self, path: Path | None) -> None:
        """Use the file at `path`, whose folder exists; it is opened when it is first needed."""
        self._path = path
        self._lock = threading.RLock()
        self._opened: sqlite3.Connection | None = None
        self.is_usable = False  # may it be searched while it is being brought up to date?

    @property
    def is_open(self) -> bool:
        """Has the index been used?"""
        return self._opened is not None

    @property
    def stamp(self) -> str | None:
        """The state of the docstore that the index knows; None for none that is known."""
        with self._lock:
            row = self._connection.execute("SELECT stamp FROM stamps").fetchone()
        return None if row is None else str(row[0])

    def update(
        self,
        rows: Sequence[tuple[str, str]],
        forgotten: Sequence[str],
        stamp: str | None = None,
    ) -> None:
        """Write and remove children at once.

        Parameters:
            rows: id and text of each child to write.
            forgotten: ids to remove; those that are not there are passed over.
            stamp: the state that the index knows then; None: the next `restamp` tells.
        """
        known: dict[str, tuple[str, ...]] = {}
        terms = [(name, " ".join(_tokens(text, known))) for name, text in rows]
        with self._lock, self._transaction() as run:
            run.execute("DELETE FROM stamps")
            self._forget(run, [*forgotten, *(name for name, _ in rows)])
            for name, words in terms:
                number = run.execute("INSERT INTO children (id) VALUES (?)", (name,)).lastrowid
                run.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (number, words))
            if stamp is not None:
                run.execute("INSERT INTO stamps VALUES (?)", (stamp,))

    def clear(self) -> None:
        """Remove everything."""
        with self._lock, self._transaction() as run:
            for table in ("stamps", "words", "children"):
                run.execute(f"DELETE FROM {table}")  # noqa: S608  (our own names)

    def find(self, question: str, n: int) -> list[tuple[str, float]]:
        """The n children that match best, each with its score (higher is better)."""
        terms = list(dict.fromkeys(_tokens(question, {})))[:_MOST_TERMS]
        if not terms or n < 1:
            return []
        with self._lock:
            return self._connection.execute(_FIND, (" OR ".join(terms), n)).fetchall()

    def close(self) -> None:
        """Close the file; what was kept in memory is gone."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
            self._opened = None

    def _forget(self, run: sqlite3.Connection, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), _MOST_VARIABLES):
            part = ids[start : start + _MOST_VARIABLES]
            marks = ", ".join("?" * len(part))
            query = f"SELECT number FROM children WHERE id IN ({marks})"  # noqa: S608
            numbers = run.execute(query, part).fetchall()
            run.executemany("DELETE FROM words WHERE rowid = ?", numbers)
            run.executemany("DELETE FROM children WHERE number = ?", numbers)

    def _transaction(self) -> _Transaction:
        return _Transaction(self._connection)

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> sqlite3.Connection:
        """The file's connection; a damaged file is made anew, and filled by `rebuild`."""
        try:
            return self._connect()
        except sqlite3.DatabaseError as error:
            if self._path is None or isinstance(error, sqlite3.OperationalError):
                raise
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        return self._connect()

    def _connect(self) -> sqlite3.Connection:
        name = ":memory:" if self._path is None else str(self._path)
        connection = sqlite3.connect(
            name, timeout=60, check_same_thread=False, isolation_level=None
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")  # lost with the power: built again
            connection.executescript(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection


class _Transaction:
    """All of its statements or none."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def __exit__(self, kind: object, *rest: object) -> None:
        self._connection.execute("COMMIT" if kind is None else "ROLLBACK")


def _tokens(text: str, known: dict[str, tuple[str, ...]]) -> Iterable[str]:
    """The terms in letters that SQLite's ASCII tokenizer keeps whole."""
    return (f"x{term.encode('utf-8', 'surrogatepass').hex()}" for term in text_terms(text, known))
