"""Vectors of children and questions: how texts are embedded, smoothed and diversified."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rag_splitters.calls import Call, call
from rag_splitters.models import Embedder, HashingEmbeddings
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.records import Entry
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_MIN_WEIGHT = 0.001


class Vectors:
    """Embeds texts and questions with a model of either framework, or a callable."""

    def __init__(self, model: Any) -> None:
        self._model = model.model if isinstance(model, Embedder) else model
        self._embedder = model if isinstance(model, Embedder) else Embedder(model)
        self._questions: dict[str, NDArray[np.float32]] = {}

    async def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text."""
        if type(self._model) is HashingEmbeddings:  # without lists of numbers in between
            return await call(lambda: self._model.embed_array(texts).astype("float32"))
        return await Call(
            partial(self._embedder.embed, texts), partial(self._embedder.aembed, texts)
        )

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        """Return the vector of a question, as the model embeds questions; each is embedded once."""
        if question not in self._questions:
            texts = [without_surrogates(question)]
            if type(self._model) is HashingEmbeddings:
                rows = await self.embed_texts(texts)
            else:
                rows = await Call(
                    partial(self._embedder.embed_questions, texts),
                    partial(self._embedder.aembed_questions, texts),
                )
            self._questions[question] = rows[0]
        return self._questions[question]


async def embed_children(
    documents: Sequence[Sequence[Entry]], vectors: Vectors, batch_size: int, smoothing: float
) -> AsyncIterator[tuple[Sequence[Entry], NDArray[np.float32]]]:
    """Embed the children of some documents, and return them with their vectors in batches.

    With `smoothing`, each vector is the mean of its own and its neighbours' in the same document,
    weighted by a Gaussian of that width (in children), and as long as before: a child then also
    stands for the text around it, and no text is embedded twice for that.
    """
    import numpy as np

    children = [child for document in documents for child in document]
    owners = np.repeat(np.arange(len(documents)), [len(document) for document in documents])
    weights = neighbour_weights(smoothing)
    reach = len(weights)
    window: NDArray[np.float32] | None = None  # the vectors of children[start:end]
    start = returned = 0
    for batch in batched(children, batch_size):
        texts = [without_surrogates(child.searched_text) for child in batch]
        new = await vectors.embed_texts(texts)
        window = new if window is None else np.concatenate([window, new])
        end = start + len(window)
        # The last few wait for the neighbours that follow them.
        ready = end if end == len(children) else max(returned, end - reach)
        if ready == returned:
            continue
        mixed = _mix(window, owners[start:end], weights) if reach else window
        for numbers in batched(range(returned, ready), batch_size):
            rows = mixed[numbers[0] - start : numbers[-1] + 1 - start]
            yield [children[number] for number in numbers], rows
        returned = ready
        next_start = max(0, returned - reach)
        window, start = window[next_start - start :], next_start


def neighbour_weights(width: float) -> list[float]:
    """Return the weights of the next neighbour, of the one behind it, and so on.

    A child itself has weight 1.

    Parameters:
        width: that of the Gaussian, in children; 0 for no neighbours.

    >>> [round(weight, 3) for weight in neighbour_weights(0.6)]
    [0.249, 0.004]
    """
    if not width:
        return []
    reach = int(width * math.sqrt(-2 * math.log(_MIN_WEIGHT)))
    return [math.exp(-(distance**2) / (2 * width**2)) for distance in range(1, reach + 1)]


def _mix(
    vectors: NDArray[np.float32], owners: NDArray[Any], weights: Sequence[float]
) -> NDArray[np.float32]:
    """Mix each vector with its neighbours of the same owner."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / lengths
    mixed = units.copy()
    for distance, weight in enumerate(weights[: len(units) - 1], 1):
        same = (owners[distance:] == owners[:-distance])[:, None] * np.float32(weight)
        mixed[distance:] += same * units[:-distance]
        mixed[:-distance] += same * units[distance:]
    norms = np.linalg.norm(mixed, axis=1, keepdims=True)
    vanished = norms[:, 0] < 1e-6  # where neighbours point the other way
    mixed[vanished], norms[vanished] = units[vanished], 1.0
    result: NDArray[np.float32] = (mixed / norms * lengths).astype(np.float32)
    return result


def select_diverse(
    question: NDArray[np.float32], vectors: NDArray[np.float32], n: int, balance: float
) -> list[int]:
    """Select the rows of n vectors by maximal marginal relevance (Carbonell and Goldstein 1998).

    Each next one is the best by `balance` times its similarity to the question, minus
    (1 - `balance`) times its greatest similarity to one that was selected before (cosines).
    """
    import numpy as np

    if not len(vectors):
        return []
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    relevance = units @ (question / np.linalg.norm(question))
    selection: list[int] = []
    redundancy = np.zeros(len(units), dtype=np.float32)
    is_left = np.ones(len(units), dtype=bool)
    while len(selection) < min(n, len(units)):
        scores = balance * relevance - (1 - balance) * redundancy
        best = int(np.argmax(np.where(is_left, scores, -np.inf)))
        similarity = units @ units[best]
        redundancy = np.maximum(redundancy, similarity) if selection else similarity
        selection.append(best)
        is_left[best] = False
    return selection
