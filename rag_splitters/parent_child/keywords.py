"""Keyword search over the children: BM25 in SQLite's full-text index."""

from __future__ import annotations

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from rag_splitters.parent_child.smoothing import neighbour_weights
from rag_splitters.parent_child.stores import parts
from rag_splitters.text.terms import text_terms

__all__ = ["KeywordIndex"]

_MOST_VARIABLES = 500
_GAP = 64  # numbers between two documents: more than any smoothing reaches
_MOST_TERMS = 256  # of a question; SQLite parses no expression deeper than a thousand
_SCHEMA = """
CREATE TABLE IF NOT EXISTS children (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (terms, tokenize = 'ascii');
CREATE TABLE IF NOT EXISTS stamps (stamp TEXT NOT NULL);
"""
_MOST_MATCHES = 2000  # of which the best are found; deeper than any ranking is read
# Not ORDER BY rank, which works the scores out twice.
_MATCHES = """
SELECT rowid, -bm25(words) AS score FROM words WHERE words MATCH ? ORDER BY score DESC LIMIT ?
"""


class KeywordIndex:
    """Finds children by their words, with BM25 (Robertson and Walker 1994).

    SQLite's own, with k1 = 1.2 and b = 0.75; kept in a file or, for None, in memory. Words are
    stemmed, stop words dropped, and scripts without spaces taken in pairs of characters, as in
    `HashingEmbeddings`. Every update is one transaction. The stamp tells which state of the
    docstore the index knows; see `rag_splitters.parent_child.state`. Neighbours in a document have
    neighbouring numbers, and between two documents many are left out.

    >>> index = KeywordIndex(None)
    >>> index.update([[("a", "the red apple"), ("b", "blue skies")]], forgotten=[])
    >>> [name for name, score in index.find("apples", 5)]
    ['a']
    >>> [name for name, score in index.find("apples", 5, smoothing=0.6)]
    ['a', 'b']
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
        documents: Sequence[Sequence[tuple[str, str]]],
        forgotten: Sequence[str],
        stamp: str | None = None,
    ) -> None:
        """Write and remove children at once.

        Parameters:
            documents: id and text of each child to write, in the order of each document.
            forgotten: ids to remove; those that are not there are passed over.
            stamp: the state that the index knows then; None: none, until it is told one.
        """
        known: dict[str, tuple[str, ...]] = {}
        terms = [
            [(name, " ".join(_tokens(text, known))) for name, text in rows] for rows in documents
        ]
        with self._lock, self._transaction() as run:
            run.execute("DELETE FROM stamps")
            self._forget(run, [*forgotten, *(name for rows in documents for name, _ in rows)])
            (last,) = run.execute("SELECT COALESCE(MAX(number), 0) FROM children").fetchone()
            for rows in terms:
                numbered = [(last + _GAP + n, *row) for n, row in enumerate(rows)]
                run.executemany(
                    "INSERT INTO children VALUES (?, ?)", [(n, name) for n, name, _ in numbered]
                )
                run.executemany(
                    "INSERT INTO words (rowid, terms) VALUES (?, ?)",
                    [(n, words) for n, _, words in numbered],
                )
                last += _GAP + len(rows)
            if stamp is not None:
                run.execute("INSERT INTO stamps VALUES (?)", (stamp,))

    def clear(self) -> None:
        """Remove everything."""
        with self._lock, self._transaction() as run:
            for table in ("stamps", "words", "children"):
                run.execute(f"DELETE FROM {table}")  # noqa: S608  (our own names)

    def find(self, question: str, n: int, smoothing: float = 0.0) -> list[tuple[str, float]]:
        """The n children that match best, each with its score (higher is better).

        With `smoothing` a child's score is the sum of its own and its neighbours', weighted by a
        Gaussian of this width in children.
        """
        terms = list(dict.fromkeys(_tokens(question, {})))[:_MOST_TERMS]
        if not terms or n < 1:
            return []
        weights = neighbour_weights(smoothing)
        with self._lock:
            matches = self._connection.execute(_MATCHES, (" OR ".join(terms), _MOST_MATCHES))
            scores: dict[int, float] = defaultdict(float)
            for number, score in matches.fetchall():
                scores[number] += score
                for distance, weight in enumerate(weights, 1):
                    scores[number - distance] += weight * score
                    scores[number + distance] += weight * score
            found: list[tuple[str, float]] = []
            ranked = sorted(scores, key=scores.__getitem__, reverse=True)
            for part in parts(ranked, 2 * n):  # names are looked up as far as they are needed
                if len(found) >= n and scores[part[0]] < found[n - 1][1]:
                    break
                found += [(name, scores[number]) for number, name in self._names(part)]
                found.sort(key=lambda match: (-match[1], match[0]))
        return found[:n]

    def close(self) -> None:
        """Close the file; what was kept in memory is gone."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
            self._opened = None

    def _names(self, numbers: Sequence[int]) -> list[tuple[int, str]]:
        """Those of the numbers that are children, with their ids."""
        found: list[tuple[int, str]] = []
        for part in parts(numbers, _MOST_VARIABLES):
            marks = ", ".join("?" * len(part))
            query = f"SELECT number, id FROM children WHERE number IN ({marks})"  # noqa: S608
            found += self._connection.execute(query, part).fetchall()
        return found

    def _forget(self, run: sqlite3.Connection, ids: Sequence[str]) -> None:
        for part in parts(ids, _MOST_VARIABLES):
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
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)
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
