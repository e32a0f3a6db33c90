"""Vectors of children and questions: how texts are embedded, smoothed and diversified."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from rag_splitters.calls import Call, call
from rag_splitters.models import Embedder, HashingEmbeddings, describe_model
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.known_vectors import KnownVectors, embedded_text
from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.smoothing import mix, neighbour_weights
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Vectors:
    """Embeds texts and questions with a model of either framework, or a callable.

    Parameters:
        name: what the model is called; None: what `describe_model` calls it.
    """

    def __init__(self, model: Any, name: str | None = None) -> None:
        self._name = name
        self._model = model.model if isinstance(model, Embedder) else model
        self._embedder = model if isinstance(model, Embedder) else Embedder(model)
        self._questions: dict[str, NDArray[np.float32]] = {}

    @cached_property
    def name(self) -> str:
        """The model's stable name."""
        return self._name or describe_model(self._model)

    async def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text, with several requests under way at once."""
        if type(self._model) is HashingEmbeddings:  # without lists of numbers in between
            return await call(lambda: self._model.embed_array(texts).astype("float32"))
        return await Call(
            partial(self._embedder.embed, texts, side_by_side=True),
            partial(self._embedder.aembed, texts, side_by_side=True),
        )

    def forget(self) -> None:
        """Let the model forget what it answered, once that is stored."""
        self._embedder.memory.forget()

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


@dataclass(frozen=True, slots=True)
class Embedded:
    """Some children with their vectors."""

    owners: Sequence[int]
    """The number of each child's document."""
    children: Sequence[Entry]
    vectors: NDArray[np.float32]
    """What the store is to have for each child."""
    stored: Sequence[Entry | None]
    """The child as the store holds it, if it is there with this very vector."""


async def embed_children(
    documents: Sequence[Sequence[Entry]],
    vectors: Vectors,
    batch_size: int,
    smoothing: float,
    known_vectors: KnownVectors,
) -> AsyncIterator[Embedded]:
    """Embed the children of some documents, and return them with their vectors in batches.

    With `smoothing`, each vector is the mean of its own and its neighbours' in the same document,
    weighted by a Gaussian of that width (in children), and as long as before: a child then also
    stands for the text around it, and no text is embedded twice for that. A text whose vector is
    known is not embedded at all.
    """
    import numpy as np

    children = [child for document in documents for child in document]
    owners = np.repeat(np.arange(len(documents)), [len(document) for document in documents])
    weights = neighbour_weights(smoothing)
    reach = len(weights)
    window: NDArray[np.float32] | None = None  # the vectors of children[start:end]
    start = returned = 0
    for batch in batched(children, batch_size):
        texts = [embedded_text(child) for child in batch]
        new = await _embed_unknown(texts, vectors, known_vectors)
        window = new if window is None else np.concatenate([window, new])
        end = start + len(window)
        # The last few wait for the neighbours that follow them.
        ready = end if end == len(children) else max(returned, end - reach)
        if ready == returned:
            continue
        mixed = mix(window, owners[start:end], weights) if reach else window
        for numbers in batched(range(returned, ready), batch_size):
            rows = slice(numbers[0] - start, numbers[-1] + 1 - start)
            own = children[numbers[0] : numbers[-1] + 1]
            vectors_to_store, stored = known_vectors.settle(own, mixed[rows])
            numbers_of_owners = owners[numbers[0] : numbers[-1] + 1].tolist()
            yield Embedded(numbers_of_owners, own, vectors_to_store, stored)
        returned = ready
        next_start = max(0, returned - reach)
        window, start = window[next_start - start :], next_start
    vectors.forget()


async def _embed_unknown(
    texts: Sequence[str], vectors: Vectors, known_vectors: KnownVectors
) -> NDArray[np.float32]:
    """Return a row for each text, of which only the unknown ones are embedded."""
    import numpy as np

    rows = [known_vectors.own(text) for text in texts]
    unknown = [number for number, row in enumerate(rows) if row is None]
    if unknown:
        new_texts = [texts[number] for number in unknown]
        new = await vectors.embed_texts(new_texts)
        known_vectors.add_own(new_texts, new)
        if len(unknown) == len(texts):
            return new
        for number, row in zip(unknown, new, strict=True):
            rows[number] = row
    return np.stack([row for row in rows if row is not None])


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
