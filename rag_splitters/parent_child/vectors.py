"""Vectors of children and questions: how texts are embedded, smoothed and diversified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from rag_splitters.calls import Call, call
from rag_splitters.models import Embedder, HashingEmbeddings, describe_model
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.records import Entry, Record
from rag_splitters.parent_child.smoothing import mix, neighbour_weights
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VectorsByText = dict[str, "NDArray[np.float32]"]
"""The model's vectors by the texts that were embedded."""


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
class Edition:
    """The children that a document is to have, and those that it has."""

    children: Sequence[Entry]
    new: Record
    base: Record | None = None
    """The record of the complete version before this one, if that was embedded in the same way."""

    def find_same(self, reach: int) -> list[str | None]:
        """Return for each child the id of a stored one with the same vector, or None.

        That is one with the same embedded text, and with the same texts beside it.

        Parameters:
            reach: how many neighbours on each side are mixed into a vector.
        """
        if self.base is None:
            return [None] * len(self.children)
        old = dict(zip(self.base.children, _windows(self.base.texts, reach), strict=True))
        by_window = {window: name for name, window in old.items()}
        new = zip(self.new.children, _windows(self.new.texts, reach), strict=True)
        return [n if old.get(n) == window else by_window.get(window) for n, window in new]

    def pair(self, ids: Sequence[str | None]) -> list[tuple[Entry, str | None]]:
        """Return each child with what `find_same` returned for it."""
        return list(zip(self.children, ids, strict=True))

    def find_changed_details(self) -> set[str]:
        """Return the ids of the children that are not stored with these metadata."""
        rows = set(zip(self.new.children, self.new.details, strict=True))
        if self.base is not None:
            rows -= set(zip(self.base.children, self.base.details, strict=True))
        return {name for name, _ in rows}


@dataclass(slots=True)
class ChildrenToWrite:
    """What has to be written of a document's children."""

    children: list[Entry] = field(default_factory=list)
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    """The vectors of these children by their ids; none if the store embeds by itself."""
    updated: list[Entry] = field(default_factory=list)
    """Children of which only the metadata have changed."""


def _windows(texts: Sequence[str], reach: int) -> list[tuple[object, ...]]:
    """Return each text with those beside it."""
    return [
        (texts[max(0, i - reach) : i], text, texts[i + 1 : i + 1 + reach])
        for i, text in enumerate(texts)
    ]


async def embed_children(
    editions: Sequence[Edition],
    to_write: Sequence[ChildrenToWrite],
    vectors: Vectors,
    batch_size: int,
    smoothing: float,
    own_vectors: VectorsByText,
) -> None:
    """Embed those of the children to write that have no vector yet.

    With `smoothing`, each vector is the mean of its own and its neighbours' in the same document,
    weighted by a Gaussian of that width (in children), and as long as before: a child then also
    stands for the text around it, and no text is embedded twice for that.

    Parameters:
        own_vectors: the model's vectors of texts that need not be embedded; others are added.
    """
    import numpy as np

    weights = neighbour_weights(smoothing)
    places: list[tuple[int, int]] = []
    for owner, (edition, each) in enumerate(zip(editions, to_write, strict=True)):
        missing = {child.id for child in each.children} - each.vectors.keys()
        numbers = [n for n, child in enumerate(edition.children) if child.id in missing]
        near = _with_neighbours(numbers, len(weights), len(edition.children))
        places += [(owner, number) for number in near]
    if not places:
        return
    texts = [embedded_text(editions[owner].children[number]) for owner, number in places]
    unknown = [text for text in dict.fromkeys(texts) if text not in own_vectors]
    for batch in batched(unknown, batch_size):
        own_vectors.update(zip(batch, await vectors.embed_texts(batch), strict=True))
    vectors.forget()
    rows = np.stack([own_vectors[text] for text in texts])
    if weights:
        is_next = np.diff(np.asarray(places), axis=0) == (0, 1)
        rows = mix(rows, np.cumsum([0, *~is_next.all(axis=1)]), weights)
    for (owner, number), row in zip(places, rows, strict=True):
        to_write[owner].vectors.setdefault(editions[owner].children[number].id or "", row)


def _with_neighbours(numbers: Sequence[int], reach: int, count: int) -> list[int]:
    near = {each for n in numbers for each in range(n - reach, n + reach + 1)}
    return sorted(each for each in near if 0 <= each < count)


def embedded_text(child: Entry) -> str:
    """Return the text of a child as a model is given it."""
    return without_surrogates(child.searched_text)


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
