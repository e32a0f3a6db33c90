"""Letting a child stand for the passage around it: its neighbours' vectors mixed into its own."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from rag_splitters.parent_child.passages import Passage, storable_text
from rag_splitters.parent_child.stores import parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rag_splitters.parent_child.vectors import Vectors

__all__ = ["neighbour_weights", "smoothed"]

_LEAST_WEIGHT = 0.001


def neighbour_weights(width: float) -> list[float]:
    """The weights of the next neighbour, of the one behind it, and so on; a child has weight 1.

    Parameters:
        width: that of the Gaussian, in children; 0 for no neighbours.

    >>> [round(weight, 3) for weight in neighbour_weights(0.6)]
    [0.249, 0.004]
    """
    if not width:
        return []
    reach = int(width * math.sqrt(-2 * math.log(_LEAST_WEIGHT)))
    return [math.exp(-(distance**2) / (2 * width**2)) for distance in range(1, reach + 1)]


async def smoothed(
    documents: Sequence[Sequence[Passage]], vectors: Vectors, batch: int, width: float
) -> AsyncIterator[tuple[Sequence[Passage], NDArray[np.float32]]]:
    """The children of some documents with their vectors, in batches.

    With a `width` each vector is the mean of its own and its neighbours' in the same document,
    weighted by a Gaussian of that width (in children) and made as long as before: a child then
    stands for the passage around it too, and no text is embedded twice for it.
    """
    import numpy as np

    children = [child for document in documents for child in document]
    owners = np.repeat(np.arange(len(documents)), [len(document) for document in documents])
    weights = neighbour_weights(width)
    reach = len(weights)
    first = done = 0  # the first child whose vector is at hand, and the first not given out
    known: NDArray[np.float32] | None = None
    for part in parts(children, batch):
        new = await vectors.of_texts([storable_text(child.searched) for child in part])
        known = new if known is None else np.concatenate([known, new])
        end = first + len(known)
        ready = end if end == len(children) else max(done, end - reach)
        if ready == done:
            continue
        mixed = _mixed(known, owners[first:end], weights) if reach else known
        for few in parts(range(done, ready), batch):
            rows = mixed[few[0] - first : few[-1] + 1 - first]
            yield [children[number] for number in few], rows
        done = ready
        keep = max(0, done - reach)
        known, first = known[keep - first :], keep


def _mixed(
    vectors: NDArray[np.float32], owners: NDArray[Any], weights: Sequence[float]
) -> NDArray[np.float32]:
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / lengths
    mixed = units.copy()
    for distance, weight in enumerate(weights[: len(units) - 1], 1):
        same = (owners[distance:] == owners[:-distance])[:, None] * np.float32(weight)
        mixed[distance:] += same * units[:-distance]
        mixed[:-distance] += same * units[distance:]
    norms = np.linalg.norm(mixed, axis=1, keepdims=True)
    vanished = norms[:, 0] < 1e-6  # neighbours that point the other way
    mixed[vanished], norms[vanished] = units[vanished], 1.0
    result: NDArray[np.float32] = (mixed / norms * lengths).astype(np.float32)
    return result
