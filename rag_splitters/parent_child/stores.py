"""The interfaces that parent-child retrieval needs from stores and splitters.

Every method is a coroutine that awaits only `rag_splitters.calls.Call`, so each operation is
written once and `run` or `arun` drives it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rag_splitters.errors import InputError, OperationError
from rag_splitters.parent_child.batching import CHILDREN_AT_ONCE, DOCUMENTS_AT_ONCE, batched
from rag_splitters.parent_child.errors import DamagedRowsError
from rag_splitters.parent_child.keyword_index import KeywordIndex
from rag_splitters.parent_child.records import RECORD_PREFIX, Entry, Record, record_key
from rag_splitters.parent_child.representations import Representations
from rag_splitters.parent_child.vectors import (
    Draft,
    Vectors,
    VectorsByText,
    embed_children,
    neighbour_weights,
)
from rag_splitters.parent_child.writing import Docstore, Turn, Writer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
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
    """The query's filter, if the keyword index can evaluate it; see `metadata_index`."""
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


@dataclass(frozen=True, slots=True)
class Stores:
    """Everything that one operation works on."""

    docstore: Docstore
    children: ChildStore
    split: Split
    id_key: str
    """The key in a child's metadata that holds its parent's id."""
    headings: bool = False
    """Whether title and headings stand before a child's text where that is embedded or indexed."""
    keywords: KeywordIndex | None = None
    inherited_keys: frozenset[str] | None = None
    """The keys of a document's metadata that its children keep; None: all."""
    representations: Representations | None = None
    """Writes further texts by which pieces are found."""
    writer: Writer = field(default_factory=Writer)
    """Lets one operation at a time write."""
    turn: Turn | None = None
    """The turn that this operation has at writing, if it has one."""

    async def in_turn(self, name: str, work: Callable[[Stores], Awaitable[T]]) -> T:
        """Do something while nobody else writes to the index of this name; see `Writer.run`."""
        if self.turn is not None:
            return await work(self)

        async def work_in_turn(turn: Turn) -> T:
            return await work(replace(self, docstore=turn.docstore, turn=turn))

        return await self.writer.run(self.docstore, name, work_in_turn)

    @property
    def current_turn(self) -> Turn:
        """The turn in which this operation writes."""
        if self.turn is None:
            raise OperationError("nothing may be written to an index outside of a turn")
        return self.turn

    async def read_records(self, identities: Sequence[str]) -> list[Record | None]:
        """Return the record of each document, or None."""
        rows = await self.docstore.read([record_key(identity) for identity in identities])
        return [Record.from_row(*pair) for pair in zip(rows, identities, strict=True)]

    async def read_documents(self, records: Sequence[Record]) -> list[Entry | None]:
        """Return the document of each record; None if a part of its text is lost."""
        keys = [
            key
            for record in records
            for key, span in zip(record.parents, record.spans, strict=True)
            if span is not None
        ]
        rows, _ = await self.read_readable(keys)
        return [record.restore_document(rows) for record in records]

    async def read_readable(self, keys: Sequence[str]) -> tuple[dict[str, Entry | None], list[str]]:
        """Return the rows of the keys, and the keys whose rows are damaged."""
        damaged: list[str] = []
        readable = list(keys)
        while True:
            try:
                rows = await self.docstore.read(readable) if readable else []
            except DamagedRowsError as error:
                damaged += error.keys
                readable = [key for key in readable if key not in error.keys]
            else:
                return dict(zip(readable, rows, strict=True)), damaged

    async def read_sound_records(self, keys: Sequence[str]) -> tuple[list[Record], list[str]]:
        """Return the records that there are of the keys, and the keys whose rows are damaged."""
        rows, damaged = await self.read_readable(keys)
        records: list[Record] = []
        for key, row in rows.items():
            try:
                record = Record.from_row(row)
            except DamagedRowsError:
                damaged.append(key)
            else:
                records += [] if record is None else [record]
        return records, damaged

    async def read_all_records(
        self, keys: Sequence[str] | None = None
    ) -> AsyncIterator[list[Record]]:
        """Yield the records of all documents, or all that there are of these keys, in batches."""
        if keys is None:
            keys = await self.docstore.list_keys(RECORD_PREFIX)
        for batch in batched(keys, DOCUMENTS_AT_ONCE):
            records = [Record.from_row(row) for row in await self.docstore.read(batch)]
            yield [record for record in records if record is not None]
