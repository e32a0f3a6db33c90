"""Vectors of children and questions: how texts are embedded, smoothed and diversified."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from rag_splitters.calls import Call
from rag_splitters.meaning.similarity import unit_vectors
from rag_splitters.models import Embedder, embed
from rag_splitters.models.hashing import HASHING_NAME
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.records import Entry, Record, parent_row
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MIN_WEIGHT = 0.001  # of a neighbour

VectorsByText = dict[str, "NDArray[np.float32]"]
"""The model's vectors by the texts that were embedded."""


class Vectors:
    """Embeds texts and questions with a model of either framework, or a callable.

    Parameters:
        name: what the model is called; None: what `describe_model` calls it.
        question_texts: texts to embed in place of a question, whose vector is the mean of theirs.
    """

    def __init__(
        self, model: Any, name: str | None = None, question_texts: Sequence[str] | None = None
    ) -> None:
        self._name = name
        self._question_texts = question_texts
        self._embedder = model if isinstance(model, Embedder) else Embedder(model)
        self._questions: dict[str, NDArray[np.float32]] = {}

    @cached_property
    def name(self) -> str:
        """The model's stable name."""
        return self._name or self._embedder.description

    @property
    def is_hashed(self) -> bool:
        """Whether the vectors are hashed words, so that there is no model."""
        return HASHING_NAME.fullmatch(self._embedder.description) is not None

    async def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text."""
        return await embed(self._embedder, texts)

    def forget(self) -> None:
        """Let the model forget what it answered, once that is stored."""
        self._embedder.memory.forget()

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        """Return the vector of a question, as the model embeds questions; each is embedded once."""
        if question not in self._questions:
            embedder, texts = self._embedder, self._question_texts or [question]
            rows = await Call(
                partial(embedder.embed_questions, texts), partial(embedder.aembed_questions, texts)
            )
            self._questions[question] = rows.mean(axis=0)
        return self._questions[question]


@dataclass(slots=True)
class Draft:
    """A document to write, and the parents and children that it is to have.

    What has to be written of the children is known once they are embedded.
    """

    identity: str
    source: Entry
    parents: list[Entry]
    children: list[Entry]
    """The representations of its pieces come last."""
    pieces: Sequence[Entry] = ()
    """What has representations: children, or parents as if they were children."""
    representations: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """The key of each piece, and the texts by which it is found; see `Representations`."""
    record: Record = field(init=False)
    """The record that it has once it is written."""
    old: Record | None = None
    """The record that this one replaces."""
    is_new_throughout: bool = False
    """Whether everything is embedded and written again, whatever was there."""
    new_children: list[Entry] = field(default_factory=list)
    """The children to write."""
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    """The vectors of these children by their ids; none if the store embeds by itself."""
    updated_children: list[Entry] = field(default_factory=list)
    """Children of which only the metadata have to be written."""

    @property
    def base(self) -> Record | None:
        """The record of a complete version, embedded in the same way, of which much may stay."""
        if self.old is None or self.is_new_throughout or not self.old.is_complete:
            return None
        return self.old if self.old.settings == self.record.settings else None

    def compare(self, old: Record | None, *, is_new_throughout: bool) -> None:
        """Begin anew to write it in place of a version with this record."""
        self.old, self.is_new_throughout = old, is_new_throughout
        self.new_children, self.vectors, self.updated_children = [], {}, []

    def parents_to_write(self) -> list[tuple[str, Entry]]:
        """Return the rows of the parents that the docstore does not hold as they are."""
        base, new = self.base, self.record
        old = dict(zip(base.parents, base.metadata_hashes[1:], strict=True)) if base else {}
        return [
            parent_row(parent, self.identity)
            for parent, hashed in zip(self.parents, new.metadata_hashes[1:], strict=True)
            if old.get(parent.id or "") != hashed or not hashed
        ]

    def find_same(self, reach: int) -> list[str | None]:
        """Return for each child the id of a stored one with the same vector, or None.

        That is one with the same embedded text, and with the same texts beside it.

        Parameters:
            reach: how many neighbours on each side are mixed into a vector.
        """
        if self.base is None:
            return [None] * len(self.children)
        old = dict(zip(self.base.children, _windows(self.base, reach), strict=True))
        by_window = {window: name for name, window in old.items()}
        new = zip(self.record.children, _windows(self.record, reach), strict=True)
        return [n if old.get(n) == window else by_window.get(window) for n, window in new]

    def find_changed_details(self) -> set[str]:
        """Return the ids of the children that are not stored with these metadata."""
        rows = set(zip(self.record.children, self.record.details, strict=True))
        if self.base is not None:
            rows -= set(zip(self.base.children, self.base.details, strict=True))
        return {name for name, _ in rows}


def _windows(record: Record, reach: int) -> list[tuple[object, ...]]:
    """Return the text of each child with those beside it; representations have no neighbours."""
    texts, others = record.texts[: record.piece_count], record.texts[record.piece_count :]
    windows: list[tuple[object, ...]] = [
        (texts[max(0, i - reach) : i], text, texts[i + 1 : i + 1 + reach])
        for i, text in enumerate(texts)
    ]
    return windows + [(text,) for text in others]


async def embed_children(
    drafts: Sequence[Draft],
    vectors: Vectors,
    batch_size: int,
    weights: Sequence[float],
    own_vectors: VectorsByText,
) -> None:
    """Embed those of the children to write that have no vector yet.

    With `weights`, each vector is the mean of its own and its neighbours' in the same document, and
    as long as before: a child then also stands for the text around it, and no text is embedded
    twice for that.

    Parameters:
        own_vectors: the model's vectors of texts that need not be embedded; others are added.
    """
    import numpy as np

    places: list[tuple[int, int]] = []
    representations: list[tuple[int, int]] = []
    for owner, draft in enumerate(drafts):
        missing = {child.id for child in draft.new_children} - draft.vectors.keys()
        numbers = [n for n, child in enumerate(draft.children) if child.id in missing]
        reach = range(-len(weights), len(weights) + 1)
        count = draft.record.piece_count
        near = {n + step for n in numbers if n < count for step in reach if 0 <= n + step < count}
        places += [(owner, n) for n in sorted(near)]
        representations += [(owner, n) for n in numbers if n >= count]
    places = representations[::-1] + places  # so that none of them follows its neighbour
    if not places:
        return
    texts = [embedded_text(drafts[owner].children[number]) for owner, number in places]
    unknown = [text for text in dict.fromkeys(texts) if text not in own_vectors]
    for batch in batched(unknown, batch_size):
        own_vectors.update(zip(batch, await vectors.embed_texts(batch), strict=True))
    vectors.forget()
    rows = np.stack([own_vectors[text] for text in texts])
    if weights:
        is_next = np.diff(np.asarray(places), axis=0) == (0, 1)
        rows = _mix(rows, np.cumsum([0, *~is_next.all(axis=1)]), weights)
    for (owner, number), row in zip(places, rows, strict=True):
        drafts[owner].vectors.setdefault(drafts[owner].children[number].id or "", row)


def embedded_text(child: Entry) -> str:
    """Return the text of a child as a model is given it."""
    return without_surrogates(child.searched_text)


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
    """Mix each vector with its neighbours of the same owner; each stays as long as it is."""
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
    units = unit_vectors(vectors, "float32")
    relevance = units @ unit_vectors(question[None], "float32")[0]
    selection: list[int] = []
    redundancy = np.zeros(len(units), dtype=np.float32)
    is_left = np.ones(len(units), dtype=bool)
    for _ in range(min(n, len(units))):
        scores = balance * relevance - (1 - balance) * redundancy
        best = int(np.argmax(np.where(is_left, scores, -np.inf)))
        similarity = units @ units[best]
        redundancy = np.maximum(redundancy, similarity) if selection else similarity
        selection.append(best)
        is_left[best] = False
    return selection
