"""The record of a source document: what it was and which chunks were made of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from rag_splitters.parent_child.passages import Passage
from rag_splitters.text.ids import stable_uuid

__all__ = ["SOURCES", "Record", "source_key"]

SOURCES = "source/"  # a prefix that is a folder's name in stores that keep files


@dataclass(frozen=True, slots=True)
class Record:
    """A source document as the docstore keeps it, and what was made of it."""

    identity: str
    document: Passage
    digest: str
    parents: tuple[str, ...]
    children: tuple[str, ...]
    child_keys: tuple[str, ...]
    pending: Literal["", "adding", "removing"] = ""
    """The operation that has not come to its end; all the chunks that may exist are listed."""

    def to_row(self) -> tuple[str, Passage]:
        """The row of the docstore that holds this record."""
        facts = {
            "document_metadata": self.document.metadata,
            "digest": self.digest,
            "parents": list(self.parents),
            "children": list(self.children),
            "child_keys": list(self.child_keys),
            "pending": self.pending,
        }
        return source_key(self.identity), Passage(self.document.text, facts, self.identity)

    @classmethod
    def from_row(cls, row: Passage | None, identity: str | None = None) -> Record | None:
        """The record in a row, or None where there is no row; the row's id is the identity."""
        if row is None:
            return None
        facts, identity = row.metadata, row.id if row.id is not None else identity
        if identity is None:
            raise ValueError("a record of the docstore has lost its id")
        return cls(
            identity=identity,
            document=Passage(row.text, facts["document_metadata"], identity),
            digest=facts["digest"],
            parents=tuple(facts["parents"]),
            children=tuple(facts["children"]),
            child_keys=tuple(facts["child_keys"]),
            pending=facts["pending"],
        )

    def merged(self, old: Record | None) -> Record:
        """This record while it is being added, with all that the old one may have left."""
        if old is None:
            return replace(self, pending="adding")
        return replace(
            self,
            parents=_union(self.parents, old.parents),
            children=_union(self.children, old.children),
            child_keys=_union(self.child_keys, old.child_keys),
            pending="adding",
        )


def source_key(identity: str) -> str:
    """The key of a document's record, made of characters that every store takes."""
    return SOURCES + stable_uuid(identity)


def _union(new: tuple[str, ...], old: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(new + old))
