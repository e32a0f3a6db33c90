"""The keyword index: BM25 over the children, in SQLite's full-text search."""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_splitters.sqlite import Database, delete_database, encode
from rag_splitters.text.terms import final_characters, is_single_character, text_terms

_MAX_TERMS = 256  # of a question; SQLite parses no expression deeper than a thousand
_MAX_MATCHES = 2000  # deeper than any ranking is read
_FORMAT = 3  # of the file; a file of another format is made anew
_SCHEMA = """
CREATE TABLE IF NOT EXISTS children (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (terms, around, tokenize = 'ascii');
CREATE VIRTUAL TABLE IF NOT EXISTS vocabulary USING fts5vocab (words, row);
CREATE TABLE IF NOT EXISTS revisions (name TEXT NOT NULL);
"""
_IDS = "SELECT number, id FROM children WHERE number IN ({})"
# Not ORDER BY rank, which calculates the scores twice. A neighbour's word counts half.
_MATCHES = """
SELECT rowid, -bm25(words, 1.0, 0.5) AS score FROM words WHERE words MATCH ?
ORDER BY score DESC LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class KeywordMatches:
    """What a keyword index finds for a question."""

    best: list[tuple[str, float]]
    """The ids of the children that match best, and their scores (higher is better)."""
    others: dict[str, float]
    """The scores of the children that were asked about; 0 for those that hardly match."""
    coverage: float
    """How much of the question the best child covers: the share of its terms, weighted by how rare
    they are; from 0 to 1."""


class KeywordIndex:
    """Finds children by their words, with BM25 (Robertson and Walker 1994).

    It is SQLite's own, with k1 = 1.2 and b = 0.75, in a file or in memory. Words are stemmed, stop
    words dropped, and scripts without spaces taken in pairs of characters, as in
    `HashingEmbeddings`; a question of one such character finds every word that has it. Every update
    is one transaction. `revision` tells which state of the docstore the index knows; see
    `rag_splitters.parent_child.revisions`.

    >>> index = KeywordIndex(None)
    >>> index.update([[("a", "the red apple"), ("b", "blue skies")]], removed_ids=[])
    >>> [name for name, score in index.find("apples", 5).best]
    ['a']
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
        with_neighbours: bool = False,
    ) -> None:
        """Write and remove children in one transaction.

        Parameters:
            documents: id and text of each child to write, in the order of each document.
            removed_ids: ids to remove; missing ones are ignored.
            revision: the revision that the index knows afterwards; None: it knows none.
            with_neighbours: also find a child by the words of its two neighbours in its document,
                which count half.
        """
        cache: dict[str, tuple[str, ...]] = {}
        rows = [row for children in documents for row in _rows(children, cache, with_neighbours)]
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM revisions")
            self._remove(connection, [*removed_ids, *(name for name, _, _ in rows)])
            (last,) = connection.execute("SELECT COALESCE(MAX(number), 0) FROM children").fetchone()
            connection.executemany(
                "INSERT INTO children VALUES (?, ?)",
                [(number, name) for number, (name, _, _) in enumerate(rows, last + 1)],
            )
            connection.executemany(
                "INSERT INTO words (rowid, terms, around) VALUES (?, ?, ?)",
                [(number, *texts) for number, (_, *texts) in enumerate(rows, last + 1)],
            )
            if revision is not None:
                connection.execute("INSERT INTO revisions VALUES (?)", (revision,))

    def clear(self) -> None:
        """Remove everything."""
        with self._database.transaction() as connection:
            for table in ("revisions", "words", "children"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608  (our own names)

    def find(self, question: str, n: int, others: Sequence[str] = ()) -> KeywordMatches:
        """Find the n children that match best; equal ones are ordered by id.

        Parameters:
            question: the question.
            n: how many children.
            others: ids of children whose scores are wanted as well.
        """
        terms = list(dict.fromkeys(text_terms(question, {})))[:_MAX_TERMS]
        if not terms or n < 1:
            return KeywordMatches([], dict.fromkeys(others, 0.0), 0.0)
        with self._database.lock:
            patterns = [_token(term) + "*" * is_single_character(term) for term in terms]
            matches = self._database.read(_MATCHES, (" OR ".join(patterns), _MAX_MATCHES))
            scores: dict[int, float] = dict(matches)
            last = matches[min(n, len(matches)) - 1][1] if matches else 0.0
            numbers = [number for number, score in matches if score >= last]
            rows = self._database.read_in(_IDS, numbers)
            best = sorted(rows, key=lambda row: (-scores[row[0]], row[1]))[:n]
            coverage = self._coverage(patterns, best[0][0]) if best else 0.0
            number_of = self._numbers(others)
        return KeywordMatches(
            [(name, scores[number]) for number, name in best],
            {name: scores.get(number_of.get(name, 0), 0.0) for name in others},
            coverage,
        )

    def _coverage(self, patterns: Sequence[str], number: int) -> float:
        """How much of the question's terms the child with this number has."""
        terms = [pattern.rstrip("*") for pattern in patterns]
        singles = [term for term, pattern in zip(terms, patterns, strict=True) if term != pattern]
        ((count,),) = self._database.read("SELECT COUNT(*) FROM children")
        query = "SELECT term, doc FROM vocabulary WHERE term IN ({})"
        frequencies = dict(self._database.read_in(query, terms))
        weights = {
            term: math.log(1 + (count + 0.5) / (frequencies.get(term, 0) + 0.5)) for term in terms
        }
        columns = self._database.read("SELECT terms, around FROM words WHERE rowid = ?", (number,))
        own = {term for column in columns[0] for term in column.split()}
        own |= {term[: len(single)] for single in singles for term in own}
        return sum(weights[term] for term in terms if term in own) / sum(weights.values())

    def list_ids(self) -> list[str]:
        """Return the ids of all children, in order."""
        return [name for (name,) in self._database.read("SELECT id FROM children ORDER BY id")]

    def count(self) -> int:
        """Return the number of children."""
        return int(self._database.read("SELECT COUNT(*) FROM children")[0][0])

    def close(self) -> None:
        """Close the file; what was kept in memory is lost."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
            self._opened = None

    def _numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of those of the ids that are children."""
        return dict(self._database.read_in("SELECT id, number FROM children WHERE id IN ({})", ids))

    def _remove(self, connection: sqlite3.Connection, ids: Sequence[str]) -> None:
        numbers = [(number,) for number in self._numbers(ids).values()]
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
            ((version,),) = database.read("PRAGMA user_version")
            if verdict != "ok" or version not in (0, _FORMAT):
                raise sqlite3.DatabaseError(f"{verdict}, format {version}")
            database.read(f"PRAGMA user_version = {_FORMAT}")
        except BaseException:
            database.close()
            raise
        return database


def _rows(
    children: Sequence[tuple[str, str]], cache: dict[str, tuple[str, ...]], with_neighbours: bool
) -> Iterable[tuple[str, str, str]]:
    """The id of each child, its own terms, and its neighbours'."""
    terms = ["", *(" ".join(_tokens(text, cache)) for _, text in children), ""]
    for number, (name, _) in enumerate(children, 1):
        around = f"{terms[number - 1]} {terms[number + 1]}" if with_neighbours else ""
        yield name, terms[number], around


def _tokens(text: str, cache: dict[str, tuple[str, ...]]) -> Iterable[str]:
    """Return a text's terms, and what single characters of scripts without spaces match."""
    return map(_token, [*text_terms(text, cache), *final_characters(text)])


def _token(term: str) -> str:
    """Return a term in letters that SQLite's ASCII tokenizer keeps whole."""
    is_plain = term.isascii() and term.isalnum()
    return f"w{term}" if is_plain else f"x{encode(term).hex()}"
