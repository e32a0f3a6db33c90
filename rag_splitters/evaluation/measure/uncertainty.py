"""How sure a mean is: one interval, by a paired bootstrap over the questions.

There is one rule for everything. The questions are drawn again and again, the same ones for all
strategies, and the interval of a mean reaches as many standard errors to both sides as the worst of
all compared means strays in 95% of the draws. So the intervals hold together, however many
strategies are compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

_LEVEL = 0.95

DRAWS = 2000
"""How often the questions are drawn."""


class Estimate(NamedTuple):
    """A mean with the bounds of its 95% interval.

    >>> Estimate(0.75, 0.7, 0.8).percent()
    '75.0 (70.0 to 80.0)'
    """

    mean: float
    low: float
    high: float

    def percent(self) -> str:
        """Return the mean and its interval in percent, without the percent sign."""
        if math.isinf(self.low):
            return f"{100 * self.mean:.1f} (one question, so no interval)"
        return f"{self.mean:.1%} ({self.low:.1%} to {self.high:.1%})".replace("%", "")


@lru_cache(maxsize=32)
def draws(size: int) -> NDArray[np.float64]:
    """Return the weights of `size` questions in each of 2,000 draws: a row per draw, with sum one.

    All strategies share these rows, so that differences between two strategies are paired. They are
    the same on every machine.
    """
    counts = np.zeros((DRAWS, size))
    sample = np.random.default_rng(0).integers(size, size=(DRAWS, size))
    np.add.at(counts, (np.arange(DRAWS)[:, None], sample), 1.0)
    return counts / size


def estimates(values: ArrayLike) -> list[Estimate]:
    """Return the means of rows of values, with intervals that hold for all rows at once.

    To compare strategies, pass the differences of their values, question by question. The intervals
    are those of a max-t bootstrap. With few questions, the standard errors are uncertain
    themselves: each draw divides them by a random scale (chi-squared), so that the intervals of a
    single row are as wide as Student's. One question has no interval: its bounds are infinite.

    Source: Westfall and Young (1993), Resampling-Based Multiple Testing.

    Parameters:
        values: one row for each mean, one column for each question.

    >>> (accuracy,) = estimates([[0.0, 1.0] * 50])
    >>> accuracy.mean, 0.38 < accuracy.low < 0.42, 0.58 < accuracy.high < 0.62
    (0.5, True, True)
    >>> values = np.array([[0.0] * 30, [1.0, 0.0] * 15, [1.0] * 30])
    >>> [round(each.low, 2) > 0 for each in estimates(values - values[0])]
    [False, True, True]
    """
    rows = np.asarray(values, dtype=np.float64)
    means, degrees = rows.mean(axis=1), rows.shape[1] - 1
    if not degrees:
        return [Estimate(float(mean), -math.inf, math.inf) for mean in means]
    strays = np.abs(draws(degrees + 1) @ rows.T - means)
    errors = np.sqrt((strays**2).mean(axis=0) * (degrees + 1) / degrees)
    errors[errors < 1e-12] = 0  # the value is the same on every question
    largest = np.max(strays / np.where(errors > 0, errors, 1), axis=1, initial=0)
    scales = np.sqrt(np.random.default_rng(0).chisquare(degrees, len(largest)) / degrees)
    reach = float(np.quantile(largest / scales, _LEVEL)) * errors
    return [
        Estimate(*map(float, each))
        for each in zip(means, means - reach, means + reach, strict=True)
    ]


def mean_score(scores: Sequence[float]) -> Estimate | None:
    """Return the mean of scores from 0 to 1 with its interval; None if there are no scores.

    If all scores are equal, a bootstrap cannot see how they vary. But if others made up more than 3
    in so many scores as there are, one would have come up (the rule of three), so the interval
    reaches that far.

    >>> mean_score([1.0, 0.5, 1.0, 0.0]).percent(), mean_score([1.0] * 60).percent()
    ('62.5 (0.0 to 100.0)', '100.0 (95.0 to 100.0)')
    """
    if not scores:
        return None
    ((mean, low, high),) = estimates([scores])
    if low == high:
        low, high = mean - 3 / len(scores), mean + 3 / len(scores)
    return Estimate(mean, max(0.0, low), min(1.0, high))
