"""How far a mean may be off: bootstrap intervals over the questions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Figure", "estimate", "resampled"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean with the bounds of its interval.

    >>> Figure(0.75, 0.7, 0.8).percent()
    '75.0 (70.0 to 80.0)'
    """

    mean: float
    low: float
    high: float

    def percent(self) -> str:
        """Mean and interval in hundredths, as tables show them."""
        return f"{self.mean:.1%} ({self.low:.1%} to {self.high:.1%})".replace("%", "")


@lru_cache(maxsize=32)
def resampled(size: int, resamples: int = 2000, seed: int = 0) -> NDArray[np.float64]:
    """Weights of `size` questions in each resample: a row for each, which adds up to one.

    The same rows serve for every strategy, so that differences between two are paired: each
    resample asks both the same questions. The same seed gives the same rows on any machine.
    """
    if size < 1 or resamples < 1:
        raise ValueError(f"size and resamples must be at least 1, got {size} and {resamples}")
    counts = np.zeros((resamples, size))
    drawn = np.random.default_rng(seed).integers(size, size=(resamples, size))
    np.add.at(counts, (np.arange(resamples)[:, None], drawn), 1.0)
    return counts / size


def estimate(values: ArrayLike, weights: NDArray[np.float64], level: float = 0.95) -> Figure:
    """The mean over the questions, with the percentile interval of its resamples.

    Percentile bootstrap: Efron (1979), Bootstrap Methods. For the difference of two strategies,
    give the differences of their values. One question has no interval but its own value.

    >>> figure = estimate([0.0, 1.0] * 50, resampled(100))
    >>> figure.mean, 0.38 < figure.low < 0.42, 0.58 < figure.high < 0.62
    (0.5, True, True)
    """
    known = np.asarray(values, dtype=np.float64)
    tail = (1 - level) / 2
    low, high = np.quantile(weights @ known, (tail, 1 - tail))
    return Figure(float(known.mean()), float(low), float(high))
