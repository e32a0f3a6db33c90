"""In which order a query takes children: each lends its value to its neighbours in the document.

A child is worth its own score above the worst of the search, or `LENT_SHARE` per step of a
neighbour's, whichever is more, and half of its own score besides. Children are taken in that order
until the budget is spent. So a short piece of evidence comes alone, and a long one comes whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from rag_splitters.calls import call
from rag_splitters.parent_child.errors import DamagedRowsError
from rag_splitters.parent_child.records import SOURCE_KEY, Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rag_splitters.parent_child.options import Query
    from rag_splitters.parent_child.ranking import Ranking
    from rag_splitters.parent_child.stores import Stores

LENT_SHARE = 0.8
"""Share of a child's score that its neighbour gets; the next one gets this share of that."""
_OWN_WEIGHT = 0.5
"""Weight of a child's own score beside that; it keeps weak neighbours behind other matches."""
_STEPS = np.arange(1, 7)  # a neighbour farther away would get less than a quarter


async def order_children(
    stores: Stores, query: Query, ranking: Ranking, lenders: int, limit: int
) -> list[str]:
    """Return the ids of the children to take, best first: the ranked ones and their neighbours.

    The keyword index knows the neighbours, and else the records of the documents do. Children that
    were chosen to be diverse lend nothing.

    Parameters:
        lenders: how many of the best children lend.
        limit: how many ids are returned at most.
    """
    values = dict(zip(ranking.ids, ranking.values(), strict=True))
    if query.search_type == "mmr":
        return list(ranking.ids[:limit])
    children = stores.children
    if query.search_type == "hybrid" and stores.keywords is not None:
        is_closed = children.has_filter and children.where is None
        return await call(stores.keywords.lend, values, lenders, limit, children.where, is_closed)
    records = await _read_records(stores, ranking, lenders)
    names = list(chain.from_iterable(record.children for record in records))
    number_of = {name: number for number, name in enumerate(names)}
    follows = np.ones(len(names), dtype=bool)
    follows[[number_of[record.children[0]] for record in records]] = False
    allowed = np.array([name in values for name in names]) if children.has_filter else None
    return lend(
        values, number_of, follows, lenders, limit, lambda new: {n: names[n] for n in new}, allowed
    )


def lend(
    values: Mapping[str, float],
    number_of: Mapping[str, int],
    follows: NDArray[np.bool_],
    lenders: int,
    limit: int,
    read_names: Callable[[list[int]], Mapping[int, str]],
    allowed: NDArray[np.bool_] | None = None,
) -> list[str]:
    """Return the first children by what they are worth once the best have lent.

    Parameters:
        values: what each child is worth itself, by its id, the best first.
        number_of: the numbers of children; those of a document are numbered consecutively.
        follows: for each number, whether the one before it is of the same document.
        read_names: returns the ids of neighbours by their numbers.
        allowed: for each number, whether the child, and what is behind it, may be taken.

    >>> follows = np.array([False, True, True, True])
    >>> lend({"c": 1.0}, {"c": 2}, follows, 1, 3, lambda new: dict(zip(new, "bd")))
    ['c', 'b', 'd']
    """
    if not number_of:
        return list(values)[:limit]
    # A child that has no number gets one below zero: it has no neighbours there.
    numbers = np.array([number_of.get(name, -1 - n) for n, name in enumerate(values)])
    own = np.array(list(values.values()))
    neighbours, is_linked = _find_neighbours(numbers[:lenders], follows, allowed)
    lent = own[:lenders, None] * [LENT_SHARE**step for step in _STEPS.tolist() * 2]
    candidates, places = np.unique(
        np.concatenate([numbers, neighbours[is_linked]]), return_inverse=True
    )
    worth, ranks = np.zeros(len(candidates)), np.full(len(candidates), len(numbers))
    np.maximum.at(worth, places, np.concatenate([own, lent[is_linked]]))
    own_places = places[: len(numbers)]
    worth[own_places] += _OWN_WEIGHT * own
    ranks[own_places] = np.arange(len(numbers))
    order = candidates[np.lexsort((candidates, ranks, -worth))[:limit]].tolist()
    names: dict[int, str] = dict(zip(numbers.tolist(), values, strict=True))
    names |= read_names([number for number in order if number not in names])
    return [names[number] for number in order if number in names]


def _find_neighbours(
    numbers: NDArray[np.int64], follows: NDArray[np.bool_], allowed: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return a row of numbers around each number, and whether they are its neighbours."""
    neighbours = np.concatenate([numbers[:, None] - _STEPS, numbers[:, None] + _STEPS], axis=1)
    followers = np.concatenate([numbers[:, None] - _STEPS + 1, numbers[:, None] + _STEPS], axis=1)
    # A number below zero is taken for the first one, which follows nothing.
    is_linked = follows.take(followers, mode="clip") & (followers < len(follows))
    if allowed is not None:
        is_linked &= allowed.take(neighbours, mode="clip")
    sides = is_linked.reshape(len(numbers), 2, len(_STEPS))  # nothing lies behind a gap
    return neighbours, np.logical_and.accumulate(sides, axis=2).reshape(is_linked.shape)


async def _read_records(stores: Stores, ranking: Ranking, lenders: int) -> Sequence[Record]:
    """Return the records of the lenders' documents; classic's parents have none."""
    children = [
        ranking.children[name] for name in ranking.ids[:lenders] if name in ranking.children
    ]
    names = [child.metadata[SOURCE_KEY] for child in children if SOURCE_KEY in child.metadata]
    identities = list(dict.fromkeys(names))
    try:
        records = await stores.read_records(identities) if identities else []
    except DamagedRowsError:  # `verify` reports them, and a query does without neighbours
        return []
    return [each for each in records if each is not None and each.is_complete and each.children]
