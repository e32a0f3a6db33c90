"""Joining children that were found and lie side by side in their document into one passage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_splitters.parent_child.passages import SOURCE_KEY, Passage, base_of, full_child
from rag_splitters.parent_child.plan import records_of
from rag_splitters.parent_child.stores import Found, Stores
from rag_splitters.text.ids import chunk_id

__all__ = ["match_of", "merged_passages", "source_of"]


@dataclass(frozen=True, slots=True)
class _Run:
    """Ranks of the children that make a passage, the best first, and where the passage is."""

    ranks: list[int]
    start: int | None = None
    end: int | None = None


async def merged_passages(
    stores: Stores, found: Sequence[Found], parents: Mapping[str, Passage], k: int, size: int
) -> list[Passage]:
    """The first k passages that the children make when neighbours are joined.

    Children are taken in the order of their rank until they would make more than k. Two are
    neighbours where no more than white space is between them; text that both have is not repeated.
    A passage grows to at most `size` characters. A child without positions stays by itself.
    """
    documents = await _documents(stores, found)
    runs = _first_runs(found, documents, k, size)
    return [_passage(run, found, documents, parents, stores) for run in runs]


async def _documents(stores: Stores, found: Sequence[Found]) -> dict[str, Passage]:
    """The source documents of the children, as far as there is a record of them."""
    names = {match.child.metadata.get(SOURCE_KEY) for match in found}
    identities = sorted(name for name in names if isinstance(name, str))
    records = zip(identities, await records_of(stores, identities), strict=True)
    return {identity: record.document for identity, record in records if record is not None}


def _first_runs(
    found: Sequence[Found], documents: Mapping[str, Passage], k: int, size: int
) -> list[_Run]:
    """The runs of as many children as make no more than k: by doubling, then by halving."""
    runs: list[_Run] = []
    taken, refused, count = 0, len(found) + 1, 1
    while taken < count < refused:
        more = _runs(found[:count], documents, size)
        if len(more) > k:
            refused = count
        else:
            runs, taken = more, count
        count = min(2 * taken or 1, (taken + refused) // 2)
    return runs


def _runs(found: Sequence[Found], documents: Mapping[str, Passage], size: int) -> list[_Run]:
    """The children in runs, that of the best child first."""
    placed: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    runs: list[_Run] = []
    for rank, match in enumerate(found):
        start, end = (match.child.metadata.get(key) for key in ("start_index", "end_index"))
        identity = match.child.metadata.get(SOURCE_KEY, "")
        if identity in documents and isinstance(start, int) and isinstance(end, int):
            placed[identity].append((start, end, rank))
        else:
            runs.append(_Run([rank]))
    for identity, spans in placed.items():
        runs += _joined(sorted(spans), documents[identity], size)
    return sorted(runs, key=lambda run: run.ranks[0])


def _joined(spans: Sequence[tuple[int, int, int]], document: Passage, size: int) -> list[_Run]:
    """The spans of a document, which are in order, in runs."""
    runs: list[_Run] = []
    for start, end, rank in spans:
        last = runs[-1] if runs else None
        if last and last.start is not None and last.end is not None:
            reach = max(last.end, end)
            fits = reach == last.end or reach - last.start <= size
            if fits and not _text(document, last.end, start).strip():
                runs[-1] = _Run(sorted([*last.ranks, rank]), last.start, reach)
                continue
        runs.append(_Run([rank], start, end))
    return runs


def _passage(
    run: _Run,
    found: Sequence[Found],
    documents: Mapping[str, Passage],
    parents: Mapping[str, Passage],
    stores: Stores,
) -> Passage:
    best = found[run.ranks[0]]
    child = full_child(best.child, parents[best.child.metadata[stores.id_key]], stores.inherited)
    told = {
        **source_of(best),
        "score": best.score,
        "matches": [match_of(found[rank]) for rank in run.ranks],
    }
    if run.start is None or run.end is None:
        return Passage(child.text, child.metadata | told, child.id)
    identity = best.child.metadata[SOURCE_KEY]
    text = _text(documents[identity], run.start, run.end)
    own = {key: value for key, value in child.metadata.items() if key != "chunk_index"}
    places = {"start_index": run.start, "end_index": run.end}
    return Passage(text, own | places | told, chunk_id(identity, run.start, run.end, text))


def _text(document: Passage, start: int, end: int) -> str:
    """What is between two positions; nothing where they are the wrong way round."""
    base = base_of(document)
    return document.text[start - base : max(start, end) - base]


def source_of(found: Found) -> dict[str, Any]:
    """The document of a child, where it is told, under the key that results have it."""
    return {key: value for key, value in found.child.metadata.items() if key == SOURCE_KEY}


def match_of(found: Found) -> dict[str, Any]:
    """Where a child that matched is, and its score."""
    places = ("start_index", "end_index")
    told = {key: found.child.metadata[key] for key in places if key in found.child.metadata}
    return told | {"score": found.score}
