"""The interfaces that parent-child retrieval needs from stores and splitters.

Every method is a coroutine that awaits only `rag_splitters.calls.Call`, so each operation is
written once and `run` or `arun` drives it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from rag_splitters.errors import InputError, RagSplittersError
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.keyword_index import KeywordIndex
from rag_splitters.parent_child.known_vectors import Edition
from rag_splitters.parent_child.records import RECORD_PREFIX, Entry, Record, record_key

Detail = Literal["id", "metadata", "text"]
"""How much of a child is read: its id, its metadata too, or its text as well. A store may return
more; each costs time."""
Level = Literal["parents", "children"]
Split = Callable[[Level, list[Entry]], Awaitable["list[list[Entry]] | None"]]
"""(level, entries) -> the chunks of each entry; None if there is no splitter for the level."""

_RECORDS_PER_READ = 256


class UnsupportedError(RagSplittersError):
    """The vector store has no such operation."""


@dataclass(frozen=True, slots=True)
class Match:
    """A child that a search found, and its score if the store tells it."""

    child: Entry
    score: float | None
    is_located: bool = False
    """Are only the child's text, parent and positions known, and not its other metadata?"""


@dataclass(slots=True)
class ClassicParents:
    """What is known of the parents that `langchain_classic` wrote, once they have been read."""

    by_text: dict[str, dict[str, list[tuple[int, str, str]]]] | None = None
    """By metadata and by how a text begins: its length, its digest, and the parent's key."""


class Docstore(Protocol):
    """The key-value store of parents, and of a record for each source document."""

    def check(self, metadata: Mapping[str, Any]) -> None:
        """Raise a TypeError that names the place of what the store cannot keep."""

    async def read(self, keys: Sequence[str]) -> list[Entry | None]:
        """Return the rows of the keys, in their order; None where there is none."""

    async def write(self, rows: Sequence[tuple[str, Entry]]) -> None:
        """Write rows, in this order."""

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove rows; missing keys are ignored."""

    async def list_keys(self, prefix: str) -> list[str]:
        """Return the keys that begin with a prefix."""


@runtime_checkable
class AtomicDocstore(Docstore, Protocol):
    """A docstore that can compare and write in one step, whoever else writes to it."""

    async def swap(
        self,
        expected: Mapping[str, Entry | None],
        rows: Sequence[tuple[str, Entry]],
        removed: Sequence[str],
    ) -> bool:
        """Write and remove rows if others are as expected, and return whether they were.

        None is expected of a key that must not be there. It all happens at once or not at all.
        """


class ChildStore(ABC):
    """The vector store of children. What not every store can do has a default here."""

    merges_metadata: bool = False
    """Does a rewritten child keep its old metadata keys, except for those set to None?"""
    may_hold_classic: bool = True
    """May it hold children that `langchain_classic` wrote?"""
    smoothing: float = 0.0
    """How wide, in children, neighbours' vectors are mixed; 0 for not at all."""
    has_filter: bool = False
    """Does the query filter children by their metadata?"""
    filter_keys: frozenset[str] = frozenset()
    """The metadata keys that the query's filter names."""
    where: Mapping[str, Any] | None = None
    """The query's filter, if the keyword index can evaluate it; see `metadata_index`."""
    tells_similarities: bool = False
    """Can it tell the similarity of any child, so that one without has been removed?"""

    @property
    def model(self) -> str:
        """The embedding model's name; nothing if the store embeds by itself."""
        return ""

    @property
    def is_local(self) -> bool:
        """Can only this process write to it, because it is in memory or in a folder?"""
        return False

    @abstractmethod
    async def write(self, editions: Sequence[Edition]) -> None:
        """Embed the children of some documents, in their order, and write them by their ids.

        What is stored already, and children whose embedded text the store knows, need not be
        embedded or written again.
        """

    @abstractmethod
    async def remove(self, ids: Sequence[str]) -> None:
        """Remove children; missing ids are ignored."""

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

    async def similarities(self, query: str, ids: Sequence[str]) -> dict[str, float]:
        """Return the scores that `find` would give these children, if the store can tell them."""
        return {}

    async def read_children_of(self, id_key: str, parents: Sequence[str]) -> list[Entry]:
        """Return the children of some parents.

        Raises UnsupportedError if the store cannot look them up.
        """
        raise UnsupportedError

    async def list_ids(self) -> list[str]:
        """Return the id of every child. Raises UnsupportedError if the store cannot be listed."""
        raise UnsupportedError

    @abstractmethod
    async def find(self, query: str, n: int, detail: Detail = "text") -> list[Match]:
        """Return the n nearest children, best first; fewer if there are no more."""

    async def find_unfiltered(self, query: str, n: int) -> list[Match]:
        """Return the ids of the n nearest children, whether they pass the query's filter or not.

        Raises UnsupportedError unless the store sets `where`.
        """
        raise UnsupportedError

    @abstractmethod
    async def find_diverse(self, query: str, n: int, pool: int, balance: float) -> list[Match]:
        """Return n of the `pool` nearest children by maximal marginal relevance.

        A `balance` of 1 asks for the nearest alone.
        """


@dataclass(frozen=True, slots=True)
class Stores:
    """Everything that one operation works on."""

    docstore: Docstore
    children: ChildStore
    split: Split
    id_key: str
    """The key in a child's metadata that holds its parent's id."""
    headings: bool = False
    """Do title and headings stand before a child's text where that is embedded or indexed?"""
    keywords: KeywordIndex | None = None
    inherited_keys: frozenset[str] | None = None
    """The keys of a document's metadata that its children keep; None: all."""
    classic: ClassicParents | None = None
    """What documents that are added may replace; None if the stores are all our own."""
    is_shared: bool = False
    """May other processes write to these stores, so that documents must be locked?"""

    async def read_records(self, identities: Sequence[str]) -> list[Record | None]:
        """Return the record of each document, or None."""
        rows = await self.docstore.read([record_key(identity) for identity in identities])
        return [Record.from_row(*pair) for pair in zip(rows, identities, strict=True)]

    async def read_all_records(self) -> AsyncIterator[list[Record]]:
        """Return the records of all documents, some at a time."""
        for keys in batched(await self.docstore.list_keys(RECORD_PREFIX), _RECORDS_PER_READ):
            records = [Record.from_row(row) for row in await self.docstore.read(keys)]
            yield [record for record in records if record is not None]
