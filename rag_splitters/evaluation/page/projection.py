"""Vectors in two dimensions, to be looked at."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Projection", "projected"]

Projection: TypeAlias = Literal["pca", "umap"]


def projected(
    vectors: NDArray[np.float32], method: Projection = "pca", seed: int = 0
) -> tuple[NDArray[np.float64], float | None]:
    """Two coordinates for each vector, each from 0 to 1, and the share of variance they hold.

    Parameters:
        vectors: a row for each text.
        method: "pca" keeps the two directions in which the vectors differ most, and is the same on
            every run; "umap" keeps neighbours together (McInnes et al. (2018), UMAP), and its
            distances mean little. It needs the package umap-learn, and holds no share of variance.
        seed: that of UMAP.

    Raises: ValueError for another method; ImportError where umap-learn is missing.

    >>> places, share = projected(np.array([[0, 0, 0], [1, 0, 0], [2, 0, 1]], dtype=np.float32))
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
    """By subspace iteration: all directions of 3,000 dimensions would take a minute."""
    centred = vectors - vectors.mean(axis=0)
    block = (centred.shape[1], min(_BLOCK, centred.shape[1]))
    directions = np.linalg.qr(np.random.default_rng(0).standard_normal(block))[0]
    for _ in range(_ROUNDS):
        directions = np.linalg.qr(centred.T @ (centred @ directions))[0]
    places = centred @ directions
    variances, turned = np.linalg.eigh(places.T @ places)
    turned, whole = turned[:, ::-1][:, :2], float((centred**2).sum())
    best = directions @ turned
    if best.shape[1] < 2:
        best = np.pad(best, ((0, 0), (0, 1)))
    largest = np.abs(best).argmax(axis=0)
    best = best * np.where(best[largest, [0, 1]] < 0, -1.0, 1.0)  # or the sign would be chance
    return centred @ best, float(variances[::-1][:2].sum()) / whole if whole > 0 else 1.0


def _umap(vectors: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    try:
        from umap import UMAP
    except ImportError as error:
        raise ImportError("a UMAP map needs umap-learn: pip install umap-learn") from error
    neighbours = min(15, len(vectors) - 1)
    if neighbours < 2:
        return _pca(np.asarray(vectors, dtype=np.float64))[0]
    init = "spectral" if len(vectors) > 15 else "random"
    model = UMAP(n_neighbors=neighbours, random_state=seed, n_jobs=1, metric="cosine", init=init)
    return np.asarray(model.fit_transform(vectors), dtype=np.float64)
