"""In which order a query takes children: each lends its value to its neighbours in the document.

The value of a child is its own score above the worst of the search, or `LENT_SHARE` per step of a
neighbour's, whichever is more, plus half of its own score. Children are taken in the order of their
values until the budget is spent. So a short piece of evidence comes alone, and a long one comes
whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LENT_SHARE = 0.8
"""Share of a child's score that its neighbour gets; the next one gets this share of that."""
_OWN_WEIGHT = 0.5
"""Weight of a child's own score beside that; it keeps weak neighbours behind other matches."""
_STEPS = np.arange(1, 7)  # a neighbour farther away would get less than a quarter


def lend(
    values: Mapping[str, float],
    number_of: Mapping[str, int],
    follows: NDArray[np.bool_],
    lenders: int,
    limit: int,
    read_names: Callable[[list[int]], Mapping[int, str]],
    allowed: NDArray[np.bool_] | None = None,
) -> list[str]:
    """Return the first children by their values once the best have lent.

    Parameters:
        values: the value of each child by itself, by its id, the best first.
        number_of: the numbers of children; those of a document are numbered consecutively. A
            representation has the number of its piece: the better of them counts.
        follows: for each number, whether the one before it is of the same document.
        read_names: returns the ids of neighbours by their numbers.
        allowed: for each number, whether the child, and what is behind it, may be taken.

    >>> follows = np.array([False, True, True, True])
    >>> lend({"c": 1.0}, {"c": 2}, follows, 1, 3, lambda new: dict(zip(new, "bd")))
    ['c', 'b', 'd']
    """
    if not number_of:
        return list(values)[:limit]
    names: dict[int, str] = {}
    for n, name in enumerate(values):
        # A child that has no number gets one below zero: it has no neighbours there.
        names.setdefault(number_of.get(name, -1 - n), name)
    numbers = np.array(list(names))
    own = np.array([values[name] for name in names.values()])
    neighbours, is_linked = _find_neighbours(numbers[:lenders], follows, allowed)
    lent = own[:lenders, None] * [LENT_SHARE**step for step in _STEPS.tolist() * 2]
    candidates, places = np.unique(
        np.concatenate([numbers, neighbours[is_linked]]), return_inverse=True
    )
    totals, ranks = np.zeros(len(candidates)), np.full(len(candidates), len(numbers))
    np.maximum.at(totals, places, np.concatenate([own, lent[is_linked]]))
    own_places = places[: len(numbers)]
    totals[own_places] += _OWN_WEIGHT * own
    ranks[own_places] = np.arange(len(numbers))
    order = candidates[np.lexsort((candidates, ranks, -totals))[:limit]].tolist()
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
