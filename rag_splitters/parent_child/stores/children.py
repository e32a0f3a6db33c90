"""The interface of a vector store of children."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rag_splitters.errors import InputError
from rag_splitters.parent_child.batching import CHILDREN_AT_ONCE
from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.vectors import (
    Draft,
    Vectors,
    VectorsByText,
    embed_children,
    neighbour_weights,
)
from rag_splitters.parent_child.writing import Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Detail = Literal["id", "metadata", "text"]
"""How much of a child is read: its id, its metadata too, or its text as well. A store may return
more; each costs time."""
Level = Literal["parents", "children"]
Split = Callable[[Level, list[Entry]], Awaitable["list[list[Entry]] | None"]]
"""(level, entries) -> the chunks of each entry; None if there is no splitter for the level."""


@dataclass(frozen=True, slots=True)
class Match:
    """A child that a search found, and its score if the store tells it."""

    child: Entry
    score: float | None


class ChildStore(ABC):
    """The vector store of children. What not every store can do has a default here."""

    merges_metadata: bool = False
    """Whether metadata can be written alone. Old keys stay then, except for those set to None."""
    vectors: Vectors | None = None
    """Embeds children and questions; None if the store embeds by itself."""
    requested_batch_size: int | None = None
    """How many children the user wants to be embedded and written at once."""
    smoothing: float = 0.0
    """How wide, in children, neighbours' vectors are mixed; 0 for not at all."""
    has_filter: bool = False
    """Whether the query filters children by their metadata."""
    filter_keys: frozenset[str] = frozenset()
    """The metadata keys that the query's filter names."""
    where: Mapping[str, Any] | None = None
    """The query's filter, if the keyword index can evaluate it; see `keywords.metadata_index`."""
    scores_any_child: bool = False
    """Whether it scores any child, so that one without a score has been removed."""

    @property
    def batch_size(self) -> int:
        """How many children are embedded or written at once."""
        return self.requested_batch_size or CHILDREN_AT_ONCE

    @property
    def model(self) -> str:
        """The embedding model's name; nothing if the store embeds by itself."""
        return "" if self.vectors is None else self.vectors.name

    @property
    def is_local(self) -> bool:
        """Whether only this process can write to it, because it is in memory or in a folder."""
        return False

    @property
    def collection_name(self) -> str:
        """The name of its collection; nothing if it has none that outlives the process."""
        return ""

    async def read_labels(self) -> dict[str, Any] | None:
        """Return what the collection says of itself; None if it cannot say anything."""
        return None

    async def write_labels(self, labels: Mapping[str, Any]) -> None:
        """Have the collection say something of itself, if it can."""
        return

    async def embed(self, drafts: Sequence[Draft], own_vectors: VectorsByText) -> None:
        """Embed the children of some documents, and note what has to be written of each.

        What is stored already is not written, and a child that has only moved keeps its vector, if
        the store returns vectors. A store that embeds by itself does so when it writes.

        Parameters:
            own_vectors: the model's vectors of texts that were embedded before; others are added.
        """
        weights = neighbour_weights(self.smoothing)
        pairs_per_draft = [
            list(zip(draft.children, draft.find_same(len(weights)), strict=True))
            for draft in drafts
        ]
        pairs = [(child.id, old) for own in pairs_per_draft for child, old in own if old]
        missing = await self.find_missing([old for name, old in pairs if old == name])
        moved = dict.fromkeys(old for name, old in pairs if old != name)  # equal texts share one
        stored = await self.read_vectors(list(moved))
        for draft, own in zip(drafts, pairs_per_draft, strict=True):
            changed = draft.find_changed_details()
            for child, old in own:
                is_changed = child.id in changed
                is_stored = old == child.id and old not in missing
                if is_stored and (self.merges_metadata or not is_changed):
                    draft.updated_children += [child] if is_changed else []
                else:
                    draft.new_children.append(child)
                    draft.vectors |= {child.id or "": stored[old]} if old in stored else {}
        if self.vectors is not None:
            await embed_children(drafts, self.vectors, self.batch_size, weights, own_vectors)

    @abstractmethod
    async def write(self, drafts: Sequence[Draft], turn: Turn) -> None:
        """Write the children of some documents by their ids, as of this turn."""

    @abstractmethod
    async def remove(self, ids: Sequence[str], up_to: int | None = None) -> None:
        """Remove children; missing ids are ignored.

        Parameters:
            up_to: children that a later turn wrote stay, if the store can tell; None: all go.
        """

    async def adopt(self, turn: Turn) -> None:
        """Let this turn own the children of later ones, if the store can tell.

        There are some if the docstore was restored from an older backup.
        """
        return

    @abstractmethod
    async def read(self, ids: Sequence[str], detail: Detail = "text") -> list[Entry | None]:
        """Return the children with these ids, in their order; None where there is none."""

    async def count(self) -> int | None:
        """Return how many children there are; None if the store cannot tell."""
        return None

    async def find_missing(self, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that are not there; none if the store cannot look them up."""
        try:
            children = await self.read(ids, "id") if ids else []
        except NotImplementedError:
            return set()
        return {name for name, child in zip(ids, children, strict=True) if child is None}

    async def list_allowed(self) -> Sequence[str]:
        """Return the ids of all children that the query's filter lets through."""
        raise InputError(
            "search_type='hybrid' with a filter needs Chroma: another vector store cannot tell "
            "which children the filter lets through"
        )

    def with_filter(self, conditions: Mapping[str, Any]) -> ChildStore:
        """Return the same store for a query that also asks for this metadata, as Chroma filters."""
        raise InputError(
            "filters need Chroma here: for another vector store, set the filter on the retriever"
        )

    async def similarities(self, query: str, ids: Sequence[str]) -> dict[str, float]:
        """Return the scores that `find` would give these children, if the store can tell them."""
        return {}

    async def read_some(self) -> list[Entry]:
        """Return a few children, without text; none if the store cannot choose any."""
        return []

    async def read_vectors(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the stored vectors of children by their ids; none if the store cannot tell."""
        return {}

    async def list_ids(self) -> list[str] | None:
        """Return the id of every child; None if the store cannot be listed."""
        return None

    @abstractmethod
    async def find(self, query: str, n: int, detail: Detail = "text") -> list[Match]:
        """Return the n nearest children, best first; fewer if there are no more."""

    async def find_unfiltered(self, query: str, n: int) -> list[Match]:
        """Return the ids of the n nearest children, whether they pass the query's filter or not.

        Only a store that sets `where` is asked.
        """
        raise NotImplementedError

    @abstractmethod
    async def find_diverse(self, query: str, n: int, pool: int, balance: float) -> list[Match]:
        """Return n of the `pool` nearest children by maximal marginal relevance.

        A `balance` of 1 asks for the nearest alone.
        """
