"""Means with confidence intervals: by bootstrap over questions, by Wilson's score for shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag_splitters.errors import InputError

_Z = 1.959963984540054  # 95 % of a normal distribution lie within this many standard deviations


class Estimate(NamedTuple):
    """A mean with the bounds of its confidence interval.

    >>> Estimate(0.75, 0.7, 0.8).percent()
    '75.0 (70.0 to 80.0)'
    """

    mean: float
    low: float
    high: float

    def percent(self) -> str:
        """The mean and its interval in percent, without the percent sign."""
        return f"{self.mean:.1%} ({self.low:.1%} to {self.high:.1%})".replace("%", "")


@lru_cache(maxsize=32)
def resampled(size: int, resamples: int = 2000, seed: int = 0) -> NDArray[np.float64]:
    """The weights of `size` questions in each resample: one row per resample, each with sum one.

    All strategies share these rows, so that differences between two strategies are paired: in each
    resample, both are asked the same questions. The same seed gives the same rows on every machine.
    """
    if size < 1 or resamples < 1:
        raise InputError(f"size and resamples must be at least 1, got {size} and {resamples}")
    counts = np.zeros((resamples, size))
    sample = np.random.default_rng(seed).integers(size, size=(resamples, size))
    np.add.at(counts, (np.arange(resamples)[:, None], sample), 1.0)
    return counts / size


def estimate(values: ArrayLike, weights: NDArray[np.float64], level: float = 0.95) -> Estimate:
    """The mean over the questions with its percentile bootstrap interval.

    For the difference of two strategies, pass the differences of their values. With one question,
    the interval is that question's value.

    Source: Efron (1979), Bootstrap Methods: Another Look at the Jackknife.

    >>> accuracy = estimate([0.0, 1.0] * 50, resampled(100))
    >>> accuracy.mean, 0.38 < accuracy.low < 0.42, 0.58 < accuracy.high < 0.62
    (0.5, True, True)
    """
    samples = np.asarray(values, dtype=np.float64)
    tail = (1 - level) / 2
    low, high = np.quantile(weights @ samples, (tail, 1 - tail))
    return Estimate(float(samples.mean()), float(low), float(high))


class Leads(NamedTuple):
    """How far each of several strategies is ahead of one of them.

    Parameters:
        estimates: the mean lead of each strategy, with intervals that hold for all of them at once.
        errors: the standard error of each mean lead.
    """

    estimates: list[Estimate]
    errors: list[float]


def leads_over(row: int, values: NDArray[np.float64], weights: NDArray[np.float64]) -> Leads:
    """The leads of all strategies over the one in this row, paired by question.

    The intervals are simultaneous: with 95% confidence, all of them hold at once. So a strategy
    that another one leads by more than 0, over the whole interval, is not the best, however many
    strategies were compared and whichever looked best. The truly best strategy is discarded by
    chance in about 2.5% of comparisons with at least 20 questions, and in somewhat more with fewer.
    These are multiple comparisons with the best, with the critical value of a max-t bootstrap,
    widened by Student's t for few questions.

    Sources: Hsu (1984), Constrained Simultaneous Confidence Intervals for Multiple Comparisons with
    the Best; Westfall and Young (1993), Resampling-Based Multiple Testing.

    Parameters:
        row: the strategy that is compared with all of them.
        values: one row of values per strategy, one column for each of at least 2 questions.
        weights: the resamples, as `resampled` returns them.

    >>> values = np.array([[0.0] * 30, [1.0, 0.0] * 15, [1.0] * 30])
    >>> [round(lead.low, 2) > 0 for lead in leads_over(0, values, resampled(30)).estimates]
    [False, True, True]
    """
    differences = values - values[row]
    means = differences.mean(axis=1)
    deviations = weights @ differences.T - means
    count = values.shape[1]
    errors = np.sqrt((deviations**2).mean(axis=0) * count / (count - 1))
    errors[errors < 1e-12] = 0  # the lead is the same on every question
    largest = np.max(deviations / np.where(errors > 0, errors, 1), axis=1, initial=0)
    critical = float(np.quantile(largest, 0.975)) * _student(count - 1) / _Z
    bounds = zip(means, means - critical * errors, means + critical * errors, strict=True)
    return Leads([Estimate(*map(float, each)) for each in bounds], errors.tolist())


def _student(degrees: int) -> float:
    """Student's t at 97.5%, by its expansion around the normal quantile.

    Source: Abramowitz and Stegun (1964), 26.7.5.
    """
    z = _Z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + math.fsum(term / float(degrees) ** power for power, term in enumerate(terms, 1))


def mean_score(scores: Sequence[float]) -> Estimate | None:
    """The mean of scores with its bootstrap interval; None if there are no scores.

    >>> mean_score([1.0, 0.5, 1.0, 0.0]).percent()
    '62.5 (25.0 to 100.0)'
    """
    return estimate(scores, resampled(len(scores))) if scores else None


def share(part: int, whole: int) -> Estimate | None:
    """A share with its 95 % interval by Wilson's score; None if the whole is empty.

    Unlike the bootstrap's, this interval is also right for few trials and for shares of 0 and 1.

    Source: Wilson (1927), Probable Inference, the Law of Succession, and Statistical Inference.

    >>> share(8, 10).percent()
    '80.0 (49.0 to 94.3)'
    """
    if not whole:
        return None
    ratio, squared = part / whole, _Z * _Z / whole
    middle = (ratio + squared / 2) / (1 + squared)
    reach = _Z * math.sqrt(ratio * (1 - ratio) / whole + squared / (4 * whole)) / (1 + squared)
    low = middle - reach if part else 0.0
    high = middle + reach if part < whole else 1.0
    return Estimate(ratio, low, high)


def percent(value: Estimate | None) -> str:
    """An estimate in percent; "no score" for None."""
    return value.percent() if value else "no score"
