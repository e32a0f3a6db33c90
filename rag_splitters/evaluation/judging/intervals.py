"""Intervals of judged figures: Wilson's for shares, the bootstrap's for means of scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rag_splitters.evaluation.bootstrap import Figure, estimate, resampled

__all__ = ["mean_score", "share", "shown"]

_Z = 1.959963984540054  # 95 % of a normal distribution lie within so many standard deviations


def share(part: int, whole: int) -> Figure | None:
    """A share with its 95 % interval by Wilson's score; None of nothing.

    Unlike the bootstrap's, the interval is right for few trials too, and for shares of 0 and 1.

    Source: Wilson (1927), Probable Inference, the Law of Succession, and Statistical Inference.

    >>> share(8, 10).percent()
    '80.0 (49.0 to 94.3)'
    """
    if not whole:
        return None
    known, squared = part / whole, _Z * _Z / whole
    middle = (known + squared / 2) / (1 + squared)
    reach = _Z * math.sqrt(known * (1 - known) / whole + squared / (4 * whole)) / (1 + squared)
    low = middle - reach if part else 0.0
    high = middle + reach if part < whole else 1.0
    return Figure(known, low, high)


def mean_score(scores: Sequence[float]) -> Figure | None:
    """The mean of scores with its 95 % bootstrap interval; None of nothing.

    >>> mean_score([1.0, 0.5, 1.0, 0.0]).percent()
    '62.5 (25.0 to 100.0)'
    """
    return estimate(scores, resampled(len(scores))) if scores else None


def shown(figure: Figure | None) -> str:
    """A figure in hundredths, for people."""
    return figure.percent() if figure else "no figure"
