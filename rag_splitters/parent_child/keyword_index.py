"""The keyword index: BM25 over the children, in SQLite's full-text search."""

from __future__ import annotations

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.vectors import neighbour_weights
from rag_splitters.sqlite import Database, delete_database, encode
from rag_splitters.text.terms import text_terms

_GAP = 64  # numbers left out between two documents: more than any smoothing reaches
_MAX_TERMS = 256  # of a question; SQLite parses no expression deeper than a thousand
_MAX_MATCHES = 2000  # deeper than any ranking is read
_SCHEMA = """
CREATE TABLE IF NOT EXISTS children (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (terms, tokenize = 'ascii');
CREATE TABLE IF NOT EXISTS revisions (name TEXT NOT NULL);
"""
_IDS = "SELECT number, id FROM children WHERE number IN ({})"
# Not ORDER BY rank, which calculates the scores twice.
_MATCHES = """
SELECT rowid, -bm25(words) AS score FROM words WHERE words MATCH ? ORDER BY score DESC LIMIT ?
"""


class KeywordIndex:
    """Finds children by their words, with BM25 (Robertson and Walker 1994).

    It is SQLite's own, with k1 = 1.2 and b = 0.75, in a file or in memory. Words are stemmed, stop
    words dropped, and scripts without spaces taken in pairs of characters, as in
    `HashingEmbeddings`. Every update is one transaction. `revision` tells which state of the
    docstore the index knows; see `rag_splitters.parent_child.revisions`.

    >>> index = KeywordIndex(None)
    >>> index.update([[("a", "the red apple"), ("b", "blue skies")]], removed_ids=[])
    >>> [name for name, score in index.find("apples", 5)]
    ['a']
    >>> [name for name, score in index.find("apples", 5, smoothing=0.6)]
    ['a', 'b']
    """

    def __init__(self, path: Path | None) -> None:
        """Use the file at `path`, or memory; it is opened when it is first needed."""
        self._path = path
        self._lock = threading.Lock()
        self._opened: Database | None = None
        self.is_usable = False  # may it be searched while it is being updated?

    @property
    def is_open(self) -> bool:
        """Has the index been used?"""
        return self._opened is not None

    @property
    def revision(self) -> str | None:
        """The revision of the docstore that the index knows; None if it knows none."""
        rows = self._database.read("SELECT name FROM revisions")
        return str(rows[0][0]) if rows else None

    def update(
        self,
        documents: Sequence[Sequence[tuple[str, str]]],
        removed_ids: Sequence[str],
        revision: str | None = None,
    ) -> None:
        """Write and remove children in one transaction.

        Parameters:
            documents: id and text of each child to write, in the order of each document.
            removed_ids: ids to remove; missing ones are ignored.
            revision: the revision that the index knows afterwards; None: it knows none.
        """
        cache: dict[str, tuple[str, ...]] = {}
        terms_of_documents = [
            [(name, " ".join(_tokens(text, cache))) for name, text in rows] for rows in documents
        ]
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM revisions")
            self._remove(
                connection, [*removed_ids, *(name for rows in documents for name, _ in rows)]
            )
            (last,) = connection.execute("SELECT COALESCE(MAX(number), 0) FROM children").fetchone()
            for rows in terms_of_documents:
                # Neighbours in a document get neighbouring numbers.
                numbered = [(last + _GAP + n, *row) for n, row in enumerate(rows)]
                connection.executemany(
                    "INSERT INTO children VALUES (?, ?)", [(n, name) for n, name, _ in numbered]
                )
                connection.executemany(
                    "INSERT INTO words (rowid, terms) VALUES (?, ?)",
                    [(n, terms) for n, _, terms in numbered],
                )
                last += _GAP + len(rows)
            if revision is not None:
                connection.execute("INSERT INTO revisions VALUES (?)", (revision,))

    def clear(self) -> None:
        """Remove everything."""
        with self._database.transaction() as connection:
            for table in ("revisions", "words", "children"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608  (our own names)

    def find(self, question: str, n: int, smoothing: float = 0.0) -> list[tuple[str, float]]:
        """Return the n children that match best, each with its score (higher is better).

        With `smoothing`, a child's score is the sum of its own and its neighbours', weighted by a
        Gaussian of this width in children.
        """
        terms = list(dict.fromkeys(_tokens(question, {})))[:_MAX_TERMS]
        if not terms or n < 1:
            return []
        with self._database.lock:
            rows = self._database.read(_MATCHES, (" OR ".join(terms), _MAX_MATCHES))
            scores = _spread(rows, neighbour_weights(smoothing))
            best: list[tuple[str, float]] = []
            ranking = sorted(scores, key=scores.__getitem__, reverse=True)
            for numbers in batched(ranking, 2 * n):  # ids are looked up only as far as needed
                if len(best) >= n and scores[numbers[0]] < best[n - 1][1]:
                    break
                rows = self._database.read_in(_IDS, numbers)  # without those of no child
                best += [(name, scores[number]) for number, name in rows]
                best.sort(key=lambda match: (-match[1], match[0]))
        return best[:n]

    def list_ids(self) -> list[str]:
        """Return the ids of all children, in order."""
        return [name for (name,) in self._database.read("SELECT id FROM children ORDER BY id")]

    def close(self) -> None:
        """Close the file; what was kept in memory is lost."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
            self._opened = None

    def _remove(self, connection: sqlite3.Connection, ids: Sequence[str]) -> None:
        numbers = self._database.read_in("SELECT number FROM children WHERE id IN ({})", ids)
        connection.executemany("DELETE FROM words WHERE rowid = ?", numbers)
        connection.executemany("DELETE FROM children WHERE number = ?", numbers)

    @property
    def _database(self) -> Database:
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _open(self) -> Database:
        """Open the file; a damaged one is created again, and filled by the next search."""
        try:
            return self._open_sound()
        except sqlite3.DatabaseError as error:
            if self._path is None or isinstance(error, sqlite3.OperationalError):
                raise
        delete_database(self._path)
        return self._open_sound()

    def _open_sound(self) -> Database:
        # Not durable: an index that lost its last update in a power failure is rebuilt.
        database = Database(self._path, _SCHEMA, durable=False)
        try:
            ((verdict,),) = database.read("PRAGMA quick_check(1)")
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)
        except BaseException:
            database.close()
            raise
        return database


def _spread(rows: Iterable[tuple[int, float]], weights: Sequence[float]) -> dict[int, float]:
    """Add to the score of each child the weighted scores of its neighbours."""
    scores: dict[int, float] = defaultdict(float)
    for number, score in rows:
        scores[number] += score
        for distance, weight in enumerate(weights, 1):
            scores[number - distance] += weight * score
            scores[number + distance] += weight * score
    return scores


def _tokens(text: str, cache: dict[str, tuple[str, ...]]) -> Iterable[str]:
    """Return the terms in letters that SQLite's ASCII tokenizer keeps whole."""
    return (f"x{encode(term).hex()}" for term in text_terms(text, cache))
