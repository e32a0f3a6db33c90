"""Vectors: how alike neighbours are, and where that says to cut. All in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "best_runs",
    "breakpoints",
    "joined_runs",
    "neighbour_distances",
    "unit_vectors",
]


def unit_vectors(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """The vectors at length one."""
    import numpy as np

    exact = vectors.astype(np.float64)
    unit: NDArray[np.float64] = exact / np.sqrt(np.einsum("ij,ij->i", exact, exact))[:, None]
    return unit


def neighbour_distances(vectors: NDArray[Any], reach: int = 0) -> NDArray[np.float64]:
    """The cosine distances of what stands before and after each place between two units.

    To six decimals: what lies below is noise of the model's transport (32-bit floats, or decimals
    in JSON).

    Parameters:
        vectors: of each unit, together with `reach` units on each side.
        reach: compare the vectors that end before and begin after the place, and so have nothing
            in common; at the ends of the text those that come closest to that.
    """
    import numpy as np

    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    places = np.arange(len(vectors) - 1)
    before, after = np.maximum(places - reach, 0), np.minimum(places + 1 + reach, len(vectors) - 1)
    products = np.einsum("ij,ij->i", vectors[before], vectors[after], dtype=np.float64)
    alike = products / np.sqrt(squares[before] * squares[after])
    distances: NDArray[np.float64] = np.abs(np.round(1 - alike, 6))
    return distances


def breakpoints(distances: NDArray[np.float64], kind: str, amount: float) -> NDArray[np.bool_]:
    """Which distances are breakpoints: those above a threshold that the distances themselves set.

    Parameters:
        distances: between neighbours.
        kind: "percentile" of the distances; mean and `amount` times the "standard_deviation"; mean
            and `amount` times the "interquartile" range; percentile of their "gradient", for texts
            whose distances are all alike; or an "absolute" distance.
        amount: a percentile (0 to 100), a factor, or a distance.
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


def joined_runs(
    vectors: NDArray[Any],
    threshold: float,
    fits: Callable[[int, int], bool],
    is_small: Callable[[int, int], bool],
) -> list[int]:
    """Where runs begin whose members are at least `threshold` similar to the mean before them.

    Parameters:
        vectors: one for each unit.
        threshold: the least cosine similarity.
        fits: may the units `first` to `last` be one run?
        is_small: are they too few for one? Then a run goes on, or joins the one before it if it is
            more similar to that than to what follows.

    Returns: the first units of all runs but the first.
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
    """Where runs begin, such that the similarities of pairs inside the runs sum to the most.

    Each similarity counts less the mean of all pairs, so that a pair that is less alike than usual
    counts against its run. Dynamic programming over the units, in time of the units times the
    longest run.

    Parameters:
        vectors: one for each unit.
        longest: the most units of a run that ends with each unit.
        shortest: the fewest; a shorter run is only taken where there is no other way.

    Returns: the first units of all runs but the first.
    """
    import numpy as np

    unit = unit_vectors(vectors)
    count, most = len(unit), max(longest)
    total = unit.sum(axis=0)
    mean = (float(total @ total) - count) / (count * (count - 1)) if count > 1 else 0.0
    rewards = _run_rewards(unit, mean, most)
    for size in range(1, most + 1):
        rewards[np.asarray(shortest) > size, size - 1] -= _TOO_SHORT
    best, lengths = np.zeros(count + 1), np.ones(count, dtype=np.int64)
    for row in range(count):
        size = min(longest[row], row + 1)
        totals = rewards[row, :size] + best[row + 1 - size : row + 1][::-1]
        chosen = int(totals.argmax())
        lengths[row], best[row + 1] = chosen + 1, totals[chosen]
    begins: list[int] = []
    row = count - 1
    while row >= 0:
        begins.append(row - int(lengths[row]) + 1)
        row = begins[-1] - 1
    return begins[-2::-1]


def _run_rewards(unit: NDArray[np.float64], mean: float, most: int) -> NDArray[np.float64]:
    """[i, n - 1]: the sum over the pairs of the n units that end with unit i, each less the mean.

    The pairs of a run are those of the run that ends one unit earlier, and those with its last.
    """
    import numpy as np

    count = len(unit)
    rewards = np.zeros((count, most))
    with_last = np.zeros(count)
    for lag in range(1, min(most, count)):
        alike = np.einsum("ij,ij->i", unit[lag:], unit[:-lag])
        with_last[lag:] += np.round(alike - mean, 6)
        rewards[lag:, lag] = rewards[lag - 1 : -1, lag - 1] + with_last[lag:]
    return rewards


_TOO_SHORT = 1e6
