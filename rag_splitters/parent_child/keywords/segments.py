"""How the keyword index is stored: in segments of arrays, which are added, merged and compacted.

Every update adds a segment: arrays of what stands in its children, whose numbers follow those of
the segment before it. Small segments are merged, as in a log-structured merge tree (O'Neil et al.
1996). A child that is removed stays in the arrays until most of their children are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from rag_splitters.parent_child.keywords.metadata_index import collect_runs, runs_dtype
from rag_splitters.parent_child.keywords.postings import POSTING, collect_postings
from rag_splitters.parent_child.records import REPRESENTS_KEY, SOURCE_KEY, Entry
from rag_splitters.sqlite import encode
from rag_splitters.text.terms import final_characters, identifier_terms, text_terms

_MERGED_SEGMENTS = 8
_MAX_MERGED = 2**15  # children of segments that are merged, so that no update takes long
_MAX_REMOVED = 1000  # children that stay in the arrays in any case

# A child's `parent` is the key under which its metadata names the parent, a NUL, and the parent's
# id. `piece` is how many numbers before a representation of a child that child is, and else 0.
SCHEMA = """
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
TABLES = ("children", "removed", "documents", "segments", "postings", "metadata")


@dataclass(frozen=True, slots=True)
class Segment:
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
    def of(cls, documents: Mapping[str, Sequence[Entry]], id_key: str) -> Segment:
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


def add_segment(connection: sqlite3.Connection, segment: Segment) -> None:
    """Write a segment behind the others, and merge those that are small."""
    if not segment.ids:
        return
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
    _merge_segments(connection)


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


def compact(connection: sqlite3.Connection) -> None:
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
        dtype = POSTING if table == "postings" else runs_dtype(name.split(b" ")[0].decode())
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
