"""Smoothing: mixing a child's vector with its neighbours', and recovering the model's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MIN_WEIGHT = 0.001
_MAX_ROUNDS = 100
_TOLERANCE = 1e-6  # of vectors of length 1, in the numbers that Chroma keeps (32 bits)


def neighbour_weights(width: float) -> list[float]:
    """Return the weights of the next neighbour, of the one behind it, and so on.

    A child itself has weight 1.

    Parameters:
        width: that of the Gaussian, in children; 0 for no neighbours.

    >>> [round(weight, 3) for weight in neighbour_weights(0.6)]
    [0.249, 0.004]
    """
    if not width:
        return []
    reach = int(width * math.sqrt(-2 * math.log(_MIN_WEIGHT)))
    return [math.exp(-(distance**2) / (2 * width**2)) for distance in range(1, reach + 1)]


def can_unmix(weights: Sequence[float]) -> bool:
    """Whether the model's vectors can be recovered: if the neighbours weigh less than a child.

    >>> can_unmix(neighbour_weights(0.6)), can_unmix(neighbour_weights(1.0))
    (True, False)
    """
    return 2 * sum(weights) < 0.8


def mix(
    vectors: NDArray[np.float32], owners: NDArray[Any], weights: Sequence[float]
) -> NDArray[np.float32]:
    """Mix each vector with its neighbours of the same owner; each stays as long as it is."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / lengths
    mixed = units.copy()
    for distance, weight in enumerate(weights[: len(units) - 1], 1):
        same = (owners[distance:] == owners[:-distance])[:, None] * np.float32(weight)
        mixed[distance:] += same * units[:-distance]
        mixed[:-distance] += same * units[distance:]
    norms = np.linalg.norm(mixed, axis=1, keepdims=True)
    vanished = norms[:, 0] < 1e-6  # where neighbours point the other way
    mixed[vanished], norms[vanished] = units[vanished], 1.0
    result: NDArray[np.float32] = (mixed / norms * lengths).astype(np.float32)
    return result


def unmix(vectors: NDArray[np.float32], weights: Sequence[float]) -> NDArray[np.float32] | None:
    """Return the vectors of one document that `mix` mixed; None if they cannot be found.

    `mix` divides each sum by its length, which is not stored. But the vectors that were mixed have
    length 1, so both are found in turns: the vectors from the lengths, and the lengths from the
    vectors. With `can_unmix`, each round comes closer; the default smoothing takes about 17.
    """
    import numpy as np

    if not weights:
        return vectors
    if not can_unmix(weights):
        return None
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not lengths.all():
        return None
    mixed = vectors / lengths
    units, sums = mixed.copy(), np.ones_like(lengths)
    for _ in range(_MAX_ROUNDS):
        others = mixed * sums
        for distance, weight in enumerate(weights[: len(units) - 1], 1):
            others[distance:] -= np.float32(weight) * units[:-distance]
            others[:-distance] -= np.float32(weight) * units[distance:]
        norms = np.linalg.norm(others, axis=1, keepdims=True)
        sums /= norms
        others /= norms
        change = np.linalg.norm(others - units, axis=1).max()
        units = others
        if change < _TOLERANCE:
            result: NDArray[np.float32] = units * lengths
            return result
    return None
