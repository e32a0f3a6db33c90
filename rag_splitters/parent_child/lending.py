"""Which children a query takes: each lends its value to its neighbours in the document.

A child is worth its own score above the worst of the search, or `LENT_SHARE` per step of what a
neighbour is worth, whichever is more. Children are taken in that order until the budget is spent.
So a short piece of evidence comes alone, and a long one comes whole.
"""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rag_splitters.calls import call
from rag_splitters.parent_child.errors import DamagedRowsError
from rag_splitters.parent_child.options import Query
from rag_splitters.parent_child.passages import Budget, Passage, PassageBuilder, locate_child
from rag_splitters.parent_child.records import SOURCE_KEY, Entry
from rag_splitters.parent_child.stores import Match, Stores

LENT_SHARE = 0.8
"""Share of a child's value that its neighbour gets; the next one gets this share of that."""
_MAX_STEPS = 6  # a neighbour farther away would get less than a quarter
_FEWEST_LENDERS = 10
_CHILD_SIZE = 400  # characters; a guess that decides how many children are read at once

Load = Callable[[Sequence[Match]], Awaitable[Sequence[Match]]]
"""Loads children and their parents, without those that no longer exist."""
Neighbours = Mapping[str, Sequence[Sequence[str]]]
"""The ids of the children before a child and of those behind it, the nearest first."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The children that a search found, best first."""

    matches: Sequence[Match]
    is_complete: bool
    """Whether no more children can be found."""
    worst: float | None
    """The score of the worst child, also if a threshold leaves it out. Scores count from there,
    because the similarities of some models are all between 0.7 and 0.9, and distances fall."""

    def values(self) -> list[float]:
        """Return what each child is worth; if their scores do not say it, their ranks do."""
        values = [
            abs(match.score - self.worst)
            for match in self.matches
            if match.score is not None and self.worst is not None
        ]
        if len(values) == len(self.matches) and values == sorted(values, reverse=True):
            return values
        return [1 - rank / len(self.matches) for rank in range(len(self.matches))]


@dataclass(order=True, slots=True)
class _Candidate:
    """A child that may be taken; the first one in order is the next."""

    value: float
    """What it is worth, below zero."""
    lender: int
    """The rank of the child that lends it its value: a neighbour's, or its own."""
    rank: float
    """Its own rank; infinite if the search did not find it."""
    id: str = field(compare=False)


async def find_passages(
    stores: Stores, query: Query, ranking: Ranking, load: Load, parents: Mapping[str, Entry]
) -> tuple[list[Passage], bool]:
    """Return the passages that fit into the budget, best first, and whether they fill it.

    Parameters:
        load: loads children.
        parents: the parents that `load` has read, by id.
    """
    count = max(_FEWEST_LENDERS, 2 * Budget.of(query).characters // _CHILD_SIZE, query.limit)
    while True:
        # What the children below the first `count` could lend is less than what these are worth.
        builder = await _take_children(stores, query, ranking, count, load, parents)
        passages = builder.passages()
        if builder.is_full or count >= len(ranking.matches):
            return passages, builder.is_full or len(passages) >= query.limit
        count *= 2


async def _take_children(
    stores: Stores,
    query: Query,
    ranking: Ranking,
    count: int,
    load: Load,
    parents: Mapping[str, Entry],
) -> PassageBuilder:
    """Take children until the budget is spent, or until more lenders may change the order."""
    values, ids = ranking.values(), [match.child.id or "" for match in ranking.matches]
    lenders = ranking.matches[:count]
    neighbours = await find_neighbours(stores, query, lenders, ids)
    candidates = _candidates(values, ids, count, neighbours)
    floor = -values[count] if count < len(values) else 0.0
    budget = Budget.of(query)
    if query.max_tokens is None:
        best = await load(ranking.matches[: query.limit])
        places = {each.child.text: locate_child(each, 0, parents, stores.id_key) for each in best}
        budget.hold(each.end - each.start for each in places.values())
    builder = PassageBuilder(parents, budget)
    takers: set[int] = set()
    while candidates and candidates[0].value <= floor and not builder.is_full:
        batch = [heapq.heappop(candidates) for _ in range(min(count, len(candidates)))]
        children = await load([_match(each, ranking) for each in batch])
        located = {match.child.id: match for match in children}
        for each in batch:
            match = located.get(each.id)
            if match is None or builder.is_full or each.value > floor:
                continue
            rank = None if each.rank == float("inf") else int(each.rank)
            if each.lender != rank and each.lender not in takers:
                if rank is not None:  # its neighbour was a copy, so only its own value counts
                    heapq.heappush(candidates, _Candidate(-values[rank], rank, rank, each.id))
                continue
            if builder.add(locate_child(match, rank, parents, stores.id_key)) and rank is not None:
                takers.add(rank)
    return builder


def _match(candidate: _Candidate, ranking: Ranking) -> Match:
    if candidate.rank == float("inf"):
        return Match(Entry("", {}, candidate.id), None)
    return ranking.matches[int(candidate.rank)]


def _candidates(
    values: Sequence[float], ids: Sequence[str], count: int, neighbours: Neighbours
) -> list[_Candidate]:
    """Return the first children of a ranking and their neighbours, with what they are worth."""
    ranks = {name: rank for rank, name in enumerate(ids)}
    best = {
        name: _Candidate(-values[rank], rank, rank, name) for rank, name in enumerate(ids[:count])
    }
    for lender, name in enumerate(ids[:count]):
        for side in neighbours.get(name, ()):
            for steps, other in enumerate(side, 1):
                rank = ranks.get(other, float("inf"))
                lent = _Candidate(-values[lender] * LENT_SHARE**steps, lender, rank, other)
                if other not in best or lent.value < best[other].value:
                    best[other] = lent
    candidates = list(best.values())
    heapq.heapify(candidates)
    return candidates


async def find_neighbours(
    stores: Stores, query: Query, matches: Sequence[Match], ids: Sequence[str]
) -> Neighbours:
    """Return the neighbours of some children, up to the first that the filter leaves out.

    The keyword index knows them, and else the records of the documents do. Children that were
    chosen to be diverse lend nothing.

    Parameters:
        ids: the ids of all the children that the search found.
    """
    if query.search_type == "mmr":
        return {}
    children, neighbours = stores.children, dict[str, Sequence[Sequence[str]]]()
    if query.search_type == "hybrid" and stores.keywords is not None:
        names = [match.child.id or "" for match in matches]
        neighbours |= await call(stores.keywords.neighbours, names, _MAX_STEPS)
    else:
        neighbours |= await _neighbours_in_records(stores, matches)
    if not children.has_filter:
        return neighbours
    allowed = set(ids)
    if children.where is not None and stores.keywords is not None and query.search_type == "hybrid":
        others = list({name for sides in neighbours.values() for side in sides for name in side})
        allowed |= await call(stores.keywords.allowed, children.where, others)
    return {
        name: [_first_allowed(side, allowed) for side in sides]
        for name, sides in neighbours.items()
    }


def _first_allowed(names: Sequence[str], allowed: set[str]) -> Sequence[str]:
    stop = next((n for n, name in enumerate(names) if name not in allowed), len(names))
    return names[:stop]


async def _neighbours_in_records(stores: Stores, matches: Iterable[Match]) -> Neighbours:
    """Return the neighbours that the documents' records tell; classic's parents have no record."""
    sources = {
        match.child.id or "": match.child.metadata[SOURCE_KEY]
        for match in matches
        if SOURCE_KEY in match.child.metadata
    }
    identities = list(dict.fromkeys(sources.values()))
    neighbours: dict[str, list[Sequence[str]]] = {}
    try:
        records = await stores.read_records(identities) if identities else []
    except DamagedRowsError:  # `verify` reports them, and a query does without neighbours
        return {}
    for record in records:
        if record is None or not record.is_complete:
            continue
        places = {name: place for place, name in enumerate(record.children)}
        for name in places.keys() & sources.keys():
            place = places[name]
            before = record.children[max(0, place - _MAX_STEPS) : place][::-1]
            neighbours[name] = [before, record.children[place + 1 : place + 1 + _MAX_STEPS]]
    return neighbours
