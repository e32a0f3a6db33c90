"""Merging children that match and lie side by side in their document into one passage."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_splitters.parent_child.records import SOURCE_KEY, Entry, restore_child
from rag_splitters.parent_child.stores import Match, Stores
from rag_splitters.text.ids import chunk_id

# A score is a number and the matches are JSON, because the frameworks rebuild results from text and
# metadata (caches, compressors, vector stores), and a vector store accepts nothing nested. A field
# of a subclass would be lost on the way.
SCORE_KEY, MATCHES_KEY = "score", "matches"


@dataclass(frozen=True, slots=True)
class _Run:
    """Children that lie side by side: their ranks, the best first, and where the passage is."""

    ranks: list[int]
    start: int | None = None
    end: int | None = None


async def merge_children(
    stores: Stores, matches: Sequence[Match], parents: Mapping[str, Entry], k: int, size: int
) -> list[Entry]:
    """Return the first k passages that result when neighbouring children are merged.

    Children are taken in the order of their rank until they would make more than k. Two are
    neighbours if only white space is between them; text that both have is not repeated. A passage
    grows to at most `size` characters. A child without positions stays by itself.
    """
    documents = await _read_documents(stores, matches)
    runs = _first_runs(matches, documents, k, size)
    return [_build_passage(stores, run, matches, documents, parents) for run in runs]


async def _read_documents(stores: Stores, matches: Sequence[Match]) -> dict[str, Entry]:
    """Return the source documents of the children, by identity, if there is a record of them."""
    identities = {match.child.metadata.get(SOURCE_KEY) for match in matches}
    ordered = sorted(each for each in identities if isinstance(each, str))
    records = zip(ordered, await stores.read_records(ordered), strict=True)
    return {identity: record.document for identity, record in records if record is not None}


def _first_runs(
    matches: Sequence[Match], documents: Mapping[str, Entry], k: int, size: int
) -> list[_Run]:
    """Return the runs of as many children as make no more than k: by doubling, then by halving."""
    runs: list[_Run] = []
    few_enough, too_many, count = 0, len(matches) + 1, 1
    while few_enough < count < too_many:
        candidates = _runs(matches[:count], documents, size)
        if len(candidates) > k:
            too_many = count
        else:
            runs, few_enough = candidates, count
        count = min(2 * few_enough or 1, (few_enough + too_many) // 2)
    return runs


def _runs(matches: Sequence[Match], documents: Mapping[str, Entry], size: int) -> list[_Run]:
    """Return the children in runs, that of the best child first."""
    spans: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    runs: list[_Run] = []
    for rank, match in enumerate(matches):
        start, end = (match.child.metadata.get(key) for key in ("start_index", "end_index"))
        identity = match.child.metadata.get(SOURCE_KEY, "")
        if identity in documents and isinstance(start, int) and isinstance(end, int):
            spans[identity].append((start, end, rank))
        else:
            runs.append(_Run([rank]))
    for identity, own_spans in spans.items():
        runs += _join(sorted(own_spans), documents[identity], size)
    return sorted(runs, key=lambda run: run.ranks[0])


def _join(spans: Sequence[tuple[int, int, int]], document: Entry, size: int) -> list[_Run]:
    """Join the spans (start, end, rank) of a document, which are in order, into runs."""
    runs: list[_Run] = []
    for start, end, rank in spans:
        last = runs[-1] if runs else None
        if last and last.start is not None and last.end is not None:
            new_end = max(last.end, end)
            fits = new_end == last.end or new_end - last.start <= size
            if fits and not _text_between(document, last.end, start).strip():
                runs[-1] = _Run(sorted([*last.ranks, rank]), last.start, new_end)
                continue
        runs.append(_Run([rank], start, end))
    return runs


def _build_passage(
    stores: Stores,
    run: _Run,
    matches: Sequence[Match],
    documents: Mapping[str, Entry],
    parents: Mapping[str, Entry],
) -> Entry:
    best = matches[run.ranks[0]]
    parent = parents[best.child.metadata[stores.id_key]]
    child = restore_child(best.child, parent, stores.inherited_keys)
    added = describe_matches(best, [matches[rank] for rank in run.ranks])
    if run.start is None or run.end is None:
        return Entry(child.text, child.metadata | added, child.id)
    identity = best.child.metadata[SOURCE_KEY]
    text = _text_between(documents[identity], run.start, run.end)
    own = {key: value for key, value in child.metadata.items() if key != "chunk_index"}
    positions = {"start_index": run.start, "end_index": run.end}
    positions |= _pages_of([matches[rank].child for rank in run.ranks])
    return Entry(text, own | positions | added, chunk_id(identity, run.start, run.end, text))


def _pages_of(children: Sequence[Entry]) -> dict[str, int]:
    """Return the first and the last page that the children stand on, if they know them all."""
    pages = [child.metadata.get(key) for child in children for key in ("page_start", "page_end")]
    numbers = [page for page in pages if isinstance(page, int)]
    if len(numbers) < len(pages):
        return {}
    return {"page_start": min(numbers), "page_end": max(numbers)}


def _text_between(document: Entry, start: int, end: int) -> str:
    """Return what is between two positions; nothing if the end comes first."""
    offset = document.offset
    return document.text[start - offset : max(start, end) - offset]


def describe_matches(best: Match, matches: Sequence[Match] = ()) -> dict[str, Any]:
    """Return the metadata that a result has of its best match and, if given, of all its matches.

    These are the identity of the document, the score, and position and score of each match.
    """
    added = {key: value for key, value in best.child.metadata.items() if key == SOURCE_KEY}
    if best.score is not None:
        added[SCORE_KEY] = float(best.score)
    if matches:
        added[MATCHES_KEY] = json.dumps([_describe_match(match) for match in matches])
    return added


def read_matches(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the matches in the metadata of a result; none if it has none.

    >>> read_matches(describe_matches(Match(Entry("", {}), 0.5), [Match(Entry("", {}), 0.5)]))
    [{'score': 0.5}]
    """
    matches: list[dict[str, Any]] = json.loads(metadata.get(MATCHES_KEY, "[]"))
    return matches


def _describe_match(match: Match) -> dict[str, Any]:
    keys = ("start_index", "end_index")
    positions = {key: match.child.metadata[key] for key in keys if key in match.child.metadata}
    # Some stores return numbers of NumPy's, which JSON does not take.
    return positions | {SCORE_KEY: None if match.score is None else float(match.score)}
