"""Which children a query takes: each lends its value to its neighbours in the document.

A child is worth its own score above the worst of the search, or `LENT_SHARE` per step of a
neighbour's, whichever is more, and half of its own score besides. Children are taken in that order
until the budget is spent. So a short piece of evidence comes alone, and a long one comes whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rag_splitters.calls import call
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.errors import DamagedRowsError
from rag_splitters.parent_child.loading import Loader
from rag_splitters.parent_child.options import Query
from rag_splitters.parent_child.passages import (
    Budget,
    LocatedChild,
    Passage,
    PassageBuilder,
    locate_child,
)
from rag_splitters.parent_child.records import SOURCE_KEY, Entry
from rag_splitters.parent_child.stores import Match, Stores

LENT_SHARE = 0.8
"""Share of a child's score that its neighbour gets; the next one gets this share of that."""
_OWN_WEIGHT = 0.5
"""Weight of a child's own score beside that; it keeps weak neighbours behind other matches."""
_MAX_STEPS = 6  # a neighbour farther away would get less than a quarter
_FEWEST_READ = 10
_CHILD_SIZE = 400  # characters; a guess that decides how many children are read at once

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


async def find_passages(loader: Loader, ranking: Ranking) -> tuple[list[Passage], bool]:
    """Return the passages that fit into the budget, best first, and whether they fill it."""
    query = loader.query
    budget = Budget.of(query)
    count = max(_FEWEST_READ, budget.characters // _CHILD_SIZE)
    ranks = {match.child.id: rank for rank, match in enumerate(ranking.matches)}

    async def locate(matches: Sequence[Match]) -> list[LocatedChild]:
        return [
            locate_child(match, ranks.get(match.child.id), loader.parents, loader.stores.id_key)
            for match in await loader.load(matches)
        ]

    if query.max_tokens is None:
        best = await locate(ranking.matches[: query.limit])
        budget.hold({child.match.child.text: child.end - child.start for child in best}.values())
    builder = PassageBuilder(loader.parents, budget)
    candidates = await _find_candidates(loader.stores, query, ranking, 2 * count)
    for batch in batched(candidates, count):
        for child in await locate(batch):
            if not builder.is_full:
                builder.add(child)
        if builder.is_full:
            break
    passages = builder.passages()
    return passages, builder.is_full or len(passages) >= query.limit


async def _find_candidates(
    stores: Stores, query: Query, ranking: Ranking, lenders: int
) -> list[Match]:
    """Return the children that may be taken: the ranked ones and their neighbours, best first.

    Parameters:
        lenders: how many of the best children lend. If these fill the budget twice, what others
            lend changes only the order of children for which there is no room.
    """
    own = {
        match.child.id or "": value
        for match, value in zip(ranking.matches, ranking.values(), strict=True)
    }
    lent = dict(own)
    for name, sides in (await find_neighbours(stores, query, ranking.matches, lenders)).items():
        for side in sides:
            for steps, other in enumerate(side, 1):
                lent[other] = max(lent.get(other, 0.0), own[name] * LENT_SHARE**steps)
    values = {name: value + _OWN_WEIGHT * own.get(name, 0.0) for name, value in lent.items()}
    matches = {match.child.id or "": match for match in ranking.matches}
    order = sorted(values, key=lambda name: -values[name])
    return [matches.get(name) or Match(Entry("", {}, name), None) for name in order]


async def find_neighbours(
    stores: Stores, query: Query, matches: Sequence[Match], count: int
) -> Neighbours:
    """Return the neighbours of the first matches, up to the first that a filter leaves out.

    The keyword index knows them, and else the records of the documents do. Children that were
    chosen to be diverse lend nothing.
    """
    if query.search_type == "mmr":
        return {}
    children, names = stores.children, [match.child.id or "" for match in matches]
    keywords = stores.keywords if query.search_type == "hybrid" else None
    neighbours: Neighbours
    if keywords is not None:
        neighbours = await call(keywords.neighbours, names[:count], _MAX_STEPS)
    else:
        neighbours = await _neighbours_in_records(stores, matches[:count])
    if not children.has_filter:
        return neighbours
    allowed = set(names)
    if children.where is not None and keywords is not None:
        others = list({name for sides in neighbours.values() for side in sides for name in side})
        allowed |= await call(keywords.allowed, children.where, others)
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
