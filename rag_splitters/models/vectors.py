"""What a model answered, checked and made into rows of numbers."""

from __future__ import annotations

import struct
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
        vectors = _as_rows(found, count)
    except (TypeError, ValueError, KeyError, struct.error):
        raise ValueError(_misshapen(found, where)) from None
    if not vectors.shape[1]:
        raise ValueError(_misshapen(found, where))
    is_finite = np.isfinite(vectors).all(axis=1)
    if not is_finite.all():
        row = int(is_finite.argmin())
        raise ValueError(f"answered with a number that is not finite for {where(row)}")
    is_something = vectors.any(axis=1)
    if not is_something.all():
        raise ValueError(f"answered with zeros for {where(int(is_something.argmin()))}")
    return vectors


def _as_rows(found: Any, count: int) -> NDArray[np.float32]:
    """The vectors as rows; for lists of numbers in half the time that numpy takes for them."""
    import numpy as np

    width = len(found[0])
    rows = np.empty((count, width), dtype=np.float32)
    pack_into, step = struct.Struct(f"{width}f").pack_into, rows.strides[0] if width else 0
    buffer = rows.data.cast("B") if width else None
    for row, vector in enumerate(found):
        if len(vector) != width:  # numpy would repeat a single number
            raise ValueError
        try:
            if isinstance(vector, list) and buffer is not None:
                pack_into(buffer, row * step, *vector)
                continue
        except OverflowError:  # beyond 32 bits: numpy makes it infinite
            pass
        with np.errstate(over="ignore"):
            rows[row] = vector
    return rows


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
