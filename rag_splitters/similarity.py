"""Vectors: checking them, how alike neighbours are, and where that says to cut. All in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Place", "as_vectors"]

Place: TypeAlias = tuple[int, int]
"""Where a text stands: the document's number, and the offset in it."""


def as_vectors(found: Any, count: int, where: Callable[[int], str]) -> NDArray[np.float32]:
    """A model's answer as `count` rows.

    Parameters:
        found: what the model answered.
        count: how many vectors were asked for.
        where: names the text of a row.

    Raises: ValueError for another number of vectors, for vectors of different lengths, of no
    numbers or of zeros, and for numbers that are not finite.
    """
    import numpy as np

    try:
        given = len(found)
    except TypeError:
        raise ValueError(f"answered with {type(found).__name__}, not with vectors") from None
    if given != count:
        raise ValueError(f"answered with {given} vectors for {count} texts")
    try:
        with np.errstate(over="ignore"):
            vectors = np.asarray(found, dtype=np.float32)
    except (TypeError, ValueError):
        raise ValueError(_misshapen(found, where)) from None
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise ValueError(_misshapen(found, where))
    lengths = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    if not np.isfinite(lengths).all():
        row = int(np.flatnonzero(~np.isfinite(lengths))[0])
        raise ValueError(f"answered with a number that is not finite for {where(row)}")
    if not lengths.all():
        raise ValueError(f"answered with zeros for {where(int(np.flatnonzero(lengths == 0)[0]))}")
    return vectors


def _misshapen(found: Any, where: Callable[[int], str]) -> str:
    """What is wrong with the shape of an answer."""
    wanted = None
    for row, vector in enumerate(found):
        is_vector = hasattr(vector, "__len__") and not isinstance(vector, (str, bytes, dict))
        if not is_vector or not all(_is_number(number) for number in vector):
            return f"answered with {type(vector).__name__}, not with numbers, for {where(row)}"
        wanted = len(vector) if wanted is None else wanted
        if len(vector) != wanted or not wanted:
            return (
                f"answered with a vector of {len(vector)} numbers for {where(row)}, and of {wanted}"
                f" for {where(0)}"
            )
    return "answered with something else than vectors"


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
