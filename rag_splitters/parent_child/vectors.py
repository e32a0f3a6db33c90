"""Vectors of children and of questions, and how unlike ones are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_splitters.models import Embedder, HashingEmbeddings
from rag_splitters.parent_child.passages import storable_text
from rag_splitters.parent_child.stores import threaded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Vectors", "most_diverse"]


class Vectors:
    """Asks an embedding model of either framework, or a callable, for documents and questions."""

    def __init__(self, model: Any, *, asynchronous: bool) -> None:
        self._model = model.model if isinstance(model, Embedder) else model
        self._embedder = model if isinstance(model, Embedder) else Embedder(model)
        self._asynchronous = asynchronous
        self._threaded = threaded(asynchronous)
        self._questions: dict[str, NDArray[np.float32]] = {}

    async def of_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row for each text."""
        if type(self._model) is HashingEmbeddings:  # without a detour over lists of numbers
            found: NDArray[np.float32] = await self._threaded(_hashed, self._model, texts)
            return found
        if self._asynchronous:
            return await self._embedder.aembed(texts)
        return self._embedder.embed(texts)

    async def of_question(self, question: str) -> NDArray[np.float32]:
        """The vector of a question, as the model embeds questions; each is asked for once."""
        if question not in self._questions:
            self._questions[question] = await self._ask(storable_text(question))
        return self._questions[question]

    async def _ask(self, question: str) -> NDArray[np.float32]:
        if type(self._model) is HashingEmbeddings:
            vectors = await self.of_texts([question])
        elif self._asynchronous:
            vectors = await self._embedder.aembed_questions([question])
        else:
            vectors = self._embedder.embed_questions([question])
        vector: NDArray[np.float32] = vectors[0]
        return vector


def _hashed(model: HashingEmbeddings, texts: Sequence[str]) -> NDArray[np.float32]:
    return model.embed_array(texts).astype("float32")


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
