"""The stores of one operation: the docstore, the children, and what both are read with.

Every method is a coroutine that awaits only `rag_splitters.calls.Call`, so each operation is
written once and `run` or `arun` drives it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from rag_splitters.errors import OperationError
from rag_splitters.parent_child.batching import DOCUMENTS_AT_ONCE, batched
from rag_splitters.parent_child.errors import DamagedRowsError
from rag_splitters.parent_child.keywords.index import KeywordIndex
from rag_splitters.parent_child.records import RECORD_PREFIX, Entry, Record, record_key
from rag_splitters.parent_child.representations import Representations
from rag_splitters.parent_child.stores.children import ChildStore, Split
from rag_splitters.parent_child.writing import Docstore, Turn, Writer

T = TypeVar("T")


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

    async def in_turn(self, work: Callable[[Stores], Awaitable[T]]) -> T:
        """Do something while nobody else writes to the index; see `Writer.run`."""
        if self.turn is not None:
            return await work(self)

        async def work_in_turn(turn: Turn) -> T:
            return await work(replace(self, docstore=turn.docstore, turn=turn))

        return await self.writer.run(self.docstore, work_in_turn)

    @property
    def current_turn(self) -> Turn:
        """The turn in which this operation writes."""
        if self.turn is None:
            raise OperationError("nothing may be written to an index outside of a turn")
        return self.turn

    async def read_records(self, identities: Sequence[str]) -> list[Record | None]:
        """Return the record of each document, or None."""
        rows = await self.docstore.read([record_key(identity) for identity in identities])
        return list(map(Record.from_row, rows))

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
