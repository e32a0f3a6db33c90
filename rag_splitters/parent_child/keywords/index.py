"""The keyword index: BM25 over the children, in a file of SQLite's."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.parent_child.errors import CLOSED, StoreError
from rag_splitters.parent_child.keywords.metadata_index import evaluate, runs_dtype
from rag_splitters.parent_child.keywords.postings import POSTING, Corpus, rank
from rag_splitters.parent_child.keywords.segments import (
    SCHEMA,
    TABLES,
    Segment,
    add_segment,
    compact,
)
from rag_splitters.parent_child.lending import lend
from rag_splitters.parent_child.records import Entry
from rag_splitters.sqlite import Database, decode, delete_database, encode
from rag_splitters.text.terms import identifier_terms, is_single_character, text_terms

_MAX_TERMS = 256  # of a question
_MAX_TIED = 2000  # children with one score that are put in order
_FORMAT = 7  # of the file; a file of another format is made anew

_ENTRIES = """
SELECT entries FROM segments CROSS JOIN {} AS entries USING (segment)
WHERE name >= ? AND name <= ? ORDER BY segment
"""
_NUMBERS = "SELECT id, number, number - piece FROM children WHERE {} IN ({{}})"


@dataclass(frozen=True, slots=True)
class Revision:
    """A state of the docstore. Each one has the next number, and a name that no other one has."""

    number: int
    name: str


@dataclass(frozen=True, slots=True)
class KeywordMatches:
    """What a keyword index finds for a question."""

    best: dict[str, float]
    """The ids of the children that match best, and their scores (higher is better)."""
    others: dict[str, float]
    """The scores of the children that were asked about; 0 for those that do not match."""
    coverage: float
    """How much of the question the best child covers: the share of its terms, weighted by how rare
    they are; from 0 to 1."""


@dataclass(slots=True)
class _Cache:
    """What was read into memory since the index was changed last."""

    generation: int = -1
    corpora: dict[bool, Corpus] = field(default_factory=dict)
    """By whether they are for searches with neighbours."""
    filters: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    """Which children the last filter lets through, by its JSON."""
    pieces: dict[str, int] = field(default_factory=dict)
    """The numbers of the pieces of the children that were found last, by their ids."""


class KeywordIndex:
    """Finds children by their words, with BM25 (Robertson and Walker 1994), and by their metadata.

    It is kept in a file or in memory, with k1 = 1.2 and b = 0.75. Words are stemmed, stop words
    dropped, and scripts without spaces taken in pairs of characters, as in `HashingEmbeddings`; a
    question of one such character finds every word that has it. Names in code are found whole and
    by their parts. Every update is one transaction.
    `revision` tells which state of the docstore the index knows; see
    `rag_splitters.parent_child.revisions`.

    >>> index = KeywordIndex(None)
    >>> children = [Entry("the red apple", {}, "a"), Entry("blue skies", {}, "b")]
    >>> index.update({"a document": children})
    >>> list(index.find("apples", 5).best)
    ['a']
    """

    def __init__(self, path: Path | None) -> None:
        """Use the file at `path`, or memory; it is opened when it is first needed."""
        self.path = path
        self._lock = threading.Lock()
        self._opened: Database | None = None
        self._is_closed = False
        self._cached = _Cache()
        self.is_usable = False
        """Whether queries may use it during an update."""
        self.is_rebuilt = False
        """Whether it has been filled with the stored children since it was opened."""

    @property
    def is_open(self) -> bool:
        """Whether the index has been used."""
        return self._opened is not None

    @property
    def revision(self) -> Revision | None:
        """The revision of the docstore that the index knows; None if it knows none."""
        rows = self._database.read("SELECT value FROM state WHERE name = 'revision'")
        return Revision(**json.loads(rows[0][0])) if rows else None

    def update(
        self,
        documents: Mapping[str, Sequence[Entry]],
        revision: Revision | None = None,
        id_key: str = "",
    ) -> None:
        """Write documents in place of what the index has of them, in one transaction.

        Parameters:
            documents: the children of each document, in order, by the document's name; a document
                without children is removed.
            revision: the revision that the index knows afterwards; None: it knows none.
            id_key: the key in a child's metadata that holds its parent's id.
        """
        segment = Segment.of(documents, id_key)
        with self._database.transaction() as connection:
            self._remove(connection, list(documents), segment.ids)
            add_segment(connection, segment)
            compact(connection)
            connection.execute("DELETE FROM state WHERE name = 'revision'")
            if revision is not None:
                value = json.dumps({"number": revision.number, "name": revision.name})
                connection.execute("INSERT INTO state VALUES ('revision', ?)", (value,))
            _mark_change(connection)

    def clear(self) -> None:
        """Remove everything."""
        with self._database.transaction() as connection:
            for table in TABLES:
                connection.execute(f"DELETE FROM {table}")  # noqa: S608  (our own names)
            connection.execute("DELETE FROM state WHERE name = 'revision'")
            _mark_change(connection)

    def find(
        self,
        question: str,
        n: int,
        others: Sequence[str] = (),
        *,
        where: Mapping[str, Any] | None = None,
        allowed_ids: Sequence[str] | None = None,
        with_neighbours: bool = False,
    ) -> KeywordMatches:
        """Find the n children that match best; equal ones are ordered by id.

        Parameters:
            question: the question.
            n: how many children.
            others: ids of children whose scores are wanted as well.
            where: a filter of Chroma's on the children's metadata that passes `can_evaluate`.
            allowed_ids: the ids of the only children that may be found.
            with_neighbours: also find a child by the words of its neighbours in the document, which
                count half, and of the children behind these, which count a quarter.
        """
        terms = text_terms(question, {}) + identifier_terms(question)
        terms = list(dict.fromkeys(terms))[:_MAX_TERMS]
        if not terms or n < 1:
            return KeywordMatches({}, dict.fromkeys(others, 0.0), 0.0)
        with self._database.snapshot():
            corpus = self._read_corpus(with_neighbours)
            is_allowed = None if where is None else self._evaluate(where)
            if allowed_ids is not None:
                is_allowed = np.zeros(len(corpus.is_present), dtype=bool)
                is_allowed[list(self._numbers(allowed_ids).values())] = True
            rows = self._database.read_in(_NUMBERS.format("id"), others)
            number_of = {name: number for name, number, _ in rows}
            postings = [self._read_postings(term) for term in terms]
            ranking = rank(postings, corpus, list(number_of.values()), is_allowed)
            numbers = ranking.best(n, _MAX_TIED, is_allowed).tolist()
            best_rows = self._database.read_in(_NUMBERS.format("number"), numbers)
            names = {number: name for name, number, _ in best_rows}
            self._cache().pieces = {name: piece for name, _, piece in rows + best_rows}
        scores = ranking.scores
        order = sorted((-float(scores[number]), name, number) for number, name in names.items())[:n]
        return KeywordMatches(
            {name: -score for score, name, _ in order},
            {name: float(scores[number_of[name]]) if name in number_of else 0.0 for name in others},
            ranking.coverage(order[0][2]) if order else 0.0,
        )

    def documents_with(self, text: str) -> list[str] | None:
        """Return the names of the documents that have every term of a text; None if it has none."""
        terms = {term for term in text_terms(text, {}) if not term.startswith(" ")}
        if not terms:  # stop words or punctuation
            return None
        with self._database.snapshot():
            rows = self._database.read("SELECT name, first, last FROM documents ORDER BY first")
            firsts, lasts = (np.array([row[place] for row in rows], dtype=int) for place in (1, 2))
            has_all = np.ones(len(rows), dtype=bool)
            for term in terms:
                numbers = self._read_postings(term)["number"]
                places = np.searchsorted(firsts, numbers, side="right") - 1
                places, numbers = places[places >= 0], numbers[places >= 0]
                has_term = np.zeros(len(rows), dtype=bool)
                has_term[places[numbers <= lasts[places]]] = True
                has_all &= has_term
        return [decode(row[0]) for row, has in zip(rows, has_all, strict=True) if has]

    def list_allowed(self, where: Mapping[str, Any], ids: Sequence[str] | None = None) -> list[str]:
        """Return the ids of the children that a filter lets through.

        Parameters:
            where: a filter of Chroma's on metadata that passes `can_evaluate`.
            ids: the ids among which they are to be; None: all.
        """
        with self._database.snapshot():
            is_allowed = self._evaluate(where)
            if ids is not None:
                return [name for name, number in self._numbers(ids).items() if is_allowed[number]]
            numbers = np.flatnonzero(is_allowed & self._read_corpus().is_present)
            return list(self._names(numbers.tolist()).values())

    def count_allowed(self, where: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many children a filter lets through, and how many there are."""
        with self._database.snapshot():
            corpus = self._read_corpus()
            count = np.count_nonzero(self._evaluate(where) & corpus.is_present)
            return int(count), corpus.count

    def locate(self, ids: Sequence[str], id_key: str) -> dict[str, Entry]:
        """Return children with their parents and positions, and without text.

        Those whose text is no part of their document's are left out.

        Parameters:
            ids: the ids of the children.
            id_key: the key in a child's metadata that holds its parent's id.
        """
        query = "SELECT id, parent, start_index, end_index FROM children WHERE id IN ({})"
        children = {}
        for name, row, start, end in self._database.read_in(f"{query} AND parent IS NOT NULL", ids):
            key, _, parent = decode(row).partition("\0")
            if key == id_key:
                place = {id_key: parent, "start_index": start, "end_index": end}
                children[name] = Entry("", place, name)
        return children

    def lend(
        self,
        values: Mapping[str, float],
        lenders: int,
        limit: int,
        where: Mapping[str, Any] | None = None,
        is_closed: bool = False,
    ) -> list[str]:
        """Return the ids of the first children by their values; see `lending`.

        Parameters:
            values: the value of each child by itself, by its id, the best first.
            lenders: how many of them lend to their neighbours.
            limit: how many ids.
            where: a filter of Chroma's on the children's metadata that passes `can_evaluate`.
            is_closed: whether no others than these children may be returned.
        """
        with self._database.snapshot():
            number_of = self._piece_numbers(list(values))
            follows = self._read_corpus().is_next
            allowed = None if where is None else self._evaluate(where)
            if is_closed:
                allowed = np.zeros(len(follows), dtype=bool)
                allowed[list(number_of.values())] = True
            return lend(values, number_of, follows, lenders, limit, self._names, allowed)

    def list_ids(self) -> list[str]:
        """Return the ids of all children, in order."""
        return [name for (name,) in self._database.read("SELECT id FROM children ORDER BY id")]

    def count(self) -> int:
        """Return the number of children."""
        return int(self._database.read("SELECT COUNT(*) FROM children")[0][0])

    def close(self) -> None:
        """Close the file; what was kept in memory is lost."""
        with self._lock:
            opened, self._opened, self._is_closed = self._opened, None, True
        self._cached = _Cache()
        if opened is not None:  # without the lock, which those need that are reading
            opened.close()

    def _numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of those of the ids that are children."""
        rows = self._database.read_in(_NUMBERS.format("id"), ids)
        return {name: number for name, number, _ in rows}

    def _piece_numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Do the same, but with the number of its piece for a representation.

        The last `find` has read most of them.
        """
        pieces = self._cache().pieces
        rows = self._database.read_in(
            _NUMBERS.format("id"), [name for name in ids if name not in pieces]
        )
        numbers = {name: pieces[name] for name in ids if name in pieces}
        return numbers | {name: piece for name, _, piece in rows}

    def _names(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the ids of those of the numbers that are children."""
        query = "SELECT number, id FROM children WHERE number IN ({})"
        return dict(self._database.read_in(query, numbers))

    def _remove(
        self, connection: sqlite3.Connection, names: Sequence[str], ids: Sequence[str]
    ) -> None:
        """Remove documents, and other documents' children that have these ids."""
        keys = [encode(name) for name in names]
        query = "SELECT first, last FROM documents WHERE name IN ({})"
        places = self._database.read_in(query, keys)
        numbers = {number for first, last in places for number in range(first, last + 1)}
        numbers.update(self._numbers(ids).values())
        rows = [(number,) for number in sorted(numbers)]
        connection.executemany("INSERT OR IGNORE INTO removed VALUES (?)", rows)
        connection.executemany("DELETE FROM children WHERE number = ?", rows)
        connection.executemany("DELETE FROM documents WHERE name = ?", [(key,) for key in keys])

    def _cache(self) -> _Cache:
        rows = self._database.read("SELECT value FROM state WHERE name = 'generation'")
        generation = int(rows[0][0]) if rows else 0
        if self._cached.generation != generation:
            self._cached = _Cache(generation)
        return self._cached

    def _read_corpus(self, with_neighbours: bool | None = None) -> Corpus:
        """Return what BM25 needs; None: with or without neighbours, as it was read before."""
        corpora = self._cache().corpora
        if with_neighbours is None:
            with_neighbours = next(iter(corpora), False)
        if with_neighbours not in corpora:
            rows = self._database.read("SELECT lengths, follows FROM segments ORDER BY segment")
            lengths, follows = (
                np.frombuffer(b"".join(map(itemgetter(place), rows)), dtype=dtype)
                for place, dtype in enumerate(("<u4", "?"))
            )
            removed = [number for (number,) in self._database.read("SELECT number FROM removed")]
            corpora[with_neighbours] = Corpus.of(lengths, follows, removed, with_neighbours)
        return corpora[with_neighbours]

    def _read_postings(self, term: str) -> NDArray[np.void]:
        name = encode(term)
        last = name + b"\xff" if is_single_character(term) else name  # no term has this byte
        rows = self._database.read(_ENTRIES.format("postings"), (name, last))
        return np.frombuffer(b"".join(map(itemgetter(0), rows)), dtype=POSTING)

    def _read_runs(self, kind: str, key: str) -> NDArray[np.void]:
        name = encode(f"{kind} {key}")
        rows = self._database.read(_ENTRIES.format("metadata"), (name, name))
        return np.frombuffer(b"".join(map(itemgetter(0), rows)), dtype=runs_dtype(kind))

    def _evaluate(self, where: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Return which children a filter lets through; the last filter's are kept."""
        cache, text = self._cache(), json.dumps(where)
        if text not in cache.filters:
            size = len(self._read_corpus().is_present)
            cache.filters = {text: evaluate(where, size, self._read_runs)}
        return cache.filters[text]

    @property
    def _database(self) -> Database:
        with self._lock:
            if self._is_closed:
                raise StoreError(CLOSED)
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _open(self) -> Database:
        """Open the file; a damaged one is created again, and filled by the next search."""
        try:
            return self._open_sound()
        except sqlite3.DatabaseError as error:
            if self.path is None or isinstance(error, sqlite3.OperationalError):
                raise
        delete_database(self.path)
        return self._open_sound()

    def _open_sound(self) -> Database:
        # Not durable: an index that lost its last update in a power failure is brought in step.
        database = Database(self.path, SCHEMA, durable=False)
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


def _mark_change(connection: sqlite3.Connection) -> None:
    """Have what was read into memory read again."""
    connection.execute(
        "INSERT INTO state VALUES ('generation', 1) "
        "ON CONFLICT (name) DO UPDATE SET value = value + 1"
    )
