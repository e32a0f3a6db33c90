"""Reusing stored vectors: children whose embedded text has not changed keep theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.smoothing import neighbour_weights, unmix
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VectorsByText = dict[str, "NDArray[np.float32]"]
"""The model's vectors by the texts that were embedded."""
_TOLERANCE = 3e-5  # of a vector's length: what comes from 32-bit numbers, and no edit comes from
_MAX_CANDIDATES = 8  # vectors of one text that are compared


def _no_context(child: Entry) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Edition:
    """The children that a document is to have, and those that it had."""

    children: Sequence[Entry]
    old_ids: Sequence[str] = ()
    """The children of the complete version before this one, in order, if they were embedded in the
    same way; none if there is no such version."""
    old_context: Callable[[Entry], str] = _no_context
    """Tells the headings that stood before an old child where that was embedded."""


@dataclass(slots=True)
class ChildrenToWrite:
    """What has to be written of a document's children."""

    children: list[Entry] = field(default_factory=list)
    vectors: list[NDArray[np.float32]] = field(default_factory=list)
    """The vector of each child; none if the store embeds by itself."""
    updated: list[Entry] = field(default_factory=list)
    """Children of which only the metadata have changed."""


def children_to_write(
    editions: Sequence[Edition], stored: Sequence[Entry | None]
) -> list[ChildrenToWrite]:
    """Return the children of each document that are not stored exactly as they are to be.

    For vector stores that return no vectors: what moved is embedded anew.

    Parameters:
        stored: the children that such a store returns for all old ids, in order.
    """
    by_id = {child.id: child for child in stored if child is not None}
    return [
        ChildrenToWrite([c for c in edition.children if not _is_stored(edition, c, by_id)])
        for edition in editions
    ]


def _is_stored(edition: Edition, child: Entry, by_id: Mapping[str | None, Entry]) -> bool:
    old = by_id.get(child.id)
    return (
        old is not None
        and old.text == without_surrogates(child.text)
        and old.metadata == child.metadata
        and edition.old_context(old) == child.context
    )


def embedded_text(child: Entry) -> str:
    """Return the text of a child as a model is given it."""
    return without_surrogates(child.searched_text)


class KnownVectors:
    """The model's vectors by the texts that were embedded, and the stored vectors of children.

    Parameters:
        own: vectors of texts that are known already; those that become known are added.
    """

    def __init__(self, own: VectorsByText | None = None) -> None:
        self._own: VectorsByText = {} if own is None else own
        self._stored: dict[str, list[NDArray[np.float32]]] = {}
        self._children: dict[str, tuple[Entry, NDArray[np.float32]]] = {}

    def add(
        self, children: Sequence[Entry], vectors: NDArray[np.float32], smoothing: float
    ) -> None:
        """Add all the children of a document as they are stored, in order."""
        own = unmix(vectors, neighbour_weights(smoothing))
        if own is None:
            return
        for child, own_vector, vector in zip(children, own, vectors, strict=True):
            text = embedded_text(child)
            self._own[text] = own_vector
            self._stored.setdefault(text, []).append(vector)
            self._children[child.id or ""] = child, vector

    def add_own(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add texts with the model's vectors."""
        self._own.update(zip(texts, vectors, strict=True))

    def own(self, text: str) -> NDArray[np.float32] | None:
        """Return the model's vector of a text, if it is known."""
        return self._own.get(text)

    def settle(
        self, children: Sequence[Entry], vectors: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], list[Entry | None]]:
        """Return the vectors to store, and each child as stored if it has its vector already.

        A vector that differs from the stored one only by rounding is replaced by it: however often
        the text around it is edited, it stays exactly the same.
        """
        if not self._children:
            return vectors, [None] * len(children)
        settled = vectors.copy()
        stored: list[Entry | None] = []
        for number, (child, vector) in enumerate(zip(children, vectors, strict=True)):
            old, old_vector = self._children.get(child.id or "", (None, None))
            candidates = self._stored.get(embedded_text(child), [])[:_MAX_CANDIDATES]
            same = old_vector if old_vector is not None and _is_same(old_vector, vector) else None
            stored.append(None if same is None else old)
            if same is None:
                same = next((each for each in candidates if _is_same(each, vector)), None)
            if same is not None:
                settled[number] = same
        return settled, stored


def _is_same(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    difference, length = one - other, other @ other
    return bool(difference @ difference <= _TOLERANCE**2 * length)
