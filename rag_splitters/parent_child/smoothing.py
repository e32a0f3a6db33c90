"""Smoothing: mixing a child's vector with its neighbours'."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MIN_WEIGHT = 0.001


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
