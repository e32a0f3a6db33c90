"""Vectors of children and of questions, and how neighbours' vectors are mixed."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from rag_splitters.models import Embedder
from rag_splitters.parent_child.passages import Passage, storable_text
from rag_splitters.parent_child.stores import parts, threaded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Vectors", "most_diverse", "smoothed"]

_LEAST_WEIGHT = 0.001


class Vectors:
    """Asks an embedding model of either framework, or a callable, for documents and questions."""

    def __init__(self, model: Any, *, asynchronous: bool) -> None:
        self._model = model.model if isinstance(model, Embedder) else model
        self._embedder = model if isinstance(model, Embedder) else Embedder(model)
        self._asynchronous = asynchronous
        self._questions: dict[str, NDArray[np.float32]] = {}

    async def of_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row for each text."""
        if self._asynchronous:
            return await self._embedder.aembed(texts)
        return self._embedder.embed(texts)

    async def of_question(self, question: str) -> NDArray[np.float32]:
        """The vector of a question, as the model embeds questions; each is asked for once."""
        import numpy as np

        if question not in self._questions:
            vector = np.asarray(await self._asked(storable_text(question)), dtype=np.float32)
            self._questions[question] = vector
        return self._questions[question]

    async def _asked(self, question: str) -> Any:
        for name in ("embed_query", "get_query_embedding"):
            method = getattr(self._model, name, None)
            if callable(method):
                if not self._asynchronous:
                    return method(question)
                awaited = getattr(self._model, f"a{name}", None)
                if callable(awaited):
                    return await awaited(question)
                return await threaded(asynchronous=True)(method, question)
        return (await self.of_texts([question]))[0]


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
    reach = 0 if not width else int(width * math.sqrt(-2 * math.log(_LEAST_WEIGHT)))
    first = done = 0  # the first child whose vector is at hand, and the first not given out
    known: NDArray[np.float32] | None = None
    for part in parts(children, batch):
        new = await vectors.of_texts([storable_text(child.text) for child in part])
        known = new if known is None else np.concatenate([known, new])
        end = first + len(known)
        ready = end if end == len(children) else max(done, end - reach)
        if ready == done:
            continue
        mixed = _mixed(known, owners[first:end], reach, width) if reach else known
        for few in parts(range(done, ready), batch):
            rows = mixed[few[0] - first : few[-1] + 1 - first]
            yield [children[number] for number in few], rows
        done = ready
        keep = max(0, done - reach)
        known, first = known[keep - first :], keep


def _mixed(
    vectors: NDArray[np.float32], owners: NDArray[Any], reach: int, width: float
) -> NDArray[np.float32]:
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / lengths
    mixed = units.copy()
    for distance in range(1, min(reach, len(units) - 1) + 1):
        weight = math.exp(-(distance**2) / (2 * width**2))
        same = (owners[distance:] == owners[:-distance])[:, None] * np.float32(weight)
        mixed[distance:] += same * units[:-distance]
        mixed[:-distance] += same * units[distance:]
    norms = np.linalg.norm(mixed, axis=1, keepdims=True)
    vanished = norms[:, 0] < 1e-6  # neighbours that point the other way
    mixed[vanished], norms[vanished] = units[vanished], 1.0
    result: NDArray[np.float32] = (mixed / norms * lengths).astype(np.float32)
    return result


def most_diverse(
    question: NDArray[np.float32], vectors: NDArray[np.float32], n: int, balance: float
) -> list[int]:
    """The rows of n vectors by maximal marginal relevance (Carbonell and Goldstein 1998).

    Each next one is the best by `balance` times its likeness to the question less (1 - `balance`)
    times its greatest likeness to one chosen before (cosines).
    """
    import numpy as np

    if not len(vectors):
        return []
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    relevance = units @ (question / np.linalg.norm(question))
    chosen: list[int] = []
    nearest = np.zeros(len(units), dtype=np.float32)
    left = np.ones(len(units), dtype=bool)
    while len(chosen) < min(n, len(units)):
        scores = balance * relevance - (1 - balance) * nearest
        best = int(np.argmax(np.where(left, scores, -np.inf)))
        likeness = units @ units[best]
        nearest = np.maximum(nearest, likeness) if chosen else likeness
        chosen.append(best)
        left[best] = False
    return chosen
