"""The keyword index: BM25 over the children, in a file of SQLite's."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.parent_child.lending import lend
from rag_splitters.parent_child.metadata_index import RUNS, collect_runs, evaluate
from rag_splitters.parent_child.postings import POSTING, Corpus, collect_postings, rank
from rag_splitters.parent_child.records import REPRESENTS_KEY, SOURCE_KEY, Entry
from rag_splitters.sqlite import Database, decode, delete_database, encode
from rag_splitters.text.terms import (
    final_characters,
    identifier_terms,
    is_single_character,
    text_terms,
)

_MAX_TERMS = 256  # of a question
_MAX_TIED = 2000  # children with one score that are put in order
_MERGED_SEGMENTS = 8
_MAX_MERGED = 2**15  # children of segments that are merged, so that no update takes long
_MAX_REMOVED = 1000  # children that stay in the arrays in any case
_FORMAT = 7  # of the file; a file of another format is made anew

# Every update adds a segment: arrays of what stands in its children, whose numbers follow those of
# the segment before it. Small segments are merged, as in a log-structured merge tree (O'Neil et
# al. 1996). A child that is removed stays in the arrays until most of their children are. A child's
# `parent` is the key under which its metadata names the parent, a NUL, and the parent's id. `piece`
# is how many numbers before a representation of a child that child is, and else 0.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS children (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, parent BLOB, start_index, end_index, piece
);
CREATE TABLE IF NOT EXISTS removed (number INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS documents (name BLOB PRIMARY KEY, first, last) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS segments (segment INTEGER PRIMARY KEY, level, lengths, follows);
CREATE TABLE IF NOT EXISTS postings (
    segment INTEGER, name BLOB, entries BLOB, PRIMARY KEY (segment, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS metadata (
    segment INTEGER, name BLOB, entries BLOB, PRIMARY KEY (segment, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""
_TABLES = ("children", "removed", "documents", "segments", "postings", "metadata")
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
        self.path = None if path is None else path.resolve()
        self._lock = threading.Lock()
        self._opened: Database | None = None
        self._corpus: tuple[int, dict[bool, Corpus]] | None = None
        self._filter: tuple[int, str, NDArray[np.bool_]] | None = None
        self._pieces: tuple[int, dict[str, int]] = -1, {}
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
        segment = _Segment.of(documents, id_key)
        with self._database.transaction() as connection:
            self._remove(connection, list(documents), segment.ids)
            if segment.ids:
                _add_segment(connection, segment)
                _merge_segments(connection)
            _compact(connection)
            connection.execute("DELETE FROM state WHERE name = 'revision'")
            if revision is not None:
                value = json.dumps({"number": revision.number, "name": revision.name})
                connection.execute("INSERT INTO state VALUES ('revision', ?)", (value,))
            _mark_change(connection)

    def clear(self) -> None:
        """Remove everything."""
        with self._database.transaction() as connection:
            for table in _TABLES:
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
            pieces = {name: piece for name, _, piece in rows + best_rows}
            self._pieces = self._generation(), pieces
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

    def list_allowed(self, where: Mapping[str, Any]) -> list[str]:
        """Return the ids of the children that a filter lets through.

        Parameters:
            where: a filter of Chroma's on metadata that passes `can_evaluate`.
        """
        with self._database.snapshot():
            numbers = np.flatnonzero(self._evaluate(where) & self._read_corpus().is_present)
            return list(self._names(numbers.tolist()).values())

    def count_allowed(self, where: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many children a filter lets through, and how many there are."""
        with self._database.snapshot():
            corpus = self._read_corpus()
            count = np.count_nonzero(self._evaluate(where) & corpus.is_present)
            return int(count), corpus.count

    def allowed(self, where: Mapping[str, Any], ids: Sequence[str]) -> set[str]:
        """Return those of the ids whose children a filter lets through."""
        with self._database.snapshot():
            is_allowed = self._evaluate(where)
            return {name for name, number in self._numbers(ids).items() if is_allowed[number]}

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
            if self._opened is not None:
                self._opened.close()
            self._opened = self._corpus = self._filter = None
            self._pieces = -1, {}

    def _numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of those of the ids that are children."""
        rows = self._database.read_in(_NUMBERS.format("id"), ids)
        return {name: number for name, number, _ in rows}

    def _piece_numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Do the same, but with the number of its piece for a representation.

        The last `find` has read most of them.
        """
        pieces = self._pieces[1] if self._pieces[0] == self._generation() else {}
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

    def _generation(self) -> int:
        rows = self._database.read("SELECT value FROM state WHERE name = 'generation'")
        return int(rows[0][0]) if rows else 0

    def _read_corpus(self, with_neighbours: bool | None = None) -> Corpus:
        """Return what BM25 needs; None: with or without neighbours, as it was read before."""
        generation = self._generation()
        if self._corpus is None or self._corpus[0] != generation:
            self._corpus = generation, {}
        corpora = self._corpus[1]
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
        return np.frombuffer(b"".join(map(itemgetter(0), rows)), dtype=_runs_dtype(kind))

    def _evaluate(self, where: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Return which children a filter lets through; the last filter's are kept."""
        key = generation, text = self._generation(), json.dumps(where)
        if self._filter is None or self._filter[:2] != key:
            size = len(self._read_corpus().is_present)
            self._filter = generation, text, evaluate(where, size, self._read_runs)
        return self._filter[2]

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
            if self.path is None or isinstance(error, sqlite3.OperationalError):
                raise
        delete_database(self.path)
        return self._open_sound()

    def _open_sound(self) -> Database:
        # Not durable: an index that lost its last update in a power failure is brought in step.
        database = Database(self.path, _SCHEMA, durable=False)
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


@dataclass(frozen=True, slots=True)
class _Segment:
    """Children that are to be written together; they are numbered from 0."""

    ids: list[str]
    locations: list[tuple[bytes, int, int] | tuple[None, None, None]]
    pieces: list[int]
    """How many numbers before a representation of a child that child is."""
    places: dict[str, tuple[int, int]]
    """The first and the last child of each document."""
    lengths: NDArray[np.uint32]
    follows: NDArray[np.bool_]
    entries: dict[str, dict[str, NDArray[np.void]]]
    """What goes into the tables of arrays, by their names."""

    @classmethod
    def of(cls, documents: Mapping[str, Sequence[Entry]], id_key: str) -> _Segment:
        cache: dict[str, tuple[str, ...]] = {}
        children: dict[str, Entry] = {}
        places: dict[str, tuple[int, int]] = {}
        for name, own in documents.items():
            first = len(children)
            children.update((child.id or "", child) for child in own)
            if len(children) > first:
                places[name] = first, len(children) - 1
        terms = [_terms(child.searched_text, cache) for child in children.values()]
        follows = np.ones(len(terms), dtype=bool)
        follows[[first for first, _ in places.values()]] = False
        numbers = {name: number for number, name in enumerate(children)}
        pieces = [0] * len(children)
        for number, child in enumerate(children.values()):
            if piece := child.metadata.get(REPRESENTS_KEY):
                follows[number] = False
                pieces[number] = number - numbers.get(piece, number)
        runs = collect_runs([child.metadata for child in children.values()])
        entries = {
            "postings": collect_postings(terms),
            "metadata": {f"{kind} {key}": own for (kind, key), own in runs.items()},
        }
        lengths = np.array([len(own) for own in terms], dtype="<u4")
        locations = [_location(child, id_key) for child in children.values()]
        return cls(list(children), locations, pieces, places, lengths, follows, entries)


def _location(child: Entry, id_key: str) -> tuple[bytes, int, int] | tuple[None, None, None]:
    """Return a child's parent and positions, if its text is a part of its document's."""
    parent, span = child.metadata.get(id_key), child.span
    is_part = span is not None and span[1] - span[0] == len(child.text)
    is_part = is_part or REPRESENTS_KEY in child.metadata
    if span and is_part and isinstance(parent, str) and SOURCE_KEY in child.metadata:
        return encode(f"{id_key}\0{parent}"), *span
    return None, None, None


def _terms(text: str, cache: dict[str, tuple[str, ...]]) -> list[str]:
    """Return a text's terms, names in code, and characters of scripts without spaces."""
    return text_terms(text, cache) + identifier_terms(text) + final_characters(text)


def _runs_dtype(kind: str) -> np.dtype[np.void]:
    return RUNS[kind.removesuffix("[]")]


def _add_segment(connection: sqlite3.Connection, segment: _Segment) -> None:
    (size,) = connection.execute("SELECT TOTAL(LENGTH(lengths)) / 4 FROM segments").fetchone()
    (last,) = connection.execute("SELECT COALESCE(MAX(segment), 0) FROM segments").fetchone()
    first, number = int(size), last + 1
    children = zip(segment.ids, segment.locations, segment.pieces, strict=True)
    connection.executemany(
        "INSERT INTO children VALUES (?, ?, ?, ?, ?, ?)",
        ((n, name, *location, piece) for n, (name, location, piece) in enumerate(children, first)),
    )
    connection.executemany(
        "INSERT INTO documents VALUES (?, ?, ?)",
        [(encode(name), first + a, first + b) for name, (a, b) in segment.places.items()],
    )
    arrays = segment.lengths.tobytes(), segment.follows.tobytes()
    connection.execute("INSERT INTO segments VALUES (?, 0, ?, ?)", (number, *arrays))
    for table, entries in segment.entries.items():
        for array in entries.values():
            for field in set(array.dtype.names or ()) & {"number", "first", "last"}:
                array[field] += first
        rows = sorted((encode(name), array.tobytes()) for name, array in entries.items())
        _insert_entries(connection, table, number, rows)


def _insert_entries(
    connection: sqlite3.Connection, table: str, segment: int, rows: Iterable[tuple[bytes, bytes]]
) -> None:
    statement = f"INSERT INTO {table} VALUES (?, ?, ?)"  # noqa: S608  (our own names)
    connection.executemany(statement, ((segment, name, entries) for name, entries in rows))


def _merge_segments(connection: sqlite3.Connection) -> None:
    """Merge the last segments while there are enough that were merged equally often."""
    query = "SELECT segment, level, lengths, follows FROM segments ORDER BY segment DESC LIMIT ?"
    while True:
        segments = connection.execute(query, (_MERGED_SEGMENTS,)).fetchall()[::-1]
        levels = {level for _, level, _, _ in segments}
        lengths, follows = (b"".join(row[place] for row in segments) for place in (2, 3))
        is_large = len(follows) > _MAX_MERGED
        if len(segments) < _MERGED_SEGMENTS or len(levels) > 1 or is_large:
            return
        first, last = segments[0][0], segments[-1][0]
        connection.execute("DELETE FROM segments WHERE segment BETWEEN ? AND ?", (first, last))
        row = first, levels.pop() + 1, lengths, follows
        connection.execute("INSERT INTO segments VALUES (?, ?, ?, ?)", row)
        for table in ("postings", "metadata"):
            place = f"FROM {table} WHERE segment BETWEEN ? AND ?"
            query_entries = f"SELECT name, entries {place} ORDER BY name, segment"
            rows = connection.execute(query_entries, (first, last)).fetchall()
            connection.execute(f"DELETE {place}", (first, last))
            _insert_entries(connection, table, first, _join(rows))


def _join(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    for name, group in groupby(rows, key=itemgetter(0)):
        yield name, b"".join(map(itemgetter(1), group))


def _compact(connection: sqlite3.Connection) -> None:
    """Number the children anew, without those that were removed, if these are the most."""
    removed = [number for (number,) in connection.execute("SELECT number FROM removed")]
    (present,) = connection.execute("SELECT COUNT(*) FROM children").fetchone()
    if len(removed) <= present + _MAX_REMOVED:
        return
    is_present = np.ones(len(removed) + present, dtype=bool)
    is_present[removed] = False
    # How many children before each number stay: the new number, if the child itself stays.
    new_numbers = np.append([0], np.cumsum(is_present))
    query = "SELECT segment, lengths, follows FROM segments ORDER BY segment"
    start = 0
    for segment, lengths, follows in connection.execute(query).fetchall():
        stays = is_present[start : start + len(follows)]
        start += len(follows)
        documents = np.cumsum(~np.frombuffer(follows, dtype=bool))[stays]
        new_follows = np.append([False], documents[1:] == documents[:-1])[: len(documents)]
        new_lengths = np.frombuffer(lengths, dtype="<u4")[stays]
        row = new_lengths.tobytes(), new_follows.tobytes(), segment
        connection.execute("UPDATE segments SET lengths = ?, follows = ? WHERE segment = ?", row)
        for table in ("postings", "metadata"):
            place = f"FROM {table} WHERE segment = ?"
            rows = connection.execute(f"SELECT name, entries {place}", (segment,)).fetchall()
            connection.execute(f"DELETE {place}", (segment,))
            _insert_entries(connection, table, segment, _renumber(table, rows, new_numbers))
    rows = connection.execute("SELECT number, piece FROM children ORDER BY number").fetchall()
    connection.executemany(
        "UPDATE children SET number = ?, piece = ? WHERE number = ?",
        [(new, new - int(new_numbers[n - piece]), n) for new, (n, piece) in enumerate(rows)],
    )
    places = connection.execute("SELECT first, last, name FROM documents").fetchall()
    connection.executemany(
        "UPDATE documents SET first = ?, last = ? WHERE name = ?",
        [(int(new_numbers[a]), int(new_numbers[b + 1]) - 1, name) for a, b, name in places],
    )
    connection.execute("DELETE FROM removed")


def _renumber(
    table: str, rows: Iterable[tuple[bytes, bytes]], new_numbers: NDArray[np.int64]
) -> Iterator[tuple[bytes, bytes]]:
    """Return the entries with new numbers, without those of children that were removed."""
    for name, content in rows:
        dtype = POSTING if table == "postings" else _runs_dtype(name.split(b" ")[0].decode())
        entries = np.frombuffer(content, dtype=dtype)
        first, last = ("number",) * 2 if table == "postings" else ("first", "last")
        starts = new_numbers[entries[first]]
        ends = new_numbers[entries[last].astype(np.int64) + 1]
        stays = starts < ends
        if stays.any():
            entries = entries[stays]
            entries[last] = ends[stays] - 1
            entries[first] = starts[stays]
            yield name, entries.tobytes()


def _mark_change(connection: sqlite3.Connection) -> None:
    """Have what was read into memory read again."""
    connection.execute(
        "INSERT INTO state VALUES ('generation', 1) "
        "ON CONFLICT (name) DO UPDATE SET value = value + 1"
    )
