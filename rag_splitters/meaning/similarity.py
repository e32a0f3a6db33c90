"""Similarity of neighbouring vectors, and the cuts that follow from it, in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Distances: TypeAlias = "NDArray[np.float64]"
"""The distance at each boundary of two units."""

_SHORT_RUN_PENALTY = 1e6
_MIN_LENGTH = 1e-9  # of a vector that has a direction; the rest is noise


def unit_vectors(vectors: NDArray[Any], kind: Any = "float64") -> NDArray[Any]:
    """Scale vectors to length one, except those of length 0.

    Parameters:
        kind: numpy's type of the numbers that are returned.

    >>> import numpy as np
    >>> unit_vectors(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    import numpy as np

    exact = vectors.astype(kind)
    lengths = np.sqrt(np.einsum("ij,ij->i", exact, exact))
    return exact / np.where(lengths > _MIN_LENGTH, lengths, np.inf)[:, None]


def neighbour_distances(vectors: NDArray[Any], reach: int = 0) -> Distances:
    """Return the cosine distance between the units before and after each boundary of two units.

    It is rounded to six decimals, because the rest is noise from the transport of the vectors
    (32-bit floats, or decimals in JSON).

    Parameters:
        vectors: one for each unit, embedded together with `reach` units on each side.
        reach: number of units on each side of a unit that its vector covers. The vectors that are
            compared are so far from the boundary that they share no unit; at the ends of the text,
            as far as possible.
    """
    import numpy as np

    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    places = np.arange(len(vectors) - 1)
    before, after = np.maximum(places - reach, 0), np.minimum(places + 1 + reach, len(vectors) - 1)
    products = np.einsum("ij,ij->i", vectors[before], vectors[after], dtype=np.float64)
    similarities = products / np.sqrt(squares[before] * squares[after])
    distances: Distances = np.abs(np.round(1 - similarities, 6))
    return distances


def breakpoints(distances: Distances, kind: str, amount: float) -> NDArray[np.bool_]:
    """Return which distances are breakpoints: those above a threshold.

    Parameters:
        distances: the distances between neighbours.
        kind: how the threshold is computed: a "percentile" of the distances; their mean plus
            `amount` times their "standard_deviation"; their mean plus `amount` times their
            "interquartile" range; a percentile of their "gradient", for texts whose distances
            hardly differ; or an "absolute" distance.
        amount: the percentile (0 to 100), the factor, or the distance.
    """
    import numpy as np

    if kind == "gradient":
        if len(distances) < 2:
            return np.zeros(len(distances), dtype=np.bool_)
        slopes = np.gradient(distances)
        return np.asarray(slopes > np.percentile(slopes, amount))
    if kind == "percentile":
        threshold = np.percentile(distances, amount)
    elif kind == "standard_deviation":
        threshold = np.mean(distances) + amount * np.std(distances)
    elif kind == "interquartile":
        low, high = np.percentile(distances, [25, 75])
        threshold = np.mean(distances) + amount * (high - low)
    else:
        threshold = np.float64(amount)
    return np.asarray(distances > threshold)


def join_runs(
    vectors: NDArray[Any],
    threshold: float,
    fits: Callable[[int, int], bool],
    is_small: Callable[[int, int], bool],
) -> list[int]:
    """Join each unit to the run before it if it is similar enough to the mean of that run.

    Parameters:
        vectors: one for each unit.
        threshold: minimum cosine similarity.
        fits: whether the units from a first to a last one may be one run.
        is_small: whether they are too small for a run. A run that is too small continues, or joins
            the run before it if it is more similar to that than to the next unit.

    Returns the first unit of each run, except that of the first run.
    """
    unit = unit_vectors(vectors)
    begins = [0]
    total, before = unit[0].copy(), None
    for row in range(1, len(unit)):
        first, vector = begins[-1], unit[row]
        similarity = _cosine(total, vector)
        may_join = fits(first, row)
        if not (may_join and similarity >= threshold):
            is_fragment = is_small(first, row - 1)
            is_closer = is_fragment and before is not None and _cosine(before, total) > similarity
            if is_closer and before is not None and fits(begins[-2], row - 1):
                begins[-1], before, total = row, before + total, vector.copy()
                continue
            if not (is_fragment and may_join):
                begins.append(row)
                before, total = total, vector.copy()
                continue
        total += vector
    return begins[1:]


def _cosine(total: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    lengths = float(total.dot(total)) * float(other.dot(other))
    return round(float(total.dot(other)) / math.sqrt(lengths), 6) if lengths else 0.0


def best_runs(vectors: NDArray[Any], longest: Sequence[int], shortest: Sequence[int]) -> list[int]:
    """Divide the units into runs so that the similarities of pairs within runs sum to a maximum.

    The mean similarity of all pairs is subtracted from each, so that a pair less similar than
    average counts against its run. Dynamic programming; time grows with the number of units times
    the longest run.

    Parameters:
        vectors: one for each unit.
        longest: for each unit, the maximum number of units in a run that ends with it.
        shortest: likewise the minimum; a shorter run is used only if there is no alternative.

    Returns the first unit of each run, except that of the first run.
    """
    import numpy as np

    unit = unit_vectors(vectors)
    count, limit = len(unit), max(longest)
    total = unit.sum(axis=0)
    mean = (float(total @ total) - count) / (count * (count - 1)) if count > 1 else 0.0
    rewards = _run_rewards(unit, mean, limit)
    for size in range(1, limit + 1):
        rewards[np.asarray(shortest) > size, size - 1] -= _SHORT_RUN_PENALTY
    best, lengths = np.zeros(count + 1), np.ones(count, dtype=np.int64)
    for row in range(count):
        size = min(longest[row], row + 1)
        totals = rewards[row, :size] + best[row + 1 - size : row + 1][::-1]
        index = int(totals.argmax())
        lengths[row], best[row + 1] = index + 1, totals[index]
    begins: list[int] = []
    row = count - 1
    while row >= 0:
        begins.append(row - int(lengths[row]) + 1)
        row = begins[-1] - 1
    return begins[-2::-1]


def _run_rewards(unit: NDArray[np.float64], mean: float, limit: int) -> NDArray[np.float64]:
    """Return an array whose element [i, n - 1] is the sum over pairs of the n units up to i.

    The pairs of a run are those of the run that ends one unit earlier, and the pairs with its last
    unit.
    """
    import numpy as np

    count = len(unit)
    rewards = np.zeros((count, limit))
    with_last = np.zeros(count)
    for lag in range(1, min(limit, count)):
        similarities = np.einsum("ij,ij->i", unit[lag:], unit[:-lag])
        with_last[lag:] += np.round(similarities - mean, 6)
        rewards[lag:, lag] = rewards[lag - 1 : -1, lag - 1] + with_last[lag:]
    return rewards
