"""Projecting vectors to two dimensions, for the map."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK, _ROUNDS = 8, 60


def project(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float64], float]:
    """Two coordinates from 0 to 1 for each vector, and the share of the variance that they keep.

    The coordinates are the two directions of the largest variance (PCA), and the same on every run.

    >>> places, share = project(np.array([[0, 0, 0], [1, 0, 0], [2, 0, 1]], dtype=np.float32))
    >>> places.shape, round(share, 6)
    ((3, 2), 1.0)
    """
    exact = np.asarray(vectors, dtype=np.float64)
    centred = exact - exact.mean(axis=0)
    # Subspace iteration, because a full decomposition of 3,000 dimensions takes a minute.
    block = (centred.shape[1], min(_BLOCK, centred.shape[1]))
    directions = np.linalg.qr(np.random.default_rng(0).standard_normal(block))[0]
    for _ in range(_ROUNDS):
        directions = np.linalg.qr(centred.T @ (centred @ directions))[0]
    places = centred @ directions
    variances, rotation = np.linalg.eigh(places.T @ places)
    rotation, whole = rotation[:, ::-1][:, :2], float((centred**2).sum())
    best = directions @ rotation
    if best.shape[1] < 2:
        best = np.pad(best, ((0, 0), (0, 1)))
    largest = np.abs(best).argmax(axis=0)
    best = best * np.where(best[largest, [0, 1]] < 0, -1.0, 1.0)  # the sign is arbitrary
    places = centred @ best
    low, high = places.min(axis=0), places.max(axis=0)
    share = float(variances[::-1][:2].sum()) / whole if whole > 0 else 1.0
    return (places - low) / np.where(high > low, high - low, 1.0), share
