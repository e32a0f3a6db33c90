"""Checks of an embedding model's answer, which becomes rows of 32-bit floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rag_splitters.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class BatchError(InputError):
    """An answer is invalid as a whole; smaller batches of the same texts may succeed."""


def as_vectors(
    answer: Any, count: int, where: Callable[[int], str]
) -> tuple[NDArray[np.float32], dict[int, str]]:
    """Return a model's answer as one row for each text, and what is wrong with single rows.

    A row is invalid if all its numbers are zero, or if one is not finite.

    Parameters:
        answer: the answer: vectors as lists or arrays of numbers.
        count: the number of texts.
        where: names the text of a row, for messages.

    Raises BatchError if there are more or fewer vectors than texts or one does not consist of
    numbers, and ValueError if vectors differ in length or are empty.
    """
    import numpy as np

    try:
        length = len(answer)
    except TypeError:
        raise InputError(f"answered with {type(answer).__name__} instead of vectors") from None
    if length != count:
        raise BatchError(f"answered with {length} vectors for {count} texts")
    try:
        with np.errstate(over="ignore"):  # too large for 32 bits becomes infinite
            rows = answer if isinstance(answer, np.ndarray) else [*answer]
            vectors = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError, KeyError):
        raise _shape_error(answer, where) from None
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise _shape_error(answer, where)
    is_finite = np.asarray(np.isfinite(vectors).all(axis=1))
    is_nonzero = np.asarray(vectors.any(axis=1))
    problems: dict[int, str] = {}
    for row in map(int, np.flatnonzero(~(is_finite & is_nonzero))):
        what = "answered with zeros"
        if not is_finite[row]:
            what = "answered with a number that is not finite"
        problems[row] = f"{what} for {where(row)}"
    return vectors, problems


def _shape_error(answer: Any, where: Callable[[int], str]) -> InputError:
    """Return the error about the shape of an answer."""
    width = None
    for row, vector in enumerate(answer):
        is_vector = hasattr(vector, "__len__") and not isinstance(vector, (str, bytes, dict))
        if not is_vector or not all(_is_number(number) for number in vector):
            kind = type(vector).__name__
            return BatchError(f"answered with {kind} instead of numbers for {where(row)}")
        width = len(vector) if width is None else width
        if not width:
            return InputError(f"answered with an empty vector for {where(row)}")
        if len(vector) != width:
            return InputError(
                f"answered with a vector of {len(vector)} numbers for {where(row)}, and of {width}"
                f" for {where(0)}"
            )
    return InputError("answered with something other than vectors")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
