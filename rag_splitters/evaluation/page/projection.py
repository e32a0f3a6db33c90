"""Projecting vectors to two dimensions, for the map."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Projection", "project"]

Projection: TypeAlias = Literal["pca", "umap"]


def project(
    vectors: NDArray[np.float32], method: Projection = "pca", seed: int = 0
) -> tuple[NDArray[np.float64], float | None]:
    """Two coordinates from 0 to 1 for each vector, and the share of the variance that they keep.

    Parameters:
        vectors: one row for each text.
        method: "pca" keeps the two directions of the largest variance, and gives the same map on
            every run. "umap" keeps neighbours together (McInnes et al. (2018), UMAP), but its
            distances mean little; it needs umap-learn, and has no share of the variance (None).
        seed: seed of UMAP.

    Raises: ValueError for another method; ImportError if umap-learn is not installed.

    >>> places, share = project(np.array([[0, 0, 0], [1, 0, 0], [2, 0, 1]], dtype=np.float32))
    >>> places.shape, round(share, 6)
    ((3, 2), 1.0)
    """
    if method == "pca":
        places, share = _pca(np.asarray(vectors, dtype=np.float64))
    elif method == "umap":
        places, share = _umap(vectors, seed), None
    else:
        raise ValueError(f'the projection must be "pca" or "umap", got {method!r}')
    low, high = places.min(axis=0), places.max(axis=0)
    return (places - low) / np.where(high > low, high - low, 1.0), share


_BLOCK, _ROUNDS = 8, 60


def _pca(vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """By subspace iteration, because a full decomposition of 3,000 dimensions takes a minute."""
    centred = vectors - vectors.mean(axis=0)
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
    best = best * np.where(
        best[largest, [0, 1]] < 0, -1.0, 1.0
    )  # fixes the sign, which is arbitrary
    return centred @ best, float(variances[::-1][:2].sum()) / whole if whole > 0 else 1.0


def _umap(vectors: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    try:
        from umap import UMAP
    except ImportError as error:
        raise ImportError('projection="umap" needs umap-learn: pip install umap-learn') from error
    neighbours = min(15, len(vectors) - 1)
    if neighbours < 2:
        return _pca(np.asarray(vectors, dtype=np.float64))[0]
    init = "spectral" if len(vectors) > 15 else "random"
    model = UMAP(n_neighbors=neighbours, random_state=seed, n_jobs=1, metric="cosine", init=init)
    return np.asarray(model.fit_transform(vectors), dtype=np.float64)
